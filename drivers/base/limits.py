"""Limits of the drive, enforced next to the hardware: no sequence of calls gets past them.

Two nets. :class:`Limits` refuses a request in words before anything moves; :class:`Limiter` clamps every
single sample on its way out, whatever asked for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis import ShakedownError

STOP_RAMP = 0.040  # s, the soft stop of an emergency; with the slew limit's tail it stays below 100 ms


class LimitError(ShakedownError):
    """A drive that the limits forbid; nothing was changed."""


@dataclass(frozen=True)
class Limits:
    """What the drive must never exceed. Units: the exciter's (usually V), Hz, s."""

    amplitude: float  # peak
    lowest_frequency: float = 0.0
    highest_frequency: float = np.inf
    slew: float = np.inf  # per second
    displacement: float = np.inf  # peak travel of the shaker table
    travel: float = 0.0  # most displacement that one unit of drive can cause, over all allowed frequencies
    ramp: float = np.inf  # per second: how fast the amplitude of a running drive changes to another one
    ask_above: float | None = None  # amplitude above which a person confirms a doubling; None: half the peak

    def __post_init__(self) -> None:
        for name, value in (
            ("amplitude", self.amplitude),
            ("slew", self.slew),
            ("displacement", self.displacement),
            ("ramp", self.ramp),
        ):
            if not value > 0:
                raise LimitError(f"The {name} limit must be a positive number, not {value}.")
        if not 0 <= self.lowest_frequency < self.highest_frequency:
            raise LimitError(
                f"No frequency lies between {self.lowest_frequency} and {self.highest_frequency} Hz."
            )
        if not self.amplitude < np.inf:
            raise LimitError("The amplitude limit must be a number of the exciter's unit, not infinite.")
        if not 0 <= self.travel < np.inf:
            raise LimitError(
                f"The travel per unit of drive must be a number of at least 0, not {self.travel}."
            )
        if self.ask_above is not None and not self.ask_above >= 0:
            raise LimitError(f"ask_above must be a number of at least 0, not {self.ask_above}.")
        if self.peak > self.slew * STOP_RAMP:
            raise LimitError(
                f"A slew limit of {self.slew:g} per second is too slow: from {self.peak:g} the drive could "
                f"not come down within {1e3 * STOP_RAMP:g} ms, so STOP would take longer than 100 ms; "
                f"allow at least {self.peak / STOP_RAMP:g} per second or lower the amplitude limit."
            )

    @property
    def peak(self) -> float:
        """The largest drive allowed by the amplitude and the displacement limit together."""
        if self.travel == 0:
            return self.amplitude
        return min(self.amplitude, self.displacement / self.travel)

    def is_big_step(self, before: float, after: float) -> bool:
        """Whether a person is to be asked before a running drive goes from one amplitude to another."""
        threshold = 0.5 * self.peak if self.ask_above is None else self.ask_above
        return after > 2 * before and after > threshold

    def check_amplitude(self, peak: float) -> None:
        """Refuse a peak value beyond what amplitude and displacement allow."""
        if not np.isfinite(peak) or peak < 0:
            raise LimitError(f"An amplitude must be a number of at least 0, not {peak}.")
        if peak > self.amplitude:
            raise LimitError(f"A drive of {peak:g} exceeds the amplitude limit of {self.amplitude:g}.")
        if peak * self.travel > self.displacement:
            raise LimitError(
                f"A drive of {peak:g} could move the table by {peak * self.travel:g}, "
                f"beyond the displacement limit of {self.displacement:g}; at most {self.peak:g} is allowed."
            )

    def check_frequency(self, *frequencies: float) -> None:
        """Refuse frequencies outside the band."""
        for f in frequencies:
            if not (np.isfinite(f) and self.lowest_frequency <= f <= self.highest_frequency):
                raise LimitError(
                    f"{f:g} Hz lies outside the frequency limits "
                    f"{self.lowest_frequency:g} to {self.highest_frequency:g} Hz."
                )

    def check_rate(self, frequency: float, rate: float) -> None:
        """Refuse a frequency that a converter of this rate would put out as another one."""
        if frequency > rate / 2:
            raise LimitError(
                f"{frequency:g} Hz is more than half of the {rate:g} samples a second of the output, which "
                "would put out another frequency instead."
            )

    def check_slew(self, slew: float) -> None:
        """Refuse a waveform that is steeper than the slew limit."""
        if not slew <= self.slew:
            raise LimitError(
                f"The drive would change by up to {slew:g} per second, above the slew limit of {self.slew:g}."
            )


class Limiter:
    """The last step before the converter: clamps amplitude and slew of every sample.

    Between requests that passed the checks it changes nothing; it is there for everything else.
    """

    def __init__(self, limits: Limits, rate: float) -> None:
        self.limits = limits
        self._step = limits.slew / rate
        self.output = 0.0  # the value that stands at the output now
        self.clamped = 0  # samples that had to be held back

    def __call__(self, wanted: NDArray[np.float64]) -> NDArray[np.float64]:
        """The samples that may go out; a sample that is no number counts as zero."""
        peak = self.limits.peak
        out = np.clip(np.nan_to_num(wanted, nan=0.0, posinf=0.0, neginf=0.0), -peak, peak)
        steps = np.diff(out, prepend=self.output)
        if np.abs(steps).max(initial=0.0) > self._step:
            out = self._follow(out)
        self.clamped += int(np.count_nonzero(out != wanted))
        if len(out):
            self.output = float(out[-1])
        return out

    def _follow(self, wanted: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.empty_like(wanted)
        last, step = self.output, self._step
        for i, value in enumerate(wanted):
            last += min(max(value - last, -step), step)
            out[i] = last
        return out
