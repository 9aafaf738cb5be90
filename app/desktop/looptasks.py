"""Holding and tracking as the window has them done: in a worker process, the rig at the end of a pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis import Cancelled, Identification, Progress, Record, ShakedownError

if TYPE_CHECKING:
    from analysis import Model
    from app.holding.study import Study
    from app.holding.work import HoldRequest
    from app.tracking.request import Kind, TrackChannels, TrackRequest
    from drivers.rig.profile import RigProfile

Samples = NDArray[np.float64]
AFTERWARDS = 0.95  # of the work: the drive is off, and what was seen is evaluated
CANCELLED = "Cancelled: what was found so far is kept."


@dataclass(frozen=True, eq=False)
class HoldableOrbits:
    """The orbits that the model has near the record, for the eye and to be held."""

    study: bytes  # pickled: what the rig is held by, made in one process and used in another
    listed: dict[str, Any]  # as `shakedown hold --list` tells it
    orbits: list[Samples]  # [states, nodes] of each
    shown: list[dict[str, Samples]]  # what each channel shows of them, at the same nodes


def holdable_orbits(
    profile: RigProfile, record: Record, fit: Identification, longest: int, progress: Progress
) -> HoldableOrbits:
    """Orbits that could be held on this rig; nothing moves."""
    import pickle

    from analysis.holding.holder import outputs_along
    from app.holding.study import Study

    study = Study(profile, record, fit, longest, progress.part(0.0, 0.5))
    listed = study.listed(progress.part(0.5, 1.0))
    plant, shown = study.plant, []
    for target in study.targets:
        outputs = outputs_along(plant, target.states, target.multiple)[plant.rows]
        shown.append(dict(zip(plant.channels, outputs, strict=True)))
    return HoldableOrbits(pickle.dumps(study), listed, [t.states for t in study.targets], shown)


def hold_orbits(
    link: Connection, study: bytes, request: HoldRequest, chosen: Sequence[int], progress: Progress
) -> dict[str, Any]:
    """Hold orbits of a study on the rig at the end of the pipe; what `shakedown hold --json` writes."""
    import pickle

    from app.holding.work import HoldWork
    from app.loop_pipe import PipeBench
    from app.output import plain

    known: Study = pickle.loads(study)
    bench, problem = PipeBench(link), ""
    work = HoldWork(
        bench, known, request, progress.part(0.0, AFTERWARDS), bench.tell, lambda o: bench.tell(plain(o))
    )
    try:
        work.run(chosen)
    except ShakedownError as error:
        problem = CANCELLED if isinstance(error, Cancelled) else str(error)
    files = _ended(bench, "holding is over")
    if problem != CANCELLED:
        progress.report(AFTERWARDS, f"{problem} The multipliers are computed …".strip())
        work.complete()
    result: dict[str, Any] = plain(work.result(files, problem))
    return _kept(result)


def track_branch(
    link: Connection, profile: RigProfile, channels: TrackChannels, request: TrackRequest,
    model: tuple[str, Mapping[str, float]] | None, progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    """Track a branch on the rig at the end of the pipe; what `shakedown track --json` writes, and the table.

    ``model``: text and values of the one to be set beside the branch.
    """
    from app.loop_pipe import PipeBench
    from app.output import plain
    from app.tracking.told import told_branch, told_point, write_table
    from app.tracking.work import TrackWork

    beside = None if model is None else _model(*model)
    bench, problem = PipeBench(link), ""
    work = TrackWork(
        bench, profile, channels, request, progress, lambda p: bench.tell(plain(told_point(p))),
        lambda doing, status: bench.tell((doing, status)),
    )  # fmt: skip
    try:
        work.run()
    except ShakedownError as error:
        problem = CANCELLED if isinstance(error, Cancelled) else str(error)
    files = _ended(bench, "tracking is over")
    result = _kept(plain(told_branch(work, profile, channels, beside, files, problem))) | {"table": ""}
    if result["result_file"] and work.branch is not None and work.branch.points:
        table = Path(files[0]).with_suffix(".csv")
        try:
            write_table(work.branch, channels, str(table))
        except ShakedownError as error:
            return result | {"problem": str(error)}
        result["table"] = str(table)
    return result


def branch_of_model(
    model: tuple[str, Mapping[str, float]], output: str, kind: Kind, at: float,
    points: Sequence[Mapping[str, float]], progress: Progress,
) -> tuple[Samples, Samples]:  # fmt: skip
    """The model's branch over the range of the points: parameter (force or Hz) and amplitude."""
    from analysis.tracking.model_branch import branch_beside

    rows = sorted(points, key=lambda p: p["goal"])
    columns = [np.array([p[name] for p in rows]) for name in ("frequency", "amplitude", "phase")]
    return branch_beside(_model(*model), output, kind, at, *columns)


def _model(text: str, values: Mapping[str, float]) -> Model:
    from analysis import Model

    model = Model.from_toml(text)
    return model.with_values({n: v for n, v in values.items() if n in model.parameters})


def _kept(result: dict[str, Any]) -> dict[str, Any]:
    """The result, with the file beside its recording where it lies; empty where there is none.

    A disk that is full costs the file, not what was found.
    """
    from app.output import write_json

    if not result["files"]:
        return result | {"result_file": ""}
    path = Path(result["files"][0]).with_suffix(".json")
    try:
        write_json(str(path), result)
    except ShakedownError as error:
        said = " ".join(filter(None, (result["problem"], str(error))))
        return result | {"result_file": "", "problem": said}
    return result | {"result_file": str(path)}


def _ended(bench: Any, reason: str) -> list[str]:
    """The recordings; the drive is off. A window that is gone has seen to that itself."""
    try:
        files: list[str] = bench.end(reason)
        return files
    except ShakedownError:
        return []
