"""Ctrl-C as a question that is asked at safe places.

Python raises KeyboardInterrupt between any two instructions, also between taking a lock and noting that it is
taken: that lock then stays taken for ever, and whoever waits for the end of a recording waits with it.
"""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType


class CtrlC:
    """While entered, Ctrl-C is only noted; again after ``patience`` s in vain it interrupts at once."""

    def __init__(self, patience: float = 1.0) -> None:
        self._pressed: float | None = None  # when; a terminal and a wrapper may pass on the same press twice
        self._patience = patience
        self._main = threading.current_thread() is threading.main_thread()  # only there signals arrive

    def __enter__(self) -> CtrlC:
        if self._main:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._before)

    def check(self) -> bool:
        """Raise KeyboardInterrupt here if it was asked for; else False, as an answer to "cancelled?"."""
        if self._pressed is not None:
            self._pressed = None
            raise KeyboardInterrupt
        return False

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._pressed is not None and now - self._pressed >= self._patience:
            raise KeyboardInterrupt
        self._pressed = self._pressed or now
