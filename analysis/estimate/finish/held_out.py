"""How well does the model predict what it was not fitted to?

The last fifth of every record is predicted with parameters that were estimated without it; of that fifth only
the initial state is fitted, for no model can know it. The parameters without the fifth follow from the whole
fit by one Gauss-Newton step with the other four fifths alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.estimate.finish.linearised import joined, linearisations
from analysis.estimate.identifiability import pseudo_inverse
from analysis.estimate.path.estimate import estimate_path
from analysis.estimate.path.segment import Segment

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted, Piece

Array = NDArray[np.float64]

PARTS = 5
_SHORTEST = 20  # samples of a fifth that are worth predicting
_STEPS = 15


@dataclass(frozen=True)
class Prediction:
    """Error of the prediction by output: its rms, and 1 - (rms over the whole records' spread)^2."""

    rms: dict[str, float]
    r2: dict[str, float]


def held_out(fitted: Fitted) -> Prediction | None:
    """The last fifth of each record predicted by the rest; None where that is too short, and where the model
    holds a force that nobody recorded: the rest knows nothing of what it does later."""
    if fitted.experiment.model.equations.functions_of_time:
        return None
    last = [_last_fifth(piece) for piece in fitted.pieces]
    if any(len(s.times) < _SHORTEST for s in last):
        return None
    cut = linearisations(fitted, PARTS)
    kept = [c.regression() for i, c in enumerate(cut) if (i + 1) % PARTS]
    if len(cut) != PARTS * len(fitted.pieces):
        return None
    information, score = joined(kept)
    values = fitted.values.copy()
    step = pseudo_inverse(information) @ score
    for unknown, change in zip(fitted.unknowns, step, strict=True):
        rows = slice(None) if unknown.record < 0 else unknown.record
        moved = fitted.values[rows, unknown.index] + change
        values[rows, unknown.index] = np.clip(moved, unknown.lower, unknown.upper)
    k = len(fitted.experiment.model.parameters)
    try:
        residuals = [
            estimate_path(
                fitted.experiment.model.kernels(),
                [_at_record(segment)],
                values[segment.record, :k],
                [],
                sigma=fitted.sigma,
                sensors=values[segment.record, k:],
                max_iterations=_STEPS,
            ).residuals[0]
            for segment in last
        ]
    except (ShakedownError, np.linalg.LinAlgError):
        return None
    return _prediction(fitted, np.hstack(residuals))


def _at_record(segment: Segment) -> Segment:
    from dataclasses import replace

    return replace(segment, record=0)


def _last_fifth(piece: Piece) -> Segment:
    first = int(np.linspace(0, len(piece.times), PARTS + 1)[-2])
    run = piece.run
    return Segment(
        np.ascontiguousarray(piece.times[first:]),
        np.ascontiguousarray(run.outputs[:, piece.first + first : piece.stop]),
        np.ascontiguousarray(piece.states[:, first:]),
        run.inputs if run.inputs.count else None,
        piece.record,
        origin=float(run.times[0]),
    )


def _prediction(fitted: Fitted, residuals: Array) -> Prediction:
    rms, r2 = {}, {}
    for i, name in enumerate(fitted.experiment.model.outputs):
        row = residuals[i][np.isfinite(residuals[i])]
        spread = output_spread(fitted, i)
        if len(row) and spread > 0:
            rms[name] = float(np.sqrt(np.mean(row**2)))
            r2[name] = 1.0 - (rms[name] / spread) ** 2
    return Prediction(rms, r2)


def output_spread(fitted: Fitted, output: int) -> float:
    """Standard deviation of an output over its mean, all records; 0 where it was not measured."""
    rows = [piece.run.outputs[output, piece.first : piece.stop] for piece in fitted.pieces]
    joined_rows = np.concatenate([row[np.isfinite(row)] for row in rows])
    return float(np.std(joined_rows)) if len(joined_rows) else 0.0
