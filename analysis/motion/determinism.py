"""Is a record foretold better by its neighbours than linear noise of the same spectrum would be?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.base.words import percent
from analysis.reconstruct.embedding import delay_coordinates
from analysis.reconstruct.prediction import prediction_error
from analysis.signal.lines import Lines
from analysis.signal.surrogates import cycle_shuffled, iaaft, matching_stretch, through_a_curve
from analysis.signal.tone import tone_basis

Array = NDArray[np.float64]

SURROGATES = 19  # of each kind: the smallest error of all is then significant at 5 %
_LENGTH = 8192  # samples that are tested
_CLEARLY = 0.8  # of the surrogates' median error: what is not clearly better is not called deterministic
_SCATTER = (
    3.0  # standard deviations of the surrogates: linear noise up to 1.9, two Lorenz motions 3.8 and 4.3
)
_HARMONICS = 8  # of the drive, that a surrogate keeps
_FORETELLS = 0.1  # share of the variance ahead that lines must foretell for the surrogates to keep them
_QUARTER = 4  # a law foretells better from so many times as many neighbours; random pushes stay
_GAIN = 1.15  # over the errors below which nothing is gained (chaos without noise: 2 to 3.5, pushes: 1.0)
_NOISES = (
    2.5  # times the sensor's noise an eighth of a turn ahead: less is noise of the sensor, not of the law
)
_SLOW_GAIN = (
    1.6  # the same gain of an error far above the sensor's noise: a flow without noise has 1.85 to 3.4,
)
_FAR_ABOVE = 4.5  # ... slow linear noise through a curve 1.1 to 1.5


@dataclass(frozen=True, eq=False)
class SurrogateTest:
    """Prediction error of the record beside that of surrogates of one kind."""

    kind: str
    error: float  # over the standard deviation of the signal
    surrogates: Array  # the same of each surrogate

    @property
    def level(self) -> float:
        """Level of the test: the chance that the record has the smallest error of all without reason."""
        return 1.0 / (len(self.surrogates) + 1)

    @property
    def better(self) -> bool:
        """Whether the record is foretold better than every surrogate, and by more than their scatter gives.

        Of twenty records of linear noise one has the smallest error by chance, as of its surrogates one has.
        """
        ahead = float(np.median(self.surrogates)) - self.error
        return bool(self.error < np.min(self.surrogates) and ahead > _SCATTER * np.std(self.surrogates))

    @property
    def rejected(self) -> bool:
        """Whether the record is foretold better than every surrogate, and clearly so."""
        least = min(float(np.min(self.surrogates)), _CLEARLY * float(np.median(self.surrogates)))
        return bool(self.error < least)

    def __str__(self) -> str:
        told = "better than" if self.rejected else "hardly better than" if self.better else "no better than"
        return (
            f"foretold {told} {len(self.surrogates)} {self.kind} (error {self.error:.2g}, theirs "
            f"{np.median(self.surrogates):.2g}; level {100 * self.level:.0f} %)"
        )


@dataclass(frozen=True)
class NeighbourTest:
    """Whether more neighbours foretell the motion better, as they do if it follows a law.

    A limit cycle that is pushed at random beats every surrogate of linear noise. But its error is that of the
    pushes, however close the neighbours, while that of a law shrinks with their distance, down to the
    sensor's noise. Noise that changes slowly, seen through a curve, is foretold a little better from more
    neighbours, but far slower than a flow of few dimensions whose error is far above the sensor's noise.
    """

    error: float  # an eighth of a turn ahead, over the standard deviation of the signal
    noise: float  # of the sensor, over the same
    gain: float  # error from a quarter of the record over that from all of it

    @property
    def pushed(self) -> bool:
        """Whether what is left over cannot be the sensor's noise and does not shrink."""
        return self.gain < _GAIN and self.error > _NOISES * self.noise

    @property
    def unresolved(self) -> bool:
        """Whether it shrinks too slowly to tell a law from noise that changes slowly."""
        return self.gain < _SLOW_GAIN and self.error > _FAR_ABOVE * self.noise

    @property
    def lawful(self) -> bool:
        """Whether it shrinks as fast as that of a flow of few dimensions, whatever the sensor's noise."""
        return self.gain >= _SLOW_GAIN

    def __str__(self) -> str:
        return (
            f"{_QUARTER} times as many neighbours foretell it {self.gain:.2f} times as well, an eighth of a "
            f"turn ahead to {percent(self.error)}, the sensor's noise being {percent(self.noise)}"
        )


@dataclass(frozen=True)
class Space:
    """How a scalar record becomes points: delays, and the phase of the drive where there is one."""

    dimension: int
    delay: int
    theiler: int
    horizon: int  # samples that are foretold
    period: float | None  # of the drive, samples


def surrogate_tests(
    samples: Array, space: Space, lines: Lines, rng: np.random.Generator, progress: Progress = SILENT
) -> list[SurrogateTest]:
    """Tests against linear noise about the lines of the spectrum (or about the response at the drive's
    period); against linear noise seen through a curve, and for a driven record against its own cycles in
    another order.
    """
    if space.period is None:
        foretold = lines.foretold > _FORETELLS and len(lines.frequencies) > 0
        x = np.asarray(samples, dtype=np.float64)[: len(lines.fitted)]
        pair = np.stack([x, lines.fitted if foretold else np.full(len(x), x.mean())])
        kind = "surrogates of the same lines and otherwise linear noise" if foretold else "IAAFT surrogates"
        # The stretch is chosen by what is shuffled, the lines go with it.
        rest = matching_stretch(pair[0] - pair[1], _LENGTH)
        begin = int(np.flatnonzero(pair[0] - pair[1] == rest[0])[0])
        kept = pair[1][begin : begin + len(rest)]
    else:
        x = np.asarray(samples, dtype=np.float64)[:_LENGTH]
        count = max(min(_HARMONICS, int(space.period / 2.5)), 1)
        basis = tone_basis(np.arange(len(x), dtype=np.float64), 1.0 / space.period, count)
        kept = basis @ np.linalg.lstsq(basis, x, rcond=None)[0]
        rest = x - kept
        kind = "surrogates of the same mean response and otherwise linear noise"
    own = _error(rest + kept, space)
    errors = np.empty(SURROGATES)
    for k in range(SURROGATES):
        progress.report(k / SURROGATES, "Comparing with noise of the same spectrum")
        errors[k] = _error(iaaft(rest, rng) + kept, space)
    tests = [SurrogateTest(kind, own, errors)]
    if space.period is None and tests[0].rejected:
        bent = [_error(through_a_curve(rest, rng) + kept, space) for _ in range(SURROGATES)]
        tests.append(SurrogateTest("surrogates of linear noise seen through a curve", own, np.array(bent)))
    if space.period is not None:
        shuffled = [_error(cycle_shuffled(x, space.period, rng), space) for _ in range(SURROGATES)]
        tests.append(SurrogateTest("records of the same cycles in another order", own, np.array(shuffled)))
    return tests


def neighbour_test(samples: Array, space: Space, noise: float) -> NeighbourTest | None:
    """Errors an eighth, a quarter and half a turn ahead, from the record and from quarters of it.

    ``noise`` is the standard deviation of a sample; None if the quarters are too short.
    """
    x = np.asarray(samples, dtype=np.float64)[:_LENGTH]
    size = len(x) // _QUARTER
    errors, gains = [], []
    try:
        for part in (4, 2, 1):
            ahead = replace(space, horizon=max(space.horizon // part, 1))
            errors.append(_error(x, ahead))
            short = [_error(piece, ahead) * np.std(piece) / np.std(x) for piece in (x[:size], x[-size:])]
            gains.append(np.sqrt(np.mean(np.square(short))) / errors[-1])
    except DataError:
        return None
    return NeighbourTest(errors[0], noise / float(np.std(x)), float(np.exp(np.mean(np.log(gains)))))


def _error(samples: Array, space: Space) -> float:
    points = delay_coordinates(samples, space.dimension, space.delay)
    first = (space.dimension - 1) * space.delay
    points = points[:, : len(samples) - first - space.horizon]
    if space.period is not None:
        points = with_phase(points, space.period)
    return prediction_error(points, samples[first + space.horizon :], space.theiler)


def with_phase(points: Array, period: float) -> Array:
    """Points of a driven record in its extended phase space: the drive's phase (``period`` in samples) as two
    more coordinates, on a circle whose radius is the deviation of the first coordinate.
    """
    return with_phase_at(points, np.arange(points.shape[1], dtype=np.float64), period)


def with_phase_at(points: Array, places: Array, period: float) -> Array:
    """As :func:`with_phase` for points at ``places`` between the samples."""
    angle = 2 * np.pi * places / period
    radius = float(np.std(points[0]))
    return np.vstack([points, radius * np.cos(angle), radius * np.sin(angle)])
