"""Notices a source that gives nothing: its ``read`` may wait for ever."""

from __future__ import annotations

from drivers.base.drive_page import StreamCounts

SILENT_SECONDS = 10.0  # without a block; our own drivers say after 5 s, and better, what is wrong
LONGEST_LOOK = 0.1  # s between two looks that count: a process that was frozen has not waited


class Stall:
    """Counts the time without a block, as far as this process has run meanwhile."""

    def __init__(self, block_seconds: float) -> None:
        self.patience = SILENT_SECONDS + 4 * block_seconds
        self._seen: StreamCounts | None = None
        self._silent = self._looked = 0.0

    def noticed(self, counts: StreamCounts, now: float) -> bool:
        """Whether nothing has come for too long; ``counts`` are new ones with every block."""
        passed, self._looked = min(now - self._looked, LONGEST_LOOK), now
        if counts is not self._seen:
            self._seen, self._silent = counts, 0.0
            return False
        self._silent += passed
        return self._silent > self.patience
