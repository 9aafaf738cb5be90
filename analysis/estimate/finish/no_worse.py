"""A fit never ends above its start: the misfit at the start's own parameters is the least that is asked.

The maximum likelihood lets the equations be missed at first, which widens its reach and may also carry it
from a good start into another valley. Where a fit does not explain the data, the start's parameters are tried
as they are, with nothing but the motion left to find.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.finish.fit import MOST_ITERATIONS, run_engine
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.start import Start

if TYPE_CHECKING:
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

_LOWER = 0.01  # of the misfit, by which a start must be better: less is a matter of unfinished steps
_STAY = 1  # iterations of a fit that is to stay where it begins


def no_worse_than_start(fitted: Fitted, progress: Progress = SILENT) -> Fitted:
    """The fit, or one from the best motion with the start's parameters if these follow the data better."""
    held = fitted.experiment.with_nothing_free(fitted.sigma)
    begun = _tried(held, fitted.start, progress)
    # a search that stopped early may still miss the equations, which its residuals do not show
    ended = fitted if fitted.converged else _tried(held, fitted.as_start(), progress)
    end = float("inf") if ended is None else misfit(ended, fitted.sigma)
    if begun is None or not misfit(begun, fitted.sigma) < (1 - _LOWER) * end:
        return fitted
    at_start = misfit(begun, fitted.sigma)
    words = f"The maximum likelihood ended with {end / at_start:.3g} times the misfit (chi2) of its start"
    for iterations in (MOST_ITERATIONS, _STAY):
        again = _tried(fitted.experiment, begun.as_start(), progress, iterations)
        if again is not None and misfit(again, fitted.sigma) <= (1 + _LOWER) * at_start:
            return _warned(again, fitted.start, f"{words}, so it was done again from the start's own motion.")
    return _warned(fitted, fitted.start, f"{words}: the start's parameters follow the data better.")


def misfit(fitted: Fitted, sigma: Array) -> float:
    """Sum of squares of what is left over the noise ``sigma`` [records, q]; infinite without a motion."""
    total = 0.0
    for piece in fitted.pieces:
        seen = np.isfinite(piece.run.outputs[:, piece.first : piece.stop])
        if not np.isfinite(piece.residuals[seen]).all():
            return float("inf")
        total += float(np.sum(np.where(seen, piece.residuals / sigma[piece.record][:, None], 0.0) ** 2))
    return total


def _tried(
    experiment: Experiment, start: Start, progress: Progress, iterations: int = MOST_ITERATIONS
) -> Fitted | None:
    """A fit, or None where there is none: the start's motion may run away."""
    try:
        return run_engine(experiment, start, progress, 1, iterations)
    except ShakedownError:
        return None


def _warned(fitted: Fitted, start: Start, warning: str) -> Fitted:
    return replace(fitted, start=replace(start, warnings=[*start.warnings, warning]))
