"""How long something has not moved, as far as this process has run meanwhile."""

from __future__ import annotations

LONGEST_LOOK = 0.1  # s between two looks that count: a process that was frozen has not waited


class Standstill:
    """Looked at again and again; time in which this process was frozen itself is not held against it."""

    def __init__(self) -> None:
        self._seen: object = None
        self._still = self._looked = 0.0

    def begin(self, now: float) -> None:
        """Count anew from ``now`` (time.monotonic())."""
        self._still, self._looked = 0.0, now

    def seconds(self, seen: object, now: float) -> float:
        """For how long ``seen`` has been the same, at ``now`` (time.monotonic())."""
        passed, self._looked = min(now - self._looked, LONGEST_LOOK), now
        self._still = self._still + passed if seen == self._seen else 0.0
        self._seen = seen
        return self._still
