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
from numba import float64, int64, void
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.model.kernels import JAC_U_TYPE as JAC_U
from analysis.signal.inputs import Inputs
from analysis.signal.smoothing import smooth
from analysis.signal.splines import Probes, make_probes

Array = NDArray[np.float64]
_matrix = float64[:, ::1]
_stack = float64[:, :, ::1]

_CHUNK = 256  # test functions whose covariance is formed together
_FLOOR = 1e-7  # of the size of the terms: residual that quadrature and rounding may leave
_SHORTEST = 8  # samples of a stretch: fewer hold no test function


@dataclass(frozen=True, eq=False)
class Nodes:
    """Samples of one unbroken stretch; a sample at which an input jumps is listed twice, before and after."""

    times: Array  # [M]
    states: Array  # [n, M]
    inputs: Array  # [m, M]
    pieces: NDArray[np.int64]  # first node of each smooth piece
    origin: float = 0.0  # time of the record's first sample, from which the sensors' drifts count


def nodes(times: Array, states: Array, inputs: Inputs, valid: NDArray[np.bool_]) -> list[Nodes]:
    """The stretches of samples in which everything is known."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], valid, [False]]).astype(int)))
    return [
        _stretch(times, states, inputs, int(a), int(b))
        for a, b in zip(edges[::2], edges[1::2], strict=True)
        if b - a >= _SHORTEST
    ]


def _stretch(times: Array, states: Array, inputs: Inputs, start: int, stop: int) -> Nodes:
    index = np.arange(start, stop)
    if inputs.count == 0:
        return Nodes(
            times[start:stop].copy(), states[:, start:stop].copy(), np.zeros((0, len(index))),
            np.zeros(1, dtype=np.int64), float(times[0]),
        )  # fmt: skip
    after = inputs.coefficients[:, start:stop, 0]
    before = after.copy()
    c = inputs.coefficients[:, start : stop - 1]
    before[:, 1:] = c @ inputs.dt ** np.arange(c.shape[2])
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
        float(times[0]),
    )


@dataclass(frozen=True, eq=False)
class Equation:
    """One equation in weak form: of state ``state``, or, with ``of`` given and d(of)/dt = factor * state, of
    the second derivative of ``of``.
    """

    state: int
    of: int = -1
    factor: float = 1.0

    @property
    def order(self) -> int:
        """How many integrations by parts it takes."""
        return 1 if self.of < 0 else 2


class WeakSystem:
    """Residuals of one stretch of data for one spacing of the test functions.

    Parameter vectors are the model's k parameters, or these followed by n offsets, n delays and n drifts of
    the sensors of the states: the true state i is the sample at t + delay_i less offset_i and drift_i times
    the time since the record's first sample.
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
        own = chosen if len(P.value) > 1 else slice(None)
        columns = np.minimum(P.first[chosen][:, None] + np.arange(length), len(self.data.times) - 1).ravel()
        data = Nodes(
            self.data.times[columns], np.ascontiguousarray(self.data.states[:, columns]),
            np.ascontiguousarray(self.data.inputs[:, columns]), np.zeros(1, dtype=np.int64),
            self.data.origin,
        )  # fmt: skip
        first = np.arange(len(chosen), dtype=np.int64) * length
        probes = Probes(first, P.value[own], P.slope[own], P.curvature[own])
        return WeakSystem(self.kernels, data, self.spacing, self.equations, self.parameters, probes)

    def _left(self, states: Array) -> Array:
        """Terms without the right-hand side: -int phi' x, or int phi'' x."""
        left = np.empty((len(self.equations), len(self.probes)))
        for i, e in enumerate(self.equations):
            if e.of < 0:
                left[i] = -self.probes.integrals(states[[e.state]], self.probes.slope)[0]
            else:
                left[i] = self.probes.integrals(states[[e.of]], self.probes.curvature)[0] / e.factor
        return left

    def _corrected(self, p_all: Array) -> tuple[Array, Array]:
        """The model's parameters, and the states without offsets and delays of the sensors."""
        n = len(self.data.states)
        k = self.parameters
        if not p_all[k:].any():
            return p_all[:k].copy(), self.data.states
        offsets, delays, drifts = p_all[k:].reshape(3, n)
        states = self.data.states - offsets[:, None] - drifts[:, None] * (self.data.times - self.data.origin)
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
        residual, Vp = self._with_slopes(*self._corrected(p_all))
        information, gradient, cost = np.zeros((len(free), len(free))), np.zeros(len(free)), 0.0
        for e, row in enumerate(self.rows):
            mine = [
                (c, free.index(int(j))) for c, (i, j) in enumerate(self.pattern_p.T) if i == row and j in free
            ]
            weight = float(weights[e]) ** 2
            with np.errstate(over="ignore", invalid="ignore"):  # of numbers far astray: the step is refused
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
        residual, Vp = self._with_slopes(p, states)
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

    def _with_slopes(self, p: Array, states: Array) -> tuple[Array, Array]:
        """Residual [equations, K] and the filled entries of df/dp at the nodes."""
        d = self.data
        dX, Vp = np.empty_like(states), np.empty((self.pattern_p.shape[1], len(d.times)))
        self.kernels.jac_p_sparse_many(d.times, states, d.inputs, p, dX, Vp)
        left = self.left if states is d.states else self._left(states)
        return np.asarray(left - self.probes.integrals(dX[self.rows])), Vp

    def _add_sensor_derivatives(self, p: Array, states: Array, free: list[int], out: Array) -> None:
        n = len(states)
        J = self.noise_terms(p, states, np.zeros(n))
        for column, j in enumerate(free):
            if j < len(p):
                continue
            state = (j - len(p)) % n
            kind = (j - len(p)) // n
            if kind == 0:
                out[column] = self.probes.integrals(J[:, state])
                continue
            # What a unit of delay or drift adds to the state at each node.
            rate = self._rate(states[state]) if kind == 1 else self.data.origin - self.data.times
            out[column] = -self.probes.integrals(J[:, state] * rate)
            for i, e in enumerate(self.equations):
                if e.of < 0 and e.state == state:
                    out[column, i] -= self.probes.integrals(rate[None], self.probes.slope)[0]
                if e.of == state:
                    second = self.probes.integrals(rate[None], self.probes.curvature)[0]
                    out[column, i] += second / e.factor

    def _rate(self, row: Array) -> Array:
        times, where, back = np.unique(self.data.times, return_index=True, return_inverse=True)
        return np.asarray(smooth(row[where], float(times[1] - times[0]))[1][back])

    def noise_terms(self, p: Array, states: Array, sigma: Array) -> Array:
        """Derivatives of the right-hand side at the nodes in all that is noisy, [equations, n or n + m, M].

        The first n are the states; the measured inputs follow if ``sigma`` holds noise of theirs.
        """
        d = self.data
        n, M = states.shape
        dX = np.empty_like(states)
        Vx = np.empty((self.pattern_x.shape[1], M))
        Vp = np.empty((self.pattern_p.shape[1], M))
        self.kernels.jac_sparse_many(d.times, states, d.inputs, p, dX, Vx, Vp)
        m = len(d.inputs) if np.any(sigma[n:]) else 0
        J = np.zeros((len(self.rows), n + m, M))
        place = {row: e for e, row in enumerate(self.rows)}
        for entry, (i, j) in enumerate(self.pattern_x.T):
            if int(i) in place:
                J[place[int(i)], j] = Vx[entry]
        if m:
            Ju = np.empty((n, m, M))
            _input_terms(self.kernels.jac_u, d.times, states, d.inputs, p, Ju)
            J[:, n:] = Ju[self.rows]
        return J

    def variances(self, p_all: Array, sigma: Array) -> Array:
        """Variances of the residuals alone, [equations, K]."""
        band = self._band(p_all, sigma, 0)
        return np.ascontiguousarray(band[:, 0].reshape(len(self.probes), len(self.equations)).T)

    def covariance(self, p_all: Array, sigma: Array) -> Array:
        """Covariance of the residuals, ordered by (function, equation): element (i, j) is at [j, i - j].

        ``sigma``: noise of the n states, then of the m measured inputs (which may be left out: none).
        """
        return self._band(p_all, sigma, _overlap(self.probes.first, self.probes.value.shape[1]))

    def _band(self, p_all: Array, sigma: Array, reach: int) -> Array:
        J = self.noise_terms(*self._corrected(p_all), sigma)
        E, P = len(J), self.probes
        source = np.array([e.state if e.of < 0 else e.of for e in self.equations], dtype=np.int64)
        kinds = sorted({(e.order, e.factor) for e in self.equations})
        kind = np.array([kinds.index((e.order, e.factor)) for e in self.equations], dtype=np.int64)
        left = np.stack([-P.slope if order == 1 else P.curvature / factor for order, factor in kinds])
        band = np.zeros((len(P) * E, (reach + 1) * E))
        noise = source, kind, sigma[: J.shape[1]] ** 2
        if len(P) > 1 and len(P.value) == 1:
            shift = int(P.first[1] - P.first[0])
            _covariance_of_shifts(
                shift, P.value[0], left[:, 0], J[:, :, P.first[0] :], *noise, len(P), reach, band
            )
        else:
            _covariance(P.first, P.value, left, J, *noise, reach, band)
        terms = np.mean(self.left**2, axis=1)
        band[:, 0] += np.tile(_FLOOR**2 * terms, len(P)) + 1e-9 * np.mean(band[:, 0])
        return band


def _overlap(first: NDArray[np.int64], length: int) -> int:
    """How many later functions share nodes with one."""
    return int(np.max(np.searchsorted(first, first + length) - np.arange(len(first)))) - 1


@njit(void(JAC_U, float64[::1], _matrix, _matrix, float64[::1], _stack), cache=True, nogil=True)
def _input_terms(jac_u, times, X, U, p, Ju):  # type: ignore[no-untyped-def]
    """Derivatives of the right-hand side in the inputs, Ju[n, m, M]."""
    n, m, M = Ju.shape
    x, u, J = np.empty(n), np.empty(m), np.empty((n, m))
    for node in range(M):
        for i in range(n):
            x[i] = X[i, node]
        for i in range(m):
            u[i] = U[i, node]
        jac_u(times[node], x, u, p, J)
        for i in range(n):
            for j in range(m):
                Ju[i, j, node] = J[i, j]


@njit(
    void(int64[::1], _matrix, _stack, _stack, int64[::1], int64[::1], float64[::1], int64, _matrix),
    cache=True,
    nogil=True,
    fastmath={"contract"},
)
def _covariance(first, value, left, J, source, kind, variance, reach, band):  # type: ignore[no-untyped-def]
    """Fill the band; ``left[r]`` is what multiplies the state that an equation of kind r is about."""
    L, K = value.shape[1], len(first)
    E, channels, M = J.shape
    R = len(left)
    # Per node and pair of equations (i, k): covariance of the noise of f_i and f_k, of f_i and the state that
    # equation k is about, and of f_k and the state that equation i is about.
    both, ahead, behind = np.zeros((M, E * E)), np.zeros((R, M, E * E)), np.zeros((R, M, E * E))
    for m in range(M):
        for i in range(E):
            for k in range(E):
                for j in range(channels):
                    both[m, i * E + k] += J[i, j, m] * J[k, j, m] * variance[j]
                ahead[kind[k], m, i * E + k] = J[i, source[k], m] * variance[source[k]]
                behind[kind[i], m, i * E + k] = J[k, source[i], m] * variance[source[i]]
    total, plain = np.empty(E * E), np.empty((R, R))
    for c in range(K):
        own = c if len(value) > 1 else 0
        for d in range(c, min(c + reach + 1, K)):
            other = d if len(value) > 1 else 0
            total[:] = 0.0
            plain[:] = 0.0
            shift = first[d] - first[c]
            for m in range(first[d], min(first[c] + L, M)):
                at = m - first[c]
                vc, vd = value[own, at], value[other, at - shift]
                f = vc * vd
                if f == 0.0:
                    reaching = False
                    for r in range(R):
                        reaching = reaching or left[r, own, at] != 0.0 or left[r, other, at - shift] != 0.0
                    if not reaching:
                        continue
                for q in range(E * E):
                    total[q] += f * both[m, q]
                for r in range(R):
                    g, h = vc * left[r, other, at - shift], vd * left[r, own, at]
                    for q in range(E * E):
                        total[q] -= g * ahead[r, m, q] + h * behind[r, m, q]
                    for t in range(R):
                        plain[r, t] += left[r, own, at] * left[t, other, at - shift]
            for i in range(E):
                for k in range(E):
                    row, column = d * E + k, c * E + i
                    if row >= column:
                        same = (
                            plain[kind[i], kind[k]] * variance[source[i]] if source[i] == source[k] else 0.0
                        )
                        band[column, row - column] = total[i * E + k] + same


@njit(void(float64[::1], float64, float64[::1]), cache=True, nogil=True, fastmath={"contract"})
def _add(total, factor, row):  # type: ignore[no-untyped-def]
    for c in range(len(total)):
        total[c] += factor * row[c]


@njit(
    void(
        int64, float64[::1], _matrix, float64[:, :, :], int64[::1], int64[::1], float64[::1], int64, int64,
        _matrix,
    ),
    cache=True,
    nogil=True,
    fastmath={"contract"},
)  # fmt: skip
def _covariance_of_shifts(  # type: ignore[no-untyped-def]
    spacing, value, left, J, source, kind, variance, K, reach, band
):
    """The same when all functions are shifts of one by ``spacing`` nodes, the first at node 0.

    Nodes are sorted by their remainder on division by the spacing, so that the nodes which stand under the
    same place of successive functions are neighbours in memory and all functions advance together.
    """
    L = len(value)
    E, channels, M = J.shape
    widest = _CHUNK + (L - 1) // spacing
    sorted_J = np.zeros((E, channels, spacing, widest))
    present = np.zeros((E, channels), dtype=np.bool_)
    both = np.empty((spacing, widest))
    total = np.empty(_CHUNK)
    for start in range(0, K, _CHUNK):  # a few functions at a time, so that their nodes stay in the cache
        columns = min(K - start, _CHUNK) + (L - 1) // spacing
        for i in range(E):
            for j in range(channels):
                present[i, j] = False
                for phase in range(spacing):
                    first = start * spacing + phase
                    for c in range(min(columns, (M - 1 - first) // spacing + 1)):
                        entry = J[i, j, first + c * spacing]
                        sorted_J[i, j, phase, c] = entry
                        present[i, j] |= entry != 0.0
        for i in range(E):
            for k in range(E):
                shared = False
                both[:] = 0.0
                for j in range(channels):
                    if present[i, j] and present[k, j] and variance[j] > 0.0:
                        shared = True
                        for phase in range(spacing):
                            for c in range(columns):
                                product = sorted_J[i, j, phase, c] * sorted_J[k, j, phase, c]
                                both[phase, c] += variance[j] * product
                ahead, behind = present[i, source[k]], present[k, source[i]]
                for s in range(1 if k < i else 0, reach + 1):
                    count = min(K - s - start, _CHUNK)
                    plain = 0.0
                    if source[i] == source[k]:
                        for m in range(s * spacing, L):
                            plain += left[kind[i], m] * left[kind[k], m - s * spacing] * variance[source[i]]
                    elif not (shared or ahead or behind):
                        continue
                    row = total[: max(count, 0)]
                    row[:] = plain
                    for m in range(s * spacing, L):
                        phase, later = m % spacing, m // spacing
                        before, after = m - s * spacing, later + len(row)
                        if shared:
                            _add(row, value[m] * value[before], both[phase, later:after])
                        if ahead:
                            f = value[m] * left[kind[k], before] * variance[source[k]]
                            _add(row, -f, sorted_J[i, source[k], phase, later:after])
                        if behind:
                            f = value[before] * left[kind[i], m] * variance[source[i]]
                            _add(row, -f, sorted_J[k, source[i], phase, later:after])
                    for c in range(len(row)):
                        band[(start + c) * E + i, s * E + k - i] = row[c]
