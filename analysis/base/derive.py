"""New records from old ones: resampled, calibrated. The old record stays as it is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.gaps import filled
from analysis.base.record import Channel, Record, Span


def resample(record: Record, rate: float) -> Record:
    """The record at another sample rate (Hz), band-limited by a linear-phase filter (no shift in time).

    The ratio of the rates is taken as the nearest fraction with a denominator up to 1000. Lost samples are
    bridged by straight lines before filtering and stay marked.
    """
    if not (np.isfinite(rate) and rate > 0):
        raise DataError(f"The new rate must be a positive number, not {rate}.")
    ratio = Fraction(rate / record.rate).limit_denominator(1000)
    if ratio == 0:
        raise DataError(f"A rate of {rate:g} Hz is too far below the record's {record.rate:g} Hz.")
    from scipy.signal import resample_poly

    def moved(spans: tuple[Span, ...]) -> tuple[Span, ...]:
        return tuple((int(a * ratio), ceil(b * ratio)) for a, b in spans)

    channels = {}
    for name, channel in record.channels.items():
        data = resample_poly(_bridged(channel.data), ratio.numerator, ratio.denominator, padtype="line")
        channels[name] = Channel(
            np.ascontiguousarray(data), channel.unit, moved(channel.gaps), moved(channel.clipped)
        )
    markers = tuple(replace(marker, index=int(marker.index * ratio)) for marker in record.markers)
    return replace(record, rate=record.rate * float(ratio), channels=channels, markers=markers)


def calibrate(record: Record, channel: str, factor: float, offset: float, unit: str) -> Record:
    """The record with ``channel`` replaced by factor * samples + offset, in another unit."""
    data = record[channel]
    if not (np.isfinite(factor) and np.isfinite(offset) and factor != 0):
        raise DataError("A calibration needs a factor other than 0 and a finite offset.")
    old = record.channels[channel]
    channels = dict(record.channels)
    noise = None if old.noise is None else abs(factor) * old.noise
    channels[channel] = replace(old, data=factor * data + offset, unit=unit, noise=noise)
    return replace(record, channels=channels)


def _bridged(data: NDArray[np.float64]) -> NDArray[np.float64]:
    if not np.isfinite(data).any():
        raise DataError("A channel without a single number cannot be resampled.")
    return filled(data)
