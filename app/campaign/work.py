"""One job done, in whatever process it was sent to: the recording read and checked, the model fitted."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis import DataError, Model, Progress, Record, ShakedownError, identify, option_types, own_module
from app.campaign.jobs import BLOCK, HELD_OUT, PARAMETRIC, SEGMENT, WHOLE, Job
from app.campaign.recordings import stamp
from app.session import fingerprint

if TYPE_CHECKING:
    from analysis import FittedMotion, Identification

_motions: dict[str, FittedMotion] = {}  # fits from which draws of a bootstrap are made
_sums: dict[str, tuple[str, str]] = {}  # stamp and checksum of files that this process has read


class OutOfReach(DataError):
    """The file is not there or is another one: no fault of the job, which may succeed elsewhere or later."""


class Unseen(OutOfReach):
    """The file is not there for this process; it may be for another."""


def perform(job: Job, progress: Progress) -> Identification:
    """The result of a job; a ShakedownError says why there is none."""
    record = _record(job)
    found = _identified(job, record, progress)
    source = {"file": job.recording, "sha256": job.sha256}
    return replace(found, recordings=[source])


def _identified(job: Job, record: Record, progress: Progress) -> Identification:
    model, options = _model(job), typed(job)
    if job.kind == SEGMENT:
        return identify(model, _part(record, job.number, job.count), job.method, progress, **options)
    if job.kind == HELD_OUT:
        return _held_out(job, record, progress)
    if job.kind in (PARAMETRIC, BLOCK):
        rng = np.random.default_rng([job.seed, job.number, int(job.sha256[:8], 16)])
        motion = _motion(replace(job, kind=WHOLE, number=0, count=1, seed=0), record, progress.part(0, 0.5))
        return identify(model, motion.draw(job.kind, rng), job.method, progress.part(0.5, 1), **options)
    return identify(model, record, job.method, progress, **options)


def _motion(base: Job, record: Record, progress: Progress) -> FittedMotion:
    """The fit that the draws are made from: found once in each process, the same in all of them."""
    from analysis import fitted_motion

    if base.key not in _motions:
        _motions.clear()  # draws of one fit come together: one is enough
        _motions[base.key] = fitted_motion(_model(base), [record], base.method, progress, **typed(base))
    return _motions[base.key]


def _record(job: Job) -> Record:
    """The recording, if it is still the one that the study began with."""
    from drivers.formats import read

    path = Path(job.recording)
    mark = stamp(job.recording)
    if not mark:
        raise Unseen(
            f"{platform.node()} cannot see {path}: the folder must be there under the same name on every "
            f"machine."
        )
    if _sums.get(job.recording, ("", ""))[0] != mark:
        _sums[job.recording] = (mark, fingerprint(path))
    if _sums[job.recording][1] != job.sha256:
        raise OutOfReach(f"{path} has changed since the study began: start the campaign again.")
    record = read(path, rate=job.rate)
    channels = dict(record.channels)
    for name, channel in job.channels.items():
        record[channel]  # an unknown channel is refused here, with the list of those there are
        channels[name] = record.channels[channel]
    return replace(record, channels=channels)


def _part(record: Record, number: int, count: int) -> Record:
    edges = np.linspace(0, len(record), count + 1).astype(int)
    return record.cut(int(edges[number]), int(edges[number + 1]))


def _held_out(job: Job, record: Record, progress: Progress) -> Identification:
    """Fitted to all but one part of the recording; how well that part is predicted is told beside."""
    model = _model(job)
    edges = np.linspace(0, len(record), job.count + 1).astype(int)
    pieces = [(0, int(edges[job.number])), (int(edges[job.number + 1]), len(record))]
    rest = [record.cut(a, b) for a, b in pieces if b > a]
    found = identify(model, rest, job.method, progress.part(0, 0.8), **typed(job))
    left_out = _part(record, job.number, job.count)
    return replace(found, extra={**found.extra, "left out R2": _predicted(model, left_out, found, progress)})


def _predicted(model: Model, record: Record, found: Identification, progress: Progress) -> dict[str, float]:
    """Share of the variance of each output that the fitted model predicts, restarted every two periods."""
    from analysis import predict_response, prepare_subject

    values = {n: v for n, v in found.values().items() if n in model.parameters}
    try:
        subject = prepare_subject(model, record, values)
        told = predict_response(subject, min(2 * subject.base, 0.2 * record.duration), progress.part(0.8, 1))
    except ShakedownError:  # such as a state that nothing shows: there is nothing to start from
        return {}
    return {n: 1 - float(e) ** 2 for n, e in zip(told.names, told.error, strict=True)}


def _model(job: Job) -> Any:
    module = own_module(job.method)
    if module is not None:
        return module.load(job.model, job.model_name)
    return Model.from_toml(job.model, job.model_name)


def typed(job: Job) -> dict[str, Any]:
    """The options of a job as the method takes them: lists of a study file are tuples there."""
    from typing import get_type_hints

    from analysis import read_as

    hints = {n: h for kind in reversed(option_types(job.method)) for n, h in get_type_hints(kind).items()}
    return {name: read_as(hints[name], value, name) for name, value in job.options.items()}
