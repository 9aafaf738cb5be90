"""shakedown campaign: a study of many recordings, on this machine or on a cluster."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import ShakedownError
from app.output import add_json_option, plain, sentence, terminal_progress, write_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.campaign.run import Tally
    from app.campaign.store import Store
    from app.campaign.study import Plan

LISTED = 10  # failures and jobs that are printed


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY.toml", help="recordings, models, methods and what varies")
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        help="folder of results (default: named like the study; in a project below `campaigns`)",
    )
    parser.add_argument(
        "--cluster", metavar="WHERE", help="run on Dask: local, or a scheduler such as tcp://host:8786"
    )
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="processes on this machine")
    parser.add_argument("--dry-run", action="store_true", help="list the jobs and estimate the time")
    parser.add_argument(
        "--retry", action="store_true", help="do the jobs again that failed at an earlier start"
    )
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from app.campaign.engine import engine, processors
    from app.campaign.run import estimate, results_folder
    from app.campaign.run import run as run_jobs
    from app.campaign.store import Store

    study_path = Path(args.study)
    study, plan_of = _study(study_path)
    workers = args.workers or study.run.workers
    together = workers or processors()
    if args.workers < 0:
        raise ShakedownError("--workers must not be negative.")
    with Store(results_folder(args.out, study_path)) as store:
        plan = _planned(store, plan_of)
        if args.retry:
            store.forget_failures()
        progress = terminal_progress()

        def started() -> Any:
            return engine(args.cluster, workers, study.run.limit)

        if args.dry_run:
            each, missing = estimate(plan.jobs, store, started(), together, progress)
            return _show_estimate(plan, each, missing, together, args.json)
        tally = run_jobs(plan.jobs, store, started, progress, lambda words: _say(f"on {words}"))
        return _finish(plan, store.folder, tally, args.json)


def _planned(store: Store, plan_of: Callable[[Any, Any], Plan]) -> Plan:
    """The plan; what it looked at is kept. It is made of thousands of small things that all stay: whether
    some are no longer needed is not asked meanwhile."""
    gc.disable()
    try:
        known = store.seen()
        plan = plan_of(known, store.done)
    finally:
        gc.enable()
    if any(known.get(s.path) is not s for s in plan.seen):
        store.keep_seen(plan.seen)
    return plan


def _study(path: Path) -> Any:
    """The study, and what makes a plan of it from what is known of the recordings."""
    from app.campaign.study import plan, read_study
    from app.project import find_folder
    from app.settings import Settings

    study = read_study(path)
    base, project = path.resolve().parent, find_folder()
    library = Settings.load().library_folder if project is None else project / "recordings"

    def plan_of(known: Any, done: Any) -> Plan:
        return plan(study, base, library, known, terminal_progress(), done, project)

    return study, plan_of


def _finish(plan: Plan, folder: Path, tally: Tally, json: str | None) -> int:
    from app.campaign.results import write_results

    written = write_results(plan, folder, tally.failures)
    payload = {
        "jobs": tally.total,
        "done before": tally.before,
        "done": tally.done,
        "failed": written.failed,
        "unsuitable": dict(plan.unsuitable),
        "files": [str(path) for path in written.files],
        "summary": written.summary,
    }
    if not write_json(json, plain(payload)):
        print(f"{tally.total} jobs: {tally.before} were done before, {tally.done} are done now.")
        for name, words in list(plan.unsuitable.items())[:LISTED]:
            print(f"! left out: {Path(name).name}: {sentence(words)}")
        for line in written.sentences:
            print(f"- {line}")
        for path in written.files:
            print(path)
    causes = sorted(written.causes.items(), key=lambda item: -len(item[1]))
    for words, names in causes[:LISTED]:
        own = list(dict.fromkeys(names))  # a recording may have many jobs
        _say(f"{len(names)} failed ({', '.join(own[:3])}{' ...' * (len(own) > 3)}): {words}")
    if len(causes) > LISTED:
        _say(f"{len(causes) - LISTED} more reasons are in {folder / 'table.csv'}.")
    return 1 if written.failed else 0


def _show_estimate(plan: Plan, each: float, missing: int, together: int, json: str | None) -> int:
    from app.words import duration

    left = each * missing / together
    payload = {"jobs": len(plan.jobs), "missing": missing, "seconds a job": each, "seconds": left}
    if write_json(json, payload | {"list": [job.words for job in plan.jobs]}):
        return 0
    for job in plan.jobs[:LISTED]:
        print(job.words)
    if len(plan.jobs) > LISTED:
        print(f"... and {len(plan.jobs) - LISTED} more")
    print(
        f"{len(plan.jobs)} jobs, {missing} still to be done, {each:.2g} s each: about {duration(left)} with "
        f"{together} workers."
    )
    return 0


def _say(words: str) -> None:
    print(f"shakedown: {words}", file=sys.stderr, flush=True)
