"""Whether a simulated motion follows the record: the residual against the noise the sensors show, and colour.

The noise is that of the outputs' own differences (nothing the fit could have made). Cheap enough to judge
every candidate of a search; the verdict on the winner is made elsewhere, from more evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.signal.noise import robust_deviation
from analysis.signal.whiteness import autocorrelation, ljung_box

Array = NDArray[np.float64]

LARGEST_RATIO = 1.15  # of robust residual to noise (from differences), up to which a model may be right
CHANCE = 1.5  # ... plus this over the root of the samples: both are estimates (counted: 1.3 to 1.6)
LEAST_P = 1e-6  # Ljung-Box probability below which what is left counts as coloured
_NO_NOISE = 1e4  # ratio from which on the differences have shown no noise: too few samples, or none there
LAGS, SAMPLES_A_LAG = 40, 25  # lags of the two Ljung-Box tests: 40, and the samples over 25


@dataclass(frozen=True)
class Evidence:
    """Worst output's robust residual over its noise, least Ljung-Box probability, least R² of an output."""

    ratio: float
    whiteness: float
    r2: float
    samples: int  # of that output

    @property
    def good(self) -> bool:
        allowed = LARGEST_RATIO + CHANCE / np.sqrt(max(self.samples, 1))
        return bool(self.ratio < allowed and self.whiteness > LEAST_P)

    @property
    def words(self) -> str:
        colour = "white" if self.whiteness > LEAST_P else f"coloured, p = {self.whiteness:.0e}"
        size = (
            f"{self.ratio:.3g} times the noise" if self.ratio < _NO_NOISE else "beside no noise that is known"
        )
        return f"residual {size}, {colour}, R² {self.r2:.4f}"


def evidence(measured: Sequence[Array], residuals: Sequence[Array], noise: Sequence[Array]) -> Evidence:
    """Judge residuals [q, N] of stretches against outputs [q, N] and the noise [q] from differences there."""
    ratios, chances, shares = [(0.0, 0)], [1.0], [1.0]
    for i in range(len(noise[0])):
        left = np.concatenate([r[i] for r in residuals])
        left = left[np.isfinite(left)]
        if len(left) < 2:
            continue
        rows = [r[i] / max(float(level[i]), 1e-300) for r, level in zip(residuals, noise, strict=True)]
        together = np.concatenate(rows)
        ratios.append((robust_deviation(together[np.isfinite(together)]), len(left)))
        chances += [white_chance(rows, LAGS), white_chance(rows, len(left) // SAMPLES_A_LAG)]
        signal = np.concatenate([m[i] for m in measured])
        power = float(np.nansum((signal - np.nanmean(signal)) ** 2))
        shares.append(1.0 - float(np.sum(left**2)) / power if power > 0 else 1.0)
    ratio, samples = max(ratios)
    return Evidence(ratio, min(chances), min(shares), samples)


def white_chance(rows: Sequence[Array], lags: int) -> float:
    """Probability of autocorrelations this large in white noise, over the first ``lags`` lags.

    Values beyond six robust deviations are set back to them: one outlier must not hide the colour of the
    rest.
    """
    together = np.concatenate(rows)
    together = together[np.isfinite(together)]
    lags = min(lags, len(together) // 4)
    if lags < 1 or not np.any(together):
        return 1.0
    limit = 6.0 * robust_deviation(together)
    clipped = [np.clip(r, -limit, limit) if limit > 0 else r for r in rows]
    return ljung_box(*autocorrelation(clipped, lags), len(together))
