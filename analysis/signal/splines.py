"""B-spline test functions and banded quadrature on samples, uniform or not, smooth or with jumps.

The integral of a smooth function against a test function is a weighted sum over samples. On a uniform grid
the weights are the test function itself: with a B-spline on sample knots that is exact for polynomials up to
its degree and spectrally accurate for what the samples resolve. Where a jump or uneven samples forbid that,
the function (not the product) is interpolated by local cubics on either side and integrated exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import boolean, float64, int64, void
from numpy.typing import NDArray

from analysis.base.compiling import njit

Array = NDArray[np.float64]

DEGREE = 5  # of the test functions: four continuous derivatives, a support of six knot intervals
_matrix = float64[:, ::1]


@dataclass(frozen=True, eq=False)
class Probes:
    """K test functions over nodes: function c is nonzero on nodes first[c] to first[c] + L (rows
    zero-padded).
    """

    first: NDArray[np.int64]  # [K]
    value: Array  # [K, L], quadrature weights of the function itself; [1, L] if all are shifts of one
    slope: Array  # of its first derivative
    curvature: Array  # and of the second

    def __len__(self) -> int:
        return len(self.first)

    def integrals(self, F: Array, weights: Array | None = None) -> Array:
        """Integrals of the rows of F[rows, nodes] against each function (or its derivatives): [rows, K]."""
        weights = self.value if weights is None else weights
        out = np.empty((F.shape[0], len(self.first)))
        _integrals(np.ascontiguousarray(F), self.first, weights, out)
        return out


@njit(void(_matrix, int64[::1], _matrix, _matrix), cache=True, nogil=True)
def _integrals(F, first, weights, out):  # type: ignore[no-untyped-def]
    rows, nodes = F.shape
    for c in range(len(first)):
        length = min(weights.shape[1], nodes - first[c])
        own = c if weights.shape[0] > 1 else 0
        for r in range(rows):
            total = 0.0
            for j in range(length):
                total += weights[own, j] * F[r, first[c] + j]
            out[r, c] = total


def make_probes(times: Array, pieces: NDArray[np.int64], spacing: int) -> Probes:
    """B-splines of degree five with knots at every ``spacing``-th node time, one starting at each knot.

    ``times``: nodes in order; ``pieces``: the first node of each smooth piece (0 first). Where a piece
    begins at a jump its first node repeats the time of the last node of the piece before.
    """
    grid, where = np.unique(times, return_index=True)
    knots = np.ascontiguousarray(grid[::spacing])
    count = len(knots) - DEGREE - 1
    if count < 1:
        empty = np.zeros((0, 1))
        return Probes(np.zeros(0, dtype=np.int64), empty, empty, empty)
    ends = np.append(where, len(times))[1:]  # one past the last node at each time
    first = where[::spacing][:count].astype(np.int64)
    last = ends[np.arange(len(knots)) * spacing][DEGREE + 1 :][:count].astype(np.int64)
    steps = np.diff(grid)
    step = float(np.mean(steps)) if np.ptp(steps) < 1e-6 * np.mean(steps) else 0.0
    piece = np.zeros(len(times), dtype=np.int64)
    piece[pieces[1:]] = 1
    piece = np.cumsum(piece)
    bounds = np.append(pieces, len(times)).astype(np.int64)
    uneven = (piece[first] != piece[last - 1]) if step > 0 else np.ones(count, dtype=bool)
    first = np.where(uneven, np.maximum(first - 2, 0), first)  # interpolation looks two nodes further
    last = np.where(uneven, np.minimum(last + 2, len(times)), last)
    shapes = count if uneven.any() else 1  # on a uniform grid all functions are shifts of one
    value, slope, curvature = (np.zeros((shapes, int(np.max(last - first)))) for _ in range(3))
    _fill(times, piece, bounds, uneven, step, knots, first[:shapes], last, value, slope, curvature)
    if shapes == 1:  # the outermost nodes, on which the function is zero, are not needed
        inner = (np.ascontiguousarray(weights[:, 1:-1]) for weights in (value, slope, curvature))
        return Probes(first + 1, *inner)
    return Probes(first, value, slope, curvature)


@njit(void(float64, float64[::1], float64[::1]), cache=True, nogil=True)
def _b_spline(t, k, out):  # type: ignore[no-untyped-def]
    """Value, slope and curvature of the B-spline over the knots k[7], by Cox and de Boor."""
    base = np.zeros(6)
    for i in range(6):
        if k[i] <= t < k[i + 1]:
            base[i] = 1.0
    third, fourth = np.zeros(3), np.zeros(2)
    for d in range(1, 6):
        if d == 4:
            for i in range(3):
                third[i] = base[i]
        if d == 5:
            for i in range(2):
                fourth[i] = base[i]
        for i in range(6 - d):
            left = (t - k[i]) / (k[i + d] - k[i]) * base[i]
            base[i] = left + (k[i + d + 1] - t) / (k[i + d + 1] - k[i + 1]) * base[i + 1]
    one, two = k[5] - k[0], k[6] - k[1]
    early = 4.0 * (third[0] / (k[4] - k[0]) - third[1] / (k[5] - k[1]))
    late = 4.0 * (third[1] / (k[5] - k[1]) - third[2] / (k[6] - k[2]))
    out[0] = base[0]
    out[1] = 5.0 * (fourth[0] / one - fourth[1] / two)
    out[2] = 5.0 * (early / one - late / two)


_GAUSS = np.array([-0.906179845938664, -0.5384693101056831, 0.0, 0.5384693101056831, 0.906179845938664])
_GAUSS_WEIGHTS = np.array(
    [0.2369268850561891, 0.4786286704993665, 0.5688888888888889, 0.4786286704993665, 0.2369268850561891]
)


@njit(
    void(
        float64[::1], int64[::1], int64[::1], boolean[::1], float64, float64[::1], int64[::1], int64[::1],
        _matrix, _matrix, _matrix,
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def _fill(  # type: ignore[no-untyped-def]
    times, piece, bounds, uneven, step, knots, first, last, value, slope, curvature
):
    b = np.empty(3)
    same = np.zeros((value.shape[1], 3))
    known = -1
    for c in range(len(first)):
        k = knots[c : c + 7]
        scale = 6.0 / (k[6] - k[0])  # integral one, so that nothing depends on the unit of time
        start, stop = first[c], last[c]
        if not uneven[c]:
            if known < 0:
                for j in range(start, stop):
                    _b_spline(times[j], k, b)
                    for i in range(3):
                        same[j - start, i] = scale * step * b[i]
                known = stop - start
            for j in range(stop - start):
                value[c, j] = same[j, 0]
                slope[c, j] = same[j, 1]
                curvature[c, j] = same[j, 2]
            continue
        for j in range(start, stop - 1):
            if piece[j] != piece[j + 1]:
                continue
            low, high = bounds[piece[j]], bounds[piece[j] + 1]
            points = min(4, high - low)
            stencil = min(max(j - 1, low), high - points)
            half = 0.5 * (times[j + 1] - times[j])
            for g in range(5):
                t = times[j] + half * (1.0 + _GAUSS[g])
                _b_spline(t, k, b)
                for m in range(stencil, stencil + points):
                    weight = scale * half * _GAUSS_WEIGHTS[g]
                    for other in range(stencil, stencil + points):
                        if other != m:
                            weight *= (t - times[other]) / (times[m] - times[other])
                    at = m - start
                    if 0 <= at < value.shape[1]:
                        value[c, at] += weight * b[0]
                        slope[c, at] += weight * b[1]
                        curvature[c, at] += weight * b[2]
