"""Do other numbers follow the record as well? Fits with one parameter held far from its estimate.

The information matrix tells how chi-square rises close to the estimate. It does not show that the rise ends:
the steady motion under one sine leaves two numbers, so that a model with four unknowns can follow it along
two-dimensional sets, and what seems to choose a point on them is a line of the noise that the free initial
state fits as if it were a transient. So where the information rests on a small difference between large
effects of several parameters, the one concerned most is held at values up to half and twice its estimate (or
four standard errors off, if that is further) and everything else is fitted again. A rise of chi-square far
below the one that the error bar promises means that the data do not choose. A fall means that the fit ended
in the wrong valley: it goes on from the other numbers (analysis/estimate/finish/lowest.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.finish.fit import MOST_ITERATIONS, run_engine
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.identifiability import covariance_of, undetermined_parameters
from analysis.estimate.start import Start

Array = NDArray[np.float64]

# A parameter is held elsewhere where its variance is so many times what it would be with all others known.
_INFLATED = 50.0
_STEPS = ((-0.16, 0.19), (-0.29, 0.41), (-0.5, 1.0))  # of the estimate, by which it is moved down and up
_WALKED = 20_000  # measured values beyond which only the longest of these steps are tried: each is a fit
_FAR = 4.0  # standard errors: a parameter that differs by as many is another number
_ROUNDED = 1.001  # that many squared, but for rounding
_PROMISED = 3.0  # a fit is a rival if chi-square rises by less than one third of what the error bar promises
# A fit that follows the record as well is close to it after a few steps; one that cannot would take them all.
# So it is given up if after the first steps chi-square has risen by so many times what noise alone may do.
_FIRST_LOOK, _HOPELESS = 6, 100.0
# The beginning of a record may exclude a rival before the rest is looked at: a fifth, within these samples.
_EXCERPT, _LONGEST_EXCERPT, _SHARE = 1000, 20_000, 5
_CHANCE = 8.0  # added to the rise of chi-square that the best of several draws of noise makes up for
# A path whose steps miss the equations by so much of a state's range is no motion of the model: where motions
# run apart, the fit of one held number may end on such a path, and follow the record better than any motion.
_LOOSE = 0.01
FALL = -1.0  # a change of chi-square below this makes other numbers better, and not only as good


@dataclass(frozen=True, eq=False)
class Rival:
    """Other numbers that follow the record as well."""

    words: str
    concerned: tuple[int, ...]  # positions of the unknowns in which they differ
    better: Start | None = None  # a start there, if they follow the record better


def rival(fitted: Fitted, progress: Progress = SILENT) -> Rival | None:
    """The fit far away that follows the record best, if holding the least certain parameter finds one that
    follows it as well as the estimate.

    The valley of a fit may be a narrow one beside a deeper one (two tanks whose time constants are exchanged,
    40 % away) that lies within half and twice the estimate: the way there is walked in a few steps. Where
    motions run apart, the deeper one may be as near as a few standard errors (a ball that bounces on a shaken
    table: 1 %). So near, only a fall counts: the rise that the error bar promises is small itself.
    """
    inflation = _inflation(fitted)
    held = int(np.argmax(inflation))
    if inflation[held] < _INFLATED:
        return None
    error, value = float(np.sqrt(_covariance(fitted, held)[held])), abs(float(fitted.estimate[held]))
    samples = sum(piece.residuals.size for piece in fitted.pieces)
    steps = _STEPS if samples <= _WALKED else _STEPS[-1:]
    changes = {np.sign(step) * max(abs(step) * value, _FAR * error) for pair in steps for step in pair}
    if _FAR * error < min(abs(change) for change in changes):
        near = [_held_at(fitted, held, side * _FAR * error, progress) for side in (-1.0, 1.0)]
        falls = [(rise, other) for rise, other in near if other is not None and rise < FALL]
        if falls:
            rise, best = min(falls, key=lambda pair: pair[0])
            return _described(fitted, best, held, inflation > _INFLATED, rise)
    found = [_held_at(fitted, held, float(change), progress) for change in sorted(changes)]
    rises = [(rise, other) for rise, other in found if other is not None]
    if not rises:
        return None
    rise, best = min(rises, key=lambda pair: pair[0])
    return _described(fitted, best, held, inflation > _INFLATED, rise)


def _covariance(fitted: Fitted, held: int) -> Array:
    return np.asarray(covariance_of(fitted.information)[held])


def _held_at(fitted: Fitted, held: int, change: float, progress: Progress) -> tuple[float, Fitted | None]:
    """The rise of chi-square with a parameter changed so much, and that fit; None where data exclude it."""
    covariance, chance = _covariance(fitted, held), no_choice(fitted)
    moved = fitted.estimate + change * covariance / covariance[held]
    promised = change**2 / covariance[held]  # of the rise: no part of a record excludes what is so near
    if promised > _ROUNDED * _FAR**2 and _fails_on_an_excerpt(fitted, held, moved, progress):
        return np.inf, None
    other = _held_fit(fitted, held, moved, progress, _FIRST_LOOK)
    if other is None or _rise(fitted, other) > _HOPELESS * chance:
        return np.inf, None
    if not other.converged:
        other = _held_fit(fitted, held, moved, progress, MOST_ITERATIONS)
    if other is None or (other.defect or 0.0) > _LOOSE:
        return np.inf, None
    rise = _rise(fitted, other)
    return rise, other if rise < min(chance, promised / _PROMISED) else None


def _fails_on_an_excerpt(fitted: Fitted, held: int, moved: Array, progress: Progress) -> bool:
    """Whether the beginning of a record excludes the other number: the rest cannot undo its misfit."""
    piece = max(fitted.pieces, key=lambda piece: len(piece.times))
    length = min(max(len(piece.times) // _SHARE, _EXCERPT), _LONGEST_EXCERPT)
    shared = all(unknown.record < 0 for unknown in fitted.unknowns)
    if len(piece.times) < 2 * length or not shared or fitted.experiment.conditions.per_record:
        return False
    part = fitted.experiment.parts([(piece.record, piece.first, piece.first + length)], own_phases=False)
    seen = replace(
        piece,
        run=part.runs[0],
        record=0,
        first=0,
        stop=length,
        times=piece.times[:length],
        states=piece.states[:, :length],
        residuals=piece.residuals[:, :length],
    )
    values = fitted.values[piece.record : piece.record + 1]
    sigma = fitted.sigma[piece.record : piece.record + 1]
    excerpt = replace(fitted, experiment=part, values=values, sigma=sigma, pieces=(seen,))
    look = _held_fit(excerpt, held, moved, progress, _FIRST_LOOK)
    return look is not None and _rise(excerpt, look) > _HOPELESS * no_choice(fitted)


def _rise(fitted: Fitted, other: Fitted) -> float:
    return float(other.chi2_at(fitted.sigma) - fitted.chi2_at(fitted.sigma))


def no_choice(fitted: Fitted) -> float:
    """Difference of chi-square between two fits that does not choose between them.

    A free initial state finds the highest of N/2 lines of the noise, which is 2 ln N of chi-square.
    """
    return no_choice_among(sum(int(np.isfinite(piece.residuals).sum()) for piece in fitted.pieces))


def no_choice_among(chances: int) -> float:
    """The same for the best of so many chances.

    Of two motions that differ by D of chi-square the wrong one is better by x with the probability of a
    normal deviate above (x + D)/(2 sqrt(D)), which is at least sqrt(x), whatever D.
    """
    return float(2.0 * np.log(max(chances, 2)) + _CHANCE)


def _inflation(fitted: Fitted) -> Array:
    """By unknown: its variance over that with all others known; 0 for those that are not tried."""
    lost = undetermined_parameters(fitted.information)
    with np.errstate(invalid="ignore"):  # what no sample touches: infinite times zero, and not tried
        raised = np.diag(covariance_of(fitted.information)) * np.diag(fitted.information)
    tried = [u.kind == "parameter" and u.record < 0 and i not in lost for i, u in enumerate(fitted.unknowns)]
    return np.where(tried, raised, 0.0)


def _held_fit(fitted: Fitted, held: int, moved: Array, progress: Progress, iterations: int) -> Fitted | None:
    """Everything but one parameter fitted again from where the information says the others would be."""
    unknown = fitted.unknowns[held]
    experiment = fitted.experiment
    if not unknown.lower <= moved[held] <= unknown.upper:
        return None
    start = fitted.as_start()
    values = fitted.values.copy()
    for u, new in zip(fitted.unknowns, moved, strict=True):
        rows = slice(None) if u.record < 0 else u.record
        values[rows, u.index] = np.clip(new, u.lower, u.upper)
    k = len(experiment.model.parameters)
    states = _with_first_states(fitted, moved)
    start = replace(start, values=values[:, :k], sensors=values[:, k:], states=states)
    try:
        elsewhere = experiment.holding(unknown.name, float(moved[held]), fitted.sigma)
        return run_engine(elsewhere, start, progress, max_iterations=iterations)
    except (ShakedownError, np.linalg.LinAlgError):
        return None


def _with_first_states(fitted: Fitted, moved: Array) -> list[Array | None]:
    """The motion with first states that follow the unknowns: where motions run apart, other numbers with the
    old first state would follow no more of the record than its beginning."""
    states = list(fitted.as_start().states)
    for piece in fitted.pieces:
        path = states[piece.record]
        if path is not None and fitted.engine == "shooting":
            path[:, piece.first] += piece.initial_slope @ (moved - fitted.estimate)
    return states


def _described(fitted: Fitted, other: Fitted, held: int, open_: NDArray[np.bool_], rise: float) -> Rival:
    """The rival in words; concerned is what differs, and what is open for the same reason (``open_``)."""
    there = {u.name: float(v) for u, v in zip(other.unknowns, other.estimate, strict=True)}
    there[fitted.names[held]] = float(other.values[0, fitted.unknowns[held].index])
    error = np.sqrt(np.diag(covariance_of(fitted.information)))
    apart = [abs(there[n] - v) for n, v in zip(fitted.names, fitted.estimate, strict=True)]
    differs = [i for i, d in enumerate(apart) if i == held or d > _FAR * error[i]]
    numbers = " and ".join(f"{fitted.names[i]} = {there[fitted.names[i]]:.4g}" for i in differs)
    words = (
        f"With {numbers} the model follows the record as well (chi-square {rise:+.1f}): the data do not "
        "choose between these numbers and those found."
    )
    concerned = tuple(sorted({*differs, *(int(i) for i in np.flatnonzero(open_))}))
    return Rival(words, concerned, other.as_start() if rise < FALL else None)
