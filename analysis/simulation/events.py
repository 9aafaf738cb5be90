"""Runs of models whose slope jumps: the surfaces are met exactly, and sensitivities jump as they must.

Between two events the motion obeys the smooth equations of one side (analysis/model/switching.py), so that
steps and interpolant keep their order. After each step the surfaces are looked at on the interpolant; the
first one passed ends the stretch at its root. There, with g the surface, f- and f+ the slopes before and
after, S+ = S- + (f- - f+) dt/dp and dt/dp = -(g_x S- + g_p)/(g_t + g_x f-) (M. A. Aizerman, F. R. Gantmacher,
Q. J. Mech. Appl. Math. 11, 1958). Where both sides push towards the surface the motion slides along it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.model import Model
from analysis.model.kernels import JAC_TYPE, OUT_TYPE, RHS_TYPE
from analysis.model.switching import Switching
from analysis.model.tableau import STAGES
from analysis.signal.inputs import Inputs
from analysis.simulation.integrate import (
    ADAPTIVE_ROWS,
    DIVERGED,
    EVENT,
    FINISHED,
    LOOKS,
    MAX_STEPS,
    adaptive,
)
from analysis.simulation.rounding import slope_noise
from analysis.simulation.slope import system_of

Array = NDArray[np.float64]

MOST_AT_ONCE = 50  # events at one time, after which they count as an endless chatter
_EARLY = 30  # steps after which the sizes of the states are looked at again
_EVENT = 100  # steps that meeting an event takes as long as


@dataclass
class SwitchedRun:
    """A run like :class:`analysis.simulation.adaptive.AdaptiveRun` of a model with surfaces."""

    model: Model
    switching: Switching
    times: Array
    parameters: Array
    inputs: Inputs
    y: Array
    out: Array
    rtol: float
    atol: float
    bound: float
    columns: NDArray[np.int64] | None = None
    most_steps: int = MAX_STEPS
    column: int = 0
    t: float = 0.0
    h: float = 0.0
    steps: int = 0
    events: int = 0
    sliding: frozenset[int] = frozenset()
    sides: Array = field(default_factory=lambda: np.empty(0))

    def run(self) -> tuple[int, float, int] | None:
        """Columns filled, time reached and number of steps; None if the surfaces are passed without end, or
        if the steps do not suffice: these are explicit ones, and a stiff model asks for others."""
        count = len(self.switching.surfaces)
        self.t, self.y = float(self.times[0]), self.y.copy()
        self._work = np.zeros((ADAPTIVE_ROWS, len(self.y)))
        self.sides = np.ones(count)
        self._choose_sides(range(count))
        at_once, last = 0, -np.inf
        while True:
            how = self._go_on()
            if how in (FINISHED, DIVERGED):
                return self.column, self.t, self.steps
            if how == EVENT:
                self._meet()
                self.events += 1
                at_once = at_once + 1 if self.t <= last else 0
                last = self.t
            if at_once > MOST_AT_ONCE or self.steps + _EVENT * self.events >= self.most_steps:
                return None

    @property
    def _values(self) -> Array:
        sides = np.where([k in self.sliding for k in range(len(self.sides))], 1.0, self.sides)
        return np.concatenate([self.parameters, sides])

    def _u(self, t: float) -> Array:
        return np.ascontiguousarray(self.inputs.values(np.array([t]))[:, 0])

    def _heights(self, t: float, x: Array, sliding: frozenset[int] | None = None) -> Array:
        found = np.empty(len(self.sides))
        kernels = self.switching.kernels(self.sliding if sliding is None else sliding)
        kernels.out(t, np.ascontiguousarray(x), self._u(t), self._values, found)
        return found

    def _field(self, x: Array) -> Array:
        found = np.empty(len(x))
        rhs = self.switching.kernels(self.sliding).rhs
        rhs(self.t, np.ascontiguousarray(x), self._u(self.t), self._values, found)
        return found

    def _rate(self, k: int, x: Array, direction: Array) -> float:
        """dg_k/dt along a direction, by central differences over a millionth of a step."""
        step = 1e-6 * (self.h if self.h > 0 else 1e-6 * (self.times[-1] - self.times[0]))
        ahead = self._heights(self.t + step, x + step * direction, self.sliding - {k})[k]
        behind = self._heights(self.t - step, x - step * direction, self.sliding - {k})[k]
        return float((ahead - behind) / (2 * step))

    def _with_side(self, k: int, side: float, x: Array) -> float:
        """Rate of g_k with the slope of one side."""
        kept, self.sides = self.sides, self.sides.copy()
        self.sides[k] = side
        self.sliding, sliding = self.sliding - {k}, self.sliding
        rate = self._rate(k, x, self._field(x))
        self.sides, self.sliding = kept, sliding
        return rate

    def _choose_sides(self, surfaces: Any) -> None:
        """Sides from the state; on a surface from where the slopes of both sides lead."""
        x = self.y[: len(self.model.states)]
        heights = self._heights(self.t, x)
        for k in surfaces:
            self.sliding -= {k}
            if heights[k] != 0.0:
                self.sides[k] = np.sign(heights[k])
        for k in surfaces:
            if heights[k] == 0.0:
                self._leave(k, x)

    def _leave(self, k: int, x: Array) -> None:
        """From a point of surface k: to the side to which its own slope leads, else along the surface."""
        above, below = self._with_side(k, 1.0, x), self._with_side(k, -1.0, x)
        if above >= 0 and (below >= 0 or above >= -below):
            self.sides[k] = 1.0
        elif below <= 0:
            self.sides[k] = -1.0
        else:
            self.sliding |= {k}
            self.sides[k] = 1.0

    def _go_on(self) -> int:
        kernels, n = self.switching.kernels(self.sliding), len(self.model.states)
        f, kernel_type = (kernels.rhs, RHS_TYPE) if self.columns is None else (kernels.jac, JAC_TYPE)
        peak = np.maximum(self._work[3, :n], np.abs(self.y[:n]))
        span = float(self.times[-1] - self.times[0])
        noise = slope_noise(kernels.rhs, self.t, self.y[:n], peak, self._u(self.t), self._values, span)
        watched = np.where([k in self.sliding for k in range(len(self.sides))], 1.0, self.sides)
        budget = min(_EARLY if self.steps < _EARLY else MAX_STEPS, self.most_steps - self.steps)
        self.column, self.t, self.h, taken, how = adaptive(kernel_type, OUT_TYPE)(
            f, None, kernels.out, watched, np.empty(len(watched)),
            system_of(n, self._values, self.inputs, self.columns), self.t, self.h, self.column, self.times,
            self.y, n, self.inputs.breaks, self.rtol, self.atol, noise, self.bound, MAX_STEPS, budget, 0,
            self._work, self.out,
        )  # fmt: skip
        self.steps += taken
        if how != EVENT:
            self.y = self._work[0].copy()
        return int(how)

    def _at(self, s: float) -> Array:
        """All components at the fraction s of the last step."""
        y, dense, r = self._work[0], self._work[4 + STAGES :], 1.0 - s
        tail = dense[3] + s * (dense[4] + r * (dense[5] + s * dense[6]))
        return np.asarray(y + s * (dense[0] + r * (dense[1] + s * (dense[2] + r * tail))))

    def _meet(self) -> None:
        """Go to the first surface that the last step passed, and on from there."""
        n, start, size = len(self.model.states), self.t, self.h
        watched = np.where([k in self.sliding for k in range(len(self.sides))], 1.0, self.sides)

        def heights(s: float) -> Array:
            return watched * self._heights(start + s * size, self._at(s)[:n])

        low, at_low = 0.0, heights(0.0)
        for look in range(1, LOOKS + 1):
            high = look / LOOKS
            at_high = heights(high)
            passed = np.flatnonzero(at_high < 0.0)
            if len(passed):
                break
            low, at_low = high, at_high
        roots = {
            int(k): _root(lambda s, k=k: heights(s)[k], low, high) if at_low[k] > 0 else low for k in passed
        }
        k = min(roots, key=lambda which: roots[which])
        s = roots[k]
        while self.column < len(self.times) and self.times[self.column] <= start + s * size:
            self.out[:, self.column] = self._at((self.times[self.column] - start) / size)
            self.column += 1
        self.y, self.t, self.h = self._at(s), start + s * size, 0.1 * size
        self._pass(k)

    def _pass(self, k: int) -> None:
        """The new side, or sliding; sensitivities jump with the slope."""
        n = len(self.model.states)
        x = self.y[:n]
        slope_before = self._field(x)
        rate = self._rate(k, x, slope_before) if k not in self.sliding else 0.0
        if k in self.sliding:
            above, below = self._with_side(k, 1.0, x), self._with_side(k, -1.0, x)
            self.sliding, self.sides = self.sliding - {k}, self.sides.copy()
            self.sides[k] = 1.0 if abs(above) < abs(below) else -1.0
            return  # the slope goes on without a jump
        towards = self._with_side(k, -self.sides[k], x)
        if rate * self.sides[k] <= 0 < towards * self.sides[k]:  # a motion that grazes has turned already
            self.sliding |= {k}
        self.sides[k] = -self.sides[k]
        if self.columns is None or rate == 0.0:
            return
        jump = slope_before - self._field(x)
        if np.any(jump):
            self.y[n:] += np.outer(jump, -self._height_by_columns(k, x) / rate).ravel()

    def _height_by_columns(self, k: int, x: Array) -> Array:
        """d g_k by the sensitivities' columns at a fixed time: g_x S + g_p."""
        assert self.columns is not None
        n, m, count = len(x), len(self.columns), len(self.sides)
        y, by_x, by_p = np.empty(count), np.empty((count, n)), np.empty((count, len(self._values)))
        kernel = self.switching.kernels(self.sliding - {k}).out_jac
        kernel(self.t, np.ascontiguousarray(x), self._u(self.t), self._values, y, by_x, by_p)
        direct = np.where(self.columns >= 0, by_p[k, self.columns], 0.0)
        return np.asarray(by_x[k] @ self.y[n:].reshape(n, m) + direct)


def _root(height: Any, low: float, high: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(height, low, high, xtol=1e-15, rtol=1e-14))
