"""The sample rate from measured times, and times that are not uniform."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from analysis import DataError

TIME_NAMES = frozenset({"t", "time", "times", "zeit", "x_value", "seconds", "timestamp"})
SECONDS = {
    "": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6,
    "μs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0,
}  # fmt: skip
JITTER = 0.02  # of a sample interval: what rounding to a few digits does to uniform times
_UNEVEN = 1e-5  # of a sample interval: what doubles may round a written time by
BLOCK = 1 << 20
Times = Callable[[int, int], NDArray[np.float64]]  # samples start to stop


def is_time(name: str) -> bool:
    """Whether a column of that name holds times."""
    return name.strip().lower() in TIME_NAMES


def in_seconds(times: NDArray[np.float64], unit: str, source: str) -> NDArray[np.float64]:
    """Times in a unit as seconds."""
    try:
        return times * SECONDS[unit.strip()]
    except KeyError:
        raise DataError(
            f"{source}: the unit of time '{unit}' is not known (s, ms, us, ns, min or h)."
        ) from None


def written_times(start: int, stop: int, rate: float, clock: float | None) -> NDArray[np.float64]:
    """Times in seconds for a column, by the file's own clock.

    From zero where there is no clock, or where doubles so far from zero would make the step uneven.
    """
    first = clock or 0.0
    if np.spacing(abs(first)) * rate > _UNEVEN:
        first = 0.0
    return first + np.arange(start, stop) / rate


def checked_rate(rate: float, given: float | None, source: str) -> float:
    """The file's rate, unless it is impossible or the user's contradicts it."""
    if not (np.isfinite(rate) and rate > 0):
        raise DataError(f"The sample rate must be a positive number, not {rate}.")
    if given is not None and not abs(given - rate) <= 1e-3 * rate:
        raise DataError(f"{source} is sampled at {rate:.6g} Hz, which contradicts the given {given:.6g} Hz.")
    return rate


def rate_of_times(times: Times, count: int, source: str) -> float:
    """The rate in Hz of uniform times in seconds, read a block at a time.

    Non-uniform times are refused with where and how much. Among the rates that the times' rounding allows,
    the one with fewest digits is taken.
    """
    if count < 2:
        raise DataError(
            f"{source} has too few samples ({count}) to tell the sample rate: give it (--rate HZ)."
        )
    first, last = float(times(0, 1)[0]), float(times(count - 1, count)[0])
    interval = (last - first) / (count - 1)
    if not np.isfinite(interval) or interval <= 0:
        raise DataError(f"{source} has times that do not increase from the first to the last sample.")
    worst, where = _largest_deviation(times, count, first, interval, source)
    if worst > JITTER * interval:
        first, interval = _fitted(times, count)
        worst, where = _largest_deviation(times, count, first, interval, source)
        digit = _printed_digit(times(0, min(count, BLOCK)), interval)
        if (
            not 0 < worst <= 0.51 * digit <= 0.26 * interval
        ):  # times printed with few digits are uniform still
            raise DataError(
                f"{source} is not sampled uniformly: a time is off by {worst:.3g} s at sample {where}, "
                f"the mean step being {interval:.6g} s (--resample HZ interpolates)."
            )
    doubt = min(max(2 * worst / (interval * (count - 1)), 1e-13), 1e-4)
    return simplest(1 / interval, doubt)


def _blocks(count: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + BLOCK, count)) for start in range(0, count, BLOCK))


def _largest_deviation(
    times: Times, count: int, first: float, interval: float, source: str
) -> tuple[float, int]:
    """How far a time is from the uniform grid at most, in seconds, and at which sample."""
    worst, where = 0.0, 0
    for start, stop in _blocks(count):
        block = times(start, stop)
        if not np.isfinite(block).all():
            bad = start + int(np.flatnonzero(~np.isfinite(block))[0])
            raise DataError(f"{source} has a time that is not a number at sample {bad}.")
        off = np.abs(block - (first + interval * np.arange(start, stop)))
        if off.max() > worst:
            worst, where = float(off.max()), start + int(off.argmax())
    return worst, where


def _fitted(times: Times, count: int) -> tuple[float, float]:
    """First time and interval of the straight line of least squares through all times."""
    middle, total, moment = (count - 1) / 2, 0.0, 0.0
    for start, stop in _blocks(count):
        block = times(start, stop)
        total += float(block.sum())
        moment += float(block @ (np.arange(start, stop) - middle))
    interval = moment * 12 / (count * (count * count - 1.0))
    return total / count - middle * interval, interval


def simplest(value: float, relative: float) -> float:
    """The number of fewest digits within a relative distance."""
    for digits in range(1, 18):
        short = float(f"{value:.{digits}g}")
        if abs(short - value) <= relative * abs(value):
            return short
    return value


def resampled(
    times: NDArray[np.float64], arrays: list[NDArray[np.float64]], rate: float, source: str
) -> list[NDArray[np.float64]]:
    """Cubic interpolation onto uniform times; never below the mean rate, which would alias."""
    from scipy.interpolate import CubicSpline

    if not (np.isfinite(rate) and rate > 0):
        raise DataError(f"The rate to resample to must be a positive number, not {rate}.")
    if len(times) < 4:
        raise DataError(f"{source} has too few samples to resample.")
    if not (np.isfinite(times).all() and (np.diff(times) > 0).all()):
        raise DataError(f"{source} has times that do not increase: it cannot be resampled.")
    if not all(np.isfinite(a).all() for a in arrays):
        raise DataError(f"{source} has samples that are not numbers: it cannot be resampled.")
    mean_rate = (len(times) - 1) / (times[-1] - times[0])
    if rate < 0.999 * mean_rate:
        raise DataError(f"Resampling {source} to {rate:.6g} Hz would alias: use at least {mean_rate:.6g} Hz.")
    count = int(np.floor((times[-1] - times[0]) * rate * (1 + 1e-12))) + 1
    if count > 1 << 28:
        raise DataError(f"Resampling {source} to {rate:.6g} Hz would give {count} samples, too many.")
    grid = np.minimum(times[0] + np.arange(count) / rate, times[-1])
    return [np.ascontiguousarray(CubicSpline(times, a)(grid)) for a in arrays]


def _printed_digit(times: NDArray[np.float64], interval: float) -> float:
    """The last decimal digit that the times carry, as a step in seconds; 0 if they carry many."""
    for digits in range(10):
        step = 10.0**-digits
        close = 1e-9 * step + 1e-15 * np.abs(times)
        if step < interval and np.all(np.abs(times - np.round(times, digits)) <= close):
            return step
    return 0.0
