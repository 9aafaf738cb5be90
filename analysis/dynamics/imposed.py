"""The force that a periodic motion of given amplitude and frequency needs: a branch seen from its response.

Where the force is given, a nonlinear specimen may have several motions and folds between them. Where the
fundamental of one output is given, y = A cos(wt) + harmonics, and the complex force f = Re U exp(i w t) is
asked for, there is one answer on both sides of a fold. Solved by Fourier collocation: w dX/dtheta =
rhs(X, f, p) at N points of a period; derivatives of U by parameters, amplitude and frequency from the same
matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ModelError
from analysis.model import Model

Array = NDArray[np.float64]

POINTS = 33  # of a period; odd: as many harmonics as points allow, without the ambiguous highest
_NEWTON = 25
_SOLVED = 1e-10
_STEP = 1e-6  # of an input, for the derivatives of outputs by it
_FAMILY = 12  # solutions, each with the family's direction from the one before
_SAME_RATE = 1e-9
_RISES = 6  # steps of amplitude from a linear motion to a nonlinear one


@dataclass(frozen=True, eq=False)
class ImposedMotion:
    """A periodic motion whose output has the fundamental A cos(theta)."""

    states: Array  # [n, N] at even phases
    force: complex  # U
    by_parameters: NDArray[np.complex128]  # [k] of U
    by_frequency: complex  # of U, a Hz
    by_amplitude: complex


class ImposedMotions:
    """Solver for one model, output and input; warm starts from the motion found before."""

    def __init__(self, model: Model, output: str, points: int = POINTS) -> None:
        if len(model.inputs) != 1:
            raise ModelError(f"{model.name} must have one measured input, the force.")
        if output not in model.outputs:
            raise ModelError(f"{model.name} has no output '{output}': there are {', '.join(model.outputs)}.")
        self.model, self.output = model, model.outputs.index(output)
        self._kernels = model.kernels()
        self._theta = 2 * np.pi * np.arange(points) / points
        self._derivative = _differentiation(points)
        self._times = np.zeros(points)

    def rest(self, p: Array) -> Array:
        """[n, N] the equilibrium near the model's initial states."""
        model, n, k = self.model, len(self.model.states), len(p)
        x = np.array([_initial(model, name) for name in model.states])
        A, dx, u = np.empty((n, n)), np.empty(n), np.zeros(1)
        for _ in range(_NEWTON):
            self._kernels.jac(0.0, x, u, p, dx, A, np.empty((n, k)))
            step = np.linalg.lstsq(A, -dx, rcond=None)[0]
            x = x + step
            if np.abs(step).max() <= 1e-14 + 1e-12 * np.abs(x).max():
                break
        return np.repeat(x[:, None], len(self._theta), axis=1)

    def solve(
        self, p: Array, frequency: float, amplitude: float, start: ImposedMotion | None = None
    ) -> ImposedMotion | None:
        """The motion at ``frequency`` (Hz) and ``amplitude``; None where none was found."""
        if start is not None:
            found = self._newton(p, frequency, amplitude, start.states, start.force)
            if found is not None:
                return found
        states, force = self.rest(p), 0j
        size = 1e-3
        grown: ImposedMotion | None = None
        rise = (1 / size) ** (1 / _RISES)
        while size < 1.0 or grown is None:
            found = self._newton(p, frequency, size * amplitude, states, force)
            if found is None:
                if rise < 1.05 or grown is None:
                    return None
                size, rise = size / rise, np.sqrt(rise)
                size = min(1.0, size * rise)
                continue
            grown = found
            following = min(1.0, size * rise)
            mean = found.states.mean(axis=1, keepdims=True)
            states, force = mean + (found.states - mean) * following / size, found.force * following / size
            if size >= 1.0:
                break
            size = following
        return grown

    def _newton(
        self, p: Array, frequency: float, amplitude: float, states: Array, force: complex
    ) -> ImposedMotion | None:
        w, X, U = 2 * np.pi * frequency, states.copy(), complex(force)
        scale: Array | None = None
        with np.errstate(all="ignore"):
            for _ in range(_NEWTON):
                matrix, residual, _ = self._equations(p, w, amplitude, X, U)
                step = _newton_step(matrix, residual)
                if step is None:
                    return None
                X = X + step[:-2].reshape(X.shape)
                U += complex(step[-2], step[-1])
                scale = np.ptp(X, axis=1) + 1e-300
                moved = float(np.max(np.abs(step[:-2].reshape(X.shape)) / scale[:, None]))
                if moved < _SOLVED:
                    return self._found(p, w, amplitude, X, U)
        return None

    def _found(self, p: Array, w: float, amplitude: float, X: Array, U: complex) -> ImposedMotion | None:
        matrix, _, by = self._equations(p, w, amplitude, X, U)
        slopes = np.zeros((len(matrix), 2))
        slopes[:-2, 0] = (X @ self._derivative.T).ravel() * 2 * np.pi
        slopes[-2, 1] = -1.0
        moved = np.linalg.solve(matrix, -np.concatenate([by, slopes], axis=1))
        u = moved[-2] + 1j * moved[-1]
        if not np.isfinite(u).all():
            return None
        return ImposedMotion(X, U, u[:-2], complex(u[-2]), complex(u[-1]))

    def _equations(
        self, p: Array, w: float, amplitude: float, X: Array, U: complex
    ) -> tuple[Array, Array, Array]:
        """Matrix and residual in (X, Re U, Im U), and derivatives of the residual by the parameters."""
        n, N = X.shape
        k, q, theta = len(p), len(self.model.outputs), self._theta
        u = np.ascontiguousarray((U.real * np.cos(theta) - U.imag * np.sin(theta))[None, :])
        X = np.ascontiguousarray(X)
        dX, Jx, Jp = np.empty((n, N)), np.empty((n, n, N)), np.empty((n, k, N))
        self._kernels.jac_many(self._times, X, u, p, dX, Jx, Jp)
        Y, Yx, Yp = np.empty((q, N)), np.empty((q, n, N)), np.empty((q, k, N))
        self._kernels.out_jac_many(self._times, X, u, p, Y, Yx, Yp)
        Fu, Yu = self._by_input(p, X, u)
        wave = np.array([np.cos(theta), -np.sin(theta)])  # of u by Re U and Im U
        matrix, residual = np.zeros((n * N + 2, n * N + 2)), np.empty(n * N + 2)
        by = np.zeros((n * N + 2, k))
        diagonal = np.arange(N)
        for i in range(n):
            rows = slice(i * N, (i + 1) * N)
            matrix[rows, rows] += w * self._derivative
            for j in range(n):
                matrix[i * N + diagonal, j * N + diagonal] -= Jx[i, j]
            matrix[rows, -2:] = -(Fu[i] * wave).T
            residual[rows] = w * self._derivative @ X[i] - dX[i]
            by[rows] = -Jp[i].T
        fold = 2 / N * np.array([np.cos(theta), -np.sin(theta)])  # real and imaginary part of the fundamental
        y, yx, yp, yu = Y[self.output], Yx[self.output], Yp[self.output], Yu[self.output]
        for i in range(n):
            matrix[-2:, i * N : (i + 1) * N] = fold * yx[i]
        matrix[-2:, -2:] = fold @ (yu * wave).T
        residual[-2:] = fold @ y - np.array([amplitude, 0.0])
        by[-2:] = fold @ yp.T
        return matrix, residual, by

    def _by_input(self, p: Array, X: Array, u: Array) -> tuple[Array, Array]:
        """[n, N] and [q, N] derivatives of rates and outputs by the force."""
        h = _STEP * max(1e-6, float(np.abs(u).max()))
        rates, outs = np.empty((2, *X.shape)), np.empty((2, len(self.model.outputs), X.shape[1]))
        for i, side in enumerate((-h, h)):
            self._kernels.rhs_many(self._times, X, u + side, p, rates[i])
            self._kernels.out_many(self._times, X, u + side, p, outs[i])
        return (rates[1] - rates[0]) / (2 * h), (outs[1] - outs[0]) / (2 * h)


@dataclass(frozen=True, eq=False)
class DecayingMotion:
    """A free motion at one amplitude A: its frequency, and the rate -A'/A at which it decays."""

    states: Array  # [n, N]
    along: Array  # [n, N] derivative of the states by A
    frequency: float  # Hz
    rate: float  # 1/s


class DecayingMotions(ImposedMotions):
    """Frequency and decay of free motions over their amplitude, on the family X(theta, A) of such motions:

    w dX/dtheta + A' dX/dA = rhs(X, 0, p), the fundamental of the output being A; dX/dA comes from the
    solution before.
    """

    def decaying(
        self, p: Array, frequency: float, amplitude: float, start: DecayingMotion | None = None
    ) -> DecayingMotion | None:
        """The motion of ``amplitude`` with a frequency near ``frequency`` (Hz); None where none was found."""
        found = start
        if found is None:
            forced = self.solve(p, frequency, amplitude)
            if forced is None:
                return None
            around = (forced.states - forced.states.mean(axis=1, keepdims=True)) / amplitude
            found = DecayingMotion(forced.states, around, frequency, 0.0)
        for _ in range(_FAMILY):
            before, found = found, self._next(p, amplitude, found)
            if found is None:
                return None
            if abs(found.rate - before.rate) < _SAME_RATE * abs(found.rate):
                break
        return found

    def _next(self, p: Array, amplitude: float, near: DecayingMotion) -> DecayingMotion | None:
        """Newton's method with dX/dA given; with the solution a better one."""
        X, w, change = near.states.copy(), 2 * np.pi * near.frequency, -near.rate * amplitude
        with np.errstate(all="ignore"):
            for _ in range(2 * _NEWTON):
                matrix, residual = self._free_equations(p, w, change, amplitude, X, near.along)
                step = _newton_step(matrix, residual)
                if step is None:
                    return None
                part = min(
                    1.0, 0.1 * w / max(abs(step[-2]), 1e-300)
                )  # far away the whole step leads elsewhere
                X, w = X + part * step[:-2].reshape(X.shape), w + part * step[-2]
                change += part * step[-1]
                moved = np.abs(step[:-2].reshape(X.shape)) / (np.ptp(X, axis=1) + 1e-300)[:, None]
                if float(moved.max()) < _SOLVED:
                    break
            else:
                return None
        matrix, _ = self._free_equations(p, w, change, amplitude, X, near.along)
        right = np.zeros(len(matrix))
        right[-2] = 1.0
        along = np.linalg.solve(matrix, right)[:-2].reshape(X.shape)
        if not (w > 0 and np.isfinite(along).all()):
            return None
        return DecayingMotion(X, along, float(w / (2 * np.pi)), float(-change / amplitude))

    def _free_equations(
        self, p: Array, w: float, change: float, amplitude: float, X: Array, along: Array
    ) -> tuple[Array, Array]:
        """Matrix and residual in (X, w, A')."""
        n, N = X.shape
        matrix, residual, _ = self._equations(p, w, amplitude, X, 0j)
        for i in range(n):
            rows = slice(i * N, (i + 1) * N)
            residual[rows] += change * along[i]
            matrix[rows, -2], matrix[rows, -1] = self._derivative @ X[i], along[i]
        matrix[-2:, -2:] = 0.0
        return matrix, residual


def _newton_step(matrix: Array, residual: Array) -> Array | None:
    """None where the equations are singular or the numbers have run away."""
    try:
        step = np.asarray(np.linalg.solve(matrix, -residual), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    return step if np.isfinite(step).all() else None


def _differentiation(points: int) -> Array:
    """d/dtheta of a periodic function from its values at an odd number of even phases (Trefethen 2000)."""
    j = np.arange(points)
    apart = j[:, None] - j[None, :]
    with np.errstate(divide="ignore"):
        matrix = 0.5 * (-1.0) ** apart / np.sin(np.pi * apart / points)
    np.fill_diagonal(matrix, 0.0)
    return np.asarray(matrix)


def _initial(model: Model, name: str) -> float:
    initial = model.initial.get(name)
    value = 0.0 if initial is None else float(initial.value)
    return value if np.isfinite(value) else 0.0
