"""Does the model's motion go on where the record's does?

A fit follows the record for as long as the record lasts, and no longer. A motion of the model that is not
stable can be followed for that long from a well chosen initial state: van der Pol's equation with a negative
damping coefficient has the same cycle as with a positive one, only that the model leaves it. So where the
record shows a motion that keeps its size without a measured input, the model is run on from several states of
the fitted motion, moved a little inwards and outwards. Beside a motion that lasts the model comes back or
stays as near; beside one that is not stable it leaves, sooner than from the fit's own states, which lie on
it. If it dies out or grows from every one of them, it is not the equation of this motion.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.finish.fitted import Fitted, Piece
from analysis.simulation.simulate import simulate

Array = NDArray[np.float64]

# A record keeps its size if its halves differ by less than this share. A motion that dies out by as much from
# half to half has lost a third (0.94^6 = 0.7) after three more records, less than _KEPT allows.
_STEADY = 0.06
_STARTS = 5  # states of the fitted motion, one at the end of each fifth
_MOVED = (0.95, 1.05)  # their distances from the motion's mean, over those in the fit
_LONGER = 3  # lengths of the record for which the model is run on; its size counts in the last of them
_MOST_SAMPLES = 4000  # of such a run
_SHORTEST = 50  # samples of a record that can show what lasts
_KEPT = 2.0  # factor within which the size stays in a motion that goes on
_MOST_STEPS = 200_000  # of the integrator in one run


def does_not_last(fitted: Fitted) -> str:
    """A sentence if the record's motion keeps its size and the model's does not; empty otherwise."""
    if fitted.experiment.model.inputs:
        return ""
    for piece in fitted.pieces:
        measured = np.asarray(piece.run.outputs[:, piece.first : piece.stop])
        steady = [i for i, row in enumerate(measured) if _keeps_its_size(row)]
        if not steady or len(piece.times) < _SHORTEST:
            continue
        spread = np.array([np.nanstd(measured[i]) for i in steady])
        ratios = []
        for place, moved in product(_places(len(piece.times)), _MOVED):
            ratio = _sizes_later(fitted, piece, int(place), moved, steady) / spread
            if np.all((ratio > 1 / _KEPT) & (ratio < _KEPT)):
                break
            ratios.append(float(ratio[0]))
        else:
            return _words(fitted.experiment.model.outputs[steady[0]], np.array(ratios))
    return ""


def _keeps_its_size(row: Array) -> bool:
    """Whether both halves of an output's samples spread alike about alike means.

    The samples of a half count less towards its ends (Hann): else a period that is cut off moves the mean of
    seven periods by 7 % of their spread, and no cycle would keep its size.
    """
    sizes = []
    for half in np.array_split(row, 2):
        good = np.isfinite(half)
        if good.sum() < _SHORTEST // 2:
            return False
        weights = np.hanning(len(half) + 2)[1:-1][good]
        mean = float(np.average(half[good], weights=weights))
        sizes.append((mean, float(np.sqrt(np.average((half[good] - mean) ** 2, weights=weights)))))
    (mean, a), (other, b) = sizes
    most = _STEADY * max(a, b)
    return min(a, b) > 0.0 and abs(a - b) < most and abs(mean - other) < most


def _places(samples: int) -> NDArray[np.int64]:
    return np.linspace(0, samples - 1, _STARTS + 1).astype(np.int64)[1:]


def _sizes_later(fitted: Fitted, piece: Piece, place: int, moved: float, outputs: list[int]) -> Array:
    """Spread of the outputs at the end of a run of three lengths of the record from beside a fitted state."""
    model = fitted.experiment.model
    values = fitted.values[piece.record, : len(model.parameters)]
    count = min(_LONGER * len(piece.times), _MOST_SAMPLES)
    times = piece.times[place] + np.linspace(0.0, _LONGER * np.ptp(piece.times), count)
    mean = piece.states.mean(axis=1)
    first = mean + moved * (piece.states[:, place] - mean)
    run = simulate(model, times, first, values, rtol=1e-6, most_steps=_MOST_STEPS)
    later = np.asarray(run.outputs)[outputs, -(count // _LONGER) :]
    with np.errstate(invalid="ignore", over="ignore"):
        spread = np.std(later, axis=1)
    return np.where(np.isfinite(spread), spread, np.inf)


def _words(output: str, ratios: Array) -> str:
    if np.all(ratios > 1.0):
        what = "grows beyond it"
    else:
        what = "dies out" if np.all(ratios < 1.0) else "leaves it"
    return (
        f"The motion of {output} keeps its size over the record; the model, run on from {len(ratios)} states "
        f"beside the fitted motion, {what}: the fit holds on to a motion that is not stable in the model."
    )
