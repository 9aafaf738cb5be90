"""Stability multipliers of extracted orbits and the bound on their error (Yuan 1995, section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from analysis.local_maps import local_maps, local_rank
from analysis.phase_grid import PhaseGrid
from analysis.progress import Progress

STEPS = (
    4  # maps per drive period: fewer leave the linear range, more pile up the bias that noise gives to each
)
NEIGHBOURS = 30  # for a local map (Eckmann et al. 1987)
_NEGLIGIBLE = 1e-4  # noise, fraction of the span
_REFINEMENTS = 2
_LONGEST_STEP = 0.03  # of the span: beyond it the linear maps mean nothing


class Segment(Protocol):
    """What is needed of an orbit."""

    @property
    def start(self) -> int: ...
    @property
    def multiple(self) -> int | None: ...


@dataclass(frozen=True, eq=False)
class Stability:
    """The linearised map once around an orbit (eq. 5.16), in scaled coordinates along the attractor."""

    compound: NDArray[np.float64]  # [rank, rank]
    offset: float  # rms distance of the segment from the orbit that the neighbours' motion implies

    @property
    def multipliers(self) -> NDArray[np.complex128]:
        values = np.linalg.eigvals(self.compound)
        return values[np.argsort(-np.abs(values))].astype(np.complex128)

    @property
    def bound_factor(self) -> float:
        """Distance to the true orbit over closure, at most: the larger of eq. 5.11 and 5.13."""
        identity = np.eye(len(self.compound))
        forward = np.linalg.svd(self.compound - identity, compute_uv=False)[-1]
        backward = np.linalg.svd(np.linalg.pinv(self.compound) - identity, compute_uv=False)[-1]
        return float(1.0 / max(min(forward, backward), 1e-12))


def stabilities(
    orbits: Sequence[Segment],
    grid: PhaseGrid,
    scale: NDArray[np.float64],
    noise: NDArray[np.float64],
    progress: Progress,
) -> list[Stability | None]:
    """Stability of each orbit; None when there are too few data.

    Neighbours are taken at the same phase of the drive: at other phases the local map is nonsense. The maps
    are first fitted along the segment, then along the periodic orbit that they imply (Newton's method on the
    data), since multipliers vary quickly away from the orbit.
    """
    field = _Field.of(grid, scale, noise)
    if field is None:
        return [None] * len(orbits)
    chains: list[NDArray[np.int64]] = []  # columns of the grid that each orbit passes
    for orbit in orbits:
        first = grid.column_from(orbit.start)
        chain = np.arange(first, first + (orbit.multiple or 1) * grid.per_period, field.stride)
        chains.append(chain if chain[-1] + field.stride < grid.points.shape[1] else chain[:0])
    columns = np.concatenate(chains)
    owners = np.repeat(np.arange(len(orbits)), [len(c) for c in chains])
    start = np.ascontiguousarray(field.points[:, columns].T)
    centres = start.copy()
    for round_ in range(_REFINEMENTS + 1):
        progress.report(round_ / (_REFINEMENTS + 1), "local maps")
        images, frames, maps = field.fit(columns % grid.per_period, centres)
        if round_ < _REFINEMENTS:
            for owner in range(len(orbits)):
                own = np.flatnonzero(owners == owner)
                if len(own):
                    centres[own] += _newton_step(centres[own], images[own], frames[own], maps[own])
    results: list[Stability | None] = []
    for owner in range(len(orbits)):
        own = np.flatnonzero(owners == owner)
        if not len(own):
            results.append(None)
            continue
        offset = float(np.sqrt(np.mean((centres[own] - start[own]) ** 2)))
        results.append(Stability(_around(frames[own], maps[own]), offset))
    return results


@dataclass(eq=False)
class _Field:
    """The scaled points by phase of the drive, ready for neighbour queries."""

    points: NDArray[np.float64]
    per_period: int
    stride: int
    periods: int
    noise: float
    most: int
    rank: int
    trees: dict[int, Any]

    @classmethod
    def of(cls, grid: PhaseGrid, scale: NDArray[np.float64], noise: NDArray[np.float64]) -> _Field | None:
        n, columns = grid.points.shape
        stride = next(s for s in range(max(grid.per_period // STEPS, 1), 0, -1) if grid.per_period % s == 0)
        periods = (columns - stride) // grid.per_period
        if periods < max(NEIGHBOURS, 3 * n):
            return None
        level = float(np.max(noise / scale))
        most = NEIGHBOURS if level < _NEGLIGIBLE else max(NEIGHBOURS, min(periods // 4, 1000))
        return cls(grid.points / scale[:, None], grid.per_period, stride, periods, level, most, 0, {})

    def section(self, phase: int) -> NDArray[np.float64]:
        """Points [periods, n] at a phase; beyond a full turn, those of the next period."""
        return np.ascontiguousarray(self.points[:, phase :: self.per_period][:, : self.periods].T)

    def fit(
        self, phases: NDArray[np.int64], centres: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        from scipy.spatial import cKDTree

        parts: list[tuple[NDArray[np.int64], tuple[NDArray[np.float64], ...]]] = []
        for phase in np.unique(phases):
            section, following = self.section(phase), self.section(phase + self.stride)
            if phase not in self.trees:
                self.trees[phase] = cKDTree(section)
            here = np.flatnonzero(phases == phase)
            for some in np.array_split(here, len(here) // 256 + 1):  # bounds the memory
                _, near = self.trees[phase].query(centres[some], k=self.most)
                if not self.rank:
                    self.rank = local_rank(section[near], self.noise, NEIGHBOURS)
                fitted = local_maps(
                    centres[some], section[near], following[near], self.rank, self.noise, NEIGHBOURS
                )
                parts.append((some, fitted))
        order = np.argsort(np.concatenate([some for some, _ in parts]))
        images, frames, maps = (np.concatenate([f[k] for _, f in parts])[order] for k in range(3))
        return images, frames, maps


def _newton_step(
    centres: NDArray[np.float64],
    images: NDArray[np.float64],
    frames: NDArray[np.float64],
    maps: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Displacements [m, n] after which, to first order, every centre goes to the next, cyclically."""
    ahead = np.roll(frames, -1, axis=0)
    gaps = images - np.roll(centres, -1, axis=0)
    rank = frames.shape[2]
    total, carried = np.eye(rank), np.zeros(rank)
    steps = [f.T @ m for f, m in zip(ahead, maps, strict=True)]
    falls = [f.T @ g for f, g in zip(ahead, gaps, strict=True)]
    for step, fall in zip(steps, falls, strict=True):
        total, carried = step @ total, step @ carried + fall
    inner = np.linalg.lstsq(np.eye(rank) - total, carried, rcond=1e-6)[0]
    moves = np.empty_like(centres)
    for j, (step, fall) in enumerate(zip(steps, falls, strict=True)):
        moves[j] = frames[j] @ inner
        inner = step @ inner + fall
    largest = np.sqrt(np.max(np.sum(moves**2, axis=1)))
    return moves * min(1.0, _LONGEST_STEP / max(largest, 1e-300))


def _around(frames: NDArray[np.float64], maps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Product of the local maps, each from its own frame to the next one's; the last closes to the first."""
    total = np.eye(frames.shape[2])
    for ahead, local in zip(np.roll(frames, -1, axis=0), maps, strict=True):
        total = ahead.T @ local @ total
    return total
