"""The way of an NI output to zero when a call of the driver may hang: no zero waits for that call.

The output ramps down by values of a task of its own. Its calls are made in a thread; where one of them does
not come back, or fails, the device is reset: that ends every task on it, whoever waits in which, and the
output is zero. A value that comes back late finds its task ended, and only zeros follow it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from drivers.base.limits import Limits
from drivers.instruments.nidaq_errors import in_words
from drivers.instruments.nidaq_output import OutputTerminal
from drivers.instruments.written_samples import fall_from

HANGING_CALL = 0.02  # s after which a call of the driver is not waited for any more
RAMP = 0.02  # s of the fall: half of a STOP's, since the time before it was spent on waiting for an answer
RATE = 1000.0  # values a second of which the fall is cut
PACE = 0.002  # s between two values
PATIENCE = 1.0  # s for the reset; then the output counts as out of reach
LEFT_BEHIND = 2.0  # s that a new start waits for a call that hung


class Fall:
    """One fall of an output, from ``value`` on which it stands."""

    def __init__(
        self, output: OutputTerminal, task: Any, limits: Limits, value: float, taken_over: Callable[[], bool]
    ) -> None:
        """``task``: who had the output until now; ``taken_over``: somebody else has set it to zero."""
        self._output, self._old, self._taken_over = output, task, taken_over
        self._values = fall_from(value, limits, RATE, RAMP)
        self._moved_at = time.monotonic()  # at which a call came back
        self._cut = threading.Event()  # no values but zeros from now on
        self._zero = threading.Event()
        self._problems: list[str] = []
        self._threads: list[threading.Thread] = []
        self.was_reset = False

    def run(self) -> str:
        """Bring it down; why it is not known to be at zero, or nothing."""
        self._begin(self._ramp)
        while not self._zero.is_set() and not self._problems:
            if time.monotonic() - self._moved_at > HANGING_CALL:
                break
            self._zero.wait(PACE)
        if self._zero.is_set():
            return ""
        self._cut.set()
        self._begin(self._reset)
        until = time.monotonic() + PATIENCE
        while not self._zero.wait(PACE) and time.monotonic() < until and self._busy:
            pass
        if self._zero.is_set():
            return ""
        return "; ".join(dict.fromkeys(self._problems)) or f"the driver did not answer for {PATIENCE:g} s"

    def over(self) -> bool:
        """Wait for calls that hung, a while; whether all have come back."""
        until = time.monotonic() + LEFT_BEHIND
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not self._busy

    @property
    def _busy(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _begin(self, way: Callable[[], None]) -> None:
        def go() -> None:
            try:
                way()
            except Exception as error:  # whatever the driver makes of a device that is gone
                self._problems.append(str(error))
            else:
                self._zero.set()

        thread = threading.Thread(target=go, name="fall of the output", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _ramp(self) -> None:
        if self._old is not None:
            for end in (self._old.stop, self._old.close):
                with contextlib.suppress(Exception):  # what follows must not depend on it
                    end()
                self._moved_at = time.monotonic()
        with in_words("bringing the output to zero"), self._output.task() as task:
            self._moved_at = time.monotonic()
            task.start()
            self._moved_at = began = time.monotonic()
            while (place := int((time.monotonic() - began) * RATE)) < len(self._values):
                if self._cut.is_set() or self._taken_over():  # a ramp from where it stood would be a step up
                    break
                task.write(float(self._values[place]), auto_start=False)
                self._moved_at = time.monotonic()
                time.sleep(PACE)
            task.write(0.0, auto_start=False)
            self._zero.set()  # closing the task may take its time

    def _reset(self) -> None:
        self._output.reset()
        self.was_reset = True
