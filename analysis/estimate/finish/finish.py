"""From a method's start to the result: fit, judge, assemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.base.identification import Identification
from analysis.base.progress import SILENT, Progress
from analysis.estimate.finish.assemble import assemble
from analysis.estimate.finish.evidence import TONES
from analysis.estimate.finish.fit import MOST_ITERATIONS, fit
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.hum import hum_words, without_hum
from analysis.estimate.finish.judge import Judgement, judge
from analysis.estimate.finish.no_worse import no_worse_than_start
from analysis.estimate.profile import chosen
from analysis.estimate.start import Start

if TYPE_CHECKING:
    from analysis.experiment import Experiment


@dataclass(frozen=True)
class Ending:
    """How an identification ends, the same for every method."""

    finish: bool = True  # end with maximum likelihood; off: the method by itself
    max_iterations: int = MOST_ITERATIONS  # of the maximum likelihood
    profile: tuple[str, ...] = ()  # parameters whose profile likelihood is traced; `all` for every one


def finish(
    experiment: Experiment,
    start: Start,
    progress: Progress = SILENT,
    *,
    max_iterations: int = MOST_ITERATIONS,
    profile: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Identification:
    """Take a method's start to maximum likelihood, judge the fit and write the result.

    ``options`` are those the user gave, kept in the result so that it can be run again.
    """
    free = [name for name in experiment.given.free if name not in experiment.conditions.per_record]
    names = chosen(profile, free)  # a wrong name is said before the work
    fitted = start.fitted or fit(experiment, start, progress, max_iterations=max_iterations)
    judgement = judge(fitted)
    if judgement.verdict != "fits" and start.fitted is None:
        better = no_worse_than_start(fitted, progress)
        if better is not fitted:
            fitted, judgement = better, judge(better)
    if judgement.verdict != "fits" and judgement.findings.get(TONES):
        fitted, judgement = _with_hum(fitted, judgement, progress)
    if judgement.verdict == "fits":  # also where nothing but rounding is left for a search to lower
        fitted = replace(fitted, converged=True, message="" if not fitted.converged else fitted.message)
    result = assemble(fitted, judgement, options or {})
    if names:
        from analysis.estimate.finish.profiles import with_profiled

        return with_profiled(result, fitted, names, progress)
    return result


def _with_hum(fitted: Fitted, judgement: Judgement, progress: Progress) -> tuple[Fitted, Judgement]:
    """The fit with the tones that are left fitted along, if nothing speaks against it then; else as it is."""
    along = without_hum(fitted, progress)
    if along is None:
        return fitted, judgement
    again = judge(along)
    if again.verdict != "fits":
        return fitted, judgement
    return along, replace(again, reasons=[*hum_words(along), *again.reasons])
