"""Unknown functions in a model: cubic B-splines on even knots, written out in the language of expressions.

    H = { function = "x", knots = 12, lower = -2.0, upper = 2.0 }

stands for H(x) = sum_j H_j B((x - lower)/h - j + 1) between the ends, with h the distance of the knots and

    B(s) = (max(2 - |s|, 0)^3 - 4 max(1 - |s|, 0)^3)/6,

and for the straight lines that go on from there beyond them. Its coefficients H_0 to H_(knots + 1) are
parameters like any other, in which the equations are linear; its ends H_lower and H_upper are known ones, so
that another range needs no other machine code. Without lower and upper the ends are those of the record that
it is identified from.

A function of two arguments is the sum of products of such splines, one of each argument:

    H = { function = ["x", "v"], knots = [8, 6] }

stands for H(x, v) = sum_ij H_i_j B_i(x) B_j(v).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST, MOST = 4, 60  # knots
USUAL = 12
USUAL_OF_TWO = 7  # knots along each of two arguments
MOST_COEFFICIENTS = 256  # of a function of two arguments


@dataclass(frozen=True)
class Spline:
    """An unknown function of one argument. Without ends (None) it waits for a record to give them."""

    argument: str  # an expression
    knots: int = USUAL
    lower: float | None = None
    upper: float | None = None

    @property
    def axes(self) -> tuple[Spline, ...]:
        return (self,)

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

    def with_ends(self, axis: int, lower: float, upper: float) -> Spline:
        """The same function between other ends; ``axis`` is 0, as there is one argument."""
        return replace(self, lower=lower, upper=upper)

    def coefficients(self, name: str) -> tuple[str, ...]:
        """Names of the coefficients of the function ``name``, from the lower end on."""
        return tuple(f"{name}_{j}" for j in range(self.knots + 2))

    def end_names(self, name: str) -> tuple[str, ...]:
        """Names of the parameters that hold the ends."""
        return f"{name}_lower", f"{name}_upper"

    def end_values(self) -> tuple[float, ...]:
        return self.ends

    def helpers(self, name: str) -> dict[str, str]:
        """Expressions by name that the text of the function holds besides parameters: none."""
        return {}

    def text(self, name: str) -> str:
        """The function as an expression of its argument, its ends and its coefficients."""
        low, high = self.end_names(name)
        names = self.coefficients(name)
        parts = [f"{c}*{piece}" for c, piece in zip(names, self._pieces(low, high), strict=True)]
        x, h = self._written(low, high)
        parts.append(f"({names[2]} - {names[0]})/(2*{h})*min({x} - {low}, 0)")
        parts.append(f"({names[-1]} - {names[-3]})/(2*{h})*max({x} - {high}, 0)")
        return " + ".join(parts)

    def basis_texts(self, low: str, high: str) -> list[str]:
        """What each coefficient is multiplied by, straight lines beyond the ends included."""
        x, h = self._written(low, high)
        below, above = f"min({x} - {low}, 0)/(2*{h})", f"max({x} - {high}, 0)/(2*{h})"
        texts = self._pieces(low, high)
        for place, beyond in ((0, f"- {below}"), (2, f"+ {below}"), (-3, f"- {above}"), (-1, f"+ {above}")):
            texts[place] += f" {beyond}"
        return texts

    def _written(self, low: str, high: str) -> tuple[str, str]:
        """The argument and the distance of the knots as expressions."""
        return f"({self.argument})", f"(({high} - {low})/{self.knots - 1})"

    def _pieces(self, low: str, high: str) -> list[str]:
        """B-splines of the argument, held at the ends."""
        x, h = self._written(low, high)
        at = f"(min(max({x}, {low}), {high}) - {low})/{h}"
        distances = [f"abs({at} - {j - 1})" for j in range(self.knots + 2)]
        return [f"(max(2 - {s}, 0)**3 - 4*max(1 - {s}, 0)**3)/6" for s in distances]

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

    def penalties(self) -> list[Array]:
        return [self.roughness()]

    def spectra(self) -> Array:
        """Eigenvalues of the penalties [1, coefficients]."""
        return np.asarray(np.linalg.eigvalsh(self.roughness())[None])


@dataclass(frozen=True)
class Surface:
    """An unknown function of two arguments, a spline in each."""

    axes: tuple[Spline, Spline]

    @property
    def open(self) -> bool:
        return any(axis.open for axis in self.axes)

    @property
    def argument(self) -> str:
        """Both arguments, for sentences."""
        return ", ".join(axis.argument for axis in self.axes)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of coefficients along both arguments."""
        return self.axes[0].knots + 2, self.axes[1].knots + 2

    def with_ends(self, axis: int, lower: float, upper: float) -> Surface:
        """The same function with other ends of one argument."""
        moved = replace(self.axes[axis], lower=lower, upper=upper)
        return Surface((moved, self.axes[1]) if axis == 0 else (self.axes[0], moved))

    def coefficients(self, name: str) -> tuple[str, ...]:
        """Names of the coefficients, those along the second argument beside each other."""
        rows, columns = self.shape
        return tuple(f"{name}_{i}_{j}" for i in range(rows) for j in range(columns))

    def end_names(self, name: str) -> tuple[str, ...]:
        """Names of the parameters that hold the ends: those of the first argument, then of the second."""
        return tuple(f"{name}_{end}_{axis}" for axis in (1, 2) for end in ("lower", "upper"))

    def end_values(self) -> tuple[float, ...]:
        return (*self.axes[0].ends, *self.axes[1].ends)

    def helpers(self, name: str) -> dict[str, str]:
        """The splines of both arguments, each written once, for the text of the function."""
        ends = self.end_names(name)
        return {
            f"{name}_of_{number}_{j}": text
            for number, axis in enumerate(self.axes, 1)
            for j, text in enumerate(axis.basis_texts(*ends[2 * number - 2 : 2 * number]))
        }

    def text(self, name: str) -> str:
        """The function as an expression of its coefficients and of :meth:`helpers`."""
        rows, columns = self.shape
        sums = (" + ".join(f"{name}_{i}_{j}*{name}_of_2_{j}" for j in range(columns)) for i in range(rows))
        return " + ".join(f"{name}_of_1_{i}*({inner})" for i, inner in enumerate(sums))

    def basis(self, x: Array, y: Array) -> Array:
        """What each coefficient adds at the places (x, y): [len(x), coefficients]."""
        first, second = self.axes[0].basis(x), self.axes[1].basis(y)
        return np.einsum("ki,kj->kij", first, second).reshape(len(first), -1)

    def penalties(self) -> list[Array]:
        """Roughness along either argument: each has a weight of its own (Eilers and Marx 2003)."""
        rows, columns = self.shape
        first, second = (axis.roughness() for axis in self.axes)
        return [np.asarray(np.kron(first, np.eye(columns))), np.asarray(np.kron(np.eye(rows), second))]

    def spectra(self) -> Array:
        """Eigenvalues of both penalties [2, coefficients], in the order of their common eigenvectors."""
        rows, columns = self.shape
        first, second = (np.linalg.eigvalsh(axis.roughness()) for axis in self.axes)
        return np.stack([np.repeat(first, columns), np.tile(second, rows)])


Function = Spline | Surface
