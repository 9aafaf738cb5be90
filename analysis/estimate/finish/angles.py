"""Parameters that are angles: a whole turn more is the same number, so they are given in the guess's turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analysis.estimate.finish.fitted import Fitted

TURN = 2 * np.pi
_PLACES, _SAME = 5, 1e-9  # states at which a turn changes nothing, and what counts as nothing


def is_angle(fitted: Fitted, unknown: int) -> bool:
    """Whether the model does the same when a parameter is larger by a whole turn: a phase, a direction."""
    piece, model = fitted.pieces[0], fitted.experiment.model
    kernels = model.kernels()
    here = np.ascontiguousarray(fitted.values[piece.record, : len(model.parameters)])
    turned = here.copy()
    turned[fitted.unknowns[unknown].index] += TURN
    for n in np.linspace(0, len(piece.times) - 1, _PLACES).astype(int):
        t, x = float(piece.times[n]), np.ascontiguousarray(piece.states[:, n])
        u = np.ascontiguousarray(piece.run.inputs.values(piece.times[n : n + 1])[:, 0])
        rates, shown = np.empty((2, len(x))), np.empty((2, len(model.outputs)))
        for i, values in enumerate((here, turned)):
            kernels.rhs(t, x, u, values, rates[i])
            kernels.out(t, x, u, values, shown[i])
        pairs = ((rates[0], rates[1]), (shown[0], shown[1]))
        if not all(np.allclose(one, other, rtol=_SAME, atol=0.0) for one, other in pairs):
            return False
    return True


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
