"""Sections of a motion: at the phase of the drive (stroboscopic) or where it crosses a surface (Poincare)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.errors import DataError
from analysis.model import Model
from analysis.model.compiled import COMPILED
from analysis.model.kernels import RHS_TYPE
from analysis.signal.inputs import Inputs
from analysis.simulation.dop853 import dense_value, prepare_dense
from analysis.simulation.integrate import (
    ADAPTIVE_ROWS,
    adaptive_step,
    arrive,
    before,
    begin,
    inside,
    next_break,
)
from analysis.simulation.rounding import slope_noise
from analysis.simulation.simulate import (
    BOUND,
    States,
    Values,
    initial_vector,
    parameter_vector,
    simulate,
    state_index,
)
from analysis.simulation.slope import FLOAT, INT, MATRIX, SYSTEM_TYPE, VECTOR, system_of

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Section:
    """Points ``states[n, N]`` of a motion on a section, and when they were passed."""

    times: Array
    states: Array
    diverged_at: float | None = None

    def __len__(self) -> int:
        return len(self.times)


def stroboscopic(
    model: Model,
    period: float,
    count: int,
    transient: int = 0,
    phase: float = 0.0,
    initial: States = None,
    values: Values = None,
    rtol: float = 1e-9,
) -> Section:
    """The state once a ``period`` of the drive, ``phase`` (0 to 1) into it, after ``transient`` periods."""
    if not (period > 0 and count > 0 and transient >= 0):
        raise DataError("A stroboscopic section needs a positive period and at least one point.")
    moments = (phase + transient + np.arange(count)) * period
    lead = np.array([0.0]) if moments[0] > 0 else np.empty(0)
    run = simulate(model, np.concatenate([lead, moments]), initial, values, rtol=rtol)
    return Section(run.times[len(lead) :], run.states[:, len(lead) :], run.diverged_at)


def poincare(
    model: Model,
    surface: str | Mapping[str, float],
    count: int,
    level: float = 0.0,
    direction: int = 1,
    transient: float = 0.0,
    longest: float = 1e6,
    initial: States = None,
    values: Values = None,
    inputs: Inputs | None = None,
    rtol: float = 1e-9,
) -> Section:
    """``count`` crossings of a plane: a state (or a weighted sum of states) passing ``level``.

    ``direction``: +1 rising, -1 falling, 0 both. Each crossing is found on the integrator's interpolant, as
    accurate as the motion itself. Ends after ``longest`` (time) even if there are fewer.
    """
    normal = np.zeros(len(model.states))
    for name, weight in ({surface: 1.0} if isinstance(surface, str) else surface).items():
        normal[state_index(model, name)] = weight
    if not np.any(normal) or direction not in (-1, 0, 1) or count < 1:
        raise DataError(
            "A Poincare section needs a surface, a direction of -1, 0 or 1, and at least one point."
        )
    given = Inputs.none() if inputs is None else inputs
    x, p = initial_vector(model, initial), parameter_vector(model, values)
    given.check(model.inputs, 0.0, min(given.end, longest) if model.inputs else 0.0)
    end = min(longest, given.end) if model.inputs else longest
    system = system_of(len(x), p, given)
    u = given.values(np.zeros(1))[:, 0].copy()
    noise = slope_noise(model.kernels().rhs, 0.0, x, np.abs(x), u, p, end)
    times, states = np.empty(count), np.empty((len(x), count))
    work = np.zeros((ADAPTIVE_ROWS, len(x)))
    found, reached = compiled_crossings()(
        model.kernels().rhs, system, transient, end, x.copy(), given.breaks, normal, level, direction, rtol,
        noise, BOUND, work, times, states,
    )  # fmt: skip
    diverged = None if found == count or reached >= end else float(reached)
    return Section(times[:found], states[:, :found], diverged)


@njit(**COMPILED)
def _height(normal, level, y, dense, s):  # type: ignore[no-untyped-def]
    total = -level
    for i in range(len(normal)):
        if normal[i] != 0.0:
            total += normal[i] * dense_value(y, dense, i, s)
    return total


@njit(**COMPILED)
def _root(normal, level, y, dense, low, high, at_low, at_high):  # type: ignore[no-untyped-def]
    """Where the interpolant meets the plane between two fractions of a step (Illinois false position)."""
    side = 0
    middle = low
    for _ in range(80):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        value = _height(normal, level, y, dense, middle)
        if value == 0.0 or high - low < 1e-15:
            break
        if (value < 0.0) == (at_high < 0.0):
            high, at_high = middle, value
            if side == 1:
                at_low *= 0.5
            side = 1
        else:
            low, at_low = middle, value
            if side == -1:
                at_high *= 0.5
            side = -1
    return middle


def _crossings(  # type: ignore[no-untyped-def]
    f,
    system,
    transient,
    end,
    state,
    breaks,
    normal,
    level,
    direction,
    rtol,
    noise,
    bound,
    work,
    times,
    states,
):
    """Crossings after ``transient``; the number found and the time reached."""
    n, dt = len(state), system[3]
    y, y_new, w, k, dense = work[0], work[1], work[2], work[4:20], work[20:]
    t = 0.0
    passed, h = begin(f, system, t, 0.0, end - t, state, breaks, n, rtol, 0.0, noise, work)
    found = 0
    while t < end and found < len(times):
        limit = next_break(breaks, passed)
        latest = before(limit, dt)
        reached, h = adaptive_step(
            f, system, t, h, min(end, limit), latest, y, k, w, y_new, n, rtol, 0.0, noise, work[3]
        )
        if reached == t:
            return found, t
        if reached > transient:
            size = reached - t
            prepare_dense(f, system, t, size, latest, y, y_new, k, w, dense)
            at_low = _height(normal, level, y, dense, 0.0)
            for part in range(1, 5):  # a motion may cross and come back within a step
                at_high = _height(normal, level, y, dense, 0.25 * part)
                rising = at_low < 0.0 <= at_high
                falling = at_low > 0.0 >= at_high
                if (rising and direction >= 0) or (falling and direction <= 0):
                    s = _root(normal, level, y, dense, 0.25 * (part - 1), 0.25 * part, at_low, at_high)
                    if t + s * size >= transient and found < len(times):
                        times[found] = t + s * size
                        for i in range(n):
                            states[i, found] = dense_value(y, dense, i, s)
                        found += 1
                at_low = at_high
        t = reached
        passed = arrive(f, system, t, breaks, passed, work)
        if not inside(y, n, bound):
            return found, t
    return found, t


@lru_cache(maxsize=1)
def compiled_crossings() -> Any:
    signature = types.Tuple((INT, FLOAT))(
        RHS_TYPE, SYSTEM_TYPE, FLOAT, FLOAT, VECTOR, VECTOR, VECTOR, FLOAT, INT, FLOAT, VECTOR, FLOAT, MATRIX,
        VECTOR, MATRIX,
    )  # fmt: skip
    return njit(signature, **COMPILED)(_crossings)
