"""Where an unknown function is sought: between the ends of what the records show of its argument."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ModelError
from analysis.base.record import Record
from analysis.experiment.drive_time import recorded_time
from analysis.model import Model
from analysis.model.functions import Spline
from analysis.signal.smoothing import smooth

Array = NDArray[np.float64]

_SMOOTHED = 0.03  # of the range of a rate that is not measured: what smoothing may take off its peaks
_FINISHING = ("auto", "weak", "path", "shooting")  # methods that end on the path and take any parameter


def with_ranges(model: Model, records: Sequence[Record], method: str, finish: bool) -> Model:
    """The model with a range for every unknown function; ModelError where a method cannot find one."""
    functions = model.equations.functions
    if not functions:
        return model
    name = next(iter(functions))
    if method not in _FINISHING or not finish:
        what = f"Method {method} does not" if method not in _FINISHING else "Without its finish no method can"
        raise ModelError(
            f"{what} identify the unknown function {name}: choose {', '.join(_FINISHING[:-1])} or "
            f"{_FINISHING[-1]}."
        )
    for name, function in functions.items():
        for i, axis in enumerate(function.axes):
            model = _with_range(model, records, name, i, axis)
    return model


def _with_range(model: Model, records: Sequence[Record], name: str, i: int, axis: Spline) -> Model:
    """The model with a range for one argument of an unknown function."""
    if axis.argument == "t" and len(records) > 1:
        raise ModelError(
            f"The unknown function {name} of time belongs to one record: each of {len(records)} has a "
            "course of its own."
        )
    if not axis.open:
        return model
    if axis.argument == "t":
        first = recorded_time(records[0]) or 0.0
        return model.with_range(name, first, first + float(records[0].times[-1]), i)
    rows = [_shown(model, record, axis.argument) for record in records]
    seen = np.concatenate([row for row in rows if row is not None] or [np.zeros(0)])
    if any(row is None for row in rows):
        raise ModelError(
            f"The range of the unknown function {name} is not known: no channel is called "
            f"{axis.argument}, so give it lower and upper."
        )
    if not len(seen) or not np.ptp(seen) > 0:
        raise ModelError(f"{axis.argument} never changes: the function {name} of it cannot be found.")
    beyond = 0.0 if all(axis.argument in record for record in records) else _SMOOTHED * float(np.ptp(seen))
    return model.with_range(name, float(seen.min()) - beyond, float(seen.max()) + beyond, i)


def _shown(model: Model, record: Record, argument: str) -> Array | None:
    """Samples of an argument: its channel, or the rate of the state whose derivative it is."""
    if argument in record:
        return record[argument][record.channels[argument].valid()]
    for state, rate in model.equations.states.items():
        if rate.text.strip() == argument and state in record and record.channels[state].valid().all():
            return smooth(record[state], 1.0 / record.rate)[1]
    return None
