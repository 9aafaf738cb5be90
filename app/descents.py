"""The misfit of a fit over its steps, told apart where another measure of it begins."""

from __future__ import annotations

import math
from collections.abc import Sequence

SAME = 1e-9  # a misfit that rises by less has not risen


def stages(misfits: Sequence[float]) -> list[slice]:
    """The stretches in which the misfit falls.

    No method takes a step that raises its misfit. Where it rises, another noise level, other weights, more
    of the record or another start has begun, and the numbers before and after do not compare.
    """
    starts = [0] + [i for i in range(1, len(misfits)) if misfits[i] > misfits[i - 1] * (1 + SAME)]
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(misfits)], strict=True) if b > a]


def apart(misfits: Sequence[float]) -> tuple[list[float], list[float]]:
    """Steps, from one, and misfits, with a gap (not a number) between two stages."""
    steps: list[float] = []
    values: list[float] = []
    for stage in stages(misfits):
        if steps:
            steps.append(steps[-1])
            values.append(math.nan)
        steps += [float(i + 1) for i in range(stage.start, stage.stop)]
        values += misfits[stage]
    return steps, values
