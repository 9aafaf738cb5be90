"""The weak form of a model on data: residuals, their derivatives and their covariance under sensor noise.

For each test function phi and equation i of dx/dt = f(x, u, t; p)

    r = - int phi' x_i dt - int phi f_i dt          (Liu et al. 2018, eq. 14)

and for x'' = f with only x measured, r = int phi'' x dt - int phi f dt. Noise e of the sensors enters to
first order as -phi' e_i - phi sum_j (df_i/dx_j) e_j, which gives the covariance of all residuals: banded,
because only overlapping test functions share samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import float64, int64, njit, void
from numpy.typing import NDArray

from analysis.inputs import Inputs
from analysis.smoothing import smooth
from analysis.splines import Probes, make_probes

Array = NDArray[np.float64]
_matrix = float64[:, ::1]
_stack = float64[:, :, ::1]

_FLOOR = 1e-7  # of the size of the terms: residual that quadrature and rounding may leave


@dataclass(frozen=True, eq=False)
class Nodes:
    """Samples of one unbroken stretch; a sample at which an input jumps is listed twice, before and after."""

    times: Array  # [M]
    states: Array  # [n, M]
    inputs: Array  # [m, M]
    pieces: NDArray[np.int64]  # first node of each smooth piece


def nodes(times: Array, states: Array, inputs: Inputs, valid: NDArray[np.bool_]) -> list[Nodes]:
    """The stretches of samples in which everything is known."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], valid, [False]]).astype(int)))
    return [
        _stretch(times, states, inputs, int(a), int(b))
        for a, b in zip(edges[::2], edges[1::2], strict=True)
        if b - a >= 8
    ]


def _stretch(times: Array, states: Array, inputs: Inputs, start: int, stop: int) -> Nodes:
    index = np.arange(start, stop)
    if inputs.count == 0:
        return Nodes(
            times[start:stop].copy(), states[:, start:stop].copy(), np.zeros((0, len(index))),
            np.zeros(1, dtype=np.int64),
        )  # fmt: skip
    after = inputs.coefficients[:, start:stop, 0]
    before = after.copy()
    c = inputs.coefficients[:, start : stop - 1]
    before[:, 1:] = c[..., 0] + inputs.dt * (c[..., 1] + inputs.dt * (c[..., 2] + inputs.dt * c[..., 3]))
    size = np.ptp(inputs.coefficients[:, :, 0], axis=1, keepdims=True)
    jump = np.any(np.abs(after - before) > 1e-9 * size, axis=0)
    bends = np.round((inputs.breaks - inputs.t0) / inputs.dt).astype(int) - start
    smooth_breaks = bends[(bends > 0) & (bends < len(index) - 1)]
    jump[[0, -1]] = False
    order = np.sort(np.concatenate([np.arange(len(index)), np.flatnonzero(jump)]))
    second = np.concatenate([[False], order[1:] == order[:-1]])
    first_of_two = np.concatenate([second[1:], [False]])
    U = np.where(first_of_two, before[:, order], after[:, order])
    starts = np.flatnonzero(second)
    kinks = [int(np.searchsorted(order, k)) for k in smooth_breaks if not jump[k]]
    pieces = np.unique(np.concatenate([[0], starts, kinks])).astype(np.int64)
    return Nodes(
        np.ascontiguousarray(times[index][order]),
        np.ascontiguousarray(states[:, index][:, order]),
        np.ascontiguousarray(U),
        pieces,
    )


@dataclass(frozen=True, eq=False)
class Equation:
    """One equation in weak form: of state ``state``, or, with ``of`` given, of the second derivative of
    ``of``.
    """

    state: int
    of: int = -1


class WeakSystem:
    """Residuals of one stretch of data for one spacing of the test functions.

    Parameter vectors are the model's k parameters, or these followed by n offsets and n delays of the
    sensors of the states: the true state i is the sample at t + delay_i less offset_i.
    """

    def __init__(
        self,
        kernels: Any,
        data: Nodes,
        spacing: int,
        equations: list[Equation],
        parameters: int,
        probes: Probes | None = None,
    ) -> None:
        self.kernels, self.data, self.equations, self.spacing = kernels, data, equations, spacing
        self.parameters = parameters
        self.probes = make_probes(data.times, data.pieces, spacing) if probes is None else probes
        self.pattern_x, self.pattern_p = kernels.pattern_x, kernels.pattern_p
        self.rows = [e.state for e in equations]
        self.left = self._left(data.states)

    def __len__(self) -> int:
        return len(self.probes) * len(self.equations)

    def thinned(self, every: int) -> WeakSystem:
        """Only every n-th test function, and only the nodes that these need."""
        if every == 1:
            return self
        P = self.probes
        chosen = np.arange(0, len(P), every)
        length = P.value.shape[1]
        columns = np.minimum(P.first[chosen][:, None] + np.arange(length), len(self.data.times) - 1).ravel()
        data = Nodes(
            self.data.times[columns], np.ascontiguousarray(self.data.states[:, columns]),
            np.ascontiguousarray(self.data.inputs[:, columns]), np.zeros(1, dtype=np.int64),
        )  # fmt: skip
        first = np.arange(len(chosen), dtype=np.int64) * length
        probes = Probes(first, P.value[chosen], P.slope[chosen], P.curvature[chosen])
        return WeakSystem(self.kernels, data, self.spacing, self.equations, self.parameters, probes)

    def _left(self, states: Array) -> Array:
        """Terms without the right-hand side: -int phi' x, or int phi'' x."""
        left = np.empty((len(self.equations), len(self.probes)))
        for i, e in enumerate(self.equations):
            if e.of < 0:
                left[i] = -self.probes.integrals(states[[e.state]], self.probes.slope)[0]
            else:
                left[i] = self.probes.integrals(states[[e.of]], self.probes.curvature)[0]
        return left

    def _corrected(self, p_all: Array) -> tuple[Array, Array]:
        """The model's parameters, and the states without offsets and delays of the sensors."""
        n = len(self.data.states)
        k = self.parameters
        offsets, delays = p_all[k : k + n], p_all[k + n :]
        if not p_all[k:].any():
            return p_all[:k].copy(), self.data.states
        states = self.data.states - offsets[:, None]
        for i in np.flatnonzero(delays):
            states[i] += self._shift(int(i), float(delays[i]))
        return p_all[:k].copy(), states

    def _shift(self, state: int, delay: float) -> Array:
        """Change of the samples of a state when read ``delay`` later."""
        from scipy.interpolate import CubicSpline

        times, where = np.unique(self.data.times, return_index=True)
        later = CubicSpline(times, self.data.states[state, where])(self.data.times + delay)
        return np.asarray(later - self.data.states[state])

    def residual(self, p_all: Array) -> Array:
        """[equations, K]."""
        p, states = self._corrected(p_all)
        dX = np.empty_like(states)
        self.kernels.rhs_many(self.data.times, states, self.data.inputs, p, dX)
        left = self.left if states is self.data.states else self._left(states)
        return np.asarray(left - self.probes.integrals(dX[self.rows]))

    def normal(self, p_all: Array, free: list[int], weights: Array) -> tuple[Array, Array, float]:
        """Normal equations of the rows, those of equation i times weights[i]: information, gradient and cost.

        Cheaper than :meth:`linearised`, because an equation holds few of the parameters.
        """
        p, states = self._corrected(p_all)
        d = self.data
        dX, Vp = np.empty_like(states), np.empty((self.pattern_p.shape[1], len(d.times)))
        self.kernels.jac_p_sparse_many(d.times, states, d.inputs, p, dX, Vp)
        left = self.left if states is d.states else self._left(states)
        residual = left - self.probes.integrals(dX[self.rows])
        information, gradient, cost = np.zeros((len(free), len(free))), np.zeros(len(free)), 0.0
        for e, row in enumerate(self.rows):
            mine = [
                (c, free.index(int(j))) for c, (i, j) in enumerate(self.pattern_p.T) if i == row and j in free
            ]
            weight = float(weights[e]) ** 2
            cost += weight * float(residual[e] @ residual[e])
            if mine:
                entries, columns = (list(part) for part in zip(*mine, strict=True))
                A = self.probes.integrals(Vp[entries])
                information[np.ix_(columns, columns)] += weight * (A @ A.T)
                gradient[columns] += weight * (A @ residual[e])
        return information, gradient, cost

    def linearised(self, p_all: Array, free: list[int]) -> tuple[Array, Array]:
        """Residual [equations, K] and its derivatives [len(free), equations, K]."""
        p, states = self._corrected(p_all)
        d = self.data
        dX, Vp = np.empty_like(states), np.empty((self.pattern_p.shape[1], len(d.times)))
        self.kernels.jac_p_sparse_many(d.times, states, d.inputs, p, dX, Vp)
        left = self.left if states is d.states else self._left(states)
        residual = left - self.probes.integrals(dX[self.rows])
        derivatives = np.zeros((len(free), len(self.equations), len(self.probes)))
        wanted = [
            (entry, free.index(int(j)), self.rows.index(int(i)))
            for entry, (i, j) in enumerate(self.pattern_p.T)
            if int(j) in free and int(i) in self.rows
        ]
        if wanted:
            entries, columns, rows = (list(part) for part in zip(*wanted, strict=True))
            derivatives[columns, rows] = -self.probes.integrals(Vp[entries])
        if any(j >= len(p) for j in free):
            self._add_sensor_derivatives(p, states, free, derivatives)
        return residual, derivatives

    def _add_sensor_derivatives(self, p: Array, states: Array, free: list[int], out: Array) -> None:
        n = len(states)
        J = self.state_terms(p, states)
        for column, j in enumerate(free):
            if j < len(p):
                continue
            state = (j - len(p)) % n
            if j < len(p) + n:
                out[column] = self.probes.integrals(J[:, state])
                continue
            rate = self._rate(states[state])
            out[column] = -self.probes.integrals(J[:, state] * rate)
            for i, e in enumerate(self.equations):
                if e.of < 0 and e.state == state:
                    out[column, i] -= self.probes.integrals(rate[None], self.probes.slope)[0]
                if e.of == state:
                    out[column, i] += self.probes.integrals(rate[None], self.probes.curvature)[0]

    def _rate(self, row: Array) -> Array:
        times, where, back = np.unique(self.data.times, return_index=True, return_inverse=True)
        return np.asarray(smooth(row[where], float(times[1] - times[0]))[1][back])

    def state_terms(self, p: Array, states: Array) -> Array:
        """Jacobian of the right-hand side in the states at the nodes, [equations, n, M]."""
        d = self.data
        n, M = states.shape
        dX = np.empty_like(states)
        Vx = np.empty((self.pattern_x.shape[1], M))
        Vp = np.empty((self.pattern_p.shape[1], M))
        self.kernels.jac_sparse_many(d.times, states, d.inputs, p, dX, Vx, Vp)
        Jx = np.zeros((n, n, M))
        Jx[self.pattern_x[0], self.pattern_x[1]] = Vx
        return np.ascontiguousarray(Jx[self.rows])

    def variances(self, p_all: Array, sigma: Array) -> Array:
        """Variances of the residuals alone, [equations, K]."""
        J = self.state_terms(*self._corrected(p_all))
        P, out = self.probes, np.zeros((len(self.equations), len(self.probes)))
        rows = P.first[:, None] + np.arange(P.value.shape[1])
        rows = np.minimum(rows, J.shape[2] - 1)
        for i, e in enumerate(self.equations):
            source = e.state if e.of < 0 else e.of
            left = -P.slope if e.of < 0 else P.curvature
            for j in range(J.shape[1]):
                terms = (left if j == source else 0.0) - P.value * J[i, j][rows]
                out[i] += sigma[j] ** 2 * np.sum(terms**2, axis=1)
        return out + ((_FLOOR**2) * np.mean(self.left**2, axis=1))[:, None]

    def covariance(self, p_all: Array, sigma: Array) -> Array:
        """Covariance of the residuals, ordered by (function, equation): element (i, j) is at [i - j, j]."""
        J = self.state_terms(*self._corrected(p_all))
        E, P = len(J), self.probes
        source = np.array([e.state if e.of < 0 else e.of for e in self.equations], dtype=np.int64)
        order = np.array([1 if e.of < 0 else 2 for e in self.equations], dtype=np.int64)
        reach = _overlap(P.first, P.value.shape[1])
        band = np.zeros(((reach + 1) * E, len(P) * E))
        _covariance(P.first, P.value, P.slope, P.curvature, J, source, order, sigma, reach, band)
        terms = np.sqrt(np.mean(self.left**2, axis=1))
        band[0] += np.tile((_FLOOR * terms) ** 2, len(P)) + 1e-9 * np.mean(band[0])
        return band


def _overlap(first: NDArray[np.int64], length: int) -> int:
    """How many later functions share nodes with one."""
    return int(np.max(np.searchsorted(first, first + length) - np.arange(len(first)))) - 1


@njit(
    void(int64[::1], _matrix, _matrix, _matrix, _stack, int64[::1], int64[::1], float64[::1], int64, _matrix),
    cache=True,
    nogil=True,
)
def _covariance(first, value, slope, curvature, J, source, order, sigma, reach, band):  # type: ignore[no-untyped-def]
    K, L = value.shape
    E, n, M = J.shape
    # Per node: covariance of the noise of f_i and f_k, and of f_i and the state that equation k is about.
    both = np.empty((E, E))
    cross_both, cross_mixed = np.empty((M, E, E)), np.empty((M, E, E))
    for m in range(M):
        for i in range(E):
            for k in range(E):
                total = 0.0
                for j in range(n):
                    total += J[i, j, m] * J[k, j, m] * sigma[j] * sigma[j]
                cross_both[m, i, k] = total
                cross_mixed[m, i, k] = J[i, source[k], m] * sigma[source[k]] ** 2
    for c in range(K):
        for shift in range(reach + 1):
            d = c + shift
            if d >= K:
                break
            for i in range(E):
                for k in range(E):
                    both[i, k] = 0.0
            for m in range(first[d], min(first[c] + L, M)):
                vc, vd = value[c, m - first[c]], value[d, m - first[d]]
                if vc == 0.0 and vd == 0.0 and slope[c, m - first[c]] == 0.0:
                    continue
                for i in range(E):
                    lc = -slope[c, m - first[c]] if order[i] == 1 else curvature[c, m - first[c]]
                    for k in range(E):
                        ld = -slope[d, m - first[d]] if order[k] == 1 else curvature[d, m - first[d]]
                        total = vc * vd * cross_both[m, i, k]
                        total -= vc * ld * cross_mixed[m, i, k] + vd * lc * cross_mixed[m, k, i]
                        if source[i] == source[k]:
                            total += lc * ld * sigma[source[i]] ** 2
                        both[i, k] += total
            for i in range(E):
                for k in range(E):
                    row, column = d * E + k, c * E + i
                    if row >= column:
                        band[row - column, column] = both[i, k]
