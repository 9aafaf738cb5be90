"""Our fits under the benchmarks of others: a model file for identibench or nonlinear-benchmarks.

    import identibench
    from benchmarks.identibench import builder
    from drivers.library import load_model

    build = builder(load_model("silverbox"), ["u"], ["y"], Conditions(inputs="bandlimited", denoise=False))
    identibench.run_benchmark(identibench.BenchmarkSilverbox_Simulation, build)

The records of nonlinear-benchmarks (``train, tests = nonlinear_benchmarks.Silverbox()``) are taken by
:func:`fitted` and :meth:`Simulator.foretell` directly. Neither package is needed by this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from analysis import Conditions, Model, Record, ShakedownError, complete, foretold, identify

Array = NDArray[np.float64]


class Sequenced(Protocol):
    """One record of a benchmark: inputs [N, m] and outputs [N, q], with what is known of it."""

    @property
    def u(self) -> Array: ...
    @property
    def y(self) -> Array: ...


class Context(Protocol):
    """What identibench hands over for training."""

    hyperparameters: Mapping[str, Any]

    def get_train_valid_sequences(self) -> Iterable[Any]: ...


@dataclass(frozen=True, eq=False)
class Simulator:
    """A fitted model that foretells outputs from inputs and the first outputs."""

    model: Model
    inputs: Sequence[str]
    outputs: Sequence[str]
    conditions: Conditions
    rate: float

    def foretell(self, u: Array, y_init: Array) -> Array:
        """Outputs [N, q]: the first as they were given, the others foretold."""
        given = _columns(y_init)
        if len(given) < 2:
            raise ShakedownError("A motion is foretold from at least two samples of its outputs.")
        wanted = np.vstack([given, np.repeat(given[-1:], len(u) - len(given), axis=0)])
        record = _record(self.rate, self.inputs, self.outputs, u, wanted)
        told = foretold(self.model, record, len(given), self.conditions)
        return np.vstack([given, np.column_stack([told[name] for name in self.outputs])])


def fitted(
    model: Model,
    inputs: Sequence[str],
    outputs: Sequence[str],
    sequences: Iterable[Sequenced],
    rate: float,
    conditions: Conditions | None = None,
    method: str = "auto",
    completed: bool = True,
) -> Simulator:
    """The model fitted to training records; ``completed``: with the terms that they ask for."""
    said = conditions or Conditions()
    records = [_record(rate, inputs, outputs, one.u, one.y) for one in sequences]
    if completed:
        found = complete(model, records, method, said)
        return Simulator(found.model, inputs, outputs, found.conditions, rate)
    options = {name: getattr(said, name) for name in ("inputs", "dispersion", "denoise", "offsets", "delays")}
    values = identify(model, records, method, **options).values()
    own = {name: value for name, value in values.items() if name in model.parameters}
    return Simulator(model.with_values(own), inputs, outputs, said, rate)


def builder(
    model: Model,
    inputs: Sequence[str],
    outputs: Sequence[str],
    conditions: Conditions | None = None,
    rate: float | None = None,
) -> Callable[[Context], Callable[[Array, Array, Mapping[str, Any]], Array]]:
    """What identibench calls to train: names of its columns in the model, and the sample rate in Hz where the
    records do not tell theirs. Hyperparameters ``method`` and ``completed`` are those of :func:`fitted`.
    """

    def build(context: Context) -> Callable[[Array, Array, Mapping[str, Any]], Array]:
        sequences = list(context.get_train_valid_sequences())
        chosen = rate or _rate(sequences[0].attrs)
        how = {k: v for k, v in context.hyperparameters.items() if k in ("method", "completed")}
        simulator = fitted(model, inputs, outputs, sequences, chosen, conditions, **how)
        return lambda u, y_init, attrs: simulator.foretell(u, y_init)

    return build


def _rate(attrs: Mapping[str, Any]) -> float:
    if "fs" not in attrs:
        raise ShakedownError("The records do not tell their sample rate: give it as rate=, in Hz.")
    return float(np.ravel(attrs["fs"])[0])


def _columns(rows: Array) -> Array:
    rows = np.asarray(rows, dtype=np.float64)
    return rows[:, None] if rows.ndim == 1 else rows


def _record(rate: float, inputs: Sequence[str], outputs: Sequence[str], u: Array, y: Array) -> Record:
    columns = [*_columns(u).T, *_columns(y).T]
    return Record.from_arrays(rate, dict(zip([*inputs, *outputs], columns, strict=True)))
