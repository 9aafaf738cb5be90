"""The same jobs on a Dask cluster, started here or run by a laboratory.

Each worker hands its jobs to a process of its own (:class:`~app.campaign.child.Child`), so that a job that
crashes or hangs costs neither the worker nor the limit of time; small jobs travel in bundles.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from analysis import ShakedownError
from app.campaign.child import LOST, Child, Outcome
from app.campaign.jobs import Job
from app.campaign.version import full_version

PATIENCE = 15.0  # s until a scheduler must have answered, and a cluster must have its first worker
BUNDLE = 1.0  # s of work that travel together
MOST_BUNDLED = 200
AHEAD = 2  # bundles a worker has waiting, so that it never idles
WAITING = 0.5  # s


class DaskEngine:
    """A client of one scheduler."""

    def __init__(self, cluster: str, workers: int, limit: float) -> None:
        try:
            import distributed
        except ImportError:
            raise ShakedownError(
                "Campaigns on a cluster need Dask: pip install shakedown-lab[cluster]."
            ) from None
        self.limit = limit
        self._cluster: Any = None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said in our words
        try:
            if cluster == "local":
                from app.campaign.engine import processors

                self._cluster = distributed.LocalCluster(
                    n_workers=workers or processors(), threads_per_worker=1, processes=True
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
            versions = self.client.run(full_version)
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
        return f"{len(versions)} Dask workers; dashboard {self.client.dashboard_link}"

    def outcomes(self, jobs: Iterable[Job]) -> Iterator[Outcome | None]:
        from distributed import as_completed

        waiting = iter(jobs)
        size, running = 1, 0
        done = as_completed()
        under_way: dict[Any, list[Job]] = {}
        more = True
        while more or running:
            workers = max(len(self.client.scheduler_info(n_workers=-1)["workers"]), 1) if more else 1
            while more and running < AHEAD * workers:
                bundle = list(islice(waiting, size))
                more = len(bundle) == size
                if bundle:
                    done.add(self._submit(bundle, under_way))
                    running += 1
            if not running:
                break
            future = self._next(done)
            if future is None:
                yield None
                continue
            running -= 1
            bundle = under_way.pop(future.key)
            outcomes = self._collected(future, bundle)
            taken = sum(o.seconds for o in outcomes) / len(outcomes)
            size = max(1, min(MOST_BUNDLED, int(BUNDLE / max(taken, 1e-3))))
            yield from outcomes

    def _submit(self, bundle: list[Job], under_way: dict[Any, list[Job]]) -> Any:
        texts = [job.to_dict() for job in bundle]
        future = self.client.submit(_perform_bundle, texts, full_version(), self.limit, pure=False)
        under_way[future.key] = bundle
        return future

    def _next(self, done: Any) -> Any | None:
        """The next bundle that has come back; None after a while without one."""
        deadline = time.monotonic() + WAITING
        while time.monotonic() < deadline:
            if self.client.status not in ("running", "connecting"):
                raise ShakedownError(
                    "The scheduler is gone. Every finished job is kept: start the campaign again to go on."
                )
            if not done.is_empty() and done.has_ready():
                return next(done)
            time.sleep(0.005)
        return None

    def _collected(self, future: Any, bundle: list[Job]) -> list[Outcome]:
        try:
            return [Outcome(**raw) for raw in future.result(timeout=PATIENCE)]
        except Exception as error:  # the worker was killed, or the scheduler forgot the bundle
            if self.client.status != "running" or future.cancelled():
                raise ShakedownError(
                    "The scheduler is gone. Every finished job is kept: start the campaign again to go on."
                ) from None
            words = f"Its worker was lost ({_first_line(error)})."
            return [Outcome(job.key, LOST, sentence=words) for job in bundle]
        finally:
            future.release()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.client.close(timeout=2)
        if self._cluster is not None:
            with contextlib.suppress(Exception):
                self._cluster.close(timeout=5)


_child: Child | None = None  # of this Dask worker


def _perform_bundle(jobs: list[dict[str, Any]], version: str, limit: float) -> list[dict[str, Any]]:
    """In a worker of the cluster: jobs done one after the other, in its own process for jobs."""
    global _child
    if _child is None:
        _child = Child(limit)
    _child.limit = limit
    return [vars(_child.perform(Job(**raw), version)) for raw in jobs]


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]
