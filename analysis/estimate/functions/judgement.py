"""Verdict on a recovered function: is what it leaves the sensors' own noise, and nothing else?

A function that is free can follow much that it is not, and its search always ends somewhere. What is left is
held against the noise that the samples show without any model, and has to be white; see
docs/explanation/verdict.md for the words of the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Identification
from analysis.base.words import percent, rounded
from analysis.estimate.finish.evidence import NOISELESS, RARE
from analysis.estimate.finish.judge import SMALL_SHARE
from analysis.estimate.finish.sensor_noise import TOO_LARGE
from analysis.estimate.finish.whiteness import LAGS, autocorrelation, whiteness
from analysis.signal.noise import noise_of_records, robust_deviation, robust_error

Array = NDArray[np.float64]

_SURE = 4.0  # standard errors by which the residual must exceed the noise
_FEWEST = 30  # samples from which on a residual can be tested


@dataclass(frozen=True, eq=False)
class Left:
    """What is left of one channel; rows by record, nan where there is no sample."""

    name: str
    data: Sequence[Array]
    residuals: Sequence[Array]  # in the channel's unit
    errors: Sequence[Array]  # in units of the noise: white and of size 1 where noise is all that is left
    noise: float  # the channel's own, from its differences; nan: the samples do not show it
    doubt: float = 0.0  # its relative standard error

    @property
    def spread(self) -> float:
        return float(np.nanstd(np.concatenate(self.data)))

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.nanmean(np.concatenate(self.residuals) ** 2)))

    @property
    def ratio(self) -> float:
        """Size of the errors, 1 where they are the sensor's own noise; nan where that is not known."""
        row = np.concatenate(self.errors)
        row = row[np.isfinite(row)]
        if not np.isfinite(self.noise) or len(row) < _FEWEST:
            return float("nan")
        return robust_deviation(row)

    @property
    def probability(self) -> float:
        """That white noise would be as correlated."""
        counted = sum(int(np.isfinite(row).sum()) for row in self.errors)
        return whiteness(list(self.errors)).probability if counted >= _FEWEST else 1.0

    @property
    def too_large(self) -> bool:
        count = int(np.isfinite(np.concatenate(self.errors)).sum())
        error = np.hypot(robust_error(count) * self.ratio, self.doubt)
        return bool(self.ratio > TOO_LARGE and self.ratio - 1.0 > _SURE * error)

    @property
    def missed(self) -> float:
        """Systematic part over the spread, rms."""
        if np.isfinite(self.ratio):
            share = np.sqrt(max(1.0 - 1.0 / max(self.ratio, 1.0) ** 2, 0.0))
        else:
            share = np.sqrt(np.clip(self.colour(1)[0], 0.0, 1.0))
        return float(share * self.rms / max(self.spread, 1e-300))

    def colour(self, lags: int = LAGS) -> Array:
        """Autocorrelation of the errors from lag 1 on."""
        return autocorrelation(list(self.errors), lags)[0]


@dataclass(frozen=True)
class Verdict:
    """The words of a judgement and the factor by which error bars are to be widened."""

    verdict: str
    reasons: list[str]
    widening: float = 1.0
    missed: float = np.nan  # share of the motion, where something is missed
    r2: dict[str, float] = field(default_factory=dict)  # share of each channel's variance that is explained
    over_noise: dict[str, float] = field(default_factory=dict)  # what is left over the noise, by channel

    def written(self, result: Identification) -> Identification:
        """The result with the verdict, its reasons and its figures."""
        residual = replace(result.residual, missed=self.missed, r2=self.r2)
        extra = {**result.extra, "residual over noise": self.over_noise}
        return replace(result, verdict=self.verdict, reasons=self.reasons, residual=residual, extra=extra)


def own_noise(rows: Sequence[Array]) -> tuple[float, float]:
    """Noise of a channel over its records and its relative standard error; nan where it does not show."""
    value, error = noise_of_records(rows)
    return value, error / value


def judge_left(
    channels: Sequence[Left],
    converged: bool,
    structure: Sequence[str] = (),
    undetermined: Sequence[str] = (),
) -> Verdict:
    """The verdict. ``structure``: sentences on why no such function can follow the motion (it misses)."""
    channels = [c for c in channels if any(np.isfinite(row).any() for row in c.residuals)]
    told = Verdict(
        "fits",
        [],
        r2={c.name: 1.0 - (c.rms / c.spread) ** 2 for c in channels if c.spread > 0},
        over_noise={c.name: c.ratio for c in channels if np.isfinite(c.ratio)},
    )
    if not converged:
        words = "The search did not end: the curves are where it stopped."
        return replace(told, verdict="cannot tell", reasons=[words, *structure])
    if undetermined:
        return replace(told, verdict="cannot tell", reasons=[*undetermined, *structure])
    if channels and max(c.rms / max(c.spread, 1e-300) for c in channels) < NOISELESS:
        words = "The record shows no noise: what is left is the rounding of the functions."
        return replace(told, reasons=[words])
    against = [words for c in channels for words in _against(c)]
    missed = max((c.missed for c in channels), default=0.0)
    widening = float(np.sqrt(max((_inflation(c) for c in channels), default=1.0)))
    if structure or against:
        verdict = "misses" if structure or missed > SMALL_SHARE else "close"
        return replace(
            told, verdict=verdict, reasons=[*structure, *against], widening=widening, missed=missed
        )
    return replace(told, reasons=[_for(c) for c in channels])


def _against(left: Left) -> list[str]:
    words = []
    if left.too_large:
        words.append(
            f"What is left of {left.name} is {rounded(left.ratio)} times the noise of its sensor: "
            f"something is missing, {percent(left.missed)} of the motion."
        )
    if left.probability < RARE:
        first = left.colour(1)[0]
        words.append(
            f"What is left of {left.name} is not noise (Ljung and Box: p = {left.probability:.1g}, "
            f"correlation of neighbours {first:.2f})."
        )
    return words


def _for(left: Left) -> str:
    size = f" and {left.ratio:.2f} times the sensor's own noise" if np.isfinite(left.ratio) else ""
    return f"What is left of {left.name} is white (p = {left.probability:.2g}){size}."


def _inflation(left: Left) -> float:
    """Factor of the variance of an average over errors that resemble their neighbours."""
    colour = left.colour(200)
    ends = np.flatnonzero(colour <= 0)
    return float(1.0 + 2.0 * np.sum(colour[: ends[0] if len(ends) else len(colour)]))
