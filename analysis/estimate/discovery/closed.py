"""Motion along one closed curve: a limit cycle, or the steady response to a periodic drive.

It tells an equation only as much as its harmonics do: two numbers each, of those above the noise, however
long the record is. Along one closed curve, terms are alike that are not alike anywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline, make_interp_spline
from scipy.optimize import minimize_scalar

from analysis.signal.timescale import mean_period
from analysis.signal.tone import tone_basis

if TYPE_CHECKING:
    from analysis.estimate.discovery.trials import Trial
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

_LONGEST = 6.5  # mean periods up to which the period of the curve is looked for
_RETURNS = 3  # periods that the record must hold
_CLOSE = 0.02  # of the spread: how well the motion must come back
_SAME = 0.05  # of the spread: curves of several records that are one
_HARMONICS = 40  # that are looked at
_SEEN = 18.0  # squared amplitude over its variance from which one is seen: by chance one in 10 000 is
_SAMPLES = 20_000  # that are looked at
_SPARE = 2  # numbers that must be left over, or the equation is not tested at all
_FEWEST = 64  # samples in which a return can be looked for


@dataclass(frozen=True)
class ClosedCurve:
    """What a closed curve can tell."""

    numbers: int  # two for each harmonic above the noise

    @property
    def words(self) -> str:
        return (
            "The motion repeats itself along one closed curve, on which many terms look alike: it tells "
            f"{self.numbers} numbers, however long it is recorded, and the choice of terms rests on them and "
            "on a preference for few. A start from rest, another drive or another size of the motion would "
            "make it sure."
        )

    def decides(self, unknowns: int) -> bool:
        """Whether it tells more numbers than an equation has, so that the equation is put to a test."""
        return self.numbers >= unknowns + _SPARE


def closed_curve(experiment: Experiment, trial: Trial) -> ClosedCurve | None:
    """The closed curve that the fitted motion of all runs is; None where it is none, or not one."""
    sizes, numbers = [], 0
    for run, states, sigma in zip(experiment.runs, trial.states, trial.sigma, strict=True):
        period = period_of(states)
        if period is None:
            return None
        sizes.append(np.std(states, axis=1))
        rows = [i for i, seen in enumerate(run.measured) if seen]
        numbers = max([numbers, *(2 * _harmonics(run.outputs[i], period, sigma[i]) for i in rows)])
    if np.any(np.ptp(sizes, axis=0) > _SAME * np.mean(sizes, axis=0)):
        return None
    return ClosedCurve(numbers)


def period_of(states: Array) -> float | None:
    """Samples after which a motion [n, N] without noise comes back, all along; None where it does not."""
    moving = states[np.ptp(states, axis=1) > 0][:, :_SAMPLES]
    count = moving.shape[1]
    if not len(moving) or count < _FEWEST:
        return None
    scaled = (moving - moving.mean(axis=1, keepdims=True)) / moving.std(axis=1, keepdims=True)
    flow = make_interp_spline(np.arange(count), scaled, axis=1)
    longest = int(min(_LONGEST * max(mean_period(row) for row in scaled), count / _RETURNS))
    lags = np.arange(2, longest + 2)
    away = np.array([np.sqrt(np.mean((scaled[:, lag:] - scaled[:, :-lag]) ** 2)) for lag in lags])
    for i in range(1, len(lags) - 1):
        if away[i] > min(away[i - 1], away[i + 1]) or away[i] > 0.5:
            continue
        period, multiple, reach = float(lags[i]), 1, 1.0
        while multiple * period < count / _RETURNS:
            period, distance = _returns(flow, scaled, period, reach / multiple, multiple)
            if distance > _CLOSE:
                break
            multiple, reach = 2 * multiple, 0.25
        else:
            return period
    return None


def _returns(flow: BSpline, scaled: Array, period: float, reach: float, multiple: int) -> tuple[float, float]:
    """The period near by after so many of which the motion comes back best, and how far away it then is."""
    times = np.arange(scaled.shape[1] - int(np.ceil(multiple * (period + reach))))

    def away(tried: float) -> float:
        later = flow(times + multiple * tried)
        return float(np.sqrt(np.mean((later - scaled[:, : len(times)]) ** 2)))

    found = minimize_scalar(away, bounds=(period - reach, period + reach), method="bounded")
    return float(found.x), float(found.fun)


def _harmonics(row: Array, period: float, sigma: float) -> int:
    """How many harmonics of a measured channel stand above its noise."""
    measured = np.flatnonzero(np.isfinite(row[:_SAMPLES]))
    count = min(_HARMONICS, int(period / 2) - 1)
    if count < 1 or len(measured) < 4 * count:
        return 0
    basis = tone_basis(measured.astype(float), 1 / period, count)
    found = np.linalg.lstsq(basis, row[measured], rcond=None)[0][1:].reshape(count, 2)
    variance = 2 * sigma**2 / len(measured)
    return int(np.sum((found**2).sum(axis=1) > _SEEN * variance))
