"""What the maximum-likelihood path gives."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PathEstimate:
    """What :func:`analysis.estimate.path.estimate.estimate_path` found.

    ``unknowns`` says which entry of ``values`` each row of ``covariance`` is: (index, record), record -1 when
    it is shared by all records.
    """

    values: Array  # [records, k + 3q]: model parameters, then offsets, delays and drifts of the outputs
    unknowns: list[tuple[int, int]]
    estimate: Array  # of the unknowns
    covariance: Array  # of the unknowns; directions the data do not determine are left out
    information: Array  # its inverse, singular when something is undetermined
    input_covariance: Array  # what the uncertainty of the inputs adds to the covariance
    states: list[Array]  # smoothed [n, N] per segment
    residuals: list[Array]  # measurement minus model output [q, N] per segment
    sigma: Array  # [records, q] noise standard deviation of the outputs, given or estimated
    chi2: float
    dof: int
    converged: bool
    iterations: int
    evaluations: int  # passes over the data
    steps: int  # Runge-Kutta steps per sample interval
    defect: float  # largest violation of the equations, in ranges of the state
    history: list[dict[str, float]] = field(default_factory=list)
    message: str = ""
    details: tuple[PathDetails, ...] = ()  # one for each segment, if asked for


@dataclass(frozen=True, eq=False)
class PathDetails:
    """How the best path of a segment follows the unknowns (P of them, all records' together)."""

    jacobian: (
        Array  # [q, N, P] d output / d unknown along the best path, over the noise; 0 at missing samples
    )
    input_jacobian: Array  # [m, N, P] the same of the inputs' errors, once these are unknowns
    input_residuals: Array  # [m, N] minus the inputs' errors, over their noise
    initial_slope: Array  # [n, P] d first state / d unknown
    initial_information: Array  # [n, n] of the first state, the unknowns given
