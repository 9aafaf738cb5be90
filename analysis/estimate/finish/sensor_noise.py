"""Is the residual as large as the noise that the sensor shows by itself?

The noise is known without any model: it was said, or the differences of high order of the samples show it,
from which a smooth motion disappears. A model that misses something leaves more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.signal.noise import noise_of_records, robust_deviation

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

    @property
    def ratio(self) -> float:
        return self.residual / self.noise if self.noise > 0 else float("nan")


def sensor_noise(fitted: Fitted, output: int, errors: list[Array]) -> SensorNoise | None:
    """The residual of an output, given as errors over its fitted noise, against what its sensor shows."""
    row = np.concatenate(errors)
    row = row[np.isfinite(row)]
    if not len(row):
        return None
    name = fitted.experiment.model.outputs[output]
    sigma = float(fitted.sigma[output])
    residual = robust_deviation(row) * sigma
    outliers = int(np.sum(np.abs(row) * sigma > OUTLIER * residual)) if residual > 0 else 0
    error = 1.17 / np.sqrt(2 * len(row)) * residual  # of a median deviation: 37 % efficient
    given = fitted.experiment.conditions.noise.get(name)
    records = (run.outputs[output] for run in fitted.experiment.runs)
    noise, spread, source = (given, 0.0, "given") if given else (*noise_of_records(records), "differences")
    excess = residual - noise
    significant = noise > 0 and residual > TOO_LARGE * noise and excess > _SURE * np.hypot(error, spread)
    return SensorNoise(residual, noise, source, bool(significant), outliers)
