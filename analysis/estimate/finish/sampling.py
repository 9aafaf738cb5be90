"""Is the motion sampled fast enough to tell a frequency from its alias?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.finish.fitted import Fitted, Piece

Array = NDArray[np.float64]

_PLACES = 9  # states along a piece at which the model is linearised


def alias_words(fitted: Fitted) -> list[str]:
    """A sentence where guess and fit lie on opposite sides of half the sample rate.

    Below two samples a period a frequency and its mirror image at half the rate give the same samples, so the
    record cannot choose between them. Only the lowest frequency of the model counts: higher ones (sensors,
    actuators, stiff modes) may lie where they like.
    """
    experiment, piece = fitted.experiment, fitted.pieces[0]
    k = len(experiment.model.parameters)
    half = 0.5 / piece.run.dt
    fit = _lowest_frequency(fitted, piece, fitted.values[piece.record, :k])
    guess = _lowest_frequency(fitted, piece, experiment.guesses()[piece.record])
    if fit is None or guess is None or (fit > half) == (guess > half):
        return []
    return [
        f"The guess moves at {guess:.3g} and the fit at {fit:.3g} cycles per unit of time, on either side of "
        f"half the sample rate ({half:.3g}): samples this far apart do not tell a frequency from its alias."
    ]


def _lowest_frequency(fitted: Fitted, piece: Piece, values: Array) -> float | None:
    """Median over the motion of the lowest frequency of the linearised model; None if nothing oscillates."""
    model = fitted.experiment.model
    places = np.unique(np.linspace(0, piece.states.shape[1] - 1, _PLACES).astype(int))
    times = np.ascontiguousarray(piece.times[places])
    X = np.ascontiguousarray(piece.states[:, places])
    U = np.ascontiguousarray(piece.run.inputs.values(times))
    n, k, N = X.shape[0], len(values), len(places)
    F, Fx, Fp = np.empty((n, N)), np.empty((n, n, N)), np.empty((n, k, N))
    model.kernels().jac_many(times, X, U, np.ascontiguousarray(values), F, Fx, Fp)
    found = []
    for slopes in Fx.transpose(2, 0, 1):
        if np.isfinite(slopes).all():
            turning = np.abs(np.linalg.eigvals(slopes).imag) / (2 * np.pi)
            found += [float(turning[turning > 0].min())] if np.any(turning > 0) else []
    return float(np.median(found)) if found else None
