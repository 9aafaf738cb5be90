"""Energetic boundary functions: c(t) or H(t) from boundary values alone (Liu, Chen, Chang 2019), corrected.

The unknown is its Hermite interpolant d(t) plus sum_k b_k E_k(t), E_j = gamma_j B_j + B_(j+1) with
B_j = (t^4 - 2 a t^3 + a^2 t^2) t^(j-1); gamma_j makes E_j satisfy the energy identity (14) with the present
estimate, and the b_k solve the identity for all E_j together (22).

What it can know: a root gamma_j makes the present estimate satisfy (22) already, so the iteration stands
still after one sweep wherever the roots are real, and the result depends on the initial b. Boundary values
fix little beyond the interpolant d(t).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
NODES = 80  # of the quadrature


@dataclass(frozen=True)
class Ends:
    """Values and slopes at t = 0 and t = a."""

    first: float
    last: float
    first_slope: float
    last_slope: float

    def hermite(self, a: float) -> np.polynomial.Polynomial:
        """The cubic through them (5), (19), (27); the sign of the t^2 term as in (5)."""
        rise = 2 * self.first - 2 * self.last + (self.first_slope + self.last_slope) * a
        bend = 3 * self.first - 3 * self.last + (2 * self.first_slope + self.last_slope) * a
        return np.polynomial.Polynomial([self.first, self.first_slope, -bend / a**2, rise / a**3])


@dataclass(frozen=True)
class BoundaryResult:
    """The estimate as a function of time, and how it was reached."""

    function: Function
    interpolant: Function  # d(t) or D(t), which needs no iteration at all
    coefficients: Array  # b_k
    iterations: int
    converged: bool
    real_roots: bool  # every gamma_j was real in the last sweep


def boundary_functions(
    kind: str,
    a: float,
    motion: Ends,
    unknown: Ends,
    force: Function,
    damping: Function | None = None,
    potential: float = 0.0,
    terms: int = 2,
    tolerance: float = 1e-3,
    guess: Array | None = None,
    limit: int = 500,
) -> BoundaryResult:
    """Recover ``kind`` "c(t)" or "H(t)" over [0, a].

    ``motion``: ends of x; ``unknown``: ends of c or of H along the motion; ``damping``: the known c(t) for H;
    ``potential``: Q(x(0)) - Q(x(a)) of the known H for c; ``guess``: initial coefficients (None: zero).
    """
    if kind not in ("c(t)", "H(t)"):
        raise DataError(f"Boundary functions recover c(t) or H(t), not '{kind}'.")
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    t, w = 0.5 * a * (nodes + 1), 0.5 * a * weights
    known_c = damping(t) if damping is not None else np.zeros(NODES)
    slope = motion.hermite(a).deriv()(t)
    kinetic = 0.5 * (motion.first_slope**2 - motion.last_slope**2) + potential
    base = unknown.hermite(a)
    shapes = [_shape(a, j) for j in range(1, terms + 2)]
    values = np.array([s(t) for s in shapes])
    slopes = np.array([s.deriv()(t) for s in shapes])
    b = np.zeros(terms) if guess is None else np.asarray(guess, dtype=np.float64)
    gamma = np.zeros(terms)
    real, converged, sweeps = False, False, 0
    while not converged and sweeps < limit:
        sweeps += 1
        present = base(t) + b @ (gamma[:, None] * values[:-1] + values[1:])
        c, work = (present, force(t)) if kind == "c(t)" else (known_c, force(t) - present)
        gamma, real = _energetic(c, work, slope, slopes, w, kinetic, gamma)
        functions = gamma[:, None] * values[:-1] + values[1:]
        rates = gamma[:, None] * slopes[:-1] + slopes[1:] + slope
        new = _coefficients(kind, functions, rates, base(t), known_c, force(t), w, kinetic)
        converged = float(np.linalg.norm(new - b)) <= tolerance
        b = new
    final = [g * s + n for g, s, n in zip(gamma, shapes[:-1], shapes[1:], strict=True)]
    total = sum((bk * f for bk, f in zip(b, final, strict=True)), base)
    return BoundaryResult(total, base, b, sweeps, converged, real)


def _shape(a: float, j: int) -> np.polynomial.Polynomial:
    """B_j (9), with the factor a^2 of its t^2 term."""
    return np.polynomial.Polynomial([0.0] * (j - 1) + [0.0, 0.0, a**2, -2.0 * a, 1.0])


def _energetic(
    c: Array, work: Array, slope: Array, slopes: Array, w: Array, kinetic: float, previous: Array
) -> tuple[Array, bool]:
    """gamma_j from the quadratic (16) to (18); the absolute value of the discriminant, as published."""
    gamma, real = np.empty(len(slopes) - 1), True
    for j in range(len(gamma)):
        own, rest = slopes[j], slopes[j + 1] + slope
        a2 = float(w @ (c * own**2))
        a1 = float(w @ (2.0 * c * rest * own - work * own))
        a0 = float(w @ (c * rest**2 - work * rest)) - kinetic
        discriminant = a1**2 - 4.0 * a0 * a2
        real &= discriminant >= 0.0
        gamma[j] = (-a1 - np.sqrt(abs(discriminant))) / (2.0 * a2) if a2 else previous[j]
    return gamma, bool(real)


def _coefficients(
    kind: str,
    functions: Array,
    rates: Array,
    base: Array,
    known_c: Array,
    force: Array,
    w: Array,
    kinetic: float,
) -> Array:
    """The linear system (22) with E_k (not its derivative); for H its work is linear in the velocity."""
    if kind == "c(t)":
        matrix = (rates**2 * w) @ functions.T
        right = kinetic + rates @ (w * force) - rates**2 @ (w * base)
    else:
        matrix = (rates * w) @ functions.T
        right = kinetic + rates @ (w * (force - base)) - rates**2 @ (w * known_c)
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=1e-12)[0])
