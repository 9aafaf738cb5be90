"""Where jobs are done: the one adapter between a campaign and the machines that it runs on.

An engine takes jobs and gives back outcomes as they come, in any order. Nothing else in the program knows
whether they were done by processes of this machine or by a cluster.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Protocol

from app.campaign.child import Child, Outcome
from app.campaign.jobs import Task
from app.campaign.version import full_version

WAITING = 0.5  # s between two looks whether the campaign was ended while nothing comes back


class Engine(Protocol):
    """Does jobs somewhere else."""

    words: str  # what and where it is, for people

    def outcomes(self, jobs: Iterable[Task]) -> Iterator[Outcome | None]:
        """An outcome for every job, in any order; None now and then while there is none."""

    def close(self) -> None:
        """End everything that was started; jobs under way are lost."""


class Pool:
    """Processes of this machine, each with one thread; a dead one is replaced."""

    def __init__(self, workers: int, limit: float) -> None:
        self.workers = workers or processors()
        self.words = f"{self.workers} processes on this machine"
        self._children = [Child(limit) for _ in range(self.workers)]
        self._threads: list[threading.Thread] = []
        self._ending = threading.Event()

    def outcomes(self, jobs: Iterable[Task]) -> Iterator[Outcome | None]:
        waiting, lock = iter(jobs), threading.Lock()
        back: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()

        def next_job() -> Task | None:
            with lock:
                return None if self._ending.is_set() else next(waiting, None)

        def work(child: Child) -> None:
            version = full_version()
            while (job := next_job()) is not None:
                back.put(child.perform(job, version))
            back.put(None)

        self._threads = [threading.Thread(target=work, args=(c,), daemon=True) for c in self._children]
        for thread in self._threads:
            thread.start()
        busy = len(self._threads)
        while busy:
            try:
                outcome = back.get(timeout=WAITING)
            except queue.Empty:
                yield None
                continue
            if outcome is None:
                busy -= 1
            else:
                yield outcome

    def close(self) -> None:
        self._ending.set()
        for child in self._children:
            child.close()
        for thread in self._threads:
            thread.join()
        for child in self._children:
            child.join()


def processors() -> int:
    """Processors that this program may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def engine(cluster: str | None, workers: int, limit: float) -> Engine:
    """The pool of this machine, or a Dask cluster: ``local`` or the address of its scheduler."""
    if cluster is None:
        return Pool(workers, limit)
    from app.campaign.dask_engine import DaskEngine

    return DaskEngine(cluster, workers, limit)
