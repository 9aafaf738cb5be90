"""A fit goes on from any numbers that follow the record better than its own.

A descent ends at the foot of the valley in which it began, and residuals as small and as white as the noise
do not show that there is no deeper one: two tanks in a row follow a record almost as well with exchanged time
constants. Wherever the judgement meets other numbers with a lower chi-square, the fit is done again from
there and judged again; only numbers that nothing better was found for are reported.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analysis.base.errors import ShakedownError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.finish.fit import run_engine
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.judge import Judgement, judge

_MOST_MOVES = 4  # valleys that are left for a deeper one


def lowest(fitted: Fitted, judgement: Judgement, progress: Progress = SILENT) -> tuple[Fitted, Judgement]:
    """The fit and its judgement, in the deepest valley that the judgement comes across."""
    for _ in range(_MOST_MOVES):
        if judgement.better is None:
            break
        try:
            again = run_engine(fitted.experiment, judgement.better, progress)
        except (ShakedownError, np.linalg.LinAlgError):
            break
        if not again.converged or again.chi2_at(fitted.sigma) >= fitted.chi2_at(fitted.sigma):
            break
        fitted = replace(again, start=fitted.start, iterations=fitted.iterations + again.iterations)
        judgement = judge(fitted)
    return fitted, judgement
