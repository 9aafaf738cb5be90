"""The loop of a campaign: what is missing is done, what is done is kept, what fails is tried once more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from analysis import Progress
from app.campaign.child import DONE, FAILED, Outcome
from app.campaign.jobs import Job, Task
from app.campaign.store import FITS
from app.project import find_folder
from app.words import duration

if TYPE_CHECKING:
    from app.campaign.engine import Engine

TRIED = 3  # jobs from which a dry run judges the time, beside the first of each process


class ResultStore(Protocol):
    """Where finished jobs are kept."""

    done: set[str]  # keys

    def keep(self, outcome: Outcome) -> None: ...


@dataclass
class Tally:
    """How a campaign went."""

    total: int
    before: int = 0  # jobs that an earlier start had finished
    done: int = 0
    failures: dict[str, str] = field(default_factory=dict)  # a sentence by key, of jobs without a result
    seconds: float = 0.0  # of work, in all jobs of this start
    warm: list[float] = field(default_factory=list)  # s of jobs that were not the first of their process

    @property
    def finished(self) -> int:
        return self.before + self.done + len(self.failures)


def run(
    jobs: Iterable[Task],
    store: ResultStore,
    engine: Callable[[], Engine],
    progress: Progress,
    watch: Callable[[str], None] = lambda words: None,
) -> Tally:
    """Do every job that the store does not hold; ``engine`` is started only if there is one.

    A job that fails is tried once more. A failure of the job itself is kept like a result; one whose process
    or file was lost is listed now and done again by the next start.
    """
    jobs = list(jobs)
    missing = list({job.key: job for job in jobs if job.key not in store.done}.values())
    total = len({job.key for job in jobs})
    tally = Tally(total, total - len(missing))
    if not missing:
        return tally
    started = engine()
    watch(started.words)
    begun = time.monotonic()
    try:
        again: list[Task] = []
        by_key = {job.key: job for job in missing}
        for outcome in started.outcomes(missing):
            _report(tally, len(missing), begun, progress)
            if outcome is None:
                continue
            if outcome.status == DONE:
                _keep(outcome, store, tally)
            else:
                again.append(by_key[outcome.key])
        for outcome in started.outcomes(again) if again else ():
            _report(tally, len(missing), begun, progress)
            if outcome is not None:
                _keep(outcome, store, tally)
    finally:
        started.close()
    return tally


def estimate(
    jobs: Iterable[Job], store: ResultStore, engine: Engine, workers: int, progress: Progress
) -> tuple[float, int]:
    """Seconds of work of one job, from a few that are done (and kept) now, and how many are missing.

    The first job of a process loads and compiles, and says nothing about the others.
    """
    missing = [job for job in jobs if job.key not in store.done]
    tally = run(_spread(missing, TRIED + workers), store, lambda: engine, progress)
    tried = tally.done + len(tally.failures)
    mean = sum(tally.warm) / len(tally.warm) if tally.warm else tally.seconds / max(tried, 1)
    return mean, len(missing) - tally.done


def _spread(jobs: list[Job], count: int) -> Iterator[Job]:
    """A few jobs from all over the list."""
    step = max(len(jobs) // count, 1)
    yield from jobs[::step][:count]


def _keep(outcome: Outcome, store: ResultStore, tally: Tally) -> None:
    tally.seconds += outcome.seconds
    if not outcome.first:
        tally.warm.append(outcome.seconds)
    if outcome.status in (DONE, FAILED):
        store.keep(outcome)
    if outcome.status == DONE:
        tally.done += 1
    else:
        tally.failures[outcome.key] = outcome.sentence


def _report(tally: Tally, missing: int, begun: float, progress: Progress) -> None:
    done = tally.done + len(tally.failures)
    left = (time.monotonic() - begun) * (missing - done) / done if done else 0.0
    words = f"{tally.before + done} of {tally.total} jobs"
    if done:
        words += f", {duration(left)} left"
    progress.report(done / missing, words)


def results_folder(out: str | None, study: Path) -> Path:
    """Where results go: as asked, else into the project we are in, else beside the study."""
    beside, project = study.with_suffix(""), find_folder()
    if out or project is None or (beside / FITS).is_dir():  # begun beside its study, it goes on there
        return Path(out) if out else beside
    return project / "campaigns" / study.stem
