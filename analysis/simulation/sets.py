"""Many motions at once, each column with its own parameters and initial state, by Runge-Kutta 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import initial_vector

Array = NDArray[np.float64]


@dataclass(eq=False)
class Ensemble:
    """S motions that advance together: ``states[n, S]``, ``parameters[k, S]``, each at its own ``times[S]``.

    A motion that has diverged holds not-a-number or infinities and costs nothing extra.
    """

    model: Model
    states: Array
    parameters: Array
    times: Array
    inputs: Inputs

    @classmethod
    def prepare(
        cls,
        model: Model,
        initial: Mapping[str, Any] | Sequence[Any] | Array | None = None,
        values: Mapping[str, Any] | Array | None = None,
        start: float = 0.0,
        inputs: Inputs | None = None,
    ) -> Ensemble:
        """Initial states and parameters, each a number for all motions or an array with one for each."""
        parameters = _parameters(model, values)
        states = _states(model, initial)
        count = max(parameters.shape[1], states.shape[1])
        if {parameters.shape[1], states.shape[1]} - {1, count}:
            raise DataError(
                f"{parameters.shape[1]} parameter sets do not go with {states.shape[1]} initial states."
            )
        given = Inputs.none() if inputs is None else inputs
        given.check(model.inputs, start, start)
        full = [
            np.ascontiguousarray(np.broadcast_to(a, (len(a), count))).copy() for a in (states, parameters)
        ]
        return cls(model, full[0], full[1], np.full(count, float(start)), given)

    def advance(self, durations: float | Array, steps: int) -> None:
        """Move every motion on by its duration in ``steps`` equal steps."""
        h = np.broadcast_to(np.asarray(durations, dtype=np.float64) / steps, self.times.shape).copy()
        kernel = self.model.kernels().rk4_sets
        if kernel is not None:
            kernel(self.times, h, int(steps), self.states, self.parameters)
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # a motion that diverges does so quietly
                for s in range(steps):
                    self._step(self.times + s * h, h)
        self.times = self.times + steps * h

    def _step(self, t: Array, h: Array) -> None:
        last = 1e-8 * self.inputs.dt if len(self.inputs.breaks) else 0.0  # a jump at the end is not yet seen
        x = self.states
        a = self._slope(t, x, t)
        b = self._slope(t + 0.5 * h, x + 0.5 * h * a, t + 0.5 * h)
        c = self._slope(t + 0.5 * h, x + 0.5 * h * b, t + 0.5 * h)
        d = self._slope(t + h, x + h * c, t + h - last)
        self.states = x + h / 6 * (a + 2 * (b + c) + d)

    def _slope(self, t: Array, x: Array, input_times: Array) -> Array:
        out = np.empty_like(x)
        u = self.inputs.values(input_times)
        self.model.kernels().rhs_sets(t, np.ascontiguousarray(x), u, self.parameters, out)
        return out


def simulate_sets(
    model: Model,
    times: Sequence[float] | Array,
    initial: Mapping[str, Any] | Sequence[Any] | Array | None = None,
    values: Mapping[str, Any] | Array | None = None,
    inputs: Inputs | None = None,
    substeps: int = 1,
) -> Array:
    """States[n, N, S] of many motions at ``times``; not-a-number or infinite after one has diverged.

    ``initial`` and ``values`` give numbers for all motions or arrays with one entry for each.
    """
    moments = np.ascontiguousarray(times, dtype=np.float64)
    if moments.ndim != 1 or len(moments) == 0 or np.any(np.diff(moments) < 0):
        raise DataError("The times of a simulation must ascend.")
    ensemble = Ensemble.prepare(model, initial, values, moments[0], inputs)
    ensemble.inputs.check(model.inputs, moments[0], moments[-1])
    out = np.empty((len(model.states), len(moments), len(ensemble.times)))
    out[:, 0] = ensemble.states
    for k, duration in enumerate(np.diff(moments), start=1):
        ensemble.advance(duration, substeps)
        out[:, k] = ensemble.states
    return out


def _parameters(model: Model, values: Mapping[str, Any] | Array | None) -> Array:
    if values is None or isinstance(values, Mapping):
        given = dict(values or {})
        for name in given:
            model.index(name)  # an unknown name is an error
        rows = [np.atleast_1d(given.get(name, p.value)) for name, p in model.parameters.items()]
        return _stacked(rows, len(model.parameters), "parameter")
    table = np.asarray(values, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != len(model.parameters):
        raise ModelError(
            f"{model.name} has {len(model.parameters)} parameters, but {len(table)} rows were given."
        )
    return table


def _states(model: Model, initial: Mapping[str, Any] | Sequence[Any] | Array | None) -> Array:
    if initial is None or isinstance(initial, Mapping):
        given = dict(initial or {})
        start = initial_vector(model, {name: float(np.atleast_1d(v)[0]) for name, v in given.items()})
        rows = [np.atleast_1d(given.get(name, start[i])) for i, name in enumerate(model.states)]
        return _stacked(rows, len(model.states), "state")
    table = np.asarray(initial, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != len(model.states):
        raise ModelError(f"{model.name} has {len(model.states)} states, but {len(table)} rows were given.")
    return table


def _stacked(rows: list[Any], count: int, what: str) -> Array:
    lengths = {len(row) for row in rows}
    if len(lengths - {1}) > 1:
        raise DataError(f"The {what}s have arrays of different lengths ({sorted(lengths - {1})}).")
    longest = max(lengths, default=1)
    table = np.empty((count, longest))
    for i, row in enumerate(rows):
        table[i] = row
    return table
