"""Periodic orbits hidden in a chaotic record, from its close returns (Yuan 1995, sections 2.2, 4.4, 5.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.base.words import percent
from analysis.orbits.closure import (
    ENOUGH,
    EPSILON,
    MERGE,
    comes_home,
    measured,
    parted,
    relaxed_words,
    thresholds,
)
from analysis.orbits.confirmation import View, confirmed_forced
from analysis.orbits.orbit import Orbits, PeriodicOrbit
from analysis.orbits.returns import Returns, returns_at
from analysis.signal.phase_grid import PhaseGrid, phase_grid


def forced_orbits(
    points: NDArray[np.float64],
    period: float,
    *,
    multiples: Iterable[int] = range(1, 21),
    epsilon: float | None = None,
    scale: NDArray[np.float64] | None = None,
    noise: NDArray[np.float64] | None = None,
    window: float = 0.25,
    velocity: NDArray[np.float64] | None = None,
    valid: NDArray[np.bool_] | None = None,
    maps: bool = True,
    views: Sequence[View] = (),
    progress: Progress = SILENT,
) -> Orbits:
    """Periodic orbits of a periodically forced system.

    ``points`` [n, N] is the trajectory in measured states, delay or singular coordinates, ``period`` the
    drive period in samples (any real number above 4). Each lag k * period for k in ``multiples`` is compared
    over ``window`` of a drive period around the start of the segment. ``epsilon`` is the closure asked for as
    a fraction of ``scale`` (default: the span of each coordinate); unset it is 0.5 %, relaxed to 2 % when
    fewer than four periods are found. ``noise`` (standard deviations; default: measured from the points) is
    taken out of the closure. ``velocity``: a channel that must integrate to nothing over the segment, for
    records in which only a rate was measured.

    With ``maps`` every candidate must be confirmed by Newton's method on the motion of its neighbours, in all
    ``views`` (other reconstructions of the same motion; default: ``points`` themselves), and gets multipliers
    with their error; what is not confirmed goes to ``unconfirmed``.
    """
    points, bad, scale, noise = measured(points, valid, scale, noise)
    if not period > 4:
        raise DataError(f"The drive period must be longer than 4 samples, not {period:g}.")
    lags = np.array([k for k in multiples if k * period < points.shape[1] / 2], dtype=np.int64)
    if len(lags) == 0:
        raise DataError(
            f"The record of {points.shape[1]} samples is too short for a drive period of {period:g} samples."
        )
    half = max(int(window * period / 2), 0)
    search = _Search(points, period, lags, scale, noise, half, bad, velocity)
    grid = phase_grid(points, period)
    messages: list[str] = []
    for step in thresholds(epsilon):
        returns = search.run(step, progress.part(0.0, 0.6))
        orbits, remarks = search.distinct(returns, step, grid)
        if len({o.multiple for o in orbits}) >= min(ENOUGH, len(lags)):
            break
    if epsilon is None and step > EPSILON:
        messages.append(relaxed_words("different periods"))
    messages += remarks + search.remarks(step, orbits)

    def judge(some: Sequence[PeriodicOrbit], seen: Sequence[View]) -> list[PeriodicOrbit]:
        return confirmed_forced(some, seen, period, progress.part(0.7, 1.0))

    kept, refused, words = parted(orbits, judge if maps else None, views, View(points, scale, noise))
    progress.report(1.0, "orbits")
    return Orbits(
        kept,
        step,
        scale,
        noise,
        lags.astype(np.float64) * period,
        np.array([len(r.starts) for r in returns]),
        np.sqrt(np.array([r.lowest for r in returns])),
        (*messages, *words),
        unconfirmed=refused,
    )


@dataclass(frozen=True, eq=False)
class _Search:
    points: NDArray[np.float64]
    period: float
    multiples: NDArray[np.int64]
    scale: NDArray[np.float64]
    noise: NDArray[np.float64]
    half: int
    bad: NDArray[np.int64]
    velocity: NDArray[np.float64] | None

    @property
    def noise_square(self) -> float:
        """Noise variance of a point, averaged over the scaled coordinates."""
        return float(np.mean((self.noise / self.scale) ** 2))

    def spread(self, gain: float) -> float:
        """Standard deviation that noise gives to the windowed mean square of a difference."""
        return gain * self.noise_square * float(np.sqrt(2.0 / (2 * self.half + 1)))

    def run(self, epsilon: float, progress: Progress) -> list[Returns]:
        weights = 1.0 / (self.scale**2 * len(self.scale))
        work = np.empty(self.points.shape[1])
        found = []
        for n, k in enumerate(self.multiples):
            progress.report(n / len(self.multiples), f"returns after {k} periods")
            threshold = epsilon**2 + 2.0 * self.noise_square
            found.append(
                returns_at(self.points, weights, k * self.period, self.half, threshold, self.bad, work)
            )
        return found

    def distinct(
        self, returns: list[Returns], epsilon: float, grid: PhaseGrid
    ) -> tuple[list[PeriodicOrbit], list[str]]:
        """Recurrences grouped into orbits: repeats of a shorter orbit dropped, cyclic shifts merged."""
        scaled = PhaseGrid(grid.points / self.scale[:, None], grid.per_period, grid.period)
        orbits: list[PeriodicOrbit] = []
        drifting = 0
        tolerance = max(MERGE, 3 * epsilon) ** 2 + 2 * self.noise_square
        for k, found in zip(self.multiples, returns, strict=True):
            order = np.argsort(found.squares, kind="stable")
            starts, squares = found.starts[order], found.squares[order]
            closed = comes_home(self.velocity, starts, k * self.period)
            drifting += int(np.sum(~closed))
            starts, squares = starts[closed], squares[closed]
            columns = np.array([scaled.column_from(s) for s in starts], dtype=np.int64)
            fits = columns + k * grid.per_period <= scaled.points.shape[1]
            starts, squares, columns = starts[fits], squares[fits], columns[fits]
            group = _group(scaled.points, columns, int(k), grid.per_period, tolerance)
            for g in range(group.max(initial=-1) + 1):
                members = np.flatnonzero(group == g)
                best = members[0]
                own = max(squares[best] - found.noise_gain * self.noise_square, 0.0)
                bound = np.sqrt(own + 2 * self.spread(found.noise_gain))
                orbits.append(
                    PeriodicOrbit(
                        int(starts[best]), float(k * self.period), int(k), float(np.sqrt(own)), float(bound),
                        starts[members],
                    )
                )  # fmt: skip
        remarks = []
        if drifting:
            remarks.append(
                f"{drifting} segments close in the measured coordinates but end displaced (another well): "
                "rejected."
            )
        return orbits, remarks

    def remarks(self, epsilon: float, orbits: Sequence[PeriodicOrbit]) -> list[str]:
        texts = []
        resolution = np.sqrt(2 * self.spread(2.0))
        if resolution > epsilon:
            texts.append(
                f"The noise ({percent(np.sqrt(self.noise_square))} of the span) lets closure be judged "
                f"only to {percent(resolution)}, not to the {100 * epsilon:g} % asked for."
            )
        missing = sorted(set(self.multiples.tolist()) - {o.multiple for o in orbits})
        if not orbits:
            texts.append("No segment of the record closes: the data do not support any periodic orbit.")
        elif missing:
            texts.append(f"No orbit found of period {', '.join(map(str, missing))}.")
        return texts


@njit(cache=True, nogil=True)
def _group(points, columns, multiple, per_period, tolerance):  # type: ignore[no-untyped-def]
    """Group number of each recurrence, -1 for a repeat of a shorter orbit; the closest comes first."""
    n = points.shape[0]
    length = multiple * per_period
    group = np.full(len(columns), -1, np.int64)
    first = np.empty(len(columns), np.int64)  # the column of each group's closest member, at phase 0
    groups = 0
    for a in range(len(columns)):
        c = columns[a]
        prime = True
        for shift in range(1, multiple):
            if multiple % shift == 0 and _agree(points, c, c, shift * per_period, length, n, tolerance):
                prime = False
                break
        if not prime:
            continue
        for g in range(groups):
            other = first[g]
            turn = (c - other) % per_period
            for shift in range(multiple):
                # Both run over the same phases: the other starts ``turn`` columns into its segment.
                if _agree(points, c, other, turn + shift * per_period, length, n, tolerance):
                    group[a] = g
                    break
            if group[a] >= 0:
                break
        if group[a] < 0:
            group[a] = groups
            first[groups] = c
            groups += 1
    return group


@njit(cache=True, nogil=True)
def _agree(points, a, b, shift, length, n, tolerance):  # type: ignore[no-untyped-def]
    """True when segment a and segment b turned by shift agree: mean squared distance below the tolerance."""
    limit = tolerance * length * n
    total = 0.0
    for j in range(length):
        k = j + shift
        if k >= length:
            k -= length
        for c in range(n):
            difference = points[c, a + j] - points[c, b + k]
            total += difference * difference
        if total > limit:
            return False
    return True
