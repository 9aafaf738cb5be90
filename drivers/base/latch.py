"""The latch of a drive: after STOP nothing plays until a person arms it again.

Every exciter holds one, asks it before each step upwards, and never waits for anything in doing so.
"""

from __future__ import annotations

from collections.abc import Callable

from analysis import ShakedownError


class DriveLatched(ShakedownError):
    """A drive that was stopped and has not been armed again; nothing was changed."""


class DriveStopped(ShakedownError):
    """The drive that something was made for was stopped by STOP or a trip."""


class Latch:
    """Set by STOP from any thread in no time, released by ``arm`` alone."""

    def __init__(self) -> None:
        self._reason = ""
        self._elsewhere: Callable[[], str] = str
        self._taken_over: Callable[[], object] = bool

    def watch(self, elsewhere: Callable[[], str], taken_over: Callable[[], object] = bool) -> None:
        """Also hold while another process says why: STOP in shared memory, an output taken over."""
        self._elsewhere, self._taken_over = elsewhere, taken_over

    @property
    def output_taken_over(self) -> bool:
        """Whether another process has set the output to zero: then it stays there, without a ramp."""
        return bool(self._taken_over())

    @property
    def is_set(self) -> bool:
        """Whether STOP was set here, whatever another process says."""
        return bool(self._reason)

    @property
    def reason(self) -> str:
        """Why nothing may play; empty while the drive is armed."""
        return self._reason or self._elsewhere()

    def set(self, reason: str) -> None:
        """The first reason stays."""
        self._reason = self._reason or reason or "STOP"

    def release(self) -> None:
        self._reason = ""

    def check(self) -> None:
        """DriveLatched while it holds."""
        if reason := self.reason:
            raise DriveLatched(
                f"The drive is latched ({reason.rstrip('.')}): arm it again before anything can play."
            )
