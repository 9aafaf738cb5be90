"""Is the residual as large as the noise that the sensor shows by itself?

The noise is known without any model: it was said, or the differences of high order of the samples show it,
from which a smooth motion disappears. A model that misses something leaves more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.signal.noise import noise_of_records, robust_deviation, robust_error

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted

Array = NDArray[np.float64]

TOO_LARGE = 1.15  # residual over the sensor's noise; below it the differences are not sure enough
_SURE = 4.0  # standard errors by which the residual must exceed the noise
OUTLIER = 6.0  # robust standard deviations beyond which a residual is no noise of a sensor


@dataclass(frozen=True)
class SensorNoise:
    """Robust size of the residual beside the noise of one output (nan: the samples do not show it)."""

    residual: float
    noise: float
    source: str  # "given" or "differences"
    significant: bool  # the residual exceeds the noise by more than chance and 15 %
    outliers: int  # samples far outside the rest
    assumed: float  # noise that the fit reckoned with
    records: tuple[int, ...] = ()  # in which this is so; none: in all

    @property
    def ratio(self) -> float:
        return self.residual / self.noise if self.noise > 0 else float("nan")


def sensor_noise(
    fitted: Fitted, output: int, errors: Sequence[Array], records: Sequence[int]
) -> SensorNoise | None:
    """The residual of an output, given stretch by stretch as errors over its fitted noise, against what its
    sensor shows: of records with levels of their own, where it is largest. ``records``: of each stretch."""
    found = []
    levels = fitted.sigma[:, output]
    for level in np.unique(levels[sorted(set(records))]):
        same = [i for i, s in enumerate(levels) if s == level]
        row = np.concatenate([[], *(e for e, r in zip(errors, records, strict=True) if r in same)])
        one = _beside(fitted, output, row[np.isfinite(row)], same)
        found += [one] if one is not None else []
    if not found:
        return None
    worst = max(found, key=lambda n: (n.significant, n.ratio if np.isfinite(n.ratio) else 0.0))
    return replace(
        worst,
        outliers=sum(n.outliers for n in found),
        records=worst.records if len(found) > 1 else (),
    )


def _beside(fitted: Fitted, output: int, row: Array, records: Sequence[int]) -> SensorNoise | None:
    """The same of records that share one level."""
    if not len(row):
        return None
    runs = [fitted.experiment.runs[i] for i in records]
    sigma = float(fitted.sigma[records[0], output])
    residual = robust_deviation(row) * sigma
    outliers = int(np.sum(np.abs(row) * sigma > OUTLIER * residual)) if residual > 0 else 0
    error = robust_error(len(row)) * residual
    given = runs[0].noise[output]
    noise, spread, source = given, 0.0, "given"
    if not given > 0:  # nan: nobody said it
        noise, spread = noise_of_records(run.outputs[output] for run in runs)
        source = "differences"
    excess = residual - noise
    significant = noise > 0 and residual > TOO_LARGE * noise and excess > _SURE * np.hypot(error, spread)
    return SensorNoise(residual, float(noise), source, bool(significant), outliers, sigma, tuple(records))
