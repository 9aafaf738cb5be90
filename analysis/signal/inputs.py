"""Measured inputs of a model as a function of time that compiled code can evaluate.

Each channel is a piecewise polynomial on the uniform sample grid: a cubic, or one of degree seven where the
channel is said to be band-limited or has too few samples a period for a cubic. Jumps stay jumps: a stepped
channel is held, never splined, and the times of the jumps are known so that an integrator can stop and
restart there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.errors import DataError
from analysis.signal import bandlimited

if TYPE_CHECKING:
    from analysis.base.record import Record

KINDS = ("cubic", "linear", "hold", "bandlimited")

CUBIC = 4  # coefficients of a cubic
# Difference of the means over the intervals, rms over the spread, from which a spline is too coarse: whatever
# makes it, and where it is not the noise. A tone of 14 samples a period loses 5e-5: 6000 samples at 2 % noise
# show that, as a cubic stiffness ten standard errors off.
_COARSE, _LOST = 2e-3, 5e-5
_WHITE = 0.18  # that difference for white noise, over its deviation
_TOP = 0.8  # of half the sample rate: what lies above tells the noise

GUARD = 1e-9  # of a sample interval: a time that is a sample time but for rounding belongs to that sample


@njit(cache=True, nogil=True, inline="always", _nrt=False, error_model="numpy")
def input_values(t, t0, dt, coefficients, u):  # type: ignore[no-untyped-def]
    """Write the inputs at time t into u[m]; before the first and after the last sample their values hold.

    At a jump the new value counts (continuous from the right).
    """
    if coefficients.shape[0] > 0:
        position = (t - t0) / dt
        j = min(max(int(np.floor(position + GUARD)), 0), coefficients.shape[1] - 1)
        s = max(position - j, 0.0) * dt
        for i in range(coefficients.shape[0]):
            u[i] = 0.0  # summed in place: a local number that a loop carries cannot be inlined
            for power in range(coefficients.shape[2] - 1, -1, -1):
                u[i] = coefficients[i, j, power] + s * u[i]


@njit(cache=True, nogil=True)
def _values_at(times, t0, dt, coefficients, out):  # type: ignore[no-untyped-def]
    u = np.empty(coefficients.shape[0])
    for k in range(len(times)):
        input_values(times[k], t0, dt, coefficients, u)
        for i in range(len(u)):
            out[i, k] = u[i]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Measured inputs: ``coefficients[m, N, 4]`` of powers 0 to 3 of the time since the sample, [m, N, 8] of
    powers 0 to 7 where a channel is band-limited (the last piece holds the last sample), and ``breaks``, the
    times of jumps (of the slope for straight lines)."""

    t0: float
    dt: float
    coefficients: NDArray[np.float64]
    breaks: NDArray[np.float64]

    @classmethod
    def none(cls) -> Inputs:
        """For models without measured inputs."""
        return _NONE

    @classmethod
    def from_samples(
        cls,
        t0: float,
        dt: float,
        samples: NDArray[np.float64] | Sequence[Sequence[float]],
        kind: str | Sequence[str] = "cubic",
    ) -> Inputs:
        """Inputs through samples[m, N] taken at t0 + k dt.

        ``kind`` is for all channels or one per channel. ``cubic``: a smooth spline, broken at isolated jumps;
        a channel of plateaus is held. ``linear``: straight lines. ``hold``: each value holds until the next.
        ``bandlimited``: the one signal through the samples that holds nothing above half the sample rate.
        """
        data = np.ascontiguousarray(np.atleast_2d(np.asarray(samples, dtype=np.float64)))
        if not (np.isfinite(dt) and dt > 0 and np.isfinite(t0)):
            raise DataError(f"The sample interval of the inputs must be a positive number, not {dt}.")
        if data.ndim != 2 or data.shape[1] < 1:
            raise DataError("The inputs need at least one sample per channel.")
        if not np.all(np.isfinite(data)):
            raise DataError("The measured inputs have missing or infinite samples: fill or cut them first.")
        kinds = [kind] * len(data) if isinstance(kind, str) else list(kind)
        if len(kinds) != len(data) or any(k not in KINDS for k in kinds):
            raise DataError(f"Inputs are interpolated by one of {', '.join(KINDS)}, one kind per channel.")
        read = [_PIECES[how](row, dt) for row, how in zip(data, kinds, strict=True)]
        coefficients = np.zeros((len(data), data.shape[1], max((c.shape[1] for c, _ in read), default=CUBIC)))
        knots: set[int] = set()
        for target, (own, jumped) in zip(coefficients, read, strict=True):
            target[:, : own.shape[1]] = own
            knots.update(jumped)
        breaks = t0 + dt * np.array(sorted(knots), dtype=np.float64)
        return cls(float(t0), float(dt), coefficients, breaks)

    @classmethod
    def from_record(
        cls, record: Record, names: Sequence[str], kind: str | Sequence[str] = "cubic", t0: float = 0.0
    ) -> Inputs:
        """The channels of a record that bear the names of a model's measured inputs, in that order."""
        if not names:
            return _NONE
        return cls.from_samples(t0, record.dt, np.stack([record[name] for name in names]), kind)

    @property
    def count(self) -> int:
        return int(self.coefficients.shape[0])

    @property
    def end(self) -> float:
        """Time of the last sample."""
        return self.t0 + self.dt * (self.coefficients.shape[1] - 1)

    @cached_property
    def longest_step(self) -> float:
        """Integration steps longer than a sample interval would miss how the inputs vary between stages."""
        return self.dt if np.any(self.coefficients[:, :, 1:]) else np.inf

    def values(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inputs U[m, N] at the given times."""
        out = np.empty((self.count, len(times)))
        if self.count:
            times = np.ascontiguousarray(times, dtype=np.float64)
            _values_at(times, self.t0, self.dt, self.coefficients, out)
        return out

    def check(self, names: Sequence[str], first: float, last: float) -> None:
        """Refuse inputs that do not fit the model or do not cover the times asked for."""
        if len(names) != self.count:
            wanted = ", ".join(names) or "none"
            raise DataError(f"The model has the measured inputs {wanted}, but {self.count} were given.")
        if self.count and (first < self.t0 - self.dt or last > self.end + 1.5 * self.dt):
            raise DataError(
                f"The measured inputs cover {self.t0:g} to {self.end:g}, "
                f"but {first:g} to {last:g} is asked for."
            )


def jumps(samples: NDArray[np.float64]) -> NDArray[np.int64]:
    """First samples after an isolated jump: a difference far above its neighbours and above the usual one."""
    size = np.abs(np.diff(samples))
    if len(size) < 3:
        return np.flatnonzero(size > 0)[:0] + 1
    padded = np.concatenate([np.zeros(2), size, np.zeros(2)])
    around = np.maximum.reduce([padded[:-4], padded[1:-3], padded[3:-1], padded[4:]])
    return np.flatnonzero((size > 8 * around) & (size > 20 * np.median(size))) + 1


Pieces = tuple[NDArray[np.float64], list[int]]  # coefficients [N, powers] and the samples at which it jumps


def _hold(row: NDArray[np.float64], dt: float) -> Pieces:
    found = np.zeros((len(row), CUBIC))
    found[:, 0] = row
    return found, [int(k) for k in np.flatnonzero(np.diff(row)) + 1]


def _linear(row: NDArray[np.float64], dt: float) -> Pieces:
    found, _ = _hold(row, dt)
    found[:-1, 1] = np.diff(row) / dt
    bends = np.flatnonzero(np.abs(np.diff(row, 2)) > 1e-12 * (np.ptp(row) or 1.0)) + 1
    return found, [int(k) for k in bends]


def _cubic(row: NDArray[np.float64], dt: float) -> Pieces:
    changes = np.count_nonzero(np.diff(row))
    if 0 < changes < 0.05 * len(row):  # plateaus: an input that is stepped, however many steps there are
        return _hold(row, dt)
    edges = [0, *(int(k) for k in jumps(row)), len(row)]
    parts = [_smooth(row[start:stop], dt) for start, stop in pairwise(edges)]
    found = np.zeros((len(row), max(part.shape[1] for part in parts)))
    for start, part in zip(edges, parts, strict=False):
        found[start : start + len(part), : part.shape[1]] = part
    return found, edges[1:-1]


def _smooth(row: NDArray[np.float64], dt: float) -> NDArray[np.float64]:
    """Not-a-knot cubic spline; its last sample holds until the next piece begins.

    A spline loses 7 % of a wave of three samples. Where that shows in what drives a specimen, the means over
    the sample intervals, the band-limited curve takes its place. Of noise it would tell nothing more.
    """
    found = np.zeros((len(row), CUBIC))
    found[-1, 0] = row[-1]
    if len(row) < 2:
        return found
    from scipy.interpolate import CubicSpline

    spline = CubicSpline(np.arange(len(row)) * dt, row, bc_type="not-a-knot")
    found[:-1] = spline.c[::-1].T
    if len(row) < 4 * bandlimited.REACH:
        return found
    means = (found * dt ** np.arange(CUBIC)) @ (1.0 / np.arange(1, CUBIC + 1))
    true = bandlimited.interval_means(row)
    off = float(np.sqrt(np.mean((means[bandlimited.REACH : len(row) - bandlimited.REACH] - true) ** 2)))
    noise = _WHITE * bandlimited.deviation_above(row, _TOP)
    lost = np.sqrt(max(off**2 - noise**2, 0.0)) if off > 2.0 * noise else 0.0
    coarse = off > _COARSE * np.std(row) or lost > _LOST * np.std(row)
    return bandlimited.pieces(row, dt) if coarse else found


def _bandlimited(row: NDArray[np.float64], dt: float) -> Pieces:
    return bandlimited.pieces(row, dt), []


_PIECES = {"cubic": _cubic, "linear": _linear, "hold": _hold, "bandlimited": _bandlimited}
_NONE = Inputs(0.0, 1.0, np.zeros((0, 1, 4)), np.zeros(0))
