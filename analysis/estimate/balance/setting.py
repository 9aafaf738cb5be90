"""What a record tells for balancing: measured states, derivatives, noise, and the drive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.record import Record
from analysis.experiment.states import derivative_pairs
from analysis.signal.amplitude_spectrum import amplitude_spectrum

if TYPE_CHECKING:
    from analysis.estimate.balance.method import HarmonicBalance
    from analysis.experiment import Run
    from analysis.model import Model

_PLAIN_HARMONICS = 5  # thesis: 3 to 5
# Harmonics: orbits found in chaos gain nothing from more, known ones may need hundreds.
_FEWEST, _MOST = 3, 12
_STANDS_OUT = 4.0  # power of a harmonic's band, in that of the noise, at least
_BY_CHANCE = 1e-3  # chance that any band of mere noise is taken for a harmonic
_FASTEST = 0.2  # cycles a sample: products of states (x^3) of faster ones would be sampled too coarsely
_BINS = 8  # lines of the spectrum in the band of a harmonic
_DIGITS = 1e-5  # least noise that is reckoned with, of the signal's spread
_ROUNDING = 1e-9  # of a period in samples: a product and a quotient of measured numbers agree so far
_CLOCK_PERIODS = 2000  # of the drive in a record, at least, for its line to tell the clock to a few ppm


@dataclass(frozen=True, eq=False)
class Setting:
    """What is known of the record for balancing."""

    record: Record
    channels: list[str]  # measured states, in the model's order
    sources: dict[int, int]  # state -> measured channel it is taken from, as such or as its derivative
    pairs: dict[int, int]  # velocity state -> position state
    base: float  # drive period (mean turn of an autonomous system), in units of time
    t0: float  # the model's time at the first sample
    forced: bool
    noise: list[float]
    harmonics: int  # of the drive, to be balanced

    @property
    def samples(self) -> float:
        """The drive period in samples."""
        return samples_of(self.base, self.record.dt)


def samples_of(period: float, dt: float) -> float:
    """A period in samples: a whole number exactly where it is one but for rounding.

    Otherwise 40 samples become 40 or 41, and another harmonic is balanced, depending on the unit of time.
    """
    samples = period / dt
    return float(round(samples)) if abs(samples - round(samples)) < _ROUNDING * samples else samples


def read_setting(model: Model, run: Run, options: HarmonicBalance) -> Setting:
    """Channels, derivatives and the drive, as the run and the options tell."""
    record = run.record
    pairs = derivative_pairs(model)
    channels = [s for s in model.states if s in record and s in model.outputs]
    if not channels:
        raise DataError(
            f"Balance needs a record of states ({', '.join(model.states)}); this one has "
            f"{', '.join(record.names)}. Map a channel to a state."
        )
    sources: dict[int, int] = {}
    for i, state in enumerate(model.states):
        if state in channels:
            sources[i] = channels.index(state)
        elif i in pairs and model.states[pairs[i]] in channels:
            sources[i] = channels.index(model.states[pairs[i]])
        else:
            raise DataError(
                f"State '{state}' is neither measured nor the derivative of one that is: use homotopy."
            )
    from analysis.signal.noise import noise_levels

    said = run.noise[[model.outputs.index(c) for c in channels]]
    noise = [
        float(known if np.isfinite(known) else noise_levels(record[c])[0])
        for known, c in zip(said, channels, strict=True)
    ]
    drive = record.excitation
    frequency = options.frequency if options.frequency is not None else (drive.frequency if drive else None)
    if frequency is None:
        base = _turn(record, channels)
        harmonics = _harmonics(record, channels, noise, base, options)
        return Setting(record, channels, sources, pairs, base, 0.0, False, noise, harmonics)
    if not model.inputs and options.phase != "recorded" and run.phase != "recorded":
        record = by_drive_clock(record, channels[0], frequency)
    harmonics = _harmonics(record, channels, noise, 1 / frequency, options)
    t0 = float(run.times[0])
    return Setting(record, channels, sources, pairs, 1 / frequency, t0, True, noise, harmonics)


def by_drive_clock(record: Record, channel: str, frequency: float) -> Record:
    """The record with its rate set by the drive's line in the response, whose frequency is known.

    Without a shared clock the converter's may be off, and with its time every rate and stiffness: 100 ppm
    are twice that in a stiffness, more than the noise of a long record. A record without a clear line, or
    with all inputs measured, stays as it is.
    """
    from analysis.signal.drive import drive_frequency

    samples = record[channel]
    if len(samples) < _CLOCK_PERIODS / (frequency * record.dt):
        return record
    return replace(record, rate=frequency / drive_frequency(samples, near=frequency * record.dt))


def _harmonics(
    record: Record, channels: list[str], noise: list[float], base: float, options: HarmonicBalance
) -> int:
    """How many multiples of 1/``base`` to balance: as asked for, or as stand out of the noise."""
    if options.harmonics is not None:
        return options.harmonics
    if options.plain:
        return _PLAIN_HARMONICS
    found = max(
        _above_noise(record[c], s, samples_of(base, record.dt)) for c, s in zip(channels, noise, strict=True)
    )
    return max(_FEWEST, found if options.starts else min(found, _MOST))


def _above_noise(samples: NDArray[np.float64], noise: float, period: float) -> int:
    """The highest multiple of the frequency 1/``period`` (samples) around which there is more than noise."""
    from scipy.special import chdtri

    good = samples[np.isfinite(samples)]
    length = min(len(good), int(np.ceil(_BINS * period)))
    # Welch's averages, without SciPy's signal package: that would be 30 MB and half a second more.
    segments = sliding_window_view(good, length)[:: length - length // 2]
    frequency, amplitudes = amplitude_spectrum(segments, 1.0)
    density = (amplitudes**2).mean(axis=0) * length / 3  # of the Hann window
    floor = 2 * max(noise, _DIGITS * float(good.std())) ** 2
    order = np.rint(frequency * period).astype(int)
    order = order[order <= _FASTEST * period]
    lines = np.maximum(np.bincount(order), 1)
    bands = np.bincount(order, density[: len(order)]) / lines
    # Mere noise gives chi-squared: among the thousands of bands of a long period some exceed any fixed limit.
    # Two degrees of freedom a line, half of that together: the window makes neighbouring lines alike.
    freedom = np.maximum(lines, 2.0) * (len(good) // length)
    limit = np.maximum(_STANDS_OUT, chdtri(freedom, _BY_CHANCE / len(bands)) / freedom)
    return int(np.max(np.flatnonzero(bands > limit * floor), initial=0))


def _turn(record: Record, channels: list[str]) -> float:
    from analysis.orbits.autonomous import mean_turn

    return float(mean_turn(np.array([record[c] for c in channels]))) * record.dt
