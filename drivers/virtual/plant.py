"""The virtual specimen on its virtual shaker: volts in, physical quantities out.

The amplifier and shaker turn the drive v(t) into the table's motion s(t) by

    lag ds/dt + s = gain v,          |s| held at ``travel`` by the end stops,

and the model of the library, driven by s (and ds/dt), gives the specimen's motion. Both are integrated
together by Runge-Kutta 4; the drive is known at both ends and in the middle of each step.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from analysis import Model, ModelError
from analysis.base.compiling import njit
from analysis.model.kernels import RHS_TYPE

Array = NDArray[np.float64]
STABLE_STEP = 2.785  # times the lag: with longer steps of Runge-Kutta 4 a decay grows
_VECTOR, _MATRIX = types.float64[::1], types.float64[:, ::1]


@dataclass(frozen=True)
class Shaker:
    """Amplifier and shaker: a first-order lag with end stops. Gain in the table's unit per volt."""

    gain: float = 1.0
    lag: float = 1e-3  # s
    travel: float = np.inf  # end stops, in the table's unit


@dataclass(frozen=True)
class EndStop:
    """Bumpers that keep the specimen where its equations hold: the position bounces at ``at``."""

    position: str
    velocity: str
    at: float
    restitution: float = 0.5


@dataclass(frozen=True)
class Specimen:
    """A model, how the shaker reaches it, and what a tap with a finger does."""

    model: Model
    values: Mapping[str, float] = field(default_factory=dict)  # parameters that differ from the library's
    time_scale: float = 1.0  # units of the model's time in one second
    inputs: Mapping[str, str] = field(default_factory=dict)  # model input: "table" or "table velocity"
    scale: Mapping[str, float] = field(default_factory=dict)  # model input: units of it in one of the table's
    tap: Mapping[str, float] = field(default_factory=dict)  # state: what a tap of strength 1 adds to it
    stop: EndStop | None = None
    initial: Mapping[str, float] = field(default_factory=dict)


@njit(
    types.boolean(
        RHS_TYPE, _VECTOR, types.float64, types.float64, types.float64, types.int64,
        _VECTOR, _VECTOR, _MATRIX, _VECTOR, _VECTOR, _MATRIX, _MATRIX,
    ),
    cache=True, nogil=True,
)  # fmt: skip
def _advance(rhs, p, time_scale, t0, h, steps, shaker, stop, mix, x, drive, states, table):  # type: ignore[no-untyped-def]
    """``steps`` RK4 steps to each sample; drive holds two values a step and the last; False if it diverged.

    ``shaker`` is gain, lag, travel, state s; ``stop`` is position and velocity (as indices), at, restitution.
    ``mix[i]`` gives model input i from (s, ds/dt). Fills states[n, N] and table[2, N] at the samples.
    """
    n = len(x)
    gain, lag, travel = shaker[0], shaker[1], shaker[2]
    s = shaker[3]
    u = np.empty(len(mix))
    k = np.empty((4, n))
    ks = np.empty(4)
    w = np.empty(n)
    for sample in range(states.shape[1]):
        for step in range(steps):
            at = 2 * (sample * steps + step)
            t = t0 + (sample + step / steps) * (steps * h)
            for stage in range(4):
                half = 0.0 if stage == 0 else (1.0 if stage == 3 else 0.5)
                ws = s + (half * h * ks[stage - 1] if stage else 0.0)
                ks[stage] = (gain * drive[at + int(2 * half)] - ws) / lag
                held = abs(ws) > travel
                place = min(max(ws, -travel), travel)
                speed = 0.0 if held else ks[stage]
                for i in range(len(mix)):
                    u[i] = mix[i, 0] * place + mix[i, 1] * speed
                for i in range(n):
                    w[i] = x[i] + (half * h * k[stage - 1, i] if stage else 0.0)
                rhs((t + half * h) * time_scale, w, u, p, k[stage])
                for i in range(n):
                    k[stage, i] *= time_scale
            s += h / 6.0 * (ks[0] + 2.0 * (ks[1] + ks[2]) + ks[3])
            for i in range(n):
                x[i] += h / 6.0 * (k[0, i] + 2.0 * (k[1, i] + k[2, i]) + k[3, i])
            if stop[2] > 0.0:
                place, speed = int(stop[0]), int(stop[1])
                if abs(x[place]) > stop[2]:
                    if x[place] * x[speed] > 0.0:
                        x[speed] *= -stop[3]
                    x[place] = stop[2] if x[place] > 0.0 else -stop[2]
        for i in range(n):
            if not np.isfinite(x[i]):
                return False
            states[i, sample] = x[i]
        table[0, sample] = min(max(s, -travel), travel)
        table[1, sample] = 0.0 if abs(s) > travel else (gain * drive[2 * (sample + 1) * steps] - s) / lag
    shaker[3] = s
    return True


class Plant:
    """The specimen at sample 0, ready to be moved on. Deterministic, whatever the sizes of the pieces."""

    def __init__(self, specimen: Specimen, shaker: Shaker, rate: float, steps: int) -> None:
        self.rate = rate
        self.steps = steps
        self.drive_rate = 2 * steps * rate  # values a second that ``advance`` takes
        self.specimen, self._model = specimen, specimen.model
        if shaker.lag <= 0:
            raise ModelError("The shaker's lag must be a positive time.")
        if not np.isfinite(shaker.gain):
            raise ModelError(f"The shaker's gain must be a finite number, not {shaker.gain:g}.")
        if not shaker.travel > 0:
            raise ModelError(f"The shaker's travel must be a positive length, not {shaker.travel:g}.")
        if STABLE_STEP * shaker.lag < 1 / (rate * steps):
            raise ModelError(
                f"A shaker's lag of {shaker.lag:g} s is too short for {rate * steps:g} steps a second: "
                f"at least {1 / (STABLE_STEP * rate * steps):.2g} s, or more steps_a_second."
            )
        self._kernels = self._model.kernels()
        self._values = np.ascontiguousarray(self._model.values(dict(specimen.values)))
        self._mix = _mix(specimen)
        self._stop = _stop(specimen)
        self._shaker = np.array([shaker.gain, shaker.lag, shaker.travel, 0.0])
        self.states = np.array([_initial(specimen, name) for name in self._model.states])
        self._tail: Array | None = None
        self._samples = 0

    @property
    def quantities(self) -> tuple[str, ...]:
        """What a sensor can be put on, in the order of ``advance``'s rows."""
        outputs = tuple(f"output {name}" for name in self._model.outputs)
        return ("drive", "table", "table velocity", *self._model.states, *self._model.inputs, *outputs)

    def row(self, quantity: str) -> int:
        """The row of a quantity; model outputs by name when no state or input has it."""
        for name in (quantity, f"output {quantity}"):
            if name in self.quantities:
                return self.quantities.index(name)
        known = ", ".join(q.removeprefix("output ") for q in dict.fromkeys(self.quantities))
        raise ModelError(f"The virtual specimen has no '{quantity}': there are {known}.")

    def prepare(self) -> None:
        """Compile, or load, what ``advance`` needs; the specimen stays where it is."""
        trial = copy(self)
        trial.states, trial._shaker, trial._tail = self.states.copy(), self._shaker.copy(), None
        trial.advance(np.zeros(2 * 2 * self.steps))

    def tap(self, strength: float = 1.0) -> None:
        """A tap with a finger: the states jump by what the specimen says."""
        for name, change in self.specimen.tap.items():
            self.states[self._model.states.index(name)] += strength * change

    def advance(self, drive: Array) -> Array:
        """Move on by len(drive)/(2 steps) samples; all quantities at them, one row each.

        ``drive`` holds 2 ``steps`` values a sample, the first at the sample itself.
        """
        per_sample = 2 * self.steps
        count = len(drive) // per_sample
        out = np.empty((len(self.quantities), count))
        n = len(self.states)
        states, table = out[3 : 3 + n], out[1:3]
        first = 0
        if self._tail is None:  # sample 0 is where it stands
            first = 1
            states[:, 0], table[:, 0] = self.states, 0.0
            grid = drive[: per_sample * (count - 1) + 1]
        else:
            grid = np.concatenate([self._tail, drive[: per_sample * (count - 1) + 1]])
        self._tail = drive[per_sample * (count - 1) :].copy()
        if count > first:
            self._integrate(grid, states, table, first)
        out[0] = drive[::per_sample]
        self._derived(out, n)
        self._samples += count
        return out

    def _integrate(self, grid: Array, states: Array, table: Array, first: int) -> None:
        got_states = np.empty((len(states), states.shape[1] - first))
        got_table = np.empty((2, got_states.shape[1]))
        start = max(0, self._samples + first - 1) / self.rate
        good = _advance(
            self._kernels.rhs, self._values, self.specimen.time_scale, start, 1 / (self.rate * self.steps),
            self.steps, self._shaker, self._stop, self._mix, self.states, np.ascontiguousarray(grid),
            got_states, got_table,
        )  # fmt: skip
        if not good:
            raise ModelError(
                f"The virtual specimen '{self._model.name}' broke: its motion grew beyond bounds."
            )
        states[:, first:], table[:, first:] = got_states, got_table

    def _derived(self, out: Array, n: int) -> None:
        """Fill in the model's inputs and outputs at the samples."""
        m, q = len(self._model.inputs), len(self._model.outputs)
        inputs = np.ascontiguousarray(self._mix @ out[1:3]) if m else np.zeros((0, out.shape[1]))
        out[3 + n : 3 + n + m] = inputs
        t = (self._samples + np.arange(out.shape[1])) / self.rate * self.specimen.time_scale
        outputs = np.empty((q, out.shape[1]))
        states = np.ascontiguousarray(out[3 : 3 + n])
        self._kernels.out_many(t, states, inputs, self._values, outputs)
        out[3 + n + m :] = outputs


def _initial(specimen: Specimen, name: str) -> float:
    if name in specimen.initial:
        return float(specimen.initial[name])
    initial: Any = specimen.model.initial.get(name)
    return 0.0 if initial is None else float(initial.value)


def _mix(specimen: Specimen) -> Array:
    """Row i: model input i from the table's motion and velocity."""
    kinds = {"table": 0, "table velocity": 1}
    mix = np.zeros((len(specimen.model.inputs), 2))
    for row, name in enumerate(specimen.model.inputs):
        kind = specimen.inputs.get(name)
        if kind not in kinds:
            raise ModelError(
                f"The model's input '{name}' is not connected: set it to 'table' or 'table velocity' "
                "under 'inputs' of the specimen."
            )
        mix[row, kinds[kind]] = specimen.scale.get(name, 1.0)
    return mix


def _stop(specimen: Specimen) -> Array:
    if specimen.stop is None:
        return np.zeros(4)
    names, stop = specimen.model.states, specimen.stop
    for name in (stop.position, stop.velocity):
        if name not in names:
            raise ModelError(
                f"The end stop's '{name}' is no state of the model: there are {', '.join(names)}."
            )
    return np.array([names.index(stop.position), names.index(stop.velocity), stop.at, stop.restitution])
