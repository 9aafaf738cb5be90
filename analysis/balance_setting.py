"""What a record tells for balancing: measured states, derivatives, noise, and the drive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.errors import DataError
from analysis.measurement import derivative_pairs
from analysis.record import Record

if TYPE_CHECKING:
    from analysis.balance import Options
    from analysis.model import Model

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


def read_setting(model: Model, record: Record, options: Options) -> Setting:
    """Channels, derivatives and the drive, as the record and the options tell."""
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
    missing = [name for name in model.inputs if name not in record]
    if missing:
        raise DataError(f"The model's input '{missing[0]}' is not in the record.")
    from analysis.noise import noise_levels

    noise = [float(s) for s in noise_levels(np.array([record[c] for c in channels]))]
    drive = record.excitation
    frequency = options.frequency if options.frequency is not None else (drive.frequency if drive else None)
    if frequency is None:
        return Setting(record, channels, sources, pairs, _turn(record, channels), 0.0, False, noise)
    phase = drive.phase if drive is not None and drive.phase is not None else 0.0
    if not model.inputs and options.phase != "recorded" and (drive is None or drive.phase is None):
        record = by_drive_clock(record, channels[0], frequency)
    return Setting(
        record, channels, sources, pairs, 1 / frequency, phase / (2 * np.pi * frequency), True, noise
    )


def by_drive_clock(record: Record, channel: str, frequency: float) -> Record:
    """The record with its rate set by the drive's line in the response, whose frequency is known.

    Without a shared clock the converter's may be off, and with its time every rate and stiffness: 100 ppm
    are twice that in a stiffness, more than the noise of a long record. A record without a clear line, or
    with all inputs measured, stays as it is.
    """
    from analysis.drive import drive_frequency

    samples = record[channel]
    if len(samples) < _CLOCK_PERIODS / (frequency * record.dt):
        return record
    return replace(record, rate=frequency / drive_frequency(samples, near=frequency * record.dt))


def _turn(record: Record, channels: list[str]) -> float:
    from analysis.autonomous import mean_turn

    return float(mean_turn(np.array([record[c] for c in channels]))) * record.dt
