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
_SINES = 6  # over the band of interest, beside those near resonances
_MOST_LINES = 150  # of a multisine; then its period is shorter than its part
_PHASES = 2  # random phases of a multisine, beside those of low crest: one of them fits the specimen best
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


def rig_band(limits: Limits, rate: float) -> Band:
    """All that the rig may play and its samples can follow, in Hz."""
    highest = min(limits.highest_frequency, 0.2 * rate)
    lowest = max(limits.lowest_frequency, highest / 1000)
    if not lowest < highest:
        raise RigError(f"No frequency lies between {lowest:g} and {highest:g} Hz: nothing can be played.")
    return lowest, highest


def working_band(limits: Limits, rate: float, resonances: Sequence[float]) -> Band:
    """Where the specimen answers and the rig may play, in Hz."""
    lowest, highest = rig_band(limits, rate)
    near = [f for f in resonances if lowest < f < highest]
    if not near:
        return lowest, highest
    low, high = (float(f"{f:.4g}") for f in (min(near) / _AROUND, max(near) * _AROUND))
    return max(lowest, low), min(highest, high)


def bands(band: Band, resonances: Sequence[float]) -> list[Band]:
    """A band, its halves, and the surroundings of the resonances in it."""
    lowest, highest = band
    middle = float(f"{np.sqrt(lowest * highest):.4g}")
    near = [f for f in resonances if lowest < f < highest]
    around = [(max(lowest, float(f"{0.6 * f:.4g}")), min(highest, float(f"{1.6 * f:.4g}"))) for f in near[:3]]
    return [band, (lowest, middle), (middle, highest), *around]


def multisine(limits: Limits, band: Band, seconds: float, seed: int | None = None) -> Waveform:
    """Low-crest lines over a band at the largest drive that is allowed, a period in ``seconds`` or less."""
    spacing = max(1 / seconds, (band[1] - band[0]) / _MOST_LINES)
    spacing = min(spacing, 0.5 * (band[1] - band[0]))
    return within(limits, Multisine(limits.peak, *band, spacing, seed))


def shapes(limits: Limits, band: Band, resonances: Sequence[float], seconds: float) -> list[Waveform]:
    """Sines, sweeps, multisines and random drives of that length, each as large as the limits allow."""
    lowest, highest = band
    peak, near = limits.peak, [f for f in resonances if lowest < f < highest]
    tones = {*np.geomspace(lowest, highest, _SINES)[1:-1], lowest, highest}
    tones |= {f * part for f in near for part in _NEAR if lowest <= f * part <= highest}
    tones = {float(np.clip(float(f"{f:.4g}"), lowest, highest)) for f in tones}
    found: list[Waveform] = [Sine(peak, f) for f in sorted(tones)]
    for low, high in bands(band, resonances):
        found += [Sweep(peak, low, high, seconds, True), Sweep(peak, high, low, seconds, True)]
        found += [multisine(limits, (low, high), seconds, seed) for seed in (None, *range(_PHASES))]
        found.append(RandomNoise(peak, low, high))
    return [within(limits, shape) for shape in found]


def within(limits: Limits, waveform: Waveform) -> Waveform:
    """The waveform with the largest amplitude that neither peak nor slew forbid, edges counted."""
    steepest = Segments(waveform.amplitude, (Part(waveform, 3 * EDGE),)).slew()
    if steepest <= limits.slew:
        return waveform
    return replace(waveform, amplitude=rounded_down(waveform.amplitude * 0.999 * limits.slew / steepest))
