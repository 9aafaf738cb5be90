"""Neighbours in phase space that are not neighbours in time: a compiled tree of bounding boxes.

Built for trajectories: boxes hug a thin attractor in a high embedding dimension, the Theiler window is part
of the search, and the points are both tree and queries, so that each query starts where the last one ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.errors import DataError

_LEAF = 12  # points below which a box is not split


@dataclass(frozen=True, eq=False)
class Tree:
    """Points [N, n] in the order of the leaves, with the box of every node of a balanced binary tree."""

    points: NDArray[np.float64]
    order: NDArray[np.int64]  # place of each row of ``points`` in the trajectory
    lower: NDArray[np.float64]  # [nodes, n]
    upper: NDArray[np.float64]
    depth: int


def build_tree(trajectory: NDArray[np.float64]) -> Tree:
    """Tree of a trajectory [n, N] (one point a column)."""
    rows = np.ascontiguousarray(trajectory.T, dtype=np.float64)
    total = len(rows)
    if total < 2:
        raise DataError("A neighbour search needs at least two points.")
    depth = max(int(np.ceil(np.log2(total / _LEAF))), 0)
    nodes = 2 ** (depth + 1) - 1
    order = np.arange(total)
    lower, upper = np.empty((nodes, rows.shape[1])), np.empty((nodes, rows.shape[1]))
    if rows.base is not None:
        rows = rows.copy()  # the caller's own points stay in their order
    _split(rows, order, lower, upper, depth)
    return Tree(rows, order, lower, upper, depth)


def nearest(
    tree: Tree, count: int, theiler: int, usable: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The ``count`` nearest of each of the first ``usable`` points, more than ``theiler`` samples away.

    Gives places [usable, count], -1 where there is none, and distances, nearest first.
    """
    usable = len(tree.order) if usable is None else usable
    places, squares = _nearest(
        tree.points, tree.order, tree.lower, tree.upper, tree.depth, count, theiler, usable, 1
    )
    return places, np.sqrt(squares)


def nearest_of(
    tree: Tree, theiler: int, every: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Every so many-th point (evenly over the attractor), its nearest beyond the window, their distance."""
    places, squares = _nearest(
        tree.points, tree.order, tree.lower, tree.upper, tree.depth, 1, theiler, len(tree.order), every
    )
    found = np.flatnonzero(places[:, 0] >= 0)
    return found, places[found, 0], np.sqrt(squares[found, 0])


def nearest_some(
    tree: Tree, count: int, theiler: int, every: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Every so many-th point (evenly over the attractor), places [m, count] and distances of its nearest.

    Points with fewer than ``count`` neighbours beyond the window are left out.
    """
    rows, places, squares = _nearest_some(
        tree.points, tree.order, tree.lower, tree.upper, tree.depth, count, theiler, len(tree.order), every
    )
    whole = places[:, -1] >= 0
    return rows[whole], places[whole], np.sqrt(squares[whole])


def pair_counts(
    tree: Tree, radii: NDArray[np.float64], theiler: int, every: int = 1
) -> tuple[NDArray[np.int64], int]:
    """Pairs closer than each radius (ascending), more than ``theiler`` samples apart; number of pairs in all.

    With ``every`` > 1 only every so many-th point (in the order of the tree, so evenly over the attractor) is
    compared with all others.
    """
    squares = np.ascontiguousarray(radii, dtype=np.float64) ** 2
    counts, total = _pair_counts(
        tree.points, tree.order, tree.lower, tree.upper, tree.depth, squares, theiler, every
    )
    return np.cumsum(counts), int(total)


@njit(cache=True, nogil=True)
def _bounds(rows, start, stop, low, high):  # type: ignore[no-untyped-def]
    n = rows.shape[1]
    for c in range(n):
        low[c] = np.inf
        high[c] = -np.inf
    for k in range(start, stop):
        for c in range(n):
            low[c] = min(low[c], rows[k, c])
            high[c] = max(high[c], rows[k, c])


@njit(cache=True, nogil=True)
def _select(rows, order, start, stop, middle, axis):  # type: ignore[no-untyped-def]
    """Quickselect: afterwards everything before ``middle`` is not larger along the axis than what follows."""
    n = rows.shape[1]
    low, high = start, stop - 1
    while low < high:
        a, b, c = rows[low, axis], rows[(low + high) // 2, axis], rows[high, axis]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while rows[i, axis] < pivot:
                i += 1
            while rows[j, axis] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                for k in range(n):
                    rows[i, k], rows[j, k] = rows[j, k], rows[i, k]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@njit(cache=True, nogil=True)
def _split(rows, order, lower, upper, depth):  # type: ignore[no-untyped-def]
    """Sort the rows into the leaves, one branch after the other, so that small ones stay in the cache."""
    total, n = rows.shape
    starts, stops = leaf_ranges(total, depth)
    stack = np.empty(depth + 2, np.int64)
    stack[0], height = 0, 1
    while height > 0:
        height -= 1
        node = stack[height]
        start, stop = starts[node], stops[node]
        _bounds(rows, start, stop, lower[node], upper[node])
        if 2 * node + 2 < len(lower):
            axis = 0
            for c in range(1, n):
                if upper[node, c] - lower[node, c] > upper[node, axis] - lower[node, axis]:
                    axis = c
            if stop - start > 1:
                _select(rows, order, start, stop, (start + stop) // 2, axis)
            stack[height], stack[height + 1] = 2 * node + 2, 2 * node + 1
            height += 2


@njit(cache=True, nogil=True, inline="always")
def _to_box(point, low, high, limit):  # type: ignore[no-untyped-def]
    square = 0.0
    for c in range(len(point)):
        if point[c] < low[c]:
            square += (low[c] - point[c]) ** 2
        elif point[c] > high[c]:
            square += (point[c] - high[c]) ** 2
        if square > limit:
            break
    return square


@njit(cache=True, nogil=True)
def leaf_ranges(total, depth):  # type: ignore[no-untyped-def]
    nodes = 2 ** (depth + 1) - 1
    starts, stops = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    stops[0] = total
    for node in range(nodes // 2):
        middle = (starts[node] + stops[node]) // 2
        starts[2 * node + 1], stops[2 * node + 1] = starts[node], middle
        starts[2 * node + 2], stops[2 * node + 2] = middle, stops[node]
    return starts, stops


@njit(cache=True, nogil=True)
def _nearest(points, order, lower, upper, depth, count, theiler, usable, every):  # type: ignore[no-untyped-def]
    total = len(points)
    starts, stops = leaf_ranges(total, depth)
    places = np.full((usable, count), -1, np.int64)
    squares = np.full((usable, count), np.inf)
    stack, reach = np.empty(2 * depth + 4, np.int64), np.empty(2 * depth + 4)
    for row in range(0, total, every):
        own = order[row]
        if own < usable:
            _search(
                points, order, lower, upper, 2**depth - 1, starts, stops, row, theiler, usable,
                squares[own], places[own], stack, reach,
            )  # fmt: skip
    return places, squares


@njit(cache=True, nogil=True)
def _nearest_some(points, order, lower, upper, depth, count, theiler, usable, every):  # type: ignore[no-untyped-def]
    """As _nearest, but with room for the points that are asked about only."""
    total = len(points)
    starts, stops = leaf_ranges(total, depth)
    most = (total + every - 1) // every
    rows = np.empty(most, np.int64)
    places = np.full((most, count), -1, np.int64)
    squares = np.full((most, count), np.inf)
    stack, reach = np.empty(2 * depth + 4, np.int64), np.empty(2 * depth + 4)
    found = 0
    for row in range(0, total, every):
        if order[row] >= usable:
            continue
        rows[found] = order[row]
        _search(
            points, order, lower, upper, 2**depth - 1, starts, stops, row, theiler, usable,
            squares[found], places[found], stack, reach,
        )  # fmt: skip
        found += 1
    return rows[:found], places[:found], squares[:found]


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    points, order, lower, upper, first_leaf, starts, stops, row, theiler, usable, best, place, stack, reach
):
    """The nearest of one row into ``best`` (squares, ascending) and ``place``."""
    n = points.shape[1]
    count = len(best)
    own, point = order[row], points[row]
    stack[0], reach[0] = 0, 0.0
    top = 1
    while top > 0:
        top -= 1
        if reach[top] >= best[count - 1]:
            continue
        node = stack[top]
        while node < first_leaf:
            left, right = 2 * node + 1, 2 * node + 2
            limit = best[count - 1]
            to_left = _to_box(point, lower[left], upper[left], limit)
            to_right = _to_box(point, lower[right], upper[right], limit)
            # Both boxes may hold the point's surroundings: its own side first.
            own_left = row < stops[left] if to_left == to_right else to_left < to_right
            if own_left:
                near, far, away, close = left, right, to_right, to_left
            else:
                near, far, away, close = right, left, to_left, to_right
            if away < limit:
                stack[top], reach[top] = far, away
                top += 1
            if close >= limit:
                node = -1
                break
            node = near
        if node < 0:
            continue
        for k in range(starts[node], stops[node]):
            other = order[k]
            if other >= usable or abs(other - own) <= theiler:
                continue
            limit = best[count - 1]
            square = 0.0
            for c in range(n):
                square += (points[k, c] - point[c]) ** 2
            if square < limit:
                m = count - 1
                while m > 0 and best[m - 1] > square:
                    best[m], place[m] = best[m - 1], place[m - 1]
                    m -= 1
                best[m], place[m] = square, other


@njit(cache=True, nogil=True)
def nearest_towards(  # type: ignore[no-untyped-def]
    points, order, lower, upper, depth, starts, stops, point, own, theiler, usable,
    closest, farthest, direction, cosine, stack,
):  # fmt: skip
    """Place and squared distance of the nearest point between two distances of ``point``, in a cone about the
    unit vector ``direction`` (``cosine`` -1: anywhere); -1 if there is none. ``own`` is the point's place.
    """
    n = points.shape[1]
    first_leaf = 2**depth - 1
    best, place = farthest * farthest, -1
    stack[0] = 0
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        if _to_box(point, lower[node], upper[node], best) > best:
            continue
        if node < first_leaf:
            left, right = 2 * node + 1, 2 * node + 2
            if _to_box(point, lower[left], upper[left], best) < _to_box(
                point, lower[right], upper[right], best
            ):
                left, right = right, left
            stack[top], stack[top + 1] = left, right  # the nearer one is looked at first
            top += 2
            continue
        for k in range(starts[node], stops[node]):
            other = order[k]
            if other >= usable or abs(other - own) <= theiler:
                continue
            square, along = 0.0, 0.0
            for c in range(n):
                difference = points[k, c] - point[c]
                square += difference * difference
                along += difference * direction[c]
            if square < closest * closest or square > best:
                continue
            if cosine > -1.0 and along < cosine * np.sqrt(square):
                continue
            best, place = square, other
    return place, best


@njit(cache=True, nogil=True)
def _pair_counts(points, order, lower, upper, depth, squares, theiler, every):  # type: ignore[no-untyped-def]
    """Pairs by bin between consecutive squared radii; pairs compared in all."""
    total, n = points.shape
    starts, stops = leaf_ranges(total, depth)
    first_leaf = 2**depth - 1
    bins = len(squares)
    counts = np.zeros(bins, np.int64)
    limit = squares[bins - 1]
    # A table from the logarithm of the squared distance to the bin: one look-up and at most a step or two.
    low_log, high_log = np.log2(squares[0]), np.log2(limit)
    cells = 16 * bins
    width = max((high_log - low_log) / cells, 1e-12)
    table = np.empty(cells + 1, np.int64)
    b = 0
    for cell in range(cells + 1):
        while b < bins - 1 and squares[b] < 2.0 ** (low_log + cell * width):
            b += 1
        table[cell] = b
    stack = np.empty(2 * depth + 4, np.int64)
    compared = 0
    for row in range(0, total, every):
        own = order[row]
        point = points[row]
        compared += max(own - theiler, 0) + max(total - 1 - theiler - own, 0)
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            if (
                every == 1 and stops[node] <= row
            ):  # each pair once: only what follows in the order of the tree
                continue
            if _to_box(point, lower[node], upper[node], limit) > limit:
                continue
            if node < first_leaf:
                stack[top], stack[top + 1] = 2 * node + 2, 2 * node + 1
                top += 2
                continue
            begin = max(starts[node], row + 1) if every == 1 else starts[node]
            for k in range(begin, stops[node]):
                square = 0.0
                for c in range(n):
                    square += (points[k, c] - point[c]) ** 2
                if square <= limit and abs(order[k] - own) > theiler:
                    if square <= squares[0]:
                        counts[0] += 1
                        continue
                    b = table[min(int((np.log2(square) - low_log) / width), cells)]
                    while b > 0 and square <= squares[b - 1]:
                        b -= 1
                    while square > squares[b]:
                        b += 1
                    counts[b] += 1
    if every == 1:
        compared //= 2
    return counts, compared
