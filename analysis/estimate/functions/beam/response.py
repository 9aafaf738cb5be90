"""Response of a beam by its complex modes, with analytic sensitivities.

In the reduced basis the receptance is H(s) = sum_k phi_k phi_k' / (s - lambda_k) with the modes scaled to
phi' (2 lambda M + C) phi = 1, and a change (dM, dC, dK) of the matrices moves it by

    dlambda_k = -phi_k' (lambda_k^2 dM + lambda_k dC + dK) phi_k
    dphi_k    = -sum_(j != k) phi_j phi_j'(...) phi_k / (lambda_k - lambda_j)
                - phi_k phi_k' (2 lambda_k dM + dC) phi_k / 2

so a record with all its sensitivities costs one product of matrices: no differential equation is integrated.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.signal.recursion import first_order

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
_ROUNDING = 1e-13  # of the largest eigenvalue: what a sum of squares in floating point may be off by
_STIFFEST = 1e-24  # of the largest inverse square of a frequency: stiffer modes do not move
DENSE_LIMIT = 80  # up to this size all modes come from one dense factorisation


@dataclass(frozen=True)
class Modes:
    """Complex modes in a reduced basis with unit mass matrix. Poles in rad per unit time."""

    poles: Complex  # [2 r], all of them
    shapes: Complex  # [r, 2 r]
    kept: NDArray[np.intp]  # indices of the poles on or above the real axis
    twice: Array  # 2 for a pole that stands for its conjugate too, 1 for a real one

    def sensitivity(
        self, mass: Array | None, damping: Array | None, stiffness: Array | None
    ) -> tuple[Complex, Complex]:
        """dlambda[kept] and dphi[r, kept] for a change of the reduced matrices."""
        shapes, poles = self.shapes[:, self.kept], self.poles[self.kept]
        change = np.zeros(shapes.shape, dtype=np.complex128)
        slope = np.zeros(len(poles), dtype=np.complex128)
        if stiffness is not None:
            change += stiffness @ shapes
        if damping is not None:
            turned = damping @ shapes
            change += poles * turned
            slope += np.einsum("ik,ik->k", shapes, turned)
        if mass is not None:
            turned = mass @ shapes
            change += poles**2 * turned
            slope += 2.0 * poles * np.einsum("ik,ik->k", shapes, turned)
        mixed = self.shapes.T @ change  # [2 r, kept]
        gap = poles[None, :] - self.poles[:, None]
        own = (self.kept, np.arange(len(self.kept)))
        moved = -mixed[own]
        gap[own] = 1.0
        gap[gap == 0] = np.inf  # two poles that coincide to the last digit, such as at critical damping
        mixed = mixed / gap
        mixed[own] = 0.5 * slope
        return moved, -(self.shapes @ mixed)


def real_modes(stiffness: Any, mass: Any, count: int) -> Array:
    """Shapes of the lowest undamped modes of sparse matrices: [n, count]."""
    n = stiffness.shape[0]
    if n <= DENSE_LIMIT:
        return settled_modes(stiffness.toarray(), mass.toarray())[1][:, :count]
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).standard_normal(n)  # ARPACK's own start differs from run to run
    values, shapes = eigsh(stiffness, k=min(count, n - 2), M=mass, sigma=0.0, v0=start)
    return np.ascontiguousarray(shapes[:, np.argsort(values)])


def settled_modes(stiffness: Array, mass: Array) -> tuple[Array, Array]:
    """Frequencies squared and mass-normalised shapes of small dense matrices, from the lowest.

    The inverse problem (mass over stiffness) is solved: its rounding falls on the highest modes, which
    hardly move, and not on the lowest.
    """
    from scipy.linalg import eigh

    inverse, shapes = eigh(mass, _positive(stiffness))
    floor = _STIFFEST * max(float(inverse[-1]), 1e-300)
    inverse, shapes = np.maximum(inverse[::-1], floor), shapes[:, ::-1]
    return 1.0 / inverse, np.ascontiguousarray(shapes / np.sqrt(inverse))


def _positive(stiffness: Array) -> Array:
    """The matrix with what rounding has made negative lifted: sums of squares are never below zero.

    Where a beam tapers, its tip is so much softer than its root that the smallest eigenvalues drown.
    """
    scale = np.sqrt(np.maximum(np.diag(stiffness), 1e-300))
    values, vectors = np.linalg.eigh(stiffness / np.outer(scale, scale))
    floor = _ROUNDING * float(values[-1])
    if values[0] > floor:
        return stiffness
    lifted = (vectors * np.maximum(values, floor)) @ vectors.T
    return np.asarray(0.5 * (lifted + lifted.T) * np.outer(scale, scale))


def complex_modes(squared: Array, damping: Array | None) -> Modes:
    """Modes of q'' + damping q' + diag(squared) q; ``squared`` are the undamped frequencies squared."""
    omega = np.sqrt(squared)
    r = len(omega)
    if damping is None or np.all(
        np.abs(damping - np.diag(np.diag(damping))) <= 1e-13 * np.abs(damping).max()
    ):
        rate = np.zeros(r) if damping is None else 0.5 * np.diag(damping)
        root = np.sqrt((rate**2 - squared).astype(np.complex128))
        poles = np.concatenate([-rate + root, -rate - root])
        shapes = np.tile(np.eye(r, dtype=np.complex128), 2)
    else:
        system = np.block([[np.zeros((r, r)), np.diag(omega)], [-np.diag(omega), -damping]])
        poles, vectors = np.linalg.eig(system)
        poles = poles.astype(np.complex128)
        shapes = vectors[:r].astype(np.complex128) / omega[:, None]
    norm = 2.0 * poles * np.einsum("ik,ik->k", shapes, shapes)
    if damping is not None:
        norm = norm + np.einsum("ik,ik->k", shapes, damping @ shapes)
    shapes = shapes / np.sqrt(norm)
    imaginary = poles.imag
    real = np.abs(imaginary) <= 1e-12 * np.abs(poles)
    kept = np.flatnonzero(real | (imaginary > 0))
    return Modes(poles, shapes, kept, np.where(real[kept], 1.0, 2.0))


def filtered(poles: Complex, samples: Array, dt: float) -> tuple[Complex, Complex]:
    """y' = lambda y + g from rest, and dy/dlambda, at the samples of g: [poles, N].

    The samples are joined by a cubic spline; exact for it, any step width.
    """
    from scipy.interpolate import CubicSpline

    count = len(samples)
    if count < 4:
        local = np.zeros((4, count - 1))
        local[3], local[2] = samples[:-1], np.diff(samples) / dt
    else:
        local = CubicSpline(np.arange(count) * dt, samples).c
    pieces = local[::-1]  # powers 0 to 3 in each interval
    weight, slope = _moments(poles, dt)
    decay = np.exp(poles * dt)
    response = np.zeros((len(poles), count), dtype=np.complex128)
    derivative = np.zeros_like(response)
    drive, drive_slope = weight.T @ pieces, slope.T @ pieces
    for k, factor in enumerate(decay):
        response[k, 1:] = first_order(factor, drive[k])
        pushed = drive_slope[k] + factor * dt * response[k, :-1]
        derivative[k, 1:] = first_order(factor, pushed)
    return response, derivative


def stepped(poles: Complex, times: Array) -> tuple[Complex, Complex]:
    """y' = lambda y + 1 from rest at t = 0, and dy/dlambda, at any times: [poles, N]."""
    z = poles[:, None] * times
    value, slope = times * _phi(z, 1), times**2 * _phi_slope(z)
    return value, slope


def _phi(z: Complex, order: int) -> Complex:
    """sum_n z^n / (n + order)!, without cancellation near zero."""
    small = np.abs(z) < 1.0
    series = np.zeros_like(z)
    for n in range(20, -1, -1):
        series = series * z + 1.0 / factorial(n + order)
    safe = np.where(small, 1.0, z)
    closed = np.exp(np.where(small, 0.0, z))
    for k in range(order):
        closed = (closed - 1.0 / factorial(k)) / safe
    return np.where(small, np.where(small, series, 0.0), closed)


def _phi_slope(z: Complex) -> Complex:
    """Derivative of _phi(z, 1)."""
    small = np.abs(z) < 1.0
    inner = np.where(small, z, 0.0)
    series = np.zeros_like(z)
    for n in range(20, 0, -1):
        series = series * inner + n / factorial(n + 1)
    safe = np.where(small, 1.0, z)
    grown = np.exp(np.where(small, 0.0, z))
    return np.where(small, series, (grown * (safe - 1.0) + 1.0) / safe**2)


def _moments(poles: Complex, dt: float) -> tuple[Complex, Complex]:
    """Integral of exp(lambda (dt - s)) s^m over a step, m = 0..3, and its slope in lambda: [4, poles]."""
    z = poles * dt
    weight = np.array([dt ** (m + 1) * factorial(m) * _phi(z, m + 1) for m in range(4)])
    small = np.abs(z) < 1.0
    inner = np.where(small, z, 0.0)
    safe = np.where(small, 1.0, poles)
    slope = np.empty_like(weight)
    previous = np.zeros_like(z)
    for m in range(4):
        series = np.zeros_like(z)
        for n in range(20, 0, -1):
            series = series * inner + n / factorial(n + m + 1)
        if m == 0:
            closed = (dt * np.exp(np.where(small, 0.0, z)) - weight[0]) / safe
        else:
            closed = (m * previous - weight[m]) / safe
        slope[m] = np.where(small, dt ** (m + 2) * factorial(m) * series, closed)
        previous = slope[m]
    return weight, slope
