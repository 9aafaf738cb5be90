"""The linear algebra of the maximum-likelihood path: one Gauss-Newton step in time linear in the samples.

The linearised problem: minimise sum_k |r_k - G_k dz_k - D_k dp|^2 subject to
dz_{k+1} = A_k dz_k + B_k dp + c_k.
Its block-tridiagonal equations are solved by a forward sweep that keeps the covariance of dz_k as a product
S S' (S is carried by A alone; measurements enter one by one with Potter's rank-one update) and the mean as an
affine function of dp, and a backward sweep of the multipliers (Bryson and Frazier 1963). Nothing is inverted
but positive numbers: unmeasured states, missing samples, contracting and expanding directions are all
harmless.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, void

from analysis.base.compiling import njit
from analysis.model.kernels import JAC_TYPE as JAC
from analysis.model.kernels import OUT_JAC_TYPE as OUT_JAC
from analysis.model.kernels import OUT_TYPE as OUT
from analysis.model.kernels import RHS_TYPE as RHS
from analysis.simulation.flow import advance, advance_with_derivatives, piece_at, piece_values

_vector = float64[::1]
_matrix = float64[:, ::1]
_stack = float64[:, :, ::1]
_indices = int64[::1]

_NEGLIGIBLE = 1e-150  # kept out of the denormal range, where arithmetic is slow


@njit(
    void(
        JAC, OUT_JAC, _vector, _matrix, _matrix, _vector, _vector, _indices, int64, float64, float64, _stack,
        _stack, _matrix, _matrix, _stack, _stack,
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def linearise(  # type: ignore[no-untyped-def]
    jac, out_jac, times, X, Y, sigma, p_all, free, steps, t0, dt, coefficients, V, C, R, G, D
):
    """Flow, defects C[N-1, n] = Phi(z_k) - z_{k+1}, weighted residuals R[N, q] and all derivatives.

    ``p_all`` holds the model's k parameters, then q offsets, q delays and q drifts (from the time ``t0`` on)
    of the outputs; ``free`` indexes it, the model's parameters first. V[N-1, n, n + a] and
    D[N, q, len(free)]; a missing sample leaves R = nan.
    """
    n, N = X.shape
    q = Y.shape[0]
    k = len(p_all) - 3 * q
    p = p_all[:k].copy()
    a = V.shape[2] - n
    wrt = free[:a].copy()
    z, u = np.empty(n), np.empty(coefficients.shape[0])
    back, Vback = np.empty(n), np.empty((n, n + a))
    dx, Jx, Jp = np.empty(n), np.empty((n, n)), np.empty((n, k))
    y, Yx, Yp = np.empty(q), np.empty((q, n)), np.empty((q, k))
    ahead, behind, aside = np.empty(q), np.empty(q), (np.empty((q, n)), np.empty((q, k)))
    delayed = False
    for i in range(q):
        delayed = delayed or p_all[k + q + i] != 0.0
    for j in range(a, len(free)):
        delayed = delayed or k + q <= free[j] < k + 2 * q
    for node in range(N):
        t = times[node]
        for i in range(n):
            z[i] = X[i, node]
        piece = piece_at(t + 1e-9 * dt, t0, dt, coefficients)
        piece_values(piece, t - t0 - piece * dt, coefficients, u)
        out_jac(t, z, u, p, y, Yx, Yp)
        for i in range(q):
            R[node, i] = (Y[i, node] - y[i] - p_all[k + i] - p_all[k + 2 * q + i] * (t - t0)) / sigma[i]
            for j in range(n):
                G[node, i, j] = Yx[i, j] / sigma[i]
            for j in range(len(free)):
                D[node, i, j] = 0.0
            for j in range(a):
                D[node, i, j] = Yp[i, free[j]] / sigma[i]
            for j in range(a, len(free)):
                if free[j] == k + i:
                    D[node, i, j] = 1.0 / sigma[i]
                if free[j] == k + 2 * q + i:
                    D[node, i, j] = (t - t0) / sigma[i]
        if delayed:
            for i in range(q):
                lag = p_all[k + q + i]
                wanted = lag != 0.0
                for j in range(a, len(free)):
                    wanted = wanted or free[j] == k + q + i
                if not wanted:
                    continue
                for m in range(n):
                    back[m] = z[m]
                advance_with_derivatives(jac, t, -lag, 2 * steps, back, p, wrt, Vback, t0, dt, coefficients)
                piece = piece_at(t - lag, t0, dt, coefficients)
                piece_values(piece, t - lag - t0 - piece * dt, coefficients, u)
                jac(t - lag, back, u, p, dx, Jx, Jp)
                out_jac(t - lag, back, u, p, y, Yx, Yp)
                R[node, i] = (Y[i, node] - y[i] - p_all[k + i] - p_all[k + 2 * q + i] * (t - t0)) / sigma[i]
                within = t - lag - t0 - piece * dt
                apart = 1e-4 * dt  # of the output itself by time: it may hold inputs, such as a force
                piece_values(piece, within + apart, coefficients, u)
                out_jac(t - lag + apart, back, u, p, ahead, aside[0], aside[1])
                piece_values(piece, within - apart, coefficients, u)
                out_jac(t - lag - apart, back, u, p, behind, aside[0], aside[1])
                rate = (ahead[i] - behind[i]) / (2.0 * apart)
                for m in range(n):
                    rate += Yx[i, m] * dx[m]
                for j in range(n + a):
                    total = 0.0
                    for m in range(n):
                        total += Yx[i, m] * Vback[m, j]
                    if j < n:
                        G[node, i, j] = total / sigma[i]
                    else:
                        D[node, i, j - n] = (total + Yp[i, free[j - n]]) / sigma[i]
                for j in range(a, len(free)):
                    if free[j] == k + q + i:
                        D[node, i, j] = -rate / sigma[i]
        if node < N - 1:
            advance_with_derivatives(
                jac, t, times[node + 1] - t, steps, z, p, wrt, V[node], t0, dt, coefficients
            )
            for i in range(n):
                C[node, i] = z[i] - X[i, node + 1]


@njit(
    void(
        RHS, OUT, _vector, _matrix, _matrix, _vector, _vector, int64, float64, float64, _stack, _matrix,
        _matrix,
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def evaluate(rhs, out, times, X, Y, sigma, p_all, steps, t0, dt, coefficients, C, R):  # type: ignore[no-untyped-def]
    """Defects C[N-1, n] and weighted residuals R[N, q] alone."""
    n, N = X.shape
    q = Y.shape[0]
    k = len(p_all) - 3 * q
    p = p_all[:k].copy()
    z, back, u, y = np.empty(n), np.empty(n), np.empty(coefficients.shape[0]), np.empty(q)
    for node in range(N):
        t = times[node]
        for i in range(n):
            z[i] = X[i, node]
        piece = piece_at(t + 1e-9 * dt, t0, dt, coefficients)
        piece_values(piece, t - t0 - piece * dt, coefficients, u)
        out(t, z, u, p, y)
        for i in range(q):
            R[node, i] = (Y[i, node] - y[i] - p_all[k + i] - p_all[k + 2 * q + i] * (t - t0)) / sigma[i]
        for i in range(q):
            lag = p_all[k + q + i]
            if lag != 0.0:
                for m in range(n):
                    back[m] = z[m]
                advance(rhs, t, -lag, 2 * steps, back, p, t0, dt, coefficients)
                piece = piece_at(t - lag, t0, dt, coefficients)
                piece_values(piece, t - lag - t0 - piece * dt, coefficients, u)
                out(t - lag, back, u, p, y)
                R[node, i] = (Y[i, node] - y[i] - p_all[k + i] - p_all[k + 2 * q + i] * (t - t0)) / sigma[i]
        if node < N - 1:
            advance(rhs, t, times[node + 1] - t, steps, z, p, t0, dt, coefficients)
            for i in range(n):
                C[node, i] = z[i] - X[i, node + 1]


@njit(cache=True, nogil=True)
def triangularise(a):  # type: ignore[no-untyped-def]
    """Householder reflections that leave the triangular factor R of a[m, n], m >= n, on and above its
    diagonal (a fifth of the time to compile of a call to the library)."""
    m, n = a.shape
    for j in range(n):
        size = 0.0
        for i in range(j, m):
            size += a[i, j] * a[i, j]
        if size == 0.0:
            continue
        diagonal = -np.sqrt(size) if a[j, j] > 0.0 else np.sqrt(size)
        a[j, j] -= diagonal  # the reflection's vector stands in the column until it is done
        half = -diagonal * a[j, j]
        for c in range(j + 1, n):
            dot = 0.0
            for i in range(j, m):
                dot += a[i, j] * a[i, c]
            for i in range(j, m):
                a[i, c] -= dot / half * a[i, j]
        a[j, j] = diagonal


@njit(
    void(
        _stack, _matrix, _matrix, _stack, _stack, _vector, _vector, _matrix, _stack, _stack, _stack, _matrix,
        _stack, _matrix, _vector,
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def forward(V, C, R, G, D, start, spread, slack, S, M, K, s, E, H, g):  # type: ignore[no-untyped-def]
    """Eliminate the states: adds the information H[p, p] and the gradient g[p] of the parameters.

    ``start`` and ``spread`` are mean and standard deviation of dz_0 before any measurement; ``slack[n, r]``
    is a square root of the covariance by which each step may miss the equations (r = 0: not at all). Keeps
    what :func:`backward` needs: S[N, n, n], M[N, n, p + 1], K[N, q, n], s[N, q] (0: missing), E[N, q, p + 1].
    """
    N, q, n = G.shape
    p = D.shape[2]
    a = V.shape[2] - n
    r = slack.shape[1]
    root, mean = np.zeros((n, n)), np.zeros((n, p + 1))
    carried, moved = np.empty((n, n)), np.empty((n, p + 1))
    tall = np.zeros((n + r, n))
    phi = np.empty(n)
    for i in range(n):
        root[i, i] = spread[i]
        mean[i, p] = start[i]
    for node in range(N):
        if node > 0:
            A = V[node - 1]
            for i in range(n):
                for j in range(n):
                    carried[i, j] = 0.0
                for j in range(p + 1):
                    moved[i, j] = 0.0
                for j in range(a):
                    moved[i, j] = A[i, n + j]
                moved[i, p] = C[node - 1, i]
                for m in range(n):
                    f = A[i, m]
                    if f != 0.0:
                        for j in range(n):
                            carried[i, j] += f * root[m, j]
                        for j in range(p + 1):
                            moved[i, j] += f * mean[m, j]
            for i in range(n):
                for j in range(n):
                    root[i, j] = carried[i, j] if abs(carried[i, j]) > _NEGLIGIBLE else 0.0
                for j in range(p + 1):
                    mean[i, j] = moved[i, j]
            if r > 0:
                for i in range(n):
                    for j in range(n):
                        tall[j, i] = root[i, j]
                    for j in range(r):
                        tall[n + j, i] = slack[i, j]
                triangularise(tall)
                for i in range(n):
                    for j in range(n):
                        root[i, j] = tall[j, i] if j <= i else 0.0
        for i in range(q):
            if np.isnan(R[node, i]):
                s[node, i] = 0.0
                continue
            total = 1.0
            for j in range(n):
                phi[j] = 0.0
            for m in range(n):
                f = G[node, i, m]
                if f != 0.0:
                    for j in range(n):
                        phi[j] += f * root[m, j]
            for j in range(n):
                total += phi[j] * phi[j]
            s[node, i] = total
            row = E[node, i]
            for j in range(p):
                row[j] = -D[node, i, j]
            row[p] = R[node, i]
            for m in range(n):
                f = G[node, i, m]
                if f != 0.0:
                    for j in range(p + 1):
                        row[j] -= f * mean[m, j]
            gamma = 1.0 / (1.0 + np.sqrt(1.0 / total))
            for m in range(n):
                gain = 0.0
                for j in range(n):
                    gain += root[m, j] * phi[j]
                gain /= total
                K[node, i, m] = gain
                for j in range(n):
                    root[m, j] -= gamma * gain * phi[j]
                for j in range(p + 1):
                    mean[m, j] += gain * row[j]
            for j in range(p):
                f = row[j] / total
                g[j] -= f * row[p]
                for m in range(j + 1):
                    H[j, m] += f * row[m]
        for i in range(n):
            for j in range(n):
                S[node, i, j] = root[i, j]
            for j in range(p + 1):
                M[node, i, j] = mean[i, j]
    for j in range(p):
        for m in range(j):
            H[m, j] = H[j, m]


@njit(void(_stack, _stack, _stack, _stack, _stack, _matrix, _stack), cache=True, nogil=True)
def forward_columns(V, pushes, G, D, K, s, E):  # type: ignore[no-untyped-def]
    """What :func:`forward` makes of further columns, its gains K and s known: E[N, q, T].

    ``pushes`` [N - 1, m, T] add to the first m states over each interval, ``D`` [N, q, T] to the outputs. The
    covariance does not depend on them, and is most of the work of :func:`forward`.
    """
    N, q, n = G.shape
    m, T = pushes.shape[1], pushes.shape[2]
    mean, moved = np.zeros((n, T)), np.empty((n, T))
    for node in range(N):
        if node > 0:
            for i in range(n):
                for j in range(T):
                    moved[i, j] = pushes[node - 1, i, j] if i < m else 0.0
                for k in range(n):
                    f = V[node - 1, i, k]
                    if f != 0.0:
                        for j in range(T):
                            moved[i, j] += f * mean[k, j]
            for i in range(n):
                for j in range(T):
                    mean[i, j] = moved[i, j]
        for i in range(q):
            row = E[node, i]
            if s[node, i] == 0.0:
                for j in range(T):
                    row[j] = 0.0
                continue
            for j in range(T):
                row[j] = -D[node, i, j]
            for k in range(n):
                f = G[node, i, k]
                if f != 0.0:
                    for j in range(T):
                        row[j] -= f * mean[k, j]
            for k in range(n):
                f = K[node, i, k]
                for j in range(T):
                    mean[k, j] += f * row[j]


@njit(
    void(_stack, _stack, _vector, _stack, _stack, _stack, _matrix, _stack, _matrix, _matrix),
    cache=True,
    nogil=True,
)
def backward(V, G, step, S, M, K, s, E, dX, L):  # type: ignore[no-untyped-def]
    """States' step dX[n, N] and the multipliers L[N, n] of the equations, given the parameters' step."""
    N, q, n = G.shape
    p = len(step)
    adjoint, carried, inner = np.zeros(n), np.empty(n), np.empty(n)
    for node in range(N - 1, -1, -1):
        for j in range(n):
            total = 0.0
            for i in range(n):
                total += S[node, i, j] * adjoint[i]
            inner[j] = total
        for i in range(n):
            total = M[node, i, p]
            for j in range(p):
                total += M[node, i, j] * step[j]
            for j in range(n):
                total -= S[node, i, j] * inner[j]
            dX[i, node] = total
        for i in range(q - 1, -1, -1):
            if s[node, i] == 0.0:
                continue
            total = E[node, i, p]
            for j in range(p):
                total += E[node, i, j] * step[j]
            total /= s[node, i]
            for m in range(n):
                total += K[node, i, m] * adjoint[m]
            for m in range(n):
                adjoint[m] -= G[node, i, m] * total
        for m in range(n):
            L[node, m] = adjoint[m]
        if node > 0:
            for j in range(n):
                carried[j] = 0.0
            for i in range(n):
                for j in range(n):
                    carried[j] += V[node - 1, i, j] * adjoint[i]
            for j in range(n):
                adjoint[j] = carried[j]


@njit(_matrix(_stack, _stack, _matrix, _vector), cache=True, nogil=True)
def initial_information(V, G, R, variance):  # type: ignore[no-untyped-def]
    """Fisher information [n, n] of the first state, the parameters given; later noise is eliminated.

    Backward from the last sample: I_k = G_k'G_k + A_k' (I_{k+1}^-1 + Q)^-1 A_k. ``variance`` [n] is the
    diagonal of Q, by which each state may miss the equations: for states a trifle, so that the information
    along directions that chaos stretches stays finite; for errors of the inputs their own variance.
    """
    N, q, n = G.shape
    total, moved, column = np.zeros((n, n)), np.empty((n, n)), np.empty(n)
    for node in range(N - 1, -1, -1):
        for i in range(q):
            if not np.isnan(R[node, i]):
                for a in range(n):
                    for b in range(n):
                        total[a, b] += G[node, i, a] * G[node, i, b]
        for i in range(n):
            if variance[i] > 0.0:
                for a in range(n):  # copied as a slice it would take four times as long to compile
                    column[a] = total[a, i]
                weight = 1.0 / (1.0 / variance[i] + column[i])
                for a in range(n):
                    for b in range(n):
                        total[a, b] -= weight * column[a] * column[b]
        if node > 0:
            A = V[node - 1]
            for a in range(n):
                for b in range(n):
                    value = 0.0
                    for m in range(n):
                        value += total[a, m] * A[m, b]
                    moved[a, b] = value
            for a in range(n):
                for b in range(n):
                    value = 0.0
                    for m in range(n):
                        value += A[m, a] * moved[m, b]
                    total[a, b] = value
    return total
