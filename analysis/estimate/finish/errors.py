"""The error bars that are reported: of coloured noise while parts and records agree, else their spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import Progress
from analysis.estimate.finish.evidence import RARE, Evidence
from analysis.estimate.finish.held_out import output_spread
from analysis.estimate.finish.honest import (
    DISAGREE,
    FEW_PARTS,
    LONG,
    PARTS,
    SHORT,
    Errors,
    Test,
    agreement,
    noise_processes,
    sandwich,
    scatter_over_noise,
    shift_test,
    spread_between,
)
from analysis.estimate.finish.linearised import Regression, joined, linearisations, regressions_of
from analysis.estimate.identifiability import covariance_of, pseudo_inverse

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted

Array = NDArray[np.float64]

_MOST_ALONE = 20  # records that are fitted one by one when they disagree
_FEW = 100  # degrees of freedom below which the noise is known so poorly that the intervals widen
ROUNDING = 1e-4  # of an output's spread: the noise that the errors of a noiseless record stand for
_HINT = 2.3  # |t| of a missing term that tells little alone, but beside parts that differ at DISAGREE enough
_SAME = 3.0  # standard errors of chi2/dof within which it is one


@dataclass(frozen=True, eq=False)
class ErrorBars:
    """Estimate and errors as they are reported, and the tests that chose them."""

    estimate: Array
    errors: Errors
    kind: str  # ideal | coloured | scatter | parts | records
    tests: dict[str, Test]
    parts: int
    asked: Array | None = None  # step [P] that the residuals of the parts still ask for; None: see the whole

    def against(self) -> list[str]:
        words = {
            "parts": "Parts of the record ask for different parameters",
            "course": "The residuals pull at the parameters differently along the record",
            "shift": "The parameters move when the record is fitted in parts",
            "records": "The records ask for different parameters",
        }
        return [
            f"{words[name]} (p = {test.probability:.1g})."
            for name, test in self.tests.items()
            if test.probability < RARE
        ]

    def supporting(self) -> list[str]:
        """What the agreement of parts and records says for the fit."""
        if not self.tests:
            return []
        least = min(test.probability for test in self.tests.values())
        return [f"{self.parts} parts agree on the parameters (p = {least:.2g})."]

    def figures(self) -> dict[str, Any]:
        return {
            "errors": self.kind,
            "agreement": {name: test.probability for name, test in self.tests.items()},
        }


def error_bars(fitted: Fitted, evidence: Evidence, progress: Progress) -> ErrorBars:
    """Choose between the errors of white noise, of coloured noise, and the spread of parts or records.

    What is unknown of the inputs, a delay between channels, a high-pass or an input that an output lacks
    moves every part alike, so the spread does not show it: what the unknowns would move by counts as a
    further error.
    """
    bars = _spread_or_noise(fitted, evidence, progress)
    covariance = bars.errors.covariance
    if bars.kind == "parts":
        covariance = covariance + fitted.input_covariance
    for missing in evidence.moves:
        covariance = covariance + np.outer(missing.shift, missing.shift)
    return replace(bars, errors=replace(bars.errors, covariance=covariance))


def _spread_or_noise(fitted: Fitted, evidence: Evidence, progress: Progress) -> ErrorBars:
    coloured = Errors(_coloured(fitted, evidence), _quantile_freedom(fitted))
    kind = "ideal" if _is_white(fitted, evidence) else "coloured"
    parts = _parts(fitted, progress)
    if parts is None or len(parts[0]) < 2:
        return ErrorBars(fitted.estimate, coloured, kind, {}, 0)
    between, shifted = parts
    used = len(fitted.estimate) + len(between) * len(fitted.pieces[0].states)
    processes = noise_processes(between, used)
    course = _course(evidence.regressions, len(between))
    tests = {
        "parts": agreement([[r] for r in between], processes, sum(r.samples for r in between) - used),
        "course": agreement(course, evidence.processes, fitted.dof),
        "shift": shift_test(
            shifted - fitted.estimate, sandwich(between, processes), coloured.covariance, fitted.dof
        ),
    }
    if len(fitted.experiment.runs) > 1:
        tests["records"] = agreement(_by_record(evidence.regressions), evidence.processes, fitted.dof)
        if tests["records"].probability < DISAGREE:
            alone = _records_alone(fitted, coloured, progress)
            if alone is not None:
                return ErrorBars(*alone, "records", tests, len(between))
    least = min(test.probability for test in tests.values())
    hinted = max((abs(m.t) for m in evidence.missing), default=0.0) > _HINT
    if evidence.lacking or least < (DISAGREE if hinted else RARE):
        spread = spread_between(between, processes)
        return ErrorBars(shifted, spread, "parts", tests, len(between), asked_by(between))
    if least < DISAGREE:  # one right model in thirty: no reason to doubt it, but to count the scatter seen
        shift = tests["shift"]
        ratio = np.maximum(
            scatter_over_noise(between, processes),
            scatter_over_noise([r for part in course for r in part], evidence.processes),
        )
        ratio = np.sqrt(np.maximum(ratio, shift.statistic / max(shift.freedom, 1.0)))
        errors = Errors(coloured.covariance * np.outer(ratio, ratio), len(between) - 1)
        return ErrorBars(fitted.estimate, errors, "scatter", tests, len(between))
    return ErrorBars(fitted.estimate, coloured, kind, tests, len(between))


def _quantile_freedom(fitted: Fitted) -> float:
    """Of Student's t for a noise that few samples showed; infinite where many did, or it was given."""
    given = fitted.experiment.noise_known
    return float(max(fitted.dof, 1)) if fitted.dof < _FEW and not given else np.inf


def noiseless_bars(fitted: Fitted) -> ErrorBars:
    """Errors of a record without noise: those of a noise that hides what integration and rounding do."""
    floor = max(
        ROUNDING * output_spread(fitted, i) / sigma
        for levels in fitted.sigma
        for i, sigma in enumerate(levels)
        if sigma > 0
    )
    covariance = covariance_of(fitted.information) * max(floor, 1.0) ** 2
    return ErrorBars(fitted.estimate, Errors(covariance), "rounding", {}, 0)


def _is_white(fitted: Fitted, evidence: Evidence) -> bool:
    """White residuals of the size assumed: the ideal errors hold as they are."""
    ratio = fitted.chi2 / max(fitted.dof, 1)
    return not any(p.order for p in evidence.processes) and ratio < 1.0 + _SAME * np.sqrt(
        2.0 / max(fitted.dof, 1)
    )


def _coloured(fitted: Fitted, evidence: Evidence) -> Array:
    """Covariance for the residuals' own process; never below that of white noise.

    What a fit leaves lacks the frequencies of the motion, which it took along. In two of nine draws of 150
    samples that passed for a process of its own, with errors a fifth and a third too small.
    """
    ideal = covariance_of(fitted.information)
    if _is_white(fitted, evidence):
        return np.asarray(ideal + fitted.input_covariance)
    own = sandwich(evidence.regressions, evidence.processes)
    with np.errstate(divide="ignore", invalid="ignore"):
        short = np.sqrt(np.diag(ideal) / np.diag(own))
    wider = np.where(np.isfinite(short), np.maximum(short, 1.0), 1.0)
    return np.asarray(own * np.outer(wider, wider) + fitted.input_covariance)


def _cuts(fitted: Fitted) -> int:
    """Parts of each unbroken stretch: eight in all (four of a short record), less where there are many."""
    pieces = len(fitted.pieces)
    longest = max(len(piece.times) for piece in fitted.pieces)
    wanted = FEW_PARTS if pieces == 1 and longest < SHORT else PARTS
    return max(int(np.ceil(wanted / pieces)), 1)


def _parts(fitted: Fitted, progress: Progress) -> tuple[list[Regression], Array] | None:
    """The fit over parts with initial states of their own: their regressions and its estimate."""
    from analysis.estimate.finish.fit import optimum_near

    cuts = _cuts(fitted)
    samples = sum(len(piece.times) for piece in fitted.pieces)
    if fitted.converged and samples <= LONG and cuts > 1:
        again = optimum_near(fitted.experiment, fitted, progress, cuts=cuts)
        if again is not None and np.all(np.isfinite(again.estimate)):
            return regressions_of(again, linearisations(again))[0], again.estimate
    regressions, followed = regressions_of(fitted, linearisations(fitted, cuts))
    if len(regressions) < 2 or not followed:
        return None
    step = asked_by(regressions)
    moved = [Regression(r.errors - r.jacobian @ step, r.jacobian, r.record) for r in regressions]
    if samples <= LONG:  # where another search did not end, one step of it is no better than none
        return moved, fitted.estimate
    low, high = (np.array([getattr(u, end) for u in fitted.unknowns]) for end in ("lower", "upper"))
    return moved, np.clip(fitted.estimate + step, low, high)


def asked_by(regressions: Sequence[Regression]) -> Array:
    """The step [P] that residuals still ask for: none inside the bounds, beyond them where one holds."""
    information, score = joined(regressions)
    return np.asarray(pseudo_inverse(information) @ score)


def _course(regressions: Sequence[Regression], parts: int) -> list[list[Regression]]:
    """The whole fit's residuals in as many parts."""
    each = max(int(np.ceil(parts / len(regressions))), 1)
    return [[part] for r in regressions for part in r.split(each)]


def _by_record(regressions: Sequence[Regression]) -> list[list[Regression]]:
    records = sorted({r.record for r in regressions})
    return [[r for r in regressions if r.record == record] for record in records]


def _records_alone(fitted: Fitted, joint: Errors, progress: Progress) -> tuple[Array, Errors] | None:
    """Every record fitted by itself: the mean over the records and their spread (random effects).

    Unknowns of a single record keep what the joint fit says; a parameter that some record cannot determine
    by itself does, too.
    """
    from analysis.estimate.finish.fit import fit
    from analysis.experiment import Experiment

    experiment = fitted.experiment
    count = len(experiment.runs)
    if count > _MOST_ALONE:
        return None
    start = fitted.as_start()
    found: dict[str, list[tuple[float, float]]] = {}
    for number, run in enumerate(experiment.runs):
        alone = Experiment(experiment.given, run.record, replace(experiment.conditions, part=()))
        if alone.model.parameters.keys() != experiment.model.parameters.keys():
            return None
        own = replace(
            start,
            values=start.values[number : number + 1],
            states=[start.states[number]],
            sensors=None if start.sensors is None else np.atleast_2d(start.sensors)[number],
        )
        try:
            single = fit(alone, own, progress)
        except (ShakedownError, np.linalg.LinAlgError):
            return None
        variance = np.diag(covariance_of(single.information))
        for name, value, v in zip(single.names, single.estimate, variance, strict=True):
            found.setdefault(name, []).append((float(value), float(v)))
    return _random_effects(fitted, found, joint, count)


def _random_effects(
    fitted: Fitted, found: dict[str, list[tuple[float, float]]], joint: Errors, count: int
) -> tuple[Array, Errors]:
    estimate, covariance = fitted.estimate.copy(), joint.covariance.copy()
    for i, unknown in enumerate(fitted.unknowns):
        values = found.get(unknown.name, [])
        if unknown.record >= 0 or len(values) < count or not np.all(np.isfinite([v for _, v in values])):
            continue
        means, variances = np.array(values).T
        between = max(float(np.var(means, ddof=1) - np.mean(variances)), 0.0)
        weights = 1.0 / np.maximum(variances + between, 1e-300)
        estimate[i] = float(np.sum(weights * means) / np.sum(weights))
        error = max(float(np.var(means, ddof=1)), float(covariance[i, i]))
        scale = np.sqrt(error / covariance[i, i]) if covariance[i, i] > 0 else 1.0
        covariance[i, :] *= scale
        covariance[:, i] *= scale
    return estimate, Errors(covariance, count - 1)
