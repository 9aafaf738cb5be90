"""Measured curves of forced periodic motions: frequency, amplitude, phase and force, point by point."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError

Array = NDArray[np.float64]
Kind = Literal["backbone", "response"]

NAMES = ("frequency", "amplitude", "phase", "force")


@dataclass(frozen=True, eq=False)
class MeasuredCurve:
    """Points of a curve with standard errors; not a number where something was not measured.

    Amplitude and force are those of the fundamental (peak), the phase is that of the response behind the
    force in rad, negative for a lag.
    """

    frequency: Array  # Hz
    amplitude: Array
    phase: Array
    force: Array
    frequency_error: Array = field(default_factory=lambda: np.empty(0))
    amplitude_error: Array = field(default_factory=lambda: np.empty(0))
    phase_error: Array = field(default_factory=lambda: np.empty(0))
    force_error: Array = field(default_factory=lambda: np.empty(0))
    output: str = ""  # the model's output that was measured
    source: str = ""  # where it comes from, in words
    amplitude_unit: str = ""  # as the data say; empty: they do not
    force_unit: str = ""

    def __post_init__(self) -> None:
        count = len(self.frequency)
        for name in NAMES:
            error = getattr(self, f"{name}_error")
            if len(error) != count:
                object.__setattr__(self, f"{name}_error", np.full(count, np.nan))
            if len(getattr(self, name)) != count:
                raise DataError("The columns of a measured curve differ in length.")
        if not count:
            raise DataError("A measured curve has no points.")
        if not (np.isfinite(self.frequency).all() and np.isfinite(self.amplitude).all()):
            raise DataError("Every point of a measured curve needs its frequency and amplitude.")
        if self.frequency.min() <= 0 or self.amplitude.min() <= 0:
            raise DataError("Frequencies and amplitudes of a measured curve are positive numbers.")
        if np.isnan(self.phase).all() and np.isnan(self.force).all():
            raise DataError("A measured curve needs a force or a phase beside frequency and amplitude.")
        if np.nanmin(self.force, initial=np.inf) < 0:
            raise DataError("The force of a measured curve is an amplitude: it is not negative.")

    def __len__(self) -> int:
        return len(self.frequency)

    def taken(self, rows: Any) -> MeasuredCurve:
        """Some of the points."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{n: v[rows] for n, v in values.items() if isinstance(v, np.ndarray)})


@dataclass(frozen=True, eq=False)
class MeasuredDecay:
    """A free motion that dies out: amplitude of its fundamental and, where known, its frequency over time."""

    time: Array  # s
    amplitude: Array
    frequency: Array  # Hz; not a number where it was not measured
    amplitude_error: Array = field(default_factory=lambda: np.empty(0))
    frequency_error: Array = field(default_factory=lambda: np.empty(0))
    output: str = ""
    source: str = ""
    amplitude_unit: str = ""
    force_unit: str = ""  # a free motion has none

    def __post_init__(self) -> None:
        count = len(self.time)
        for name in ("amplitude", "frequency"):
            if len(getattr(self, f"{name}_error")) != count:
                object.__setattr__(self, f"{name}_error", np.full(count, np.nan))
            if len(getattr(self, name)) != count:
                raise DataError("The columns of a decay differ in length.")
        if count < 4:
            raise DataError("A decay needs at least four points.")
        if not (np.isfinite(self.time).all() and np.isfinite(self.amplitude).all()):
            raise DataError("Every point of a decay needs its time and amplitude.")
        if np.any(np.diff(self.time) <= 0) or self.amplitude.min() <= 0:
            raise DataError("The times of a decay increase, and its amplitudes are positive.")
        if np.isnan(self.frequency).all():
            raise DataError("A decay needs the frequency of the motion in a column of its own.")

    def __len__(self) -> int:
        return len(self.time)
