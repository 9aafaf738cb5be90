"""Angles whose sensor starts anew after each turn: the turns are counted, so that the angle is smooth."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from analysis.model import Model

Array = NDArray[np.float64]

TURNS = (2 * math.pi, 360.0)  # a turn in radians and in degrees
_RANGE = (
    0.9,
    1.02,
)  # of a turn that a channel's range must be within: it is crossed, and with noise at its ends
_JUMP, _STEP = (
    0.8,
    0.3,
)  # of a turn: a step between neighbours is longer than the one or shorter than the other
_STRAIGHT = frozenset({"symbol", "number", "+", "-", "*", "/", "neg"})  # operations of an unbounded output


def counted_turns(model: Model, output: int, row: Array) -> tuple[Array, int]:
    """The samples of an output with whole turns added where its sensor starts anew, and how often it does.

    Left as it is: an output that the model itself keeps within a turn (atan2, say).
    """
    finite = np.isfinite(row)
    values = row[finite]
    turn = _turn(values)
    if turn == 0.0 or not _unbounded(model, output):
        return row, 0
    counted = row.copy()
    counted[finite] = np.unwrap(values, period=turn)
    return counted, int(np.sum(np.abs(np.diff(values)) > _JUMP * turn))


def _turn(values: Array) -> float:
    """A turn in the channel's unit; 0 where it does not jump by one and only by that."""
    if len(values) < 2:
        return 0.0
    extent, steps = float(np.ptp(values)), np.abs(np.diff(values))
    for turn in TURNS:
        jumps = steps > _JUMP * turn
        if (
            _RANGE[0] * turn < extent < _RANGE[1] * turn
            and jumps.any()
            and steps[~jumps].max() < _STEP * turn
        ):
            return turn
    return 0.0


def _unbounded(model: Model, output: int) -> bool:
    """Whether an output is made of sums and products alone."""
    system = model.equations.system
    waiting = [system.outputs[output]]
    while waiting:
        op = system.graph.ops[waiting.pop()]
        if op.kind not in _STRAIGHT:
            return False
        waiting += op.args
    return True
