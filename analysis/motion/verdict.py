"""The verdict on a motion: periodic, quasi-periodic, chaotic, noise, drifting, or cannot tell."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.base.words import percent
from analysis.motion.determinism import (
    NeighbourTest,
    Space,
    SurrogateTest,
    neighbour_test,
    surrogate_tests,
)
from analysis.motion.exponent import Exponent, largest_of_all
from analysis.motion.sameness import sameness
from analysis.motion.sampling import coarse, noise_beside_motion
from analysis.reconstruct.delay import delay_by_mutual_information
from analysis.reconstruct.dimension import false_neighbours
from analysis.reconstruct.embedding import delay_coordinates
from analysis.reconstruct.quantification import RecurrenceQuantities, recurrence_quantities
from analysis.reconstruct.zero_one import zero_one
from analysis.signal.drift import drift
from analysis.signal.far_correlation import far_correlation
from analysis.signal.interpolation import MARGIN, sample_at
from analysis.signal.lines import Lines, spectral_lines
from analysis.signal.permutation_entropy import permutation_entropy
from analysis.signal.repetition import Repetition, repetition
from analysis.signal.timescale import mean_period, theiler_window

Array = NDArray[np.float64]
Kind = Literal["periodic", "quasi-periodic", "chaotic", "noise", "drifting", "cannot tell"]

FEWEST = 1000  # samples
_PER_TURN = 30.0  # samples a turn that are looked at; more only make the stretch shorter
_PER_TURN_FINE = 60.0  # the same for exponents
_LINES = 16_384  # samples whose lines are sought
_WALK = 2500  # values of the 0-1 test
_PER_TURN_WALK = (4.0, 2.6)
_REGULAR = 1e-3  # of the variance: what lines may leave of a regular motion, beyond noise (tori leave 1e-4)
_NARROW = 0.02  # less than this left: a regular motion that wanders, or chaos of a narrow band
_NOISES = 4.0  # times the variance of the noise that lines may leave
_NOISES_AGAIN = 2.0  # ... and the record less itself a period later
_WANDERS = 0.02  # companion over its line above which a regular motion is said to change
_BEATS = 1.5  # largest over smallest size from which on a motion with such a companion is not called periodic
_BLOCKS = 16  # of the record, whose sizes are compared
_STILL = 0.2  # 0-1 test below which the motion is not called chaotic
# Chaos of which no number can be told: 0-1 test above, correlation long after below (flows whose estimates
# disagree: up to 0.33; motions of three frequencies that lines do not resolve: 0.6 to 1).
_WANDERING, _FORGETS = 0.8, 0.45
_DIMENSIONS = (3, 6)  # of the space in which the future is foretold
_LOWEST_OF_MAPS = 2


@dataclass(frozen=True, eq=False)
class Motion:
    """What a record shows. ``kind`` may be used; the rest is the evidence for it."""

    kind: Kind
    reasons: tuple[str, ...]  # in plain words, the decisive ones first
    lines: Lines | None = None
    surrogates: tuple[SurrogateTest, ...] = ()
    neighbours: NeighbourTest | None = None
    zero_one: float = np.nan  # 0 regular, 1 chaos or noise
    exponent: Exponent | None = None  # largest, with the spread over methods and embeddings
    permutation_entropy: float = np.nan
    recurrence: RecurrenceQuantities | None = None
    far_correlation: float = np.nan  # largest of the record with itself long after: 1 regular, 0 mixing
    remarks: tuple[str, ...] = field(default=())

    @property
    def told(self) -> Exponent | None:
        """The largest exponent where it may be told: of a chaotic motion whose estimates agree."""
        settled = self.exponent is not None and self.exponent.settled
        return self.exponent if settled and self.kind == "chaotic" else None

    @property
    def deterministic(self) -> bool:
        return bool(self.surrogates) and all(test.rejected for test in self.surrogates)

    def __str__(self) -> str:
        return f"{self.kind}: {'; '.join(self.reasons)}."


def examine(
    samples: Array,
    dt: float,
    *,
    period: float | None = None,
    noise: float | None = None,
    rng: np.random.Generator | None = None,
    progress: Progress = SILENT,
) -> Motion:
    """Verdict on one channel sampled every ``dt``; ``period`` (samples) of the drive if there is one.

    In this order: a record that drifts has no attractor; one that spectral lines foretell to within the noise
    is regular, and so is one that comes again as a whole; one that its neighbours do not foretell better than
    surrogates is noise; one of which a stretch never comes again shows several motions, of which nothing is
    told; what is left is chaotic if more neighbours foretell it clearly better, down to the sensor's noise,
    all estimators find a positive exponent and the 0-1 test agrees.
    """
    x = np.asarray(samples, dtype=np.float64)
    if len(x) < FEWEST:
        raise DataError(f"A verdict on the motion needs at least {FEWEST} samples; there are {len(x)}.")
    if not np.isfinite(x).all() or np.ptp(x) == 0.0:
        raise DataError("A verdict on the motion needs a record without gaps that is not constant.")
    rng = np.random.default_rng(0) if rng is None else rng
    progress.report(0.0, "drift")
    drifts = drift(x)
    if drifts:
        return Motion("drifting", (drifts,))
    stride = max(int(mean_period(x) / _PER_TURN), 1)
    if period is not None:
        stride = max(min(stride, int(period / 8)), 1)
    thin = x[::stride]
    measured = noise_beside_motion(x)
    level = measured.value if noise is None else noise
    progress.report(0.05, "spectral lines")
    lines = spectral_lines(thin[:_LINES], level)
    allowed = max(_REGULAR, _NOISES * level**2 / float(np.var(x)))
    entropy = permutation_entropy(thin, 4, max(round(mean_period(thin) / 8), 1))
    if lines.left_ahead < allowed < 0.5:
        return _regular(lines, stride * dt, entropy)
    again = _again(thin, level)
    if again is not None:
        return _repeating(again, lines, stride * dt, entropy)
    if lines.left_ahead < _NARROW and allowed < 0.5:
        return _nearly_regular(lines, level**2 / float(np.var(x)), entropy)
    space = _space(thin, level, None if period is None else period / stride)
    recurrence = recurrence_quantities(delay_coordinates(thin, space.dimension, space.delay), space.theiler)
    progress.report(0.15, "Comparing with noise of the same spectrum")
    tests = tuple(surrogate_tests(thin, space, lines, rng, progress.part(0.15, 0.6)))
    walk = max(zero_one(values, rng) for values in _walks(x, period))
    found = Motion(
        "cannot tell", (), lines, tests, None, walk, None, entropy, recurrence, far_correlation(thin)
    )
    told = tuple(str(test) for test in tests)
    if not found.deterministic:
        return _hardly_foretold(found)
    # What was read from neighbours is no sensor's noise of which anything else is known.
    known = 0.0 if coarse(x) and not measured.settled and noise is None else level
    neighbours = neighbour_test(thin, space, known)
    found = replace(found, neighbours=neighbours)
    if words := _lawless(neighbours):
        return replace(found, reasons=(f"{words}: {neighbours}", *told))
    stretch = sameness(thin, space)
    if stretch.changes:
        return replace(found, reasons=(str(stretch), *told))
    progress.report(0.6, "exponents")
    fine = max(int(mean_period(x) / _PER_TURN_FINE), 1)
    white = level if measured.settled or noise is not None else 0.0  # else it may be the motion
    exponent = largest_of_all(x, dt, _scaled(space, stride / fine), fine, white, period)
    return judged(replace(found, reasons=told, exponent=exponent))


def _hardly_foretold(found: Motion) -> Motion:
    """Noise, unless the record is foretold better than every surrogate, if not clearly."""
    told = tuple(str(test) for test in found.surrogates)
    if not all(test.better or test.rejected for test in found.surrogates):
        return replace(found, kind="noise", reasons=told)
    words = "no linear noise, but hardly foretold: a motion of many dimensions, or noise of another kind"
    return replace(found, reasons=(words, *told))


def _lawless(neighbours: NeighbourTest | None) -> str:
    """What else than a law of few dimensions the neighbours speak for; empty if nothing."""
    if neighbours is not None and neighbours.pushed:
        return "something besides a law drives it (random pushes, or noise of the sensor that is not white)"
    if neighbours is not None and neighbours.unresolved:
        return "noise that changes slowly, or a motion of many dimensions that the record does not resolve"
    return ""


def judged(found: Motion) -> Motion:
    """Chaotic or cannot tell, of a deterministic record that is not regular."""
    exponent, told, walk = found.exponent, found.reasons, found.zero_one
    if exponent is None:
        return replace(found, reasons=("no estimator of the largest exponent found a straight part", *told))
    low, high = exponent.range
    estimates = f"estimates of the largest exponent from {low:.2g} to {high:.2g} /s"
    test = f"0-1 test {walk:.2f}"
    if walk < _STILL:
        against = f"the 0-1 test speaks against chaos ({walk:.2f})"
        return replace(found, reasons=(against, estimates, *told))
    if exponent.settled:
        words = f"largest exponent {exponent.value:.3g} ± {exponent.stderr:.2g} /s"
        return replace(found, kind="chaotic", reasons=(words, *told, test))
    lawful = found.neighbours is not None and found.neighbours.lawful
    if exponent.growing and lawful and walk > _WANDERING and found.far_correlation < _FORGETS:
        words = f"neighbours part by every estimate, but these disagree ({low:.2g} to {high:.2g} /s)"
        unsure = f"{words}: the largest exponent is not told"
        forgets = f"the motion forgets itself (correlation long after at most {found.far_correlation:.2f})"
        return replace(found, kind="chaotic", reasons=(unsure, str(found.neighbours), forgets, *told, test))
    against = "the estimators do not agree on a positive exponent"
    return replace(found, reasons=(against, estimates, test, *told))


def _regular(lines: Lines, dt: float, entropy: float) -> Motion:
    share = 100 * lines.foretold
    kind: Kind = "periodic" if lines.fundamentals <= 1 else "quasi-periodic"
    many = "one frequency and its multiples" if kind == "periodic" else f"{lines.fundamentals} frequencies"
    strongest = lines.frequencies[0] / dt
    reason = (
        f"{len(lines.frequencies)} spectral lines of {many} foretell {share:.4g} % of the variance of the "
        f"part of the record that they were not fitted to; the strongest lies at {strongest:.6g} Hz"
    )
    reasons: tuple[str, ...] = (reason,)
    if lines.wandering > _WANDERS:
        reasons += (
            f"a line has a companion of {percent(lines.wandering)} closer than the record can tell apart: "
            "the motion changes slowly in size or phase, or two frequencies nearly coincide",
        )
        sizes = [float(np.std(part)) for part in np.array_split(lines.fitted, _BLOCKS)]
        if kind == "periodic" and max(sizes) > _BEATS * min(sizes):
            kind, reasons = "cannot tell", reasons[::-1]
    return Motion(kind, reasons, lines, permutation_entropy=entropy)


def _again(x: Array, noise: float) -> Repetition | None:
    """After which time the whole record comes again, but for its noise; None if it does not."""
    share = noise**2 / float(np.var(x))
    if _NOISES * share > 0.5:
        return None
    return repetition(x, max(_REGULAR, _NOISES_AGAIN * share), max(int(mean_period(x) / 2), 2))


def _repeating(again: Repetition, lines: Lines, dt: float, entropy: float) -> Motion:
    """Of a record that comes again with more lines than are counted, as the answer to a multisine does."""
    after = f"the whole record comes again after {again.period * dt:.6g} s"
    if again.exact:
        but = f"to {100 * again.left:.2g} % of the variance, {again.times} periods later as well"
        return Motion("periodic", (f"{after}, {but}",), lines, permutation_entropy=entropy)
    if again.once:
        words = "once: it lasts too short to tell a periodic motion from one that nearly repeats"
    else:
        words = (
            f"but for {100 * again.left:.2g} % of the variance, and after {again.times} such times but for "
            f"{100 * again.left_last:.2g} %: a periodic motion that changes slowly, or several frequencies"
        )
    return Motion("cannot tell", (f"{after}, {words}",), lines, permutation_entropy=entropy)


def _nearly_regular(lines: Lines, noise: float, entropy: float) -> Motion:
    share = f"{percent(lines.left_ahead)} of the variance"
    beside = f"{lines.left_ahead / noise:.2g} times the noise" if noise > 0 else "noise leaves none"
    reason = (
        f"spectral lines foretell all but {share} ({beside}): too much is left for a regular motion and too "
        "little to tell one whose size or frequency wanders from chaos in a narrow band"
    )
    return Motion("cannot tell", (reason,), lines, permutation_entropy=entropy)


def _space(x: Array, noise: float, period: float | None) -> Space:
    theiler = theiler_window(x)
    some = x[:20_000]
    few = coarse(x)
    delay = 1 if few else delay_by_mutual_information(some, 1.0).samples
    if period is not None:
        delay = min(delay, max(int(period / 4), 1))
    lowest, highest = _DIMENSIONS
    lowest = _LOWEST_OF_MAPS if few else lowest
    dimension = int(
        np.clip(false_neighbours(some, delay, theiler=theiler, noise=noise).dimension, lowest, highest)
    )
    if period is not None:
        dimension = max(dimension - 1, 2)  # the phase of the drive stands for one coordinate
    turn = mean_period(x) if period is None else min(mean_period(x), period)
    return Space(dimension, delay, theiler, max(int(turn / 2), 1), period)


def _scaled(space: Space, factor: float) -> Space:
    """The same space for samples ``factor`` times as dense."""
    delay, theiler, horizon = (round(factor * v) for v in (space.delay, space.theiler, space.horizon))
    return Space(space.dimension, max(delay, 1), theiler, horizon, None)


def _walks(x: Array, period: float | None) -> list[Array]:
    """Values for the 0-1 test: four a turn and somewhat fewer, or one a drive period.

    A regular motion is regular however it is sampled. But chaos whose turns take nearly the same time looks
    regular in samples that are dense (Sprott O: 0.10 with four a turn, 0.6 with 2.6 a turn; tori below 0.1).
    """
    if period is None:
        turn = mean_period(x)
        return [x[:: max(int(turn / count), 1)][:_WALK] for count in _PER_TURN_WALK]
    places = np.arange(2.0, len(x) - MARGIN - 2, period)[:_WALK]
    return [np.asarray(sample_at(np.atleast_2d(x), places, np.empty((1, len(places)))))[0]]
