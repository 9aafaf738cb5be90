"""The sample rate from measured times, and times that are not uniform."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.errors import DataError
from drivers.formats.options import Options

TIME_NAMES = frozenset({"t", "time", "times", "zeit", "x_value", "seconds", "timestamp"})
SECONDS = {
    "": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6,
    "μs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0,
}  # fmt: skip
JITTER = 0.02  # of a sample interval: what rounding to a few digits does to uniform times


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


def sampling(
    times: NDArray[np.float64] | None, arrays: list[NDArray[np.float64]], options: Options, source: str
) -> tuple[float, list[NDArray[np.float64]]]:
    """The rate in Hz and the samples at uniform times.

    Uniform times give their own rate; others are refused unless ``options.resample`` asks for interpolation.
    Without times the rate must be given.
    """
    if times is None or (len(times) < 2 and options.rate is not None):
        if options.rate is None:
            raise DataError(f"{source} has no time column 't': give its sample rate (--rate HZ).")
        times_known = False
        rate = options.rate
    else:
        times_known = True
        rate = 0.0
    if times_known and times is not None:
        if len(times) < 2:
            raise DataError(
                f"{source} has {len(times)} samples, too few to tell the sample rate (--rate HZ)."
            )
        _check_order(times, source)
        if options.resample is not None:
            return options.resample, resampled(times, arrays, options.resample, source)
        rate = uniform_rate(times, source)
        if options.rate is not None and abs(options.rate - rate) > 1e-3 * rate:
            raise DataError(
                f"{source} has times at {rate:.6g} Hz, which contradicts the given {options.rate:.6g} Hz."
            )
        return rate, arrays
    if options.resample is not None:
        grid = np.arange(len(arrays[0]) if arrays else 0) / rate
        return options.resample, resampled(grid, arrays, options.resample, source)
    return rate, arrays


def uniform_rate(times: NDArray[np.float64], source: str) -> float:
    """The rate in Hz of uniform times in seconds; non-uniform times are refused with where and how much."""
    count = len(times) - 1
    interval = (times[-1] - times[0]) / count
    deviation = np.abs(times - (times[0] + interval * np.arange(count + 1)))
    # Times printed with few digits are uniform up to that rounding.
    allowed = max(JITTER * interval, 0.51 * _printed_digit(times, interval))
    worst = int(np.argmax(deviation))
    if deviation[worst] > allowed:
        steps = np.diff(times)
        raise DataError(
            f"{source} is not sampled uniformly: steps from {steps.min():.6g} to {steps.max():.6g} s, "
            f"off by {deviation[worst]:.3g} s at sample {worst} (--resample HZ interpolates)."
        )
    doubt = min(max(2 * deviation[worst] / (interval * count), 1e-13), 1e-4)
    return simplest(1 / interval, doubt)


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

    mean_rate = (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0
    if not (np.isfinite(rate) and rate > 0):
        raise DataError(f"The rate to resample to must be a positive number, not {rate}.")
    if len(times) < 4:
        raise DataError(f"{source} has too few samples to resample.")
    if rate < 0.999 * mean_rate:
        raise DataError(f"Resampling {source} to {rate:.6g} Hz would alias: use at least {mean_rate:.6g} Hz.")
    count = int(np.floor((times[-1] - times[0]) * rate * (1 + 1e-12))) + 1
    if count > 1 << 28:
        raise DataError(f"Resampling {source} to {rate:.6g} Hz would give {count} samples, too many.")
    grid = np.minimum(times[0] + np.arange(count) / rate, times[-1])
    if not all(np.isfinite(a).all() for a in arrays):
        raise DataError(f"{source} has samples that are not numbers: it cannot be resampled.")
    return [np.ascontiguousarray(CubicSpline(times, a)(grid)) for a in arrays]


def _check_order(times: NDArray[np.float64], source: str) -> None:
    if not np.isfinite(times).all():
        bad = int(np.flatnonzero(~np.isfinite(times))[0])
        raise DataError(f"{source} has a time that is not a number at sample {bad}.")
    steps = np.diff(times)
    if (steps <= 0).any():
        bad = int(np.flatnonzero(steps <= 0)[0]) + 1
        raise DataError(f"{source} has times that do not increase at sample {bad}.")


def _printed_digit(times: NDArray[np.float64], interval: float) -> float:
    """The last decimal digit that the times carry, as a step in seconds; 0 if they carry many."""
    for digits in range(10):
        step = 10.0**-digits
        if step < interval and np.all(
            np.abs(times - np.round(times, digits)) <= 1e-9 * step + 1e-15 * np.abs(times)
        ):
            return step
    return 0.0
