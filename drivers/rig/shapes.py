"""The drives that a rig can play within its limits, among which a plan chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from drivers.base.limits import Limits
from drivers.base.waveform import EDGE, Multisine, Part, RandomNoise, Segments, Sine, Sweep, Waveform
from drivers.rig.profile import RigError

if TYPE_CHECKING:
    from drivers.rig.profile import RigProfile

Band = tuple[float, float]

_SINES_ONLY = ("ds345", "scpi")  # generators that make their waveform themselves
_AROUND = 4.0  # the band of interest: resonances, so many times lower and higher
_SINES = 10  # over the band of interest, beside those near resonances
_MOST_LINES = 150  # of a multisine; then its period is shorter than its part
_NEAR = (0.75, 0.9, 1.0, 1.1, 1.35)  # of a resonance


def rounded_down(size: float) -> float:
    """Three digits, for people to read, and never more than was allowed."""
    step = 10.0 ** (np.floor(np.log10(size)) - 2)
    return float(f"{np.floor(size / step * (1 + 1e-12)) * step:.3g}")


def check_plays(profile: RigProfile) -> None:
    """RigError if the rig's exciter cannot play segments of several waveforms."""
    exciter = profile.instruments.get("exciter")
    if exciter is None:
        raise RigError(f"The rig '{profile.key}' has no exciter: it cannot play a plan.")
    if exciter.get("driver") in _SINES_ONLY:
        raise RigError(
            f"The generator of '{profile.key}' plays sines only: it cannot play a plan of several waveforms."
        )


def working_band(limits: Limits, rate: float, resonances: Sequence[float]) -> Band:
    """Where the specimen answers and the rig may play, in Hz."""
    lowest, highest = limits.lowest_frequency, min(limits.highest_frequency, 0.2 * rate)
    near = [f for f in resonances if lowest < f < highest]
    if near:
        lowest, highest = max(lowest, min(near) / _AROUND), min(highest, max(near) * _AROUND)
    lowest, highest = float(f"{max(lowest, highest / 1000):.4g}"), float(f"{highest:.4g}")
    lowest, highest = max(lowest, limits.lowest_frequency), min(highest, limits.highest_frequency)
    if not lowest < highest:
        raise RigError(f"No frequency lies between {lowest:g} and {highest:g} Hz: nothing can be played.")
    return lowest, highest


def multisine(limits: Limits, band: Band, seconds: float) -> Waveform:
    """Low-crest lines over a band at the largest drive that is allowed, a period in ``seconds`` or less."""
    spacing = max(1 / seconds, (band[1] - band[0]) / _MOST_LINES)
    spacing = min(spacing, 0.5 * (band[1] - band[0]))
    return within(limits, Multisine(limits.peak, *band, spacing))


def shapes(limits: Limits, band: Band, resonances: Sequence[float], seconds: float) -> list[Waveform]:
    """Sines, sweeps, multisines and random drives of that length, each as large as the limits allow."""
    lowest, highest = band
    peak, middle = limits.peak, float(f"{np.sqrt(lowest * highest):.4g}")
    near = [f for f in resonances if lowest < f < highest]
    tones = {*np.geomspace(lowest, highest, _SINES)[1:-1], lowest, highest}
    tones |= {f * part for f in near for part in _NEAR if lowest <= f * part <= highest}
    tones = {float(np.clip(float(f"{f:.4g}"), lowest, highest)) for f in tones}
    bands = [band, (lowest, middle), (middle, highest)]
    bands += [(max(lowest, 0.6 * f), min(highest, 1.6 * f)) for f in near[:3]]
    found: list[Waveform] = [Sine(peak, f) for f in sorted(tones)]
    for low, high in bands:
        found += [Sweep(peak, low, high, seconds, True), Sweep(peak, high, low, seconds, True)]
        found.append(multisine(limits, (low, high), seconds))
        found.append(RandomNoise(peak, low, high))
    return [within(limits, shape) for shape in found]


def within(limits: Limits, waveform: Waveform) -> Waveform:
    """The waveform with the largest amplitude that neither peak nor slew forbid, edges counted."""
    steepest = Segments(waveform.amplitude, (Part(waveform, 3 * EDGE),)).slew()
    if steepest <= limits.slew:
        return waveform
    return replace(waveform, amplitude=rounded_down(waveform.amplitude * 0.999 * limits.slew / steepest))
