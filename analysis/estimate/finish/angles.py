"""Parameters that are angles: a whole turn more is the same number, so they are given in the guess's turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.finish.fitted import Fitted

Array = NDArray[np.float64]

TURN = 2 * np.pi
_PLACES = 5  # states at which a turn changes nothing
_SAME, _OTHER = 1e-9, 1e-6  # of rates and outputs: what counts as nothing, and as something


def is_angle(fitted: Fitted, unknown: int) -> bool:
    """Whether the model does the same when a parameter is larger by a whole turn, but not by half of one: a
    phase, a direction. A stiffness of 1e24 does not notice half a turn either, and is no angle."""
    piece = fitted.pieces[0]
    places = np.linspace(0, len(piece.times) - 1, _PLACES).astype(int)
    shown = [[_shown(fitted, n, unknown, turn) for turn in (0.0, TURN, TURN / 2)] for n in places]
    if not all(np.allclose(here, turned, rtol=_SAME, atol=0.0) for here, turned, _ in shown):
        return False
    return not all(np.allclose(here, half, rtol=_OTHER, atol=0.0) for here, _, half in shown)


def _shown(fitted: Fitted, sample: int, unknown: int, more: float) -> Array:
    """Rates and outputs at a sample of the fitted motion, with a parameter that is larger."""
    piece, model = fitted.pieces[0], fitted.experiment.model
    values = fitted.values[piece.record, : len(model.parameters)].copy()
    values[fitted.unknowns[unknown].index] += more
    t, x = float(piece.times[sample]), np.ascontiguousarray(piece.states[:, sample])
    u = np.ascontiguousarray(piece.run.inputs.values(piece.times[sample : sample + 1])[:, 0])
    rates, outputs = np.empty(len(x)), np.empty(len(model.outputs))
    kernels = model.kernels()
    kernels.rhs(t, x, u, values, rates)
    kernels.out(t, x, u, values, outputs)
    return np.concatenate([rates, outputs])


def in_the_guess_turn(fitted: Fitted) -> Fitted:
    """The fit with every angle within half a turn of its guess, where its bounds let it."""
    estimate, values = fitted.estimate.copy(), fitted.values.copy()
    guesses = list(fitted.experiment.model.parameters.values())
    for i, unknown in enumerate(fitted.unknowns):
        if unknown.kind != "parameter" or not np.isfinite(estimate[i]):
            continue
        turns = TURN * np.round((guesses[unknown.index].value - estimate[i]) / TURN)
        inside = unknown.lower <= estimate[i] + turns <= unknown.upper
        if turns == 0.0 or not inside or not is_angle(fitted, i):
            continue
        estimate[i] += turns
        rows = slice(None) if unknown.record < 0 else unknown.record
        values[rows, unknown.index] += turns
    return replace(fitted, estimate=estimate, values=values)
