"""A stretch of samples as the maximum-likelihood path takes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.signal.inputs import Inputs

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PathSegment:
    """An unbroken stretch of samples with a path of its own: a record, a part of one, or an orbit segment."""

    times: Array  # [N], as the model's t
    outputs: Array  # measurements [q, N]; nan: missing sample, or a channel that was not measured
    states: Array  # [n, N], the path to start from
    inputs: Inputs | None = None  # over these times; None for a model without measured inputs
    record: int = 0  # which record's own parameters hold here
    origin: float | None = None  # time of the record's first sample, from which drifts count; None: own first
    initial: Array | None = None  # [n] known state at the first sample (nan: unknown) ...
    initial_spread: Array | None = None  # ... and its standard deviation
    variants: tuple[
        Inputs, ...
    ] = ()  # the inputs changed by one standard deviation of what is unknown of them
    input_noise: Array | None = None  # [m] standard deviation of white noise on the inputs' samples

    @property
    def input_count(self) -> int:
        return 0 if self.inputs is None else self.inputs.count

    @property
    def noise_of_inputs(self) -> Array:
        """[m] standard deviation of the noise on the inputs' samples; 0 where they count as exact."""
        return np.zeros(self.input_count) if self.input_noise is None else self.input_noise

    @property
    def known_initials(self) -> int:
        """How many of the states are known at the first sample."""
        return 0 if self.initial is None else int(np.isfinite(self.initial).sum())

    def prior(self, path: Array, diffuse: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the step of the first state from ``path`` before any measurement:
        what is known of it, ``diffuse`` where nothing is.
        """
        start, spread = np.zeros(len(path)), diffuse
        if self.initial is not None and self.initial_spread is not None:
            known = np.isfinite(self.initial)
            start[known] = self.initial[known] - path[known, 0]
            spread = np.where(known, self.initial_spread, spread)
        return start, spread

    def shifted_inputs(self, errors: Array) -> tuple[float, float, Array]:
        """Inputs as the kernels take them, each sample interval shifted by the error of its first sample.

        ``errors`` [m, N]. Without inputs the kernels still need the time from which drifts count and the
        sample interval.
        """
        if self.inputs is None:
            first = float(self.times[0])
            origin = first if self.origin is None else self.origin
            return origin, float(self.times[1]) - first, np.zeros((0, 1, 4))
        given = self.inputs
        if not errors.any():
            return given.t0, given.dt, given.coefficients
        first = round((float(self.times[0]) - given.t0) / given.dt)
        moved = given.coefficients.copy()
        moved[:, first : first + errors.shape[1], 0] += errors
        return given.t0, given.dt, moved
