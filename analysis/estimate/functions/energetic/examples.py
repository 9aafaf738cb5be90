"""The six examples of Liu, Chen, Chang 2019, with their right readings: known motion, exact force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.record import Record
from analysis.estimate.functions.energetic.boundary import BoundaryResult, Ends, boundary_functions

if TYPE_CHECKING:
    from analysis.base.identification import Identification
    from analysis.estimate.functions.energetic import Options
    from analysis.model import Model

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
SAMPLES = 201


@dataclass(frozen=True)
class Example:
    """x'' + c(t) x' + H(x) = F(t) over [0, end]; ``known`` is the term that is not asked for, as text."""

    unknown: str  # "c(t)" or "H(x)"
    end: float
    x: Function
    v: Function
    acceleration: Function
    c: Function
    c_slope: Function
    h: Function
    h_slope: Function
    known: str
    terms: int  # m, tolerance, and the printed error and iterations
    tolerance: float
    printed_error: float
    printed_iterations: int

    @property
    def symbol(self) -> str:
        return self.unknown[0]

    def force(self, t: Array) -> Array:
        return self.acceleration(t) + self.c(t) * self.v(t) + self.h(self.x(t))

    def truth(self, place: Array) -> Array:
        """The unknown over its own variable."""
        return self.c(place) if self.unknown == "c(t)" else self.h(place)

    def truth_in_time(self, t: Array) -> Array:
        return self.c(t) if self.unknown == "c(t)" else self.h(self.x(t))

    def model(self) -> Model:
        """What is known, as a model."""
        from analysis.model import Model

        return Model.from_equations(
            {"x": "v", "v": f"f - {self.known}"}, inputs={"f": "measured"}, name="example"
        )

    def record(self, noise: float = 0.0, seed: int = 0) -> Record:
        """201 samples of the motion; ``noise`` in parts of its amplitude."""
        t = np.linspace(0.0, self.end, SAMPLES)
        x = self.x(t)
        x = x + noise * np.max(np.abs(x)) * np.random.default_rng(seed).standard_normal(SAMPLES)
        return Record.from_arrays((SAMPLES - 1) / self.end, {"x": x, "f": self.force(t)}, drive_time=0.0)

    def options(self, **changes: Any) -> Options:
        """Boundary values of the motion and of the unknown are known."""
        from analysis.estimate.functions.energetic import Options

        known: list[float] = []
        for t in self._ends():
            at = t if self.unknown == "c(t)" else self.x(t)
            value, slope = (self.c, self.c_slope) if self.unknown == "c(t)" else (self.h, self.h_slope)
            known += [float(at), 0.0, float(value(at)), float(at), 1.0, float(slope(at))]
        first = self._ends()[0]
        start = (float(self.x(first)), float(self.v(first)))
        side = {"c_known": tuple(known)} if self.unknown == "c(t)" else {"h_known": tuple(known)}
        return Options(
            **{
                "unknown": self.unknown,
                "start": start,
                "denoise": False,
                "terms": self.terms,
                "tolerance": self.tolerance,
                **side,
                **changes,
            }
        )

    def from_boundary(
        self, terms: int = 0, tolerance: float = 0.0, guess: Array | None = None
    ) -> BoundaryResult:
        """The published method with exact data."""
        from scipy.integrate import quad

        first, last = self._ends()
        motion = Ends(*(float(f(t)) for f in (self.x, self.v) for t in (first, last)))
        if self.unknown == "c(t)":
            unknown = Ends(*(float(f(t)) for f in (self.c, self.c_slope) for t in (first, last)))
            potential, damping, kind = (
                -quad(lambda x: float(self.h(np.asarray(x))), motion.first, motion.last)[0],
                None,
                "c(t)",
            )
        else:
            rate = [float(self.h_slope(self.x(t)) * self.v(t)) for t in (first, last)]
            unknown = Ends(float(self.h(self.x(first))), float(self.h(self.x(last))), rate[0], rate[1])
            potential, damping, kind = 0.0, self.c, "H(t)"
        terms, tolerance = terms or self.terms, tolerance or self.tolerance
        return boundary_functions(
            kind, self.end, motion, unknown, self.force, damping, potential, terms, tolerance, guess
        )

    def error(self, result: Identification) -> float:
        """Largest error of the recovered curve over the visited range."""
        place, value, _ = self._compared(result)
        return float(np.max(np.abs(value - self.truth(place))))

    def coverage(self, result: Identification) -> float:
        """Share of the visited range inside the band (rounding of the value allowed)."""
        place, value, half = self._compared(result)
        slack = 1e-9 * np.max(np.abs(value))
        return float(np.mean(np.abs(value - self.truth(place)) <= half + slack))

    def _compared(self, result: Identification) -> tuple[Array, Array, Array]:
        curve = result.curves[self.symbol]
        place, value = np.array(curve.x), np.array(curve.y)
        half = 0.5 * (np.array(curve.upper) - np.array(curve.lower))
        low, high = sorted(self._ends() if self.unknown == "c(t)" else self.x(self._ends()))
        inside = (place >= low - 1e-12) & (place <= high + 1e-12)
        return place[inside], value[inside], half[inside]

    def _ends(self) -> Array:
        return np.array([0.0, self.end])


def _c(t: Array) -> Array:
    return np.asarray((t - 3.0) ** 2 + np.sin(np.pi * t))


def _c_slope(t: Array) -> Array:
    return np.asarray(2.0 * (t - 3.0) + np.pi * np.cos(np.pi * t))


def _sine(
    h: Function, h_slope: Function, c: Function, c_slope: Function, known: str, *published: Any
) -> Example:
    """Examples 1 and 2: x = sin t, c unknown."""
    return Example(
        "c(t)", 1.0, np.sin, np.cos, lambda t: -np.sin(t), c, c_slope, h, h_slope, known, *published
    )


def _line(end: float, h: Function, h_slope: Function, *published: Any) -> Example:
    """Examples 4 to 6: x = 2 t, H unknown."""
    known = "((t - 3)**2 + sin(pi*t))*v"
    return Example(
        "H(x)", end, lambda t: 2.0 * t, lambda t: 2.0 + 0.0 * t, lambda t: 0.0 * t, _c, _c_slope, h, h_slope,
        known, *published,
    )  # fmt: skip


EXAMPLES: dict[int, Example] = {
    1: _sine(
        lambda x: 5.0 * x + 2.0 * x**3, lambda x: 5.0 + 6.0 * x**2, _c, _c_slope,
        "(5*x + 2*x**3)", 2, 1e-3, 0.154, 5,
    ),
    2: _sine(
        lambda x: x - 10.0 * x**2, lambda x: 1.0 - 20.0 * x,
        lambda t: 3.0 * t**2 + 2.0 * t**3 + np.exp(t**2 + 2.0 * t - 1.0),
        lambda t: 6.0 * t + 6.0 * t**2 + (2.0 * t + 2.0) * np.exp(t**2 + 2.0 * t - 1.0),
        "(x - 10*x**2)", 5, 1e-3, 0.355, 5,
    ),
    3: Example(
        "H(x)", 1.0, lambda t: t**2, lambda t: 2.0 * t, lambda t: 2.0 + 0.0 * t, _c, _c_slope,
        lambda x: 5.0 * x + 2.0 * x**3, lambda x: 5.0 + 6.0 * x**2,
        "((t - 3)**2 + sin(pi*t))*v", 2, 1e-2, 0.173, 2,
    ),
    4: _line(1.0, lambda x: 150.0 * x + 25.0 * x**2, lambda x: 150.0 + 50.0 * x, 1, 1e-5, 3.77, 8),
    5: _line(
        1.0, lambda x: 100.0 * x + 50.0 * x**2 + 20.0 * x**3 + 10.0 * x**4,
        lambda x: 100.0 + 100.0 * x + 60.0 * x**2 + 40.0 * x**3, 2, 1e-3, 2.47, 12,
    ),
    6: _line(  # the print does not give the end; its maximum of 391 needs 1.15 or more
        1.15, lambda x: 300.0 * x - 30.0 * np.exp(x), lambda x: 300.0 - 30.0 * np.exp(x), 2, 1e-3, 28.91, 35
    ),
}  # fmt: skip
