"""Stability multipliers of extracted orbits and the bound on their error (Yuan 1995, section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.progress import Progress
from analysis.reconstruct.local_maps import local_maps, local_rank
from analysis.signal.interpolation import MARGIN, lagrange_weights, sample_at
from analysis.signal.phase_grid import PhaseGrid

Array = NDArray[np.float64]

STEPS = (
    4  # maps per drive period: fewer leave the linear range, more pile up the bias that noise gives to each
)
NEIGHBOURS = 30  # for a local map (Eckmann et al. 1987)
_NEGLIGIBLE = 1e-4  # noise, fraction of the span
_TRIED = 5  # nearest points looked at for each pass that is wanted: a pass may hold several
_NEAREST = 5  # neighbours whose time from section to section counts
_MOST = 1000  # neighbours, however strong the noise
_REFINEMENTS = 4  # steps of Newton's method
_DIRECTIONS = 2  # in which neighbours are followed at least: fewer mix the sheets of a folded attractor
_LONGEST_STEP = 0.03  # of the span: beyond it the linear maps mean nothing


class SampledOrbit(Protocol):
    """What is needed of an orbit."""

    @property
    def start(self) -> int: ...
    @property
    def period(self) -> float: ...
    @property
    def multiple(self) -> int | None: ...


@dataclass(frozen=True, eq=False)
class Stability:
    """The linearised map once around an orbit (eq. 5.16), in scaled coordinates along the attractor."""

    compound: Array  # [rank, rank]
    offset: float  # rms distance of the segment from the orbit that the neighbours' motion implies
    step: float  # rms of the last step of Newton's method towards that orbit
    rest: float  # of the spread of neighbours' images, what the local maps leave unexplained (0 to 1)
    period: float  # samples that neighbours take once around

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


def forced_stabilities(
    orbits: Sequence[SampledOrbit],
    grid: PhaseGrid,
    scale: Array,
    noise: Array,
    progress: Progress,
    neighbours: int = NEIGHBOURS,
) -> list[Stability | None]:
    """Stability of each orbit of a forced system; None when there are too few data.

    Neighbours are taken at the same phase of the drive: at other phases the local map is nonsense.
    """
    sections = Sections.of(grid, scale, noise, neighbours)
    if sections is None:
        return [None] * len(orbits)
    chains = []
    for orbit in orbits:
        first = grid.column_from(orbit.start)
        columns = np.arange(first, first + (orbit.multiple or 1) * grid.per_period, sections.stride)
        inside = len(columns) > 0 and columns[-1] + sections.stride < grid.points.shape[1]
        columns = columns if inside else columns[:0]
        chains.append(_Chain(columns % grid.per_period, sections.points[:, columns].T.copy()))
    return _follow(chains, sections, progress)


def autonomous_stabilities(
    orbits: Sequence[SampledOrbit],
    points: Array,
    turn: float,
    scale: Array,
    noise: Array,
    progress: Progress,
    neighbours: int = NEIGHBOURS,
) -> list[Stability | None]:
    """Stability of each orbit of an autonomous system; ``turn`` is the mean time of a turn in samples.

    Along the flow T - I is singular, so the maps go from section to section across the flow, and the
    multiplier one that belongs to the flow is left out.
    """
    scaled = points / scale[:, None]
    chains, steps, flows, following = [], [], [], []
    total = 0
    for orbit in orbits:
        count = max(round(2 * STEPS * orbit.period / turn), STEPS)
        if orbit.start + orbit.period > points.shape[1] - MARGIN:
            count = 0
        places = orbit.start + orbit.period / max(count, 1) * np.arange(count, dtype=np.float64)
        here, ahead = (sample_at(scaled, p, np.empty((len(scaled), count))).T for p in (places, places + 0.1))
        flows.append((ahead - here) / np.linalg.norm(ahead - here, axis=1, keepdims=True))
        steps.append(np.full(count, orbit.period / max(count, 1)))
        following.append(total + np.roll(np.arange(count), -1))
        chains.append(_Chain(total + np.arange(count), here.copy()))
        total += count
    cloud = Cloud.of(
        scaled,
        np.concatenate(steps),
        np.concatenate(flows),
        np.concatenate(following),
        int(turn / 4),
        float(np.max(noise / scale)),
        neighbours,
    )
    return _follow(chains, cloud, progress)


@dataclass(eq=False)
class _Chain:
    """Points once around an orbit, with the key by which each finds its neighbours."""

    keys: NDArray[np.int64]
    centres: Array  # [m, n]


class _Neighbourhood(Protocol):
    def fit(self, keys: NDArray[np.int64], centres: Array) -> LocalMaps:
        """Where the centres go, with the displacements around them."""
        ...


def _follow(
    chains: Sequence[_Chain], neighbourhood: _Neighbourhood, progress: Progress
) -> list[Stability | None]:
    """Compound maps; first along the segments, then along the periodic orbits that they imply.

    The refinement is Newton's method on the data; without it multipliers, which vary quickly away from the
    orbit, would be those of the segment.
    """
    keys = np.concatenate([c.keys for c in chains])
    start = np.concatenate([c.centres for c in chains])
    if not len(start):
        return [None] * len(chains)
    ends = np.cumsum([len(c.keys) for c in chains])
    parts = [slice(end - len(c.keys), end) for c, end in zip(chains, ends, strict=True)]
    centres = start.copy()
    for turn in range(_REFINEMENTS + 1):
        progress.report(turn / (_REFINEMENTS + 1), "local maps")
        local = neighbourhood.fit(keys, centres)
        moves = np.zeros_like(centres)
        for own in parts:
            if own.stop > own.start:
                moves[own] = _newton_step(centres[own], *local.of(own))
        if turn < _REFINEMENTS:
            centres += moves
    results: list[Stability | None] = []
    for own in parts:
        if own.stop == own.start:
            results.append(None)
            continue
        results.append(
            Stability(
                _around(local.frames[own], local.maps[own]),
                _rms(centres[own] - start[own]),
                _rms(moves[own]),
                float(np.median(local.rests[own])),
                float(np.sum(local.times[own])),
            )
        )
    return results


def _rms(displacements: Array) -> float:
    return float(np.sqrt(np.mean(displacements**2)))


@dataclass(frozen=True, eq=False)
class LocalMaps:
    """Images [m, n] of the centres, frames and maps [m, n, r] around them, what the fits leave [m], and the
    samples that the motion takes to each image [m].
    """

    images: Array
    frames: Array
    maps: Array
    rests: Array
    times: Array

    def of(self, part: slice) -> tuple[Array, Array, Array]:
        return self.images[part], self.frames[part], self.maps[part]


@dataclass(eq=False)
class Sections:
    """Scaled points by phase of the drive, ready for neighbour queries."""

    points: Array
    per_period: int
    period: float  # of the drive, samples
    stride: int
    periods: int
    noise: float
    neighbours: int = NEIGHBOURS
    rank: int = 0
    trees: dict[int, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, grid: PhaseGrid, scale: Array, noise: Array, neighbours: int = NEIGHBOURS, steps: int = STEPS
    ) -> Sections | None:
        n, columns = grid.points.shape
        stride = next(s for s in range(max(grid.per_period // steps, 1), 0, -1) if grid.per_period % s == 0)
        periods = (columns - stride) // grid.per_period
        if periods < max(neighbours, 3 * n):
            return None
        level = float(np.max(noise / scale))
        points = grid.points / scale[:, None]
        return cls(points, grid.per_period, grid.period, stride, periods, level, neighbours)

    def section(self, phase: int) -> Array:
        """Points [periods, n] at a phase; beyond a full turn, those of the next period."""
        return np.ascontiguousarray(self.points[:, phase :: self.per_period][:, : self.periods].T)

    def fit(self, keys: NDArray[np.int64], centres: Array) -> LocalMaps:
        from scipy.spatial import cKDTree

        order, fitted = [], []
        for phase in np.unique(keys):
            section, following = self.section(phase), self.section(phase + self.stride)
            if phase not in self.trees:
                self.trees[phase] = cKDTree(section)
            here = np.flatnonzero(keys == phase)
            for some in np.array_split(here, len(here) // 256 + 1):  # bounds the memory
                count = _how_many(self.periods, self.noise, self.neighbours)
                _, near = self.trees[phase].query(centres[some], k=count)
                self.rank = self.rank or _rank(section[near], self.noise, section.shape[1])
                order.append(some)
                fitted.append(
                    local_maps(
                        centres[some], section[near], following[near], self.rank, self.noise, self.neighbours
                    )
                )
        step = self.period * self.stride / self.per_period
        return _joined(order, fitted, [np.full(len(some), step) for some in order])


@dataclass(eq=False)
class Cloud:
    """Scaled points of an autonomous trajectory. A neighbour is a pass of the trajectory through the section
    across the flow at a centre; its image is where that pass meets the section at the next centre."""

    points: Array
    tree: Any  # of every ``thin``-th point: one per pass is enough
    thin: int
    steps: Array  # samples from each centre to the next
    flows: Array  # unit vectors along the motion at each centre
    following: NDArray[np.int64]  # number of the next centre
    apart: int  # samples by which two points belong to different passes
    noise: float
    neighbours: int = NEIGHBOURS
    rank: int = 0

    @classmethod
    def of(
        cls,
        points: Array,
        steps: Array,
        flows: Array,
        following: NDArray[np.int64],
        apart: int,
        noise: float,
        neighbours: int = NEIGHBOURS,
    ) -> Cloud:
        from scipy.spatial import cKDTree

        thin = max(apart // 10, 1)
        tree = cKDTree(points[:, ::thin].T.copy())
        return cls(points, tree, thin, steps, flows, following, max(apart, 1), noise, neighbours)

    def fit(self, keys: NDArray[np.int64], centres: Array) -> LocalMaps:
        total = self.points.shape[1]
        passes = min(_how_many(total // 50, self.noise, self.neighbours), 200)
        order, fitted, times = [], [], []
        for some in np.array_split(keys, len(keys) // 256 + 1):
            _, near = self.tree.query(centres[some], k=min(_TRIED * passes, self.tree.n // 4))
            near *= self.thin
            next_ = self.following[some]
            here, there, flights = passes_through(
                self.points,
                near,
                centres[some],
                self.flows[some],
                centres[next_],
                self.flows[next_],
                self.steps[some],
                self.apart,
                passes,
            )
            self.rank = self.rank or _rank(here, self.noise, len(self.points) - 1)
            order.append(some)
            fitted.append(local_maps(centres[some], here, there, self.rank, self.noise, self.neighbours))
            times.append(np.nanmean(flights[:, :_NEAREST], axis=1))
        return _joined(order, fitted, times)


@njit(cache=True, nogil=True)
def passes_through(  # type: ignore[no-untyped-def]
    points, near, centres, flows, next_centres, next_flows, steps, apart, most
):
    """Where passes of the trajectory meet the section across the flow at each centre and at the next.

    ``near`` [m, q] are samples, nearest first; each pass counts once. Gives two arrays [m, most, n], filled
    up with not-a-number where there are fewer passes, and the samples [m, most] that each pass takes.
    """
    m, q = near.shape
    n, total = points.shape
    here, there = np.empty((m, most, n)), np.empty((m, most, n))
    flights = np.full((m, most), np.nan)
    taken = np.empty(most, np.int64)
    value = np.empty(n)
    for a in range(m):
        found = 0
        for k in range(q):
            i = near[a, k]
            if i < 2 or i + steps[a] > total - 6:
                continue
            fresh = True
            for b in range(found):
                if abs(taken[b] - i) < apart:
                    fresh = False
                    break
            if not fresh:
                continue
            place = _meet(points, float(i), centres[a], flows[a], value)
            if abs(place - i) > apart:
                continue
            for c in range(n):
                here[a, found, c] = value[c]
            end = _meet(points, place + steps[a], next_centres[a], next_flows[a], value)
            flights[a, found] = end - place
            for c in range(n):
                there[a, found, c] = value[c]
            taken[found] = i
            found += 1
            if found == most:
                break
        here[a, found:] = np.nan
        there[a, found:] = np.nan
    return here, there, flights


@njit(cache=True, nogil=True)
def _meet(points, place, centre, flow, value):  # type: ignore[no-untyped-def]
    """Place near ``place`` where the curve crosses the plane across the flow at the centre."""
    n, total = points.shape
    for _ in range(5):
        base = min(max(int(np.floor(place)), 2), total - 4)
        weights = lagrange_weights(place - base)
        ahead = lagrange_weights(place - base + 1e-4)
        off, speed = 0.0, 0.0
        for c in range(n):
            value[c] = 0.0
            moved = 0.0
            for k in range(6):
                value[c] += weights[k] * points[c, base - 2 + k]
                moved += (ahead[k] - weights[k]) * 1e4 * points[c, base - 2 + k]
            off += (value[c] - centre[c]) * flow[c]
            speed += moved * flow[c]
        if speed <= 0.0 or abs(off) < 1e-12:
            break
        place -= min(max(off / speed, -3.0), 3.0)
    return place


def _rank(near: Array, noise: float, most: int) -> int:
    """Directions in which neighbours [m, q, n] are followed, at most as many as a section has."""
    return min(max(local_rank(near, noise, NEIGHBOURS), _DIRECTIONS), most)


def _how_many(available: int, noise: float, fewest: int) -> int:
    """Neighbours to look at: more when noise must be averaged out."""
    return fewest if noise < _NEGLIGIBLE else max(fewest, min(available // 4, _MOST))


def _joined(
    order: list[NDArray[np.int64]], fitted: list[tuple[Array, Array, Array, Array]], times: list[Array]
) -> LocalMaps:
    back = np.argsort(np.concatenate(order))
    images, frames, maps, rests = (np.concatenate([f[k] for f in fitted])[back] for k in range(4))
    return LocalMaps(images, frames, maps, rests, np.concatenate(times)[back])


def _newton_step(centres: Array, images: Array, frames: Array, maps: Array) -> Array:
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


def _around(frames: Array, maps: Array) -> Array:
    """Product of the local maps, each from its own frame to the next one's; the last closes to the first."""
    total = np.eye(frames.shape[2])
    for ahead, local in zip(np.roll(frames, -1, axis=0), maps, strict=True):
        total = ahead.T @ local @ total
    return total
