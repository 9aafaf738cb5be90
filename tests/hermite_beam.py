"""An independent beam to test against: cubic Hermite finite elements, exponential integrator in sub-steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.linalg import eigh, expm


@dataclass
class HermiteBeam:
    """Beam with properties as functions of x; clamped, pinned or free ends; mass at the right end."""

    length: float
    stiffness: object
    density: object
    viscous: object
    kelvin_voigt: object
    tip_mass: float = 0.0
    left: str = "clamped"
    right: str = "free"
    elements: int = 200
    modes: int = 30

    def __post_init__(self):
        nodes, weights = np.polynomial.legendre.leggauss(6)
        h = self.width = self.length / self.elements
        s = 0.5 * (nodes + 1)
        shape = np.array(
            [1 - 3 * s**2 + 2 * s**3, h * (s - 2 * s**2 + s**3), 3 * s**2 - 2 * s**3, h * (s**3 - s**2)]
        )
        bend = np.array([12 * s - 6, h * (6 * s - 4), 6 - 12 * s, h * (6 * s - 2)]) / h**2
        size = 2 * (self.elements + 1)
        mass, stiff, damp = np.zeros((3, size, size))
        base, spread = np.zeros((2, size))
        for e in range(self.elements):
            x, w, i = (e + s) * h, 0.5 * h * weights, slice(2 * e, 2 * e + 4)
            mass[i, i] += (shape * (w * self.density(x))) @ shape.T
            stiff[i, i] += (bend * (w * self.stiffness(x))) @ bend.T
            damp[i, i] += (shape * (w * self.viscous(x))) @ shape.T
            damp[i, i] += (bend * (w * self.kelvin_voigt(x))) @ bend.T
            base[i] -= shape @ (w * self.density(x))
            spread[i] += shape @ w
        mass[-2, -2] += self.tip_mass
        base[-2] -= self.tip_mass
        fixed = {"clamped": (0, 1), "pinned": (0,), "free": ()}
        drop = [*fixed[self.left], *(size - 2 + k for k in fixed[self.right])]
        self.kept = [k for k in range(size) if k not in drop]
        grid = np.ix_(self.kept, self.kept)
        self.squared, self.shapes = eigh(stiff[grid], mass[grid], subset_by_index=[0, self.modes - 1])
        self.damping = self.shapes.T @ damp[grid] @ self.shapes
        self.base_load, self.spread_load = self.shapes.T @ base[self.kept], self.shapes.T @ spread[self.kept]

    def node(self, x):
        """The node next to x, and its place."""
        index = round(x / self.width)
        return index, index * self.width

    def row(self, x):
        return self.shapes[self.kept.index(2 * self.node(x)[0])]

    def respond(self, load, samples, dt, substeps=16):
        """Modal displacement and velocity for a modal load times samples joined by a cubic spline."""
        fine = np.arange((len(samples) - 1) * substeps + 1) * (dt / substeps)
        drive = CubicSpline(np.arange(len(samples)) * dt, samples)(fine)
        r = len(self.squared)
        big = np.zeros((2 * r + 2, 2 * r + 2))
        big[:r, r : 2 * r] = np.eye(r)
        big[r : 2 * r, :r] = -np.diag(self.squared)
        big[r : 2 * r, r : 2 * r] = -self.damping
        big[r : 2 * r, 2 * r] = load
        big *= dt / substeps
        big[2 * r, 2 * r + 1] = 1.0
        step = expm(big)
        state, out = np.zeros(2 * r), np.zeros((2 * r, len(samples)))
        first, last = step[: 2 * r, 2 * r] - step[: 2 * r, 2 * r + 1], step[: 2 * r, 2 * r + 1]
        for k in range(len(drive) - 1):
            state = step[: 2 * r, : 2 * r] @ state + first * drive[k] + last * drive[k + 1]
            if (k + 1) % substeps == 0:
                out[:, (k + 1) // substeps] = state
        return out[:r], out[r:]
