"""Numbers that rest on a law which the record cannot test.

Under one steady sine a cubic damping and one of v|v| take the same energy: either follows the record, each
with another linear damping beside it. The score test (score.py) knows that: the column of v|v| is all but a
sum of those of the parameters, and the same sum tells what these would be if v|v| stood in the place of v^3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.finish.missing_terms import Along, force_of, state_sizes, tested
from analysis.estimate.finish.score import Scores
from analysis.estimate.finish.terms import Term, candidate_terms

if TYPE_CHECKING:
    from analysis.estimate.finish.evidence import Evidence
    from analysis.estimate.finish.fitted import Fitted

Array = NDArray[np.float64]

_AS_WELL = 4.0  # rise of chi-square up to which another law follows the record as well
_OTHER = 4.0  # standard errors by which it must move another parameter
_ALIKE, _SAME = 0.7, 1.0 - 1e-6  # correlation of two laws along the motion that makes them alike, and one
_LINEAR = 0.99  # share of a law that states and inputs explain: nobody doubts that one
_LONGER = 1.5  # a parameter so many times its value leaves its own slope as it is: a coefficient


@dataclass(frozen=True)
class OtherLaw:
    """A term that could stand in the place of a parameter's own, and what that does to the others."""

    parameter: int  # among the unknowns
    term: Term
    rise: float  # of chi-square
    moved: dict[int, float]  # unknowns that move by many standard errors: where they would be


def law_words(fitted: Fitted, evidence: Evidence, errors: Array) -> list[str]:
    """A sentence for each nonlinear law in whose place another would do, with other numbers beside it.

    ``errors`` [P]: standard errors as reported.
    """
    words = []
    for law in other_laws(fitted, evidence, errors):
        moved = [
            f"{fitted.names[i]} would be {value:.3g} instead of {fitted.estimate[i]:.3g} "
            f"({abs(value - fitted.estimate[i]) / errors[i]:.0f} standard errors away)"
            for i, value in law.moved.items()
        ]
        words.append(
            f"The numbers rest on the law assumed with {fitted.names[law.parameter]}: with {law.term.name} "
            f"in its place the record is followed as well (chi-square {law.rise:+.1f}), but "
            f"{', '.join(moved)}. Motions of other amplitudes or frequencies can tell the laws apart."
        )
    return words


def other_laws(fitted: Fitted, evidence: Evidence, errors: Array) -> list[OtherLaw]:
    """Of each nonlinear law with a coefficient that is fitted, the one that could best stand for it."""
    motions = [Along(fitted.experiment.model, part) for part in evidence.linear]
    laws = list(_laws(fitted, motions))
    if not laws:
        return []
    terms = [t for t in candidate_terms(fitted.experiment.model, state_sizes(evidence.linear)) if t.common]
    scored = tested(fitted, evidence.excerpts, [force_of(motion, terms) for motion in motions])
    found = []
    for j, equation, values in laws:
        others = [
            (t, term)
            for t, term in enumerate(terms)
            if term.equation == equation and _ALIKE < _correlation(values, _along(motions, term)) < _SAME
        ]
        ways = [_exchanged(fitted, scored, j, t, term, errors) for t, term in others]
        possible = [w for w in ways if w is not None and w.rise < _AS_WELL and w.moved]
        if possible:
            found.append(min(possible, key=lambda way: way.rise))
    return found


def _exchanged(fitted: Fitted, scored: Scores, j: int, t: int, term: Term, errors: Array) -> OtherLaw | None:
    """A parameter's law put out and a term put in, to first order: chi-square and the other parameters."""
    along = scored.along[:, t]
    if along[j] == 0.0:
        return None
    coefficient = fitted.estimate[j] / along[j]
    rise = coefficient**2 * scored.information[t, t] - 2.0 * coefficient * scored.score[t]
    there = fitted.estimate - along * coefficient
    moved = {
        i: float(there[i])
        for i, unknown in enumerate(fitted.unknowns)
        if i != j and unknown.kind == "parameter" and abs(there[i] - fitted.estimate[i]) > _OTHER * errors[i]
    }
    return OtherLaw(j, term, float(rise), moved)


def _laws(fitted: Fitted, motions: Sequence[Along]) -> Iterator[tuple[int, int, Array]]:
    """Unknowns that are coefficients of a nonlinear law, with its equation and values along the motion."""
    slopes = [_slopes(motion, motion.linearisation.stretch.values) for motion in motions]
    linear = np.hstack([_states_and_inputs(motion) for motion in motions])
    for j, unknown in enumerate(fitted.unknowns):
        if unknown.kind != "parameter" or unknown.record >= 0:
            continue
        own = np.hstack([s[:, unknown.index] for s in slopes])
        holding = np.flatnonzero(np.any(own != 0, axis=1))
        if len(holding) != 1 or not np.isfinite(own).all():
            continue
        values = motions[0].linearisation.stretch.values.copy()
        values[unknown.index] *= _LONGER
        changed = _slopes(motions[0], values)[:, unknown.index]
        if not np.allclose(changed, slopes[0][:, unknown.index], rtol=1e-6, atol=1e-9 * np.abs(own).max()):
            continue
        row = own[holding[0]]
        if _explained(row, linear) < _LINEAR:
            yield j, int(holding[0]), row


def _slopes(motion: Along, values: Array) -> Array:
    """Derivatives [n, k, N] of the right-hand sides in the parameters along a motion."""
    s, model = motion.linearisation.stretch, motion.model
    n, k, N = len(s.states), len(model.parameters), s.states.shape[1]
    dx, jx, jp = np.empty((n, N)), np.empty((n, n, N)), np.empty((n, k, N))
    inputs = np.ascontiguousarray(motion.inputs(s.times))
    model.kernels().jac_many(s.times, s.states, inputs, values[:k].copy(), dx, jx, jp)
    return jp


def _states_and_inputs(motion: Along) -> Array:
    s = motion.linearisation.stretch
    return np.vstack([np.ones((1, s.states.shape[1])), s.states, motion.inputs(s.times)])


def _along(motions: Sequence[Along], term: Term) -> Array:
    parts = [(m, m.linearisation.stretch) for m in motions]
    return np.concatenate([term.values(s.states, m.inputs(s.times)) for m, s in parts])


def _explained(row: Array, rows: Array) -> float:
    """Share of a row's power that a sum of other rows explains."""
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled = (rows / np.where(size > 0, size, 1.0)).T
    left = row - scaled @ np.linalg.lstsq(scaled, row, rcond=None)[0]
    power = float(row @ row)
    return 1.0 - float(left @ left) / power if power > 0 else 1.0


def _correlation(a: Array, b: Array) -> float:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return abs(float(a @ b)) / size if size > 0 else 0.0
