"""Where an unknown function is sought: between the ends of what the records show of its argument."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.base.errors import ModelError
from analysis.base.record import Record
from analysis.experiment.drive_time import recorded_time
from analysis.model import Model

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
    for name, spline in functions.items():
        if spline.argument == "t" and len(records) > 1:
            raise ModelError(
                f"The unknown function {name} of time belongs to one record: each of {len(records)} has a "
                "course of its own."
            )
        if not spline.open:
            continue
        if spline.argument == "t":
            first = recorded_time(records[0]) or 0.0
            model = model.with_range(name, first, first + float(records[0].times[-1]))
            continue
        if not all(spline.argument in record for record in records):
            raise ModelError(
                f"The range of the unknown function {name} is not known: no channel is called "
                f"{spline.argument}, so give it lower and upper."
            )
        seen = np.concatenate([r[spline.argument][r.channels[spline.argument].valid()] for r in records])
        if not len(seen) or not np.ptp(seen) > 0:
            raise ModelError(f"{spline.argument} never changes: the function {name} of it cannot be found.")
        model = model.with_range(name, float(seen.min()), float(seen.max()))
    return model
