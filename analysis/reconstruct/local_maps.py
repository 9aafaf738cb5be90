"""Linearised maps from the motion of neighbours (Yuan 1995, eq. 5.15 to 5.20; Sano and Sawada 1985)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit

REACH = 3.0  # neighbours are added until they spread this many noise deviations in every direction kept
_THIN = 0.1  # a direction in which neighbours spread less than this part of their widest is mere bending

_GAIN = 3.0  # of a displacement from one place to the next, about what is expected


def local_maps(
    centres: NDArray[np.float64],
    near: NDArray[np.float64],
    near_images: NDArray[np.float64],
    rank: int,
    noise: float,
    fewest: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Where each of m centres goes, and where a small displacement y from it: to M U' y.

    Gives images [m, n], frames U [m, n, r], maps M [m, n, r], and of each fit what it leaves of the spread of
    the images [m], 0 to 1: a deterministic motion leaves little. ``centres`` [m, n]; ``near`` and
    ``near_images`` [m, q, n], nearest first; ``noise`` the largest standard deviation of a coordinate. In an
    embedding space the attractor is a thin sheet: the frame holds the ``rank`` directions along it, so no
    spurious multipliers arise across it. Least squares over the neighbours, T = (Z Y')(Y Y')^-1 (eq. 5.20
    with its factors in the right order), with a constant and quadratic terms beside the linear ones, so that
    the curvature of the true map does not bias T. At least ``fewest`` neighbours are used, more where noise
    asks for it.
    """
    return _fit_maps(centres, near, near_images, rank, (REACH * noise) ** 2, fewest)


def local_rank(near: NDArray[np.float64], noise: float, fewest: int) -> int:
    """Number of directions in which neighbours [m, q, n] spread, beyond noise and bending of a sheet."""
    widths = _spreads(near, (10 * noise) ** 2, fewest)
    # Sheets of an attractor part in some places only, so the wider places decide.
    wide = np.quantile(widths / widths[:, :1], 0.9, axis=0) > _THIN
    above = np.quantile(widths, 0.9, axis=0) > 2 * noise
    return max(int(np.sum(wide & above)), 1)


@njit(cache=True, nogil=True)
def _fit_maps(centres, near, near_images, rank, least, fewest):  # type: ignore[no-untyped-def]
    m, _, n = near.shape
    full = 1 + rank + rank * (rank + 1) // 2
    images, frames, maps = np.empty((m, n)), np.empty((m, n, rank)), np.empty((m, n, rank))
    rests = np.empty(m)
    for a in range(m):
        q = _enough(near[a], fewest, least, rank)
        _, directions = np.linalg.eigh(_covariance(near[a, :q]))
        frame = np.ascontiguousarray(directions[:, n - rank :])
        inner = np.zeros((q, rank))
        reach = 1e-300
        for i in range(q):
            square = 0.0
            for r in range(rank):
                for c in range(n):
                    inner[i, r] += frame[c, r] * (near[a, i, c] - centres[a, c])
                square += inner[i, r] ** 2
            reach = max(reach, square)
        reach = np.sqrt(reach)
        terms = full if q >= 2 * full else 1 + rank
        basis = np.empty(terms)
        normal = np.zeros((terms, terms))
        right = np.zeros((terms, n))
        energy, total = 0.0, 0.0
        for i in range(q):
            basis[0] = 1.0
            square = 0.0
            for r in range(rank):
                basis[1 + r] = inner[i, r] / reach
                square += basis[1 + r] ** 2
            if terms == full:
                k = 1 + rank
                for r in range(rank):
                    for s in range(r, rank):
                        basis[k] = basis[1 + r] * basis[1 + s]
                        k += 1
            weight = (1.0 - 0.9 * square**1.5) ** 3  # the farthest count a thousandth
            for r in range(terms):
                for s in range(terms):
                    normal[r, s] += weight * basis[r] * basis[s]
                for c in range(n):
                    right[r, c] += weight * basis[r] * (near_images[a, i, c] - near_images[a, 0, c])
            total += weight
            for c in range(n):
                energy += weight * (near_images[a, i, c] - near_images[a, 0, c]) ** 2
        trace = 0.0
        for r in range(terms):
            trace += normal[r, r]
        for r in range(terms):
            normal[r, r] += 1e-13 * trace
        solution = np.linalg.solve(normal, right)
        # A direction in which the neighbours hardly spread says little: there the slope shrinks to nothing
        # instead of fitting what the quadratic leaves over. Its prior deviation is a gain of _GAIN.
        left_over = max(energy - np.sum(solution * right), 0.0) / (total * (_GAIN * reach) ** 2)
        for r in range(1, 1 + rank):
            normal[r, r] += left_over
        variance = energy - np.sum(right[0] ** 2) / total
        rests[a] = np.sqrt(min(left_over * total * (_GAIN * reach) ** 2 / max(variance, 1e-300), 1.0))
        solution = np.linalg.solve(normal, right)
        for c in range(n):
            images[a, c] = near_images[a, 0, c] + solution[0, c]
            for r in range(rank):
                frames[a, c, r] = frame[c, r]
                maps[a, c, r] = solution[1 + r, c] / reach
    return images, frames, maps, rests


@njit(cache=True, nogil=True)
def _covariance(cloud):  # type: ignore[no-untyped-def]
    q, n = cloud.shape
    middle = np.zeros(n)
    for i in range(q):
        for c in range(n):
            middle[c] += cloud[i, c] / q
    cover = np.zeros((n, n))
    for i in range(q):
        for c in range(n):
            for d in range(n):
                cover[c, d] += (cloud[i, c] - middle[c]) * (cloud[i, d] - middle[d]) / q
    return cover


@njit(cache=True, nogil=True)
def _enough(cloud, fewest, least, rank):  # type: ignore[no-untyped-def]
    """How many of the nearest are needed for their variance to exceed ``least`` in ``rank`` directions."""
    n = cloud.shape[1]
    most = 0
    while most < cloud.shape[0] and not np.isnan(cloud[most, 0]):
        most += 1
    q = min(fewest, most)
    if least > 0.0:
        while q < most:
            if np.linalg.eigvalsh(_covariance(cloud[:q]))[n - rank] >= least:
                break
            q = q + q // 2
    return min(q, most)


@njit(cache=True, nogil=True)
def _spreads(near, least, fewest):  # type: ignore[no-untyped-def]
    """Standard deviations [m, n] of each cloud along its own directions, widest first."""
    m, _, n = near.shape
    widths = np.empty((m, n))
    for a in range(m):
        q = _enough(near[a], fewest, least, 1)
        values = np.linalg.eigvalsh(_covariance(near[a, :q]))
        for c in range(n):
            widths[a, c] = np.sqrt(max(values[n - 1 - c], 1e-300))
    return widths
