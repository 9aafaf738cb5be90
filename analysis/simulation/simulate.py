"""Simulation of a model, and the sensitivities of its states to parameters and initial values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.model import Model
from analysis.model.kernels import JAC_TYPE, RHS_TYPE
from analysis.model.switching import switching_of
from analysis.signal.inputs import Inputs
from analysis.simulation.adaptive import AdaptiveRun
from analysis.simulation.integrate import MAX_STEPS, RK4_ROWS, rk4
from analysis.simulation.slope import system_of

Array = NDArray[np.float64]
Values = Mapping[str, float] | Array | None  # parameters: some by name, or all in the model's order
States = Mapping[str, float] | Sequence[float] | Array | None  # None: the model's own initial values

METHODS = ("adaptive", "rk4", "implicit")
BOUND = 1e15  # a state beyond this has diverged, whatever its unit


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A simulated motion: ``states[n, N]`` at ``times[N]``; not-a-number after it diverged."""

    model: Model
    times: Array
    states: Array
    parameters: Array
    inputs: Inputs
    diverged_at: float | None = None  # the last time reached; None: the run is complete
    steps: int = 0

    @cached_property
    def outputs(self) -> Array:
        """What the sensors see, outputs[q, N]."""
        kernels = self.model.kernels()
        out = np.full((len(self.model.outputs), len(self.times)), np.nan)
        good = int(np.count_nonzero(np.isfinite(self.states[0])))
        part = np.empty((len(out), good))
        times = np.ascontiguousarray(self.times[:good])
        states = np.ascontiguousarray(self.states[:, :good])
        kernels.out_many(times, states, self.inputs.values(times), self.parameters, part)
        out[:, :good] = part
        return out

    def __getitem__(self, name: str) -> Array:
        """A state or an output by name."""
        if name in self.model.states:
            return np.asarray(self.states[self.model.states.index(name)])
        if name in self.model.outputs:
            return np.asarray(self.outputs[self.model.outputs.index(name)])
        known = ", ".join(dict.fromkeys((*self.model.states, *self.model.outputs)))
        raise DataError(f"No state or output '{name}': the model has {known}.")

    def __str__(self) -> str:
        if self.diverged_at is None:
            return f"{self.model.name}: {len(self.times)} samples to t = {self.times[-1]:g}."
        return (
            f"{self.model.name}: the motion diverged at t = {self.diverged_at:g}, or its equations became "
            "too stiff to follow; nothing is known after it. "
            "Check the parameters, the initial state and the forcing."
        )


def simulate(
    model: Model,
    times: Sequence[float] | Array,
    initial: States = None,
    values: Values = None,
    inputs: Inputs | None = None,
    method: str = "adaptive",
    rtol: float = 1e-9,
    atol: float = 0.0,
    substeps: int = 1,
    bound: float = BOUND,
    most_steps: int = MAX_STEPS,
) -> Trajectory:
    """The motion of the model from ``initial`` at times[0], given at ``times`` (ascending, same unit as dt).

    ``adaptive``: order 8 with dense output, error per step within rtol (|x| + 0.001 largest |x| so far) for
    each state, whatever its unit, and ``atol`` on top. ``rk4``: ``substeps`` steps of order 4 between
    consecutive times. ``implicit``: order 9 (5 beyond 12 states) for stiff models; ``adaptive`` goes over
    to it by itself where it pays. A run that diverges, or needs more than ``most_steps`` steps of adaptive
    size, stops early; see ``diverged_at``.
    """
    run = _Run.prepare(model, times, initial, values, inputs, method)
    states = np.empty((len(run.initial), len(run.times)))
    diverged_at, steps = run.integrate(None, run.initial, states, rtol, atol, substeps, bound, most_steps)
    return Trajectory(model, run.times, states, run.parameters, run.inputs, diverged_at, steps)


def sensitivities(
    model: Model,
    times: Sequence[float] | Array,
    initial: States = None,
    values: Values = None,
    inputs: Inputs | None = None,
    wrt: Sequence[str] | None = None,
    wrt_initial: Sequence[str] = (),
    method: str = "adaptive",
    rtol: float = 1e-9,
    atol: float = 0.0,
    substeps: int = 1,
    bound: float = BOUND,
    most_steps: int = MAX_STEPS,
) -> tuple[Array, Array]:
    """States[n, N] and S[n, len(wrt) + len(wrt_initial), N], their derivatives by parameters (the free ones
    unless named) and by initial values of states, from the variational equations; not-a-number once diverged.
    """
    run = _Run.prepare(model, times, initial, values, inputs, method)
    n = len(run.initial)
    names = list(model.free if wrt is None else wrt)
    columns = np.array([model.index(name) for name in names] + [-1] * len(wrt_initial), dtype=np.int64)
    start = np.zeros((n, len(columns)))
    for c, name in enumerate(wrt_initial):
        start[state_index(model, name), len(names) + c] = 1.0
    out = np.empty((n * (1 + len(columns)), len(run.times)))
    y0 = np.concatenate([run.initial, start.ravel()])
    run.integrate(columns, y0, out, rtol, atol, substeps, bound, most_steps)
    return out[:n], out[n:].reshape(n, len(columns), len(run.times))


def state_index(model: Model, name: str) -> int:
    """Position of a state; an unknown name is an error that lists the states."""
    if name not in model.states:
        raise ModelError(f"No state '{name}': the model has {', '.join(model.states)}.")
    return model.states.index(name)


def parameter_vector(model: Model, values: Values) -> Array:
    """All parameters in the model's order, from some of them by name or from the whole vector."""
    if values is None or isinstance(values, Mapping):
        return np.asarray(model.values(values), dtype=np.float64)
    vector = np.ascontiguousarray(values, dtype=np.float64)
    if vector.shape != (len(model.parameters),):
        raise ModelError(
            f"{model.name} has {len(model.parameters)} parameters, but {vector.size} were given."
        )
    return vector


def initial_vector(model: Model, initial: States) -> Array:
    """The initial state, from a vector, or some states by name over the model's own initial values."""
    if initial is None or isinstance(initial, Mapping):
        given = {name: start.value for name, start in model.initial.items()} | dict(initial or {})
        for name in given:
            state_index(model, name)
        missing = [name for name in model.states if name not in given]
        if missing:
            raise ModelError(
                f"{model.name} does not say where {', '.join(missing)} start: give initial values."
            )
        return np.array([given[name] for name in model.states], dtype=np.float64)
    vector = np.ascontiguousarray(initial, dtype=np.float64)
    if vector.shape != (len(model.states),):
        raise ModelError(f"{model.name} has {len(model.states)} states, but {vector.size} were given.")
    return vector


@dataclass(frozen=True)
class _Run:
    """The checked arguments of one simulation."""

    model: Model
    times: Array
    initial: Array
    parameters: Array
    inputs: Inputs
    method: str

    @classmethod
    def prepare(
        cls,
        model: Model,
        times: Sequence[float] | Array,
        initial: States,
        values: Values,
        inputs: Inputs | None,
        method: str,
    ) -> _Run:
        moments = np.ascontiguousarray(times, dtype=np.float64)
        if moments.ndim != 1 or len(moments) == 0 or not np.all(np.isfinite(moments)):
            raise DataError("A simulation needs at least one time, and all of them finite.")
        if np.any(np.diff(moments) < 0):
            raise DataError("The times of a simulation must ascend.")
        if method not in METHODS:
            raise DataError(f"No integrator '{method}': choose one of {', '.join(METHODS)}.")
        start, vector = initial_vector(model, initial), parameter_vector(model, values)
        if not (np.all(np.isfinite(start)) and np.all(np.isfinite(vector))):
            raise DataError("The initial state and the parameters must be finite numbers.")
        given = Inputs.none() if inputs is None else inputs
        given.check(model.inputs, moments[0], moments[-1])
        return cls(model, moments, start, vector, given, method)

    def integrate(
        self,
        columns: NDArray[np.int64] | None,
        y0: Array,
        out: Array,
        rtol: float,
        atol: float,
        substeps: int,
        bound: float,
        most_steps: int,
    ) -> tuple[float | None, int]:
        """Fill ``out``; the time of divergence (None: complete) and the number of steps."""
        if self.method == "rk4":
            done, reached, steps = self._fixed(columns, y0, out, max(int(substeps), 1), bound)
        else:
            if not (rtol >= 1e-14 and atol >= 0):
                raise DataError(
                    "The tolerances of a simulation must be positive, the relative one at least 1e-14."
                )
            given = (self.model, self.times, self.parameters, self.inputs, y0, out, rtol, float(atol), bound)
            met = self._switched(columns, given, most_steps) if self.method == "adaptive" else None
            if met is None:
                met = AdaptiveRun(*given, columns, most_steps).run(self.method == "implicit")
            done, reached, steps = met
        if done == len(self.times):
            return None, steps
        out[:, done:] = np.nan
        return float(reached), steps

    def _switched(
        self, columns: NDArray[np.int64] | None, given: tuple[Any, ...], most_steps: int
    ) -> tuple[int, float, int] | None:
        """The run of a model whose slope jumps; None for any other, and where jumps or steps do not end."""
        values = dict(zip(self.model.parameters, self.parameters.tolist(), strict=True))
        switching = switching_of(self.model.equations, values)
        if switching is None:
            return None
        from analysis.simulation.events import SwitchedRun

        run: Any = SwitchedRun
        found: tuple[int, float, int] | None = run(given[0], switching, *given[1:], columns, most_steps).run()
        return found

    def _fixed(
        self, columns: NDArray[np.int64] | None, y0: Array, out: Array, substeps: int, bound: float
    ) -> tuple[int, float, int]:
        """Runge-Kutta 4; sensitivities of models that are not large by a kernel of the model's own."""
        kernels, inputs, n = self.model.kernels(), self.inputs, len(self.initial)
        work = np.empty((RK4_ROWS, len(y0)))
        if columns is not None and len(inputs.breaks) == 0 and kernels.rk4_sensitivities is not None:
            done = kernels.rk4_sensitivities(
                self.times, substeps, y0, self.parameters, columns,
                inputs.t0, inputs.dt, inputs.coefficients, bound, work, out,
            )  # fmt: skip
            return done, self.times[min(done, len(self.times) - 1)], (done - 1) * substeps
        system = system_of(n, self.parameters, inputs, columns)
        f, kernel_type = (kernels.rhs, RHS_TYPE) if columns is None else (kernels.jac, JAC_TYPE)
        filled: tuple[int, float, int] = rk4(kernel_type)(
            f, system, self.times, y0, n, inputs.breaks, substeps, bound, work, out
        )
        return filled
