"""The sample rate from measured times, rows that a logger skipped, and times that are not uniform."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from analysis import DataError, Span

# Names that may be of a temperature, a torque or a tension as well.
_DOUBTFUL_NAMES = frozenset({"T", "temps", "tempo"})
TIME_NAMES = frozenset(
    {"t", "time", "times", "x_value", "seconds", "timestamp", "zeit", "tiempo", "tijd", "czas"}
)
SECONDS = {
    "": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6,
    "μs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0,
}  # fmt: skip
JITTER = 0.02  # of a sample interval: what rounding to a few digits does to uniform times
_UNEVEN = 1e-5  # of a sample interval: what doubles may round a written time by
BLOCK = 1 << 20
Times = Callable[[int, int], NDArray[np.float64]]  # samples start to stop

_FEWEST = 10  # rows that show a grid of which some are missing
_PLAIN = 0.75  # of the steps that must be the grid's own, or it may be another grid
_MOST_MISSING = 100  # times the rows that are there: more is no gap but a wrong time
_HOLE, _WIDE = 5.0, 4.0  # median steps, and steps that one in 20 exceeds: a longer one is a hole


@dataclass(frozen=True)
class Grid:
    """Uniform times at a rate (Hz); ``rows`` are the samples that are there, None where none is missing."""

    rate: float
    rows: NDArray[np.int64] | None = None

    @property
    def holes(self) -> tuple[Span, ...]:
        """The samples that are missing."""
        if self.rows is None:
            return ()
        before = np.flatnonzero(np.diff(self.rows) > 1)
        return tuple((int(self.rows[i]) + 1, int(self.rows[i + 1])) for i in before)


class _NotUniformError(DataError):
    """Times that are on no uniform grid without holes."""


def grid_of_times(times: Times, count: int, source: str, given: float | None = None) -> Grid:
    """The uniform grid of times in seconds, of which whole steps may be missing; others are refused.

    ``given``: the rate that the user knows, for times printed with too few digits to tell it.
    """
    try:
        return Grid(rate_of_times(times, count, source))
    except _NotUniformError:
        all_times = times(0, count)
        _check_restart(all_times, source)
        if given is not None and _rounded_at(all_times, given):
            return Grid(given)
        grid = _grid_with_holes(all_times)
        if grid is None:
            raise
        return grid


def _check_restart(times: NDArray[np.float64], source: str) -> None:
    """Refuse times that start again: a single one that is out of order is no new measurement."""
    since = times - times[0]
    again = np.flatnonzero(since[1:] < 0.5 * since[:-1])
    if len(again):
        at = int(again[0]) + 1
        raise DataError(
            f"{source} has times that go back from {times[at - 1]:.6g} s to {times[at]:.6g} s "
            f"at sample {at}: several measurements in one file? Write each into a file of its own."
        )


def _rounded_at(times: NDArray[np.float64], rate: float) -> bool:
    """Whether every time is that of a uniform grid at a rate, to the nearest sample or as it is written."""
    off = (times - times[0]) * rate - np.arange(len(times))
    written = _printed_digit(times, np.inf) * rate if _repeats(times) else 0.0
    return bool(np.ptp(off) <= max(1.0, 1.001 * written))


def _grid_with_holes(times: NDArray[np.float64]) -> Grid | None:
    """The grid on which all times stand although rows are missing; None if there is none."""
    steps = np.diff(times)
    step = float(np.median(steps))
    if len(times) < _FEWEST or not np.all(steps > 0.5 * step):
        return None
    single = steps < 1.5 * step
    if np.mean(single) < _PLAIN:
        return None
    interval = float(np.mean(steps[single]))
    if times[-1] - times[0] > _MOST_MISSING * len(times) * interval:
        return None
    # Over a long hole a rounded step adds up: the line through all times tells the interval better.
    rows = np.concatenate([[0.0], np.cumsum(np.rint(steps / interval))])
    since = times - times[0]
    for _ in range(2):
        first, interval = np.polynomial.polynomial.polyfit(rows, since, 1)
        rows = np.rint((since - first) / interval)
    worst = float(np.abs(since - (first + interval * rows)).max())
    rounding = 0.51 * _printed_digit(times, interval)
    allowed = max(JITTER * interval, rounding if rounding <= 0.26 * interval else 0.0)
    if worst > allowed or not np.all(np.diff(rows) >= 1):
        return None
    doubt = min(max(2 * worst / (interval * rows[-1]), 1e-13), 1e-4)
    return Grid(simplest(1 / interval, doubt), (rows - rows[0]).astype(np.int64))


def is_time(name: str) -> bool:
    """Whether a column of that name may hold times."""
    return name.strip().lower() in TIME_NAMES | _DOUBTFUL_NAMES


def is_plain_time(name: str) -> bool:
    """Whether nothing but times has that name: ``T`` may be a temperature, "temps" short for some."""
    plain = name.strip()
    return is_time(plain) and plain != "T" and plain.lower() not in _DOUBTFUL_NAMES


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
            if _repeats(times(0, min(count, BLOCK))):
                raise _NotUniformError(
                    f"{source} has times that are written too coarsely, the same one for several samples "
                    f"(about {simplest(1 / interval, 0.01):g} Hz): give the sample rate (--rate HZ)."
                )
            raise _NotUniformError(
                f"{source} is not sampled uniformly: a time is off by {worst:.3g} s at sample {where}, "
                f"the mean step being {interval:.6g} s (`shakedown convert --resample HZ` interpolates)."
            )
    doubt = min(max(2 * worst / (interval * (count - 1)), 1e-13), 1e-4)
    return simplest(1 / interval, doubt)


def _repeats(times: NDArray[np.float64]) -> bool:
    """Whether times never fall but many are those of their neighbours: rounded beyond the step."""
    steps = np.diff(times)
    return bool(len(times) >= _FEWEST and np.all(steps >= 0) and np.mean(steps == 0) > 0.1)


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
) -> tuple[list[NDArray[np.float64]], tuple[Span, ...]]:
    """Cubic interpolation onto uniform times; never below the mean rate, which would alias.

    Where the times have a hole nothing is drawn across it: samples in it are NaN. Their spans come second.
    """
    if not (np.isfinite(rate) and rate > 0):
        raise DataError(f"The rate to resample to must be a positive number, not {rate}.")
    if len(times) < 4:
        raise DataError(f"{source} has too few samples to resample.")
    if not (np.isfinite(times).all() and (np.diff(times) > 0).all()):
        raise DataError(
            f"{source} has times that do not increase: it cannot be resampled. "
            "Where they are rounded, leave them out (--time none) and give the rate (--rate HZ)."
        )
    if not all(np.isfinite(a).all() for a in arrays):
        raise DataError(f"{source} has samples that are not numbers: it cannot be resampled.")
    ends = _ends_of_stretches(times)
    mean_rate = (len(times) - len(ends)) / sum(times[last] - times[first] for first, last in ends)
    if rate < 0.999 * mean_rate:
        raise DataError(f"Resampling {source} to {rate:.6g} Hz would alias: use at least {mean_rate:.6g} Hz.")
    count = int(np.floor((times[-1] - times[0]) * rate * (1 + 1e-12))) + 1
    if count > 1 << 28:
        raise DataError(f"Resampling {source} to {rate:.6g} Hz would give {count} samples, too many.")
    grid = np.minimum(times[0] + np.arange(count) / rate, times[-1])
    uniform = [_interpolated(times, a, grid, ends) for a in arrays]
    lost = [_samples_between(grid, times[last], times[first]) for (_, last), (first, _) in pairwise(ends)]
    return uniform, tuple(span for span in lost if span[1] > span[0])


def _ends_of_stretches(times: NDArray[np.float64]) -> list[tuple[int, int]]:
    """First and last row of each stretch of times without a hole."""
    steps = np.diff(times)
    longest = max(_HOLE * float(np.median(steps)), _WIDE * float(np.quantile(steps, 0.95)))
    before = np.flatnonzero(steps > longest).tolist()
    return list(zip([0, *(i + 1 for i in before)], [*before, len(times) - 1], strict=True))


def _samples_between(grid: NDArray[np.float64], last: float, first: float) -> Span:
    """Samples of a grid after the last time before a hole and before the first one behind it."""
    return int(np.searchsorted(grid, last, "right")), int(np.searchsorted(grid, first, "left"))


def _interpolated(
    times: NDArray[np.float64],
    data: NDArray[np.float64],
    grid: NDArray[np.float64],
    ends: list[tuple[int, int]],
) -> NDArray[np.float64]:
    """A cubic spline through each stretch; NaN between them, and in one too short for a line."""
    from scipy.interpolate import CubicSpline

    result = np.full(len(grid), np.nan)
    for first, last in ends:
        start, stop = np.searchsorted(grid, times[first], "left"), np.searchsorted(grid, times[last], "right")
        if last > first:
            rows = slice(first, last + 1)
            result[start:stop] = CubicSpline(times[rows], data[rows])(grid[start:stop])
    return result


def _printed_digit(times: NDArray[np.float64], interval: float) -> float:
    """The last decimal digit that the times carry, as a step in seconds; 0 if they carry many."""
    for digits in range(10):
        step = 10.0**-digits
        close = 1e-9 * step + 1e-15 * np.abs(times)
        if step < interval and np.all(np.abs(times - np.round(times, digits)) <= close):
            return step
    return 0.0
