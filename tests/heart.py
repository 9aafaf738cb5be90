"""Tells how long a busy machine kept this process from running, so that delays can be judged without it."""

from __future__ import annotations

import threading
import time

import numpy as np

TICK = 0.002


class Heart:
    """Beats every 2 ms in a thread of its own; pauses between beats are the machine's, not the program's."""

    def __enter__(self) -> Heart:
        self._beats = [time.monotonic()]
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._end.wait(TICK):
            self._beats.append(time.monotonic())

    def stalled(self, since: float, until: float) -> float:
        """Seconds between two times in which nothing of this process ran."""
        beats = np.array(self._beats)
        pauses = np.diff(beats[(beats > since - 0.1) & (beats < until + 0.1)])
        return float(np.maximum(pauses - 3 * TICK, 0).sum())
