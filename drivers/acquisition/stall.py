"""Notices a source that gives nothing: its ``read`` may wait for ever."""

from __future__ import annotations

from drivers.base.standstill import Standstill

SILENT_SECONDS = 10.0  # without a block; our own drivers say after 5 s, and better, what is wrong
BLIND_SECONDS = 3.0  # the same while the shaker is driven: nobody sees a channel pass its limit


class Stall:
    """Counts the time without a block, as far as this process has run meanwhile."""

    def __init__(self, block_seconds: float) -> None:
        blocks = 4 * block_seconds
        self.patience, self.blind = SILENT_SECONDS + blocks, BLIND_SECONDS + blocks
        self._standstill = Standstill()

    def silent(self, seen: object, now: float) -> float:
        """For how long (s) nothing has come; every block, and every new stream, changes what is ``seen``."""
        return self._standstill.seconds(seen, now)
