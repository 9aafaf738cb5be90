"""How well does the model predict what it was not fitted to?

The last fifth of every record is predicted with parameters that were estimated without it; of that fifth only
the initial state is fitted, for no model can know it. The parameters without the fifth follow from the whole
fit by one Gauss-Newton step with the other four fifths alone. Where that step is longer than noise makes it
(an imperfect model), it leaves the reach of the linearisation where parameters are traded against each other,
and predicts much worse or better than the fit that it stands for: the four fifths are then fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.estimate.finish.honest import LONG
from analysis.estimate.finish.linearised import Linearisation, joined, linearisations
from analysis.estimate.identifiability import pseudo_inverse
from analysis.estimate.path.estimate import estimate_path
from analysis.estimate.path.segment import PathSegment

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted, Piece

Array = NDArray[np.float64]

PARTS = 5
_SHORTEST = 20  # samples of a fifth that are worth predicting
_STEPS = 15
_LONG_STEP = 4.0  # chi-square of the step for each unknown, 0.25 by chance, from which it is not believed


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
    if len(cut) != PARTS * len(fitted.pieces):
        return None
    step, length = _step(fitted, cut)
    samples = sum(len(piece.times) for piece in fitted.pieces)
    values = None
    if length > _LONG_STEP * len(step) and samples <= LONG:
        values = _again(fitted)
    return _predicted(fitted, last, _moved(fitted, step) if values is None else values)


def _step(fitted: Fitted, cut: Sequence[Linearisation]) -> tuple[Array, float]:
    """The step [P] that the four fifths ask for, and what it lowers their chi-square by."""
    information, score = joined([c.regression() for i, c in enumerate(cut) if (i + 1) % PARTS])
    step = np.asarray(pseudo_inverse(information) @ score)
    return step, float(score @ step)


def _moved(fitted: Fitted, step: Array) -> Array:
    """The whole fit's values [records, k + sensors] after a step, inside all bounds."""
    values = fitted.values.copy()
    for unknown, change in zip(fitted.unknowns, step, strict=True):
        rows = slice(None) if unknown.record < 0 else unknown.record
        moved = fitted.values[rows, unknown.index] + change
        values[rows, unknown.index] = np.clip(moved, unknown.lower, unknown.upper)
    return values


def _again(fitted: Fitted) -> Array | None:
    """Values [records, k + sensors] of a fit to the four fifths alone; None where it does not end."""
    from analysis.estimate.finish.fit import optimum_near

    kept = fitted.experiment
    for number in range(len(kept.runs)):
        spans = [
            (piece.first, piece.first + _edge(piece)) for piece in fitted.pieces if piece.record == number
        ]
        kept = kept.with_spans(number, tuple(spans))
    found = optimum_near(kept, fitted)
    return None if found is None else found.values


def _predicted(fitted: Fitted, last: Sequence[PathSegment], values: Array) -> Prediction | None:
    """What is left of the last fifths with these parameters and the best initial state of each; None where
    the model's motion leaves them."""
    k = len(fitted.experiment.model.parameters)
    try:
        residuals = [
            estimate_path(
                fitted.experiment.model.kernels(),
                [_at_record(segment)],
                values[segment.record, :k],
                [],
                sigma=fitted.sigma[segment.record],
                sensors=values[segment.record, k:],
                max_iterations=_STEPS,
            ).residuals[0]
            for segment in last
        ]
    except (ShakedownError, np.linalg.LinAlgError):
        return None
    return _prediction(fitted, np.hstack(residuals))


def _at_record(segment: PathSegment) -> PathSegment:
    from dataclasses import replace

    return replace(segment, record=0)


def _edge(piece: Piece) -> int:
    """The first sample of the last fifth."""
    return int(np.linspace(0, len(piece.times), PARTS + 1)[-2])


def _last_fifth(piece: Piece) -> PathSegment:
    first, run = _edge(piece), piece.run
    return PathSegment(
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
