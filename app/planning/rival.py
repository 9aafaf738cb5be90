"""A plan that tells two models apart: the drive under which neither can pass for the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis import (
    SILENT,
    DataError,
    Identification,
    Misfit,
    Model,
    Progress,
    choose_separating,
    knowledge_of,
    misfit,
)
from app.planning.bench import Bench, assembled, bench_of, candidates, kept, segments_in, usual_drive
from drivers.base.waveform import Segments
from drivers.rig.profile import RigProfile

DRAWS = 4  # of each model, that the other is held against


@dataclass(frozen=True)
class Separation:
    """What the wrong one of two models leaves unexplained (chi-square), whichever of them is true."""

    if_model: float  # the model is true, the rival is fitted: median over the draws
    if_rival: float

    @property
    def smaller(self) -> float:
        return min(self.if_model, self.if_rival)


@dataclass(frozen=True, eq=False)
class RivalPlan:
    """The drive, how far apart it drives two models, and how far a multisine over the band would."""

    rig: str
    model: str
    rival: str
    seconds: float
    drive: Segments
    separation: Separation
    by_multisine: Separation | None
    broken: float


def make_rival_plan(
    model: Model,
    fit: Identification,
    rival: Model,
    rival_fit: Identification,
    profile: RigProfile,
    seconds: float = 60.0,
    seed: int = 0,
    progress: Progress = SILENT,
) -> RivalPlan:
    """The drive of that length which best separates two models; an error where there is none."""
    segments_in(seconds)  # a length that makes no sense is said before the work
    rng = np.random.default_rng(seed)
    known = knowledge_of(model, fit), knowledge_of(rival, rival_fit)
    if known[0].model.equations == known[1].model.equations:
        raise DataError("The two models have the same equations: no drive tells them apart.")
    benches = [bench_of(k, profile, rng)[0] for k in known]
    slots, each = segments_in(seconds, benches[0].prospect.memory())
    found = candidates(benches, each, lambda drive: _misfits(benches, drive, each), progress)
    priors = [benches[1].prior] * DRAWS + [benches[0].prior] * DRAWS
    chosen = choose_separating([told for _, told in found], priors, slots)
    drive, broken = kept(benches, assembled([found[c][0] for c in chosen], each), seconds, rng, progress)
    usual = usual_drive(benches, seconds)
    progress.report(1.0, "planned")
    best = _separation(benches, drive, seconds)
    plain = None if usual is None else _separation(benches, usual, seconds)
    if usual is not None and plain is not None and (best is None or plain.smaller > best.smaller):
        drive, broken = kept(benches, usual, seconds, rng, progress)
        best = _separation(benches, drive, seconds)
    if best is None:
        raise DataError("The motions of the two models cannot be followed: nothing can be planned.")
    return RivalPlan(profile.key, model.name, rival.name, seconds, drive, best, plain, broken)


def _misfits(benches: list[Bench], drive: Segments, seconds: float) -> list[Misfit] | None:
    """What each model leaves of the other's motions under this drive: first the rival's, then the model's."""
    found: list[Misfit] = []
    for true, other in (benches, benches[::-1]):
        inputs = true.inputs(drive, seconds)
        elsewhere = other.inputs(drive, seconds)
        for values in true.draws[:DRAWS]:
            run = true.prospect.motion(inputs, values)
            left = None if run is None else misfit(run, other.prospect, elsewhere)
            if left is None:
                return None
            found.append(left)
    return found


def _separation(benches: list[Bench], drive: Segments, seconds: float) -> Separation | None:
    parts = _misfits(benches, drive, seconds)
    if parts is None:
        return None
    if_model = float(np.median([p.chi2(benches[1].prior) for p in parts[:DRAWS]]))
    return Separation(if_model, float(np.median([p.chi2(benches[0].prior) for p in parts[DRAWS:]])))
