"""Does a loss of stiffness at a few places explain the data better than a smooth curve?

A curvature penalty rounds a crack, and its band does not know. So beside the smooth curve stands the same
curve with one or two short stretches of less stiffness; they begin where a straight stiffness with such
stretches comes closest to the smooth curve as the data see it, or where that dips. The evidence decides (the
likelihood integrated over the unknowns, MacKay 1992, by Laplace's approximation). Where both follow the data
alike (Akaike's criterion), the curve is their mean and the band that of both.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from analysis.base.progress import Progress
from analysis.estimate.functions.beam import local_loss
from analysis.estimate.functions.beam.fit import Problem, descend_growing, fit_from, problem, smooths_of
from analysis.estimate.functions.beam.loss_places import MOST_LIKELY, likely_losses
from analysis.estimate.functions.beam.system import BeamSystem
from analysis.estimate.functions.beam.unknowns import UnknownProperties, layout
from analysis.estimate.functions.penalised import Fit, penalty_matrix

Array = NDArray[np.float64]

ELEMENTS = 100  # that resolve the edges of a stretch
_FEWEST = 4  # intervals of a curve that may show a dip
_BENT = 2.5  # degrees of freedom of the stiffness from which on it is no straight line
_WIDTH = 0.05  # of the length: the first guess of a stretch
_STARTS = 3
_SENSORS = 3  # with which places are sought
_LIKELIER = 3.0  # logarithm of the factor by which the evidence must favour a loss: 20 to 1
_ALIKE = 12.0  # difference of Akaike's criterion below which both follow the data alike
_FOLLOWS = 200.0  # excess of the deviance up to which a straight stiffness beside losses is a start
_REACH = 0.12  # of the length: half of what a smooth curve makes of a crack
_NO_GAIN = 20.0  # of the deviance: no more than the evidence takes for the three numbers of another loss
_STAGES = 5  # of a fit that only begins one
_TRYING = "trying a local loss of stiffness"
_KNOWN_DEPTH = 0.5  # standard error of a depth's logarithm beyond which a loss is none
_WIDTHS = float(np.log(local_loss.WIDEST / local_loss.NARROWEST))  # range of a width's logarithm
_DEPTHS = float(np.log(local_loss.DEEPEST / 0.02))  # and of a depth's


@dataclass(frozen=True)
class Choice:
    """The better of the curves, and in words why."""

    task: Problem
    fit: Fit
    words: list[str]
    rival: tuple[Problem, Fit] | None = None  # another curve that explains the data as well


def with_local_losses(task: Problem, smooth: Fit, most: int, progress: Progress) -> Choice:
    """The smooth fit, or one with up to ``most`` local losses of stiffness where the data ask for them."""
    best = Choice(task, smooth, [])
    block = task.unknowns.block("stiffness")
    if block is None or block.intervals < _FEWEST or not block.log or most < 1:
        return best
    spent = float(np.sum((smooth.covariance * smooth.hessian)[block.where]))
    if spent < _BENT or not smooth.converged:
        return best
    thin = _thinned(task)
    if thin is task:
        return _searched(task, smooth, most, progress)
    first = fit_from(thin, smooth.theta, weights=smooth.weights)
    found = _searched(thin, first, most, progress.part(0.0, 0.7))
    if not found.task.unknowns.losses:
        return best
    whole = problem(found.task.system, task.observations)
    fit = fit_from(whole, found.fit.theta, progress=progress.part(0.7, 1.0), weights=found.fit.weights)
    return _likelier(best, Choice(whole, fit, []))


def _searched(task: Problem, smooth: Fit, most: int, progress: Progress) -> Choice:
    best, dips = Choice(task, smooth, []), _dips(task, smooth)
    for count in range(1, most + 1):
        part = progress.part((count - 1) / most, count / most)
        found = _with(task, smooth, best, dips, count, part)
        if found is None or not found.fit.converged or not _deep(found):
            continue
        best = _likelier(best, found)
    return best


def _likelier(plain: Choice, found: Choice) -> Choice:
    """The one that the evidence favours, and the other one as its rival where both follow the data."""
    likelier = evidence(found.task, found.fit) - evidence(plain.task, plain.fit)
    lower = akaike(plain.task, plain.fit) - akaike(found.task, found.fit)
    if likelier < _LIKELIER or not found.fit.converged:
        return plain
    alike = lower < _ALIKE
    words = [_words(len(found.task.unknowns.losses), likelier, alike)]
    return replace(found, words=words, rival=(plain.task, plain.fit) if alike else None)


def _thinned(task: Problem) -> Problem:
    """The same task with few of its sensors, evenly spread along the beam: a search needs no more."""
    sensors = [(place, r, i) for r, o in enumerate(task.observations) for i, place in enumerate(o.places)]
    if len(sensors) <= _SENSORS:
        return task
    sensors = [sorted(sensors)[round((k + 0.5) * len(sensors) / _SENSORS - 0.5)] for k in range(_SENSORS)]
    parts = []
    for r, observation in enumerate(task.observations):
        own = sorted(i for _, record, i in sensors if record == r)
        if own:
            parts.append(observation.only(np.array(own)))
    return problem(task.system, parts)


def _deep(choice: Choice) -> bool:
    """Whether the data know the depth of every loss."""
    places = [b.where.stop - 1 for b in choice.task.unknowns.losses]
    return bool(np.all(np.diag(choice.fit.covariance)[places] < _KNOWN_DEPTH**2))


def evidence(task: Problem, fit: Fit) -> float:
    """Logarithm of the integrated likelihood, but for a constant that all curves of these intervals share."""
    smooths = smooths_of(task.unknowns)
    penalty = penalty_matrix(smooths, fit.weights, len(fit.theta))
    prior = -0.5 * float(fit.theta @ penalty @ fit.theta)
    for smooth, weight in zip(smooths, fit.weights, strict=True):
        prior += 0.5 * float(np.linalg.matrix_rank(smooth.penalties[0])) * float(np.log(weight))
    for block in task.unknowns.losses:  # place, width and depth are equally likely anywhere in their ranges
        prior += 0.5 * local_loss.SIZE * float(np.log(2.0 * np.pi)) - float(np.log(_WIDTHS * _DEPTHS))
        penalty[block.where, block.where] = np.diag([12.0, 12.0 / _WIDTHS**2, 12.0 / _DEPTHS**2])
    _, volume = np.linalg.slogdet(fit.hessian + penalty)
    return prior - 0.5 * (akaike(task, fit) - 2.0 * fit.freedom) - 0.5 * float(volume)


def akaike(task: Problem, fit: Fit) -> float:
    """Akaike's criterion with the noise of every sensor estimated."""
    found = task.misfit(fit.theta, derivatives=False)
    total, weighted = 2.0 * found.cost, 0.0
    for observation, squares, noise in zip(task.observations, found.squares, task.noise, strict=True):
        counts = np.maximum(observation.valid.sum(axis=1), 1)
        weighted += float(np.sum(squares / noise**2))
        total += float(np.sum(counts * np.log(np.maximum(squares / counts, 1e-300))))
    return total - weighted + 2.0 * fit.freedom


def _words(count: int, likelier: float, alike: bool) -> str:
    where = "one place" if count == 1 else f"{count} places"
    odds = f"exp({likelier:.0f}) to 1" if likelier > 7 else f"{np.exp(likelier):.0f} to 1"
    words = f"A loss of stiffness at {where} is more likely than a smoother curve ({odds} by the evidence)"
    return (
        f"{words}; both follow the data, so the curve is their mean and its band covers both."
        if alike
        else f"{words}."
    )


def _dips(task: Problem, fit: Fit) -> list[Array]:
    """Local minima of the smooth curve below its straight line, deepest first, as unknowns of losses."""
    s = np.linspace(0.0, 1.0, 201)
    value = np.log(task.unknowns.property_at("stiffness", fit.theta, s * task.system.beam.length))
    below = value - np.polyval(np.polyfit(s, value, 1), s)
    inner = np.flatnonzero((below[1:-1] <= below[:-2]) & (below[1:-1] < below[2:])) + 1
    out = []
    for i in sorted((i for i in inner if below[i] < 0), key=lambda i: float(below[i]))[:_STARTS]:
        outside = np.flatnonzero(below >= 0)
        left = outside[outside < i].max(initial=0)
        right = outside[outside > i].min(initial=len(s) - 1)
        softer = float(np.trapezoid(np.expm1(-below[left : right + 1]), s[left : right + 1]))
        loss = float(np.clip(1.0 - 1.0 / (1.0 + softer / _WIDTH), 0.05, 0.8))
        out.append(local_loss.unknowns(float(s[i]), _WIDTH, loss))
    return out


def _with(
    task: Problem, smooth: Fit, best: Choice, dips: list[Array], count: int, progress: Progress
) -> Choice | None:
    """The best fit with ``count`` losses: those found so far, and the smooth curve's dips."""
    known = [best.fit.theta[b.where] for b in best.task.unknowns.losses]
    others = [d for d in dips if all(abs(d[0] - own[0]) > _WIDTH for own in known)]
    follows = _deviance(task, smooth.theta) + _FOLLOWS
    found = _near_the_curve(task, smooth, count, follows, progress.part(0.0, 0.5))
    if not any(_deviance(*row) < follows for row in found):
        sets = list(combinations(others, count - len(known)))
        for i, chosen in enumerate(sets):
            progress.report(0.5 + 0.5 * i / len(sets), _TRYING)
            with contextlib.suppress(np.linalg.LinAlgError):
                trial, theta = _start(task, smooth, [*known, *chosen])
                found.append((trial, descend_growing(trial, theta)))
    if not found:
        return None
    trial, theta = min(found, key=lambda row: _deviance(*row))
    reached = _deviance(trial, theta)
    if known and abs(reached - _deviance(best.task, best.fit.theta)) < _NO_GAIN:
        return None
    if reached < follows:
        whole, theta = _curved(trial, theta, task)
        return Choice(whole, fit_from(whole, theta, progress=progress), [])
    losses = [*known, *(others[: count - len(known)])]
    whole, theta = _resolved(task, task.unknowns.with_losses(_filled(task, smooth, losses), losses))
    return Choice(whole, fit_from(whole, theta, progress=progress, weights=smooth.weights), [])


def _near_the_curve(
    task: Problem, smooth: Fit, count: int, follows: float, progress: Progress
) -> list[tuple[Problem, Array]]:
    """Straight stiffnesses beside the losses that come closest to the smooth fit as the data see it; the
    first whose deviance is below ``follows`` is enough."""
    found: list[tuple[Problem, Array]] = []
    likely = likely_losses(task, smooth, count, ELEMENTS) if count <= MOST_LIKELY else []
    for i, one in enumerate(likely):
        progress.report(i / len(likely), _TRYING)
        trial, theta = _resolved(task, one.straight.with_losses(one.theta, one.losses))
        with contextlib.suppress(np.linalg.LinAlgError):
            found.append((trial, fit_from(trial, theta, stages=_STAGES).theta))
            if _deviance(*found[-1]) < follows:
                break
    return found


def _filled(task: Problem, smooth: Fit, losses: list[Array]) -> Array:
    """The smooth fit with its curve drawn straight across the dips that the losses take over."""
    block = task.unknowns.block("stiffness")
    assert block is not None
    s = np.linspace(0.0, 1.0, 8 * block.intervals + 1)
    basis = task.unknowns.basis(block, s * task.system.beam.length)
    value = basis @ smooth.theta[block.where]
    for own in losses:
        inside = np.abs(s - own[0]) < _REACH
        value[inside] = np.interp(s[inside], s[~inside], value[~inside])
    theta = smooth.theta.copy()
    theta[block.where] = np.linalg.lstsq(basis, value, rcond=None)[0]
    return theta


def _deviance(task: Problem, theta: Array) -> float:
    """Twice the negative logarithm of the likelihood, with the noise of every sensor estimated."""
    none = Fit(
        theta, np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0), task.misfit(theta, False), 0.0, True, 0, []
    )
    return akaike(task, none)


def _start(task: Problem, smooth: Fit, losses: list[Array]) -> tuple[Problem, Array]:
    """A straight stiffness beside the losses, everything else as the smooth fit has it."""
    old, beam = task.unknowns, task.system.beam
    kept = {b.key: b.intervals for b in old.blocks if b.intervals and b.key != "stiffness"}
    straight = layout(beam, intervals={**kept, "stiffness": 1})
    theta = straight.start.copy()
    for block in straight.blocks:
        own = old.block(block.key)
        assert own is not None
        if block.key == "stiffness":
            theta[block.where] = _line(old, smooth.theta)
        else:
            theta[block.where] = smooth.theta[own.where]
    return _resolved(task, straight.with_losses(theta, losses))


def _curved(straight: Problem, theta: Array, task: Problem) -> tuple[Problem, Array]:
    """The same beam with the smooth fit's curve in place of the straight line."""
    old, new = straight.unknowns, task.unknowns
    start = new.start.copy()
    for block in new.blocks:
        own = old.block(block.key)
        assert own is not None
        inner = theta[own.where]
        if block.key == "stiffness":
            s = np.linspace(0.0, 1.0, 8 * block.intervals + 1)
            basis = new.basis(block, s * task.system.beam.length)
            inner = np.asarray(np.linalg.lstsq(basis, inner[0] + s * (inner[1] - inner[0]), rcond=None)[0])
        start[block.where] = inner
    return _resolved(task, new.with_losses(start, [theta[b.where] for b in old.losses]))


def _resolved(task: Problem, unknowns: UnknownProperties) -> tuple[Problem, Array]:
    """The problem with elements that resolve local losses, and its start."""
    elements = max(task.system.space.elements, ELEMENTS)
    system = BeamSystem(task.system.beam, unknowns, elements, task.system.count)
    return problem(system, task.observations), unknowns.start


def _line(unknowns: UnknownProperties, theta: Array) -> Array:
    """Values at both ends of a straight line through the upper half of the logarithm of the smooth curve."""
    s = np.linspace(0.0, 1.0, 201)
    value = np.log(unknowns.property_at("stiffness", theta, s * unknowns.beam.length))
    used = np.ones(len(s), dtype=bool)
    for _ in range(2):
        line = np.polyfit(s[used], value[used], 1)
        used = value >= np.polyval(line, s) - 1e-9
    return np.polyval(line, np.array([0.0, 1.0]))
