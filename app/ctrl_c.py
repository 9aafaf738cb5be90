"""Ctrl-C, Ctrl-Z, a closed terminal: requests to end, as a question that is asked at safe places.

Python raises KeyboardInterrupt between any two instructions, also between taking a lock and noting that it is
taken: that lock then stays taken for ever, and whoever waits for the end of a recording waits with it. The
other signals would end or freeze the program while its shaker runs.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType

# Signals that end a program or freeze it, beside Ctrl-C, and what they mean to the person at the terminal.
OTHERS = {
    "SIGTERM": "the program was asked to end",
    "SIGHUP": "the terminal was closed",
    "SIGQUIT": "Ctrl-\\ was pressed",
    "SIGTSTP": "Ctrl-Z was pressed, and a drive cannot be suspended",
}


class CtrlC:
    """While entered, Ctrl-C is only noted; again after ``patience`` s in vain it interrupts at once.

    With ``at_once`` the signals of OTHERS are noted too, and it is called from within the handler with their
    meaning: it must not wait for anything.
    """

    def __init__(self, patience: float = 1.0, at_once: Callable[[str], object] | None = None) -> None:
        self._pressed: float | None = None  # when; a terminal and a wrapper may pass on the same press twice
        self._patience = patience
        self._at_once = at_once
        self.word = ""  # what ended it, if it was not Ctrl-C
        self._main = threading.current_thread() is threading.main_thread()  # only there signals arrive

    def __enter__(self) -> CtrlC:
        names = ["SIGINT", *(OTHERS if self._at_once is not None else ())]
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)] if self._main else []
        self._before = {number: signal.signal(number, self._note) for number in numbers}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> bool:
        """Raise KeyboardInterrupt here if it was asked for; else False, as an answer to "cancelled?"."""
        if self._pressed is not None:
            self._pressed = None
            raise KeyboardInterrupt
        return False

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if number != signal.SIGINT and self._at_once is not None:
            self.word = self.word or OTHERS[signal.Signals(number).name]
            self._at_once(self.word)
        elif self._pressed is not None and now - self._pressed >= self._patience:
            raise KeyboardInterrupt
        self._pressed = self._pressed or now


def check_noted() -> None:
    """Raise KeyboardInterrupt here if the CtrlC that is entered has noted one; for who was not given it."""
    noted = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    if isinstance(noted, CtrlC):
        noted.check()
