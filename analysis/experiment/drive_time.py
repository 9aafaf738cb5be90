"""The model's t at the first sample of a record.

A model's t is the drive's time wherever the record knows it: said outright (``Record.drive_time``), or by the
drive's phase at the first sample, t0 = phase/(2 pi f). Where neither is known the time of the first sample is
a further unknown, unless the model's free parameters cover a shift of t by themselves, as a cosine and a sine
of unknown size do. A file's own clock (``Record.clock_time``) is not the drive's, but it is the one that the
user reads: where parameters cover a shift they are given by that clock, and where a drive never repeats its
time is looked for from there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.record import Record
from analysis.experiment.conditions import Conditions
from analysis.experiment.run import Run, read_run
from analysis.experiment.states import start_states
from analysis.model import Model
from analysis.model.drive import Drive, drive_of

Array = NDArray[np.float64]

DRIVE_TIME = "drive_time"  # the further unknown: the drive's time at the first sample

_NOT_PERIODIC = ("sweep", "stepped sine", "random", "burst random")  # their phase does not tell their time
_COVERED = 1e-6  # of d/dt that the free parameters may leave unexplained and still cover a shift of t
_LOOKED_AT = 2000  # samples that decide it
_SHARE = 1e-6  # of a shift of t that a parameter takes up at least, to count as depending on it
_FARTHEST = 1e3  # record lengths from zero: by a clock beyond, level and slope in t are hardly told apart
_SHORTEST_PERIOD = 0.1  # sample intervals: a drive that is faster shows nothing of itself
_UNITS = {"ms": 1e3, "us": 1e6, "ns": 1e9}  # parts of a second
_SAME = 1e-4  # relative difference of two frequencies, drive and model, that are told from different clocks


def recorded_time(record: Record) -> float | None:
    """The drive's time at the first sample, as the record knows it; None if it does not."""
    if record.drive_time is not None:
        return record.drive_time
    drive = record.excitation
    if drive is None or drive.phase is None or not drive.frequency > 0 or drive.waveform in _NOT_PERIODIC:
        return None
    return float((drive.phase % (2 * np.pi)) / (2 * np.pi * drive.frequency))


def clock_start(record: Record) -> float | None:
    """The model's t at the first sample by the file's own clock; None without one that serves as t."""
    return None if record.clock_time is None or clock_is_far(record) else record.clock_time


def clock_is_far(record: Record) -> bool:
    """Whether the file has a clock whose zero is too many record lengths away, as with seconds since 1970."""
    return record.clock_time is not None and abs(record.clock_time) > _FARTHEST * record.duration


def clock_words(record: Record, names: Sequence[str]) -> str:
    """What t counts from where parameters (named) depend on that; empty if the file's clock says zero."""
    depend = " and of ".join(names)
    if record.clock_time is None:
        return (
            "The record does not tell the time of its first sample: the model's t, on which the value of "
            f"{depend} depends, counts from there."
        )
    if clock_is_far(record):
        return (
            f"{_far_words(record)}: the model's t, on which the value of {depend} depends, counts from the "
            "first sample."
        )
    if record.clock_time == 0.0:
        return ""
    return (
        f"The model's t is the file's clock, {record.clock_time:.6g} s at the first sample: on its zero the "
        f"value of {depend} depends."
    )


def search_words(record: Record) -> str:
    """A sentence if the drive's time is not looked for from the file's clock although there is one."""
    return _far_words(record) + ": `drive_time` is looked for from zero." if clock_is_far(record) else ""


def _far_words(record: Record) -> str:
    return f"The file's clock ({record.clock_time:.6g} s at the first sample) is too far from zero to be t"


def takers_of_shift(
    shifted: Model, record: Record, conditions: Conditions, names: Sequence[str]
) -> tuple[str, ...] | None:
    """Those of the named parameters that do to the equations together what a shift of t does.

    None if they do not: the derivative of right-hand sides and outputs in t must lie in the span of those in
    these parameters, at the states that the record shows.
    """
    run = read_run(shifted, record, conditions, 0.0, "unknown")
    values = _with_drives(shifted, names)
    every = max(len(run.times) // _LOOKED_AT, 1)
    times = np.ascontiguousarray(run.times[::every])
    X = np.ascontiguousarray(start_states(shifted, run, values)[:, ::every])
    return takers_of_shift_at(shifted, times, X, np.ascontiguousarray(run.inputs.values(times)), names)


def takers_of_shift_at(
    shifted: Model, times: Array, X: Array, U: Array, names: Sequence[str]
) -> tuple[str, ...] | None:
    """The same at given states [n, N] and inputs [m, N]."""
    free = [shifted.index(name) for name in names]
    if not free:
        return None
    place = shifted.index(DRIVE_TIME)
    slopes = _slopes(shifted, times, X, U, _with_drives(shifted, names))
    size = np.linalg.norm(slopes, axis=0)
    if size[place] == 0:
        return ()
    used = [j for j in free if size[j] > 0]
    if not used:
        return None
    columns = slopes[:, used] / size[used]
    target = slopes[:, place] / size[place]
    shares = np.linalg.lstsq(columns, target, rcond=None)[0]
    if not np.linalg.norm(target - columns @ shares) < _COVERED:
        return None
    takers = {j for j, share in zip(used, shares, strict=True) if abs(share) > _SHARE}
    return tuple(name for name, j in zip(names, free, strict=True) if j in takers)


def _with_drives(shifted: Model, names: Sequence[str]) -> Array:
    """Values of the parameters, none of those named zero: an amplitude of zero would hide the drive."""
    values = shifted.values()
    values[[j for j in map(shifted.index, names) if values[j] == 0.0]] = 1.0
    return values


def _slopes(model: Model, times: Array, X: Array, U: Array, values: Array) -> Array:
    """Derivatives [samples * (states + outputs), parameters], each equation in units of its own movement."""
    n, q, k, N = len(model.states), len(model.outputs), len(values), len(times)
    kernels = model.kernels()
    F, Fx, Fp = np.empty((n, N)), np.empty((n, n, N)), np.empty((n, k, N))
    Y, Yx, Yp = np.empty((q, N)), np.empty((q, n, N)), np.empty((q, k, N))
    kernels.jac_many(times, X, U, values, F, Fx, Fp)
    kernels.out_jac_many(times, X, U, values, Y, Yx, Yp)
    slopes = np.concatenate([Fp, Yp])
    scale = np.concatenate([np.std(F, axis=1), np.std(Y, axis=1)])
    scale[scale == 0] = 1.0
    rows = (slopes / scale[:, None, None]).transpose(0, 2, 1).reshape(-1, k)
    return np.where(np.isfinite(rows), rows, 0.0)


def check_sampling(model: Model, record: Record) -> None:
    """Refuse a record whose samples are many periods of the model's drive apart.

    Nothing of the drive shows in it, and every method would follow thousands of turns for nothing; most often
    the times are in another unit than their title says.
    """
    rates = drive_of(model).rates
    if not rates:
        return
    period = 2 * np.pi / min(rates)
    samples = period * record.rate
    if samples >= _SHORTEST_PERIOD:
        return
    unit = _likely_unit(samples, len(record))
    raise DataError(
        f"The model's drive has a period of {period:.3g}, {samples:.2g} of a sample interval: the record "
        "cannot show it." + (f" Is the unit of its times {unit}?" if unit else "")
    )


def _likely_unit(samples: float, length: int) -> str:
    """The unit of time by which a period of so many samples would be well sampled and inside the record."""
    return next((unit for unit, parts in _UNITS.items() if 4 <= samples * parts <= length), "")


def other_frequency(model: Model, run: Run) -> str:
    """A sentence if the model's drive does not repeat with the record's excitation; empty if it does."""
    drive = run.record.excitation
    if drive is None or not drive.frequency > 0 or not 1.0 / drive.frequency < run.record.duration:
        return ""
    own = drive_of(model)
    if not own.present or _harmonics_of(own, drive.frequency) or _frequency_is_free(model, own):
        return ""
    return (
        f"The record was driven at {drive.frequency:.6g} per unit of time, but the model's own drive does "
        "not repeat with that period: one of the two is wrong."
    )


def _harmonics_of(drive: Drive, frequency: float) -> bool:
    """Whether all lines of the model's drive are multiples of a frequency (per unit of time)."""
    multiples = np.array(sorted(drive.rates)) / (2 * np.pi * frequency)
    return drive.periodic and bool(np.all(np.abs(multiples - np.rint(multiples)) < _SAME * multiples))


def _frequency_is_free(model: Model, drive: Drive) -> bool:
    """Whether a free parameter changes a frequency of the model's drive."""
    for name in model.free:
        value = model.parameters[name].value
        changed = drive_of(model.with_values({name: 1.1 * value if value else 1.0}))
        if changed.periodic and drive.rates - changed.rates:
            return True
    return False
