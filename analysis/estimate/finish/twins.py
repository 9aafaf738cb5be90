"""Is there a second set of numbers, far away, with which the model does the very same?

Sharp minima do not exclude it: two equal masses seen from one side can exchange their springs, a motor with a
speed sensor its two time constants, and either set follows every record. So the fitted motion, without its
noise, is taken for a record, and a few descents look for it from other places. A set that follows the fitted
motion within the noise is then fitted to the record itself. There it may follow as well as the first one, or
better: then the fit had ended in the wrong valley.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.estimate.evaluation import Point
from analysis.estimate.finish.angles import TURN, is_angle
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.rivals import FALL, Rival, no_choice_among
from analysis.estimate.identifiability import covariance_of, pseudo_inverse
from analysis.estimate.observability import shown_at_an_instant
from analysis.estimate.shooting.build import problem_of, start_point, stretches_of
from analysis.estimate.shooting.descent import Descent, minimise
from analysis.estimate.shooting.grow import LOOSE, STEPS_A_SHARE, grow
from analysis.estimate.shooting.problem import ROUGH, Problem
from analysis.estimate.start import Start
from analysis.estimate.unknowns import Unknowns
from analysis.experiment.drive_time import DRIVE_TIME

Array = NDArray[np.float64]

_STARTS, _SPREADS = 6, (1.7, 3.0)  # starts for each factor up and down within which they lie
_PAIRS, _ALIKE = 5, 9.0  # pairs moved against each other, and exchanged if one is not so many times the other
_STRETCHES, _WINDOW = 3, 400  # records, and samples of each, on which the search goes
_LAST_STEPS = 60  # of a descent on the whole record
_MET, _NEAR = 0.02, 0.5  # of the noise, rms: where a descent ends, and within which the fitted motion is met
_FAR = 4.0  # standard errors: a parameter that differs by as many is another number
_DIFFERENT = 0.02  # of its value, at least
_VALLEY = 300.0  # promised rise of chi-square beyond which a second minimum is another valley
_LOST = (
    4.0  # times the fit's chi-square: one motion cannot follow the record (unstable, held by a controller)
)
_MOST_WORK = 5e6  # sub-steps times columns, about a second of processor
_MOST_CONFIRMED = 4  # the same for fits to the record, in units of the former


def twin(fitted: Fitted) -> Rival | None:
    """Another set of numbers of the same signs that follows the record as well, if a few starts find one."""
    shared = [
        i
        for i, u in enumerate(fitted.unknowns)
        if u.kind == "parameter" and u.record < 0 and u.name != DRIVE_TIME and fitted.estimate[i] != 0
    ]
    if len(shared) < 2 or _is_unique(fitted):
        return None
    error = np.sqrt(np.diag(covariance_of(fitted.information)))
    turns = np.array([TURN if i in shared and is_angle(fitted, i) else np.inf for i in range(len(error))])
    try:
        whole = problem_of(fitted.experiment, fitted.sigma)
        states = [path for path in fitted.as_start().states if path is not None]
        k = len(fitted.experiment.model.parameters)
        here = start_point(fitted.experiment, fitted.values[:, :k], states, fitted.values[:, k:])
        one = None
        for there in _candidates(whole, here, shared):
            if not _apart(whole, here, there, error, shared, turns):
                continue
            if one is None:
                whole.settle_substeps(here, ROUGH)
                one = _descended(whole, here)
            if one is None or 2 * one.cost > _LOST * fitted.chi2 or whole.work > _MOST_CONFIRMED * _MOST_WORK:
                return None
            if (found := _confirmed(fitted, whole, one, there, error, shared, turns)) is not None:
                return found
    except (ShakedownError, np.linalg.LinAlgError):
        return None
    return None


def _is_unique(fitted: Fitted) -> bool:
    """Whether the outputs show every state and the equations are linear in the parameters: then the record
    holds linear equations for them, which have one solution.
    """
    experiment = fitted.experiment
    shown = shown_at_an_instant(experiment.model, experiment.runs[0])
    return bool(experiment.given.is_linear and shown.all())


def _candidates(whole: Problem, here: Point, shared: list[int]) -> Iterator[Point]:
    """Points elsewhere from which the model makes the fitted motion, on the beginnings of the records."""
    count = min(len(whole.stretches), _STRETCHES)
    parts = [s.cut(0, min(len(s), _WINDOW)) for s in whole.stretches[:count]]
    problem, begin = whole.on(parts), Point(here.values, here.initials[:count])
    problem.settle_substeps(begin, ROUGH)
    motions = [
        problem.motion(s, begin.values[s.record], x, False).outputs
        for s, x in zip(parts, begin.initials, strict=True)
    ]
    if not all(np.isfinite(m).all() for m in motions):
        return
    problem = replace(problem, stretches=[replace(s, outputs=m) for s, m in zip(parts, motions, strict=True)])
    enough = 0.5 * _NEAR**2 * problem.samples
    for start in _elsewhere(problem, begin, shared):
        if problem.work > _MOST_WORK:
            return
        found = grow(problem, start, enough=0.5 * _MET**2)
        if found.cost < enough:
            point = found.evaluation.point
            yield Point(point.values, (*point.initials, *here.initials[count:]))


def _elsewhere(problem: Problem, begin: Point, shared: list[int]) -> Iterator[Point]:
    """Pairs against each other and exchanged, then Latin hypercubes of factors; no sign changes."""
    rng = np.random.default_rng(0)
    now = problem.unknowns.current(begin.values)

    def at(values: Array) -> Point:
        inside = np.clip(values, problem.lower[problem.index], problem.upper[problem.index])
        return Point(problem.unknowns.moved(begin.values, inside - now), begin.initials)

    wanted = []
    for i, j in rng.permutation(np.array(list(combinations(shared, 2))))[:_PAIRS]:
        exchanged, opposite, reverse = now.copy(), now.copy(), now.copy()
        opposite[[i, j]] *= [_SPREADS[-1], 1 / _SPREADS[-1]]
        reverse[[i, j]] *= [1 / _SPREADS[-1], _SPREADS[-1]]
        wanted += [opposite, reverse]
        if 1 / _ALIKE < now[i] / now[j] < _ALIKE:
            exchanged[[i, j]] = now[[j, i]]
            wanted.append(exchanged)
            if (settled := _settled(problem, at(exchanged), (i, j))) is not None:
                yield settled
    for spread in _SPREADS:
        strata = np.stack([rng.permutation(_STARTS) for _ in shared])
        for column in (2.0 * (strata + rng.random(strata.shape)) / _STARTS - 1.0).T:
            wanted.append(now.copy())
            wanted[-1][shared] *= spread**column
    yield from map(at, wanted)


def _settled(problem: Problem, start: Point, pair: tuple[int, int]) -> Point | None:
    """The start after hidden initial states and the other unknowns have followed an exchanged pair.

    Of A -> B -> C seen by B both rates can be exchanged if A began with k1/k2 times as much. A descent that
    moves everything at once, on a short beginning first, takes the rates back before A has moved.
    """
    others = [item for i, item in enumerate(problem.unknowns.items) if i not in pair]
    held = replace(problem, unknowns=Unknowns(others, problem.unknowns.records))
    evaluation = held.evaluate(start)
    if not np.isfinite(evaluation.cost):
        return None
    found = minimise(held, evaluation, LOOSE, STEPS_A_SHARE, enough=0.5 * _MET**2 * problem.samples)
    problem.follow(held)
    return found.evaluation.point


def _confirmed(
    fitted: Fitted, whole: Problem, one: Descent, there: Point, error: Array, shared: list[int], turns: Array
) -> Rival | None:
    """The other numbers in words, if they follow the whole record as well and stay others in doing so."""
    other, here = _descended(whole, there), one.evaluation.point
    if other is None:
        return None
    end, rise = other.evaluation.point, 2 * (other.cost - one.cost)
    differs = _apart(whole, here, end, error, shared, turns)
    chances = 2 * _PAIRS + len(_SPREADS) * _STARTS
    if (
        not differs
        or rise > no_choice_among(chances)
        or _promised(fitted, whole, here, end, differs) < _VALLEY
    ):
        return None
    values = whole.unknowns.current(end.values)
    numbers = " and ".join(f"{fitted.names[i]} = {values[i]:.4g}" for i in differs)
    words = (
        f"With {numbers} the model follows the record as well (chi-square {rise:+.1f}): the data do not "
        "choose between these numbers and those found; bounds that leave out one of the two would."
    )
    return Rival(words, tuple(differs), _start_at(fitted, whole, other) if rise < FALL else None)


def _start_at(fitted: Fitted, whole: Problem, other: Descent) -> Start:
    """The other numbers and their motion as a start."""
    start = fitted.as_start()
    paths = [np.array(path) for path in start.states if path is not None]
    places = stretches_of(fitted.experiment)
    for (number, first, stop), motion in zip(places, other.evaluation.motions, strict=True):
        paths[number][:, first:stop] = motion.states
    k, values = whole.parameters, other.evaluation.point.values
    return replace(start, values=values[:, :k], states=paths, sensors=values[:, k:])


def _promised(fitted: Fitted, whole: Problem, here: Point, there: Point, differs: list[int]) -> float:
    """The rise of chi-square that the error bars promise for numbers so far away: small in one valley."""
    away = (whole.unknowns.current(there.values) - whole.unknowns.current(here.values))[differs]
    covariance = covariance_of(fitted.information)[np.ix_(differs, differs)]
    return float(away @ pseudo_inverse(covariance) @ away)


def _descended(problem: Problem, point: Point) -> Descent | None:
    evaluation = problem.evaluate(point)
    return minimise(problem, evaluation, 1e-6, _LAST_STEPS) if np.isfinite(evaluation.cost) else None


def _apart(
    problem: Problem, here: Point, there: Point, error: Array, shared: list[int], turns: Array
) -> list[int]:
    """Shared parameters that are other numbers; none where one of them has changed its sign (a mirror).

    Angles that differ by whole ``turns`` [P] are the same number; infinite: not an angle.
    """
    a, b = problem.unknowns.current(here.values), problem.unknowns.current(there.values)
    away = b - a
    away -= np.round(away / turns) * np.nan_to_num(turns, posinf=0.0)
    differs = [i for i in shared if abs(away[i]) > max(_FAR * error[i], _DIFFERENT * abs(a[i]))]
    return [] if any(a[i] * b[i] <= 0 for i in differs) else differs
