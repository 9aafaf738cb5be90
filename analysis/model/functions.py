"""Unknown functions in a model: cubic B-splines on even knots, written out in the language of expressions.

    H = { function = "x", knots = 12, lower = -2.0, upper = 2.0 }

stands for H(x) = sum_j H_j B((x - lower)/h - j + 1) between the ends, with h the distance of the knots and

    B(s) = (max(2 - |s|, 0)^3 - 4 max(1 - |s|, 0)^3)/6,

and for the straight lines that go on from there beyond them. Its coefficients H_0 to H_(knots + 1) are
parameters like any other, in which the equations are linear; its ends H_lower and H_upper are known ones, so
that another range needs no other machine code. Without lower and upper the ends are those of the record that
it is identified from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST, MOST = 4, 60  # knots
USUAL = 12


@dataclass(frozen=True)
class Spline:
    """An unknown function of one argument. Without ends (None) it waits for a record to give them."""

    argument: str  # an expression
    knots: int = USUAL
    lower: float | None = None
    upper: float | None = None

    @property
    def open(self) -> bool:
        return self.lower is None or self.upper is None

    @property
    def ends(self) -> tuple[float, float]:
        return (-1.0, 1.0) if self.lower is None or self.upper is None else (self.lower, self.upper)

    @property
    def step(self) -> float:
        """Distance of the knots."""
        return (self.ends[1] - self.ends[0]) / (self.knots - 1)

    def coefficients(self, name: str) -> tuple[str, ...]:
        """Names of the coefficients of the function ``name``, from the lower end on."""
        return tuple(f"{name}_{j}" for j in range(self.knots + 2))

    def end_names(self, name: str) -> tuple[str, str]:
        """Names of the parameters that hold the ends."""
        return f"{name}_lower", f"{name}_upper"

    def text(self, name: str) -> str:
        """The function as an expression of its argument, its ends and its coefficients."""
        (low, high), names = self.end_names(name), self.coefficients(name)
        x, h = f"({self.argument})", f"(({high} - {low})/{self.knots - 1})"
        at = f"(min(max({x}, {low}), {high}) - {low})/{h}"
        parts = []
        for j, coefficient in enumerate(names):
            s = f"abs({at} - {j - 1})"
            parts.append(f"{coefficient}*(max(2 - {s}, 0)**3 - 4*max(1 - {s}, 0)**3)/6")
        parts.append(f"({names[2]} - {names[0]})/(2*{h})*min({x} - {low}, 0)")
        parts.append(f"({names[-1]} - {names[-3]})/(2*{h})*max({x} - {high}, 0)")
        return " + ".join(parts)

    def basis(self, x: Array) -> Array:
        """What each coefficient adds at the places x: [len(x), knots + 2]."""
        low, high = self.ends
        at = (np.clip(x, low, high) - low) / self.step
        s = np.abs(at[:, None] - np.arange(-1, self.knots + 1))
        rows = (np.maximum(2 - s, 0) ** 3 - 4 * np.maximum(1 - s, 0) ** 3) / 6
        below, above = np.minimum(x - low, 0) / (2 * self.step), np.maximum(x - high, 0) / (2 * self.step)
        rows[:, 0] -= below
        rows[:, 2] += below
        rows[:, -3] -= above
        rows[:, -1] += above
        return np.asarray(rows)

    def roughness(self) -> Array:
        """Penalty matrix: squares of the second differences of the coefficients (Eilers and Marx 1996)."""
        second = np.diff(np.eye(self.knots + 2), 2, axis=0)
        return np.asarray(second.T @ second)
