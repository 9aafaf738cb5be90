"""The same jobs on a Dask cluster, started here or run by a laboratory.

Each thread of a worker hands its jobs to a process of its own (:class:`~app.campaign.child.Child`), so that
a job that crashes or hangs costs neither the worker nor the limit of time; small jobs travel in bundles.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import re
import threading
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from analysis import ShakedownError, need_extra
from app.campaign.child import LOST, Child, Outcome
from app.campaign.jobs import Job, Task, task
from app.campaign.version import full_version

PATIENCE = 15.0  # s until a scheduler must have answered, and a cluster must have its first worker
BUNDLE = 1.0  # s of work that travel together
MOST_BUNDLED = 200
AHEAD = 2  # bundles for each thread of the workers, so that none idles
PARTING = 3.0  # s that the workers have to end their processes for jobs
WAITING = 0.5  # s between two looks whether the scheduler is still there
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://[^\s/]+:\d+")
# A worker of a cluster of our own only waits for its process for jobs: watching itself wait takes time of the
# processor that the jobs lack.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "2s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "500ms",
}
GONE = "The scheduler is gone. Every finished job is kept: start the campaign again to go on."


class DaskEngine:
    """A client of one scheduler."""

    def __init__(self, cluster: str, workers: int, limit: float) -> None:
        need_extra("cluster")
        import dask
        import distributed

        if cluster != "local" and not _ADDRESS.fullmatch(cluster):
            raise ShakedownError(
                f"`{cluster}` is no cluster: say local, or the scheduler's address such as tcp://host:8786."
            )
        self.limit = limit
        self._cluster: Any = None
        self._blind: set[str] = set()  # addresses of workers that do not see a recording which is there
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said in our words
        try:
            if cluster == "local":
                from app.campaign.engine import processors

                with dask.config.set(QUIET), warnings.catch_warnings():
                    warnings.simplefilter(
                        "ignore"
                    )  # such as another port for the dashboard, which is printed
                    self._cluster = distributed.LocalCluster(
                        n_workers=workers or processors(),
                        threads_per_worker=1,
                        processes=True,
                        silence_logs=logging.CRITICAL,
                    )
            self.client = distributed.Client(self._cluster or cluster, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ShakedownError(f"No scheduler answers at {cluster} ({_first_line(error)}).") from None
        try:
            self.words = self._checked()
        except BaseException:
            self.close()
            raise

    def _checked(self) -> str:
        """The workers, if they run this program in this version; where they can be watched."""
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise ShakedownError("The cluster has no workers: start some with `dask worker`.") from None
        try:
            versions = self.client.run(_version_there)
        except Exception as error:  # whatever the worker raised comes back as it was
            raise ShakedownError(
                f"The workers of the cluster cannot run Shakedown ({_first_line(error)}): install this "
                f"version on every machine."
            ) from None
        for address, version in versions.items():
            if version != full_version():
                raise ShakedownError(
                    f"The worker {address} runs {version}, this program {full_version()}: install the same."
                )
        return f"Dask workers: {len(versions)}; dashboard {self.client.dashboard_link}"

    def outcomes(self, jobs: Iterable[Task]) -> Iterator[Outcome | None]:
        waiting = iter(jobs)
        back: queue.SimpleQueue[Any] = queue.SimpleQueue()  # futures that have come back
        under_way: dict[Any, list[Task]] = {}
        size, more = 1, True
        while more or under_way:
            while more and len(under_way) < AHEAD * self._threads():
                bundle = list(islice(waiting, size))
                more = len(bundle) == size
                if bundle:
                    future = self._submit(bundle)
                    under_way[future.key] = bundle
                    future.add_done_callback(back.put)
            if not under_way:
                return
            try:
                future = back.get(timeout=WAITING)
            except queue.Empty:
                self._check_scheduler()
                yield None
                continue
            outcomes = self._collected(future, under_way.pop(future.key))
            taken = sum(o.seconds for o in outcomes) / len(outcomes)
            size = max(1, min(MOST_BUNDLED, int(BUNDLE / max(taken, 1e-3))))
            yield from outcomes

    def _threads(self) -> int:
        """Threads of the workers that are there now: some may have joined or gone."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return max(sum(worker["nthreads"] for worker in workers), 1)

    def _submit(self, bundle: list[Task]) -> Any:
        texts = [job.to_dict() for job in bundle]
        where = {"workers": self._seeing()} if self._blind else {}
        return self.client.submit(_perform_bundle, texts, full_version(), self.limit, pure=False, **where)

    def _seeing(self) -> list[str] | None:
        """Workers that see the recordings as far as is known: a blind one fails at once, and would soon have
        failed every job; None (any worker) where there is no other."""
        there = self.client.scheduler_info(n_workers=-1)["workers"]
        return [address for address in there if address not in self._blind] or None

    def _check_scheduler(self) -> None:
        if self.client.status != "running":
            raise ShakedownError(GONE)

    def _collected(self, future: Any, bundle: list[Task]) -> list[Outcome]:
        try:
            outcomes = [Outcome(**raw) for raw in future.result(timeout=PATIENCE)]
            if any(o.unseen for o in outcomes) and all(_is_here(job) for job in bundle):
                self._blind.update(*self.client.who_has([future]).values())
            return outcomes
        except Exception as error:  # the worker was killed, or the scheduler forgot the bundle
            if future.cancelled() or self.client.status != "running":
                raise ShakedownError(GONE) from None
            words = f"Its worker was lost ({_first_line(error)})."
            return [Outcome(job.key, LOST, sentence=words) for job in bundle]
        finally:
            future.release()

    def close(self) -> None:
        if self._cluster is None:  # workers of somebody else stay, without processes of ours
            ending = threading.Thread(target=self._let_go, daemon=True)
            ending.start()
            ending.join(PARTING)
        with contextlib.suppress(Exception):
            self.client.close(timeout=2)
        if self._cluster is not None:
            with contextlib.suppress(Exception):
                self._cluster.close(timeout=5)

    def _let_go(self) -> None:
        if self.client.status == "running":
            with contextlib.suppress(Exception):
                self.client.run(_end_processes)


def _version_there() -> str:
    """In a worker of the cluster: the version that is installed there."""
    return full_version()


@dataclass
class _Place:
    """A thread of this Dask worker with its process for jobs: two threads would mix up its answers."""

    child: Child
    busy: threading.Lock = field(default_factory=threading.Lock)
    leaving: bool = False  # the process ends when its bundle is done


_own = threading.local()
_places: list[_Place] = []


def _perform_bundle(jobs: list[dict[str, Any]], version: str, limit: float) -> list[dict[str, Any]]:
    """In a thread of a worker of the cluster: jobs done one after the other, in its own process for jobs."""
    if "place" not in vars(_own):
        _own.place = _Place(Child(limit))
        _places.append(_own.place)
    place: _Place = _own.place
    with place.busy:
        place.child.limit, place.leaving = limit, False
        done = [vars(place.child.perform(task(raw), version)) for raw in jobs]
        if place.leaving:
            place.child.rest()
    return done


def _end_processes() -> None:
    """In a worker of the cluster whose campaign is over: end the processes for jobs, busy ones when they are
    done; another campaign that needs one starts it anew."""
    for place in _places:
        place.leaving = True
        if place.busy.acquire(blocking=False):
            place.child.rest()
            place.busy.release()


def _is_here(job: Task) -> bool:
    return isinstance(job, Job) and Path(job.recording).is_file()


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]
