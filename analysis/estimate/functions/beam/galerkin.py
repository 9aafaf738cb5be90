"""Quintic-spline Galerkin form of the Euler-Bernoulli beam, sparse and banded
(Banks, Crowley 1983, section 2).

The transverse displacement is a quintic spline on N equal elements; essential conditions are built into the
basis. Matrices are integrals over Gauss points, so that a varying property enters by its values there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ModelError

Array = NDArray[np.float64]
DEGREE = 5
ENDS = ("pinned", "clamped", "free", "elastic")
QUADRATURE_CELLS = (
    48  # at least so many cells along the beam, whatever N: properties may vary inside an element
)
GAUSS_POINTS = 5
_CONDITIONS = {  # derivatives that vanish at an end
    "pinned": (0, 2),
    "clamped": (0, 1),
    "hinged": (0,),
    "free": (),
}


@dataclass(frozen=True)
class Space:
    """The spline space: values and curvatures of its basis at Gauss points, as sparse matrices."""

    length: float
    elements: int
    left: str
    right: str
    points: Array  # Gauss points
    weights: Array
    value: Any  # sparse [points, n]
    slope: Any  # sparse [points, n]
    curvature: Any  # sparse [points, n]
    _transform: Any  # sparse [N + 5, n]: free B-splines from the constrained ones

    @property
    def size(self) -> int:
        return int(self.value.shape[1])

    def at(self, x: Array, derivative: int = 0) -> Array:
        """Values of the basis (or its derivative) at any points: [len(x), n]."""
        raw = _design(self.elements, self.length, np.asarray(x, dtype=np.float64), derivative)
        return np.asarray((raw @ self._transform).toarray())

    def mass(self, density: Array) -> Any:
        """Integral of density times the product of two basis functions; density at the Gauss points."""
        return _weighted(self.value, self.weights * density)

    def rotation(self, inertia: Array) -> Any:
        """Integral of rotary inertia times the product of two slopes; inertia at the Gauss points."""
        return _weighted(self.slope, self.weights * inertia)

    def bending(self, stiffness: Array) -> Any:
        """Integral of stiffness times the product of two curvatures; stiffness at the Gauss points."""
        return _weighted(self.curvature, self.weights * stiffness)


def spline_space(length: float, elements: int, left: str, right: str) -> Space:
    """The space with the essential conditions of the two ends.

    pinned: u = u'' = 0 (dimension N + 1 when both ends are, as published); clamped: u = u' = 0; free: none;
    hinged: u = 0 alone, for an end that springs hold against rotation.
    """
    for end in (left, right):
        if end not in _CONDITIONS:
            raise ModelError(f"An end of a beam is {', '.join(ENDS)}; '{end}' is none of them.")
    if elements < 1:
        raise ModelError("A beam needs at least one element.")
    transform = _constraints(elements, length, left, right)
    if transform.shape[1] < 1:
        raise ModelError(f"{elements} elements leave no freedom between these ends: use more.")
    points, weights = _gauss(length, elements)
    value = (_design(elements, length, points, 0) @ transform).tocsr()
    slope = (_design(elements, length, points, 1) @ transform).tocsr()
    curvature = (_design(elements, length, points, 2) @ transform).tocsr()
    return Space(length, elements, left, right, points, weights, value, slope, curvature, transform)


def _gauss(length: float, elements: int) -> tuple[Array, Array]:
    cells = elements * max(1, -(-QUADRATURE_CELLS // elements))
    nodes, weights = np.polynomial.legendre.leggauss(GAUSS_POINTS)
    width = length / cells
    middles = (np.arange(cells) + 0.5) * width
    return (middles[:, None] + 0.5 * width * nodes).ravel(), np.tile(0.5 * width * weights, cells)


def _knots(elements: int, length: float) -> Array:
    inner = np.linspace(0.0, length, elements + 1)
    return np.concatenate([np.zeros(DEGREE), inner, np.full(DEGREE, length)])


def _design(elements: int, length: float, x: Array, derivative: int) -> Any:
    """Sparse matrix [len(x), N + 5] of the B-splines' derivative at the points."""
    from scipy import sparse
    from scipy.interpolate import BSpline

    if x.size and (x.min() < -1e-9 * length or x.max() > length * (1 + 1e-9)):
        raise ModelError(f"A point lies outside the beam (0 to {length:g}).")
    knots = _knots(elements, length)
    inside = np.clip(x, 0.0, length)
    order = np.clip((inside / length * elements).astype(int), 0, elements - 1)
    columns = order[:, None] + np.arange(DEGREE + 1)
    data = np.empty(columns.shape)
    for offset in range(DEGREE + 1):  # the local basis: few distinct shapes, evaluated column by column
        for j in np.unique(columns[:, offset]):
            rows = columns[:, offset] == j
            unit = np.zeros(elements + DEGREE)
            unit[j] = 1.0
            data[rows, offset] = BSpline(knots, unit, DEGREE)(inside[rows], nu=derivative)
    rows = np.repeat(np.arange(len(x)), DEGREE + 1)
    shape = (len(x), elements + DEGREE)
    return sparse.csr_matrix((data.ravel(), (rows, columns.ravel())), shape=shape)


def _constraints(elements: int, length: float, left: str, right: str) -> Any:
    """Columns span the splines that satisfy the essential conditions."""
    from scipy import sparse

    count = elements + DEGREE
    if count < 2 * (DEGREE - 1):  # so short that the two ends share splines: dense null space
        return sparse.csr_matrix(_null_space(elements, length, left, right))
    second = _design(elements, length, np.array([0.0, length]), 2).toarray()
    columns: list[dict[int, float]] = [{j: 1.0} for j in range(count)]
    drop: set[int] = set()
    for end, row, order in ((left, second[0], range(3)), (right, second[1], range(count - 1, count - 4, -1))):
        first, near, next_ = order
        if end == "hinged":
            drop.add(first)
        elif end == "clamped":
            drop |= {first, near}
        elif end == "pinned":
            drop |= {first, near}
            columns[next_][near] = -row[next_] / row[near]
    kept = [c for j, c in enumerate(columns) if j not in drop]
    entries = [(i, j, v) for j, c in enumerate(kept) for i, v in c.items()]
    rows, cols, values = zip(*entries, strict=True)
    return sparse.csr_matrix((values, (rows, cols)), shape=(count, len(kept)))


def _null_space(elements: int, length: float, left: str, right: str) -> Array:
    from scipy.linalg import null_space

    conditions = []
    for end, x in ((left, 0.0), (right, length)):
        for derivative in _CONDITIONS[end]:
            row = _design(elements, length, np.array([x]), derivative).toarray()[0]
            conditions.append(row / np.linalg.norm(row))
    if not conditions:
        return np.eye(elements + DEGREE)
    return np.asarray(null_space(np.array(conditions)))


def _weighted(basis: Any, weights: Array) -> Any:
    from scipy import sparse

    return (basis.T @ sparse.diags_array(weights) @ basis).tocsc()
