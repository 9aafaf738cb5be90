"""From a method's start to the result: fit, judge, assemble."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.base.identification import Identification
from analysis.base.progress import SILENT, Progress
from analysis.estimate.finish.angles import in_the_guess_turn
from analysis.estimate.finish.assemble import assemble
from analysis.estimate.finish.fit import MOST_ITERATIONS, fit
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.hum import hum_words, without_hum
from analysis.estimate.finish.input_reading import in_the_better_reading, with_other_reading
from analysis.estimate.finish.judge import Judgement, judge
from analysis.estimate.finish.jumps import cut_at_jumps, jump_words
from analysis.estimate.finish.lowest import lowest
from analysis.estimate.finish.no_worse import no_worse_than_start
from analysis.estimate.finish.periodic_drive import with_drive_fitted
from analysis.estimate.finish.sensor_faults import with_sensor_faults
from analysis.estimate.finish.smooth_curves import with_curves
from analysis.estimate.profile import chosen
from analysis.estimate.start import Start

if TYPE_CHECKING:
    from analysis.experiment import Experiment

_ABOVE_NOISE = 1.1  # residual over the sensor's noise from which on a jump in time is looked for


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
    found = start.fitted or fit(experiment, start, progress, max_iterations=max_iterations)
    found = with_drive_fitted(in_the_better_reading(experiment, found, progress), progress)
    fitted = in_the_guess_turn(found, progress)
    fitted, judgement = lowest(fitted, judge(fitted), progress)
    if judgement.verdict != "fits" and start.fitted is None:
        better = no_worse_than_start(fitted, progress)
        if better is not fitted:
            fitted, judgement = better, judge(better)
    if judgement.verdict != "fits":
        fitted, judgement = _mended(experiment, fitted, judgement, progress)
    judgement = with_other_reading(experiment, fitted, judgement, progress)
    if judgement.verdict == "fits":  # also where nothing but rounding is left for a search to lower
        fitted = replace(fitted, converged=True, message="" if not fitted.converged else fitted.message)
    result = with_curves(assemble(fitted, judgement, options or {}), fitted)
    if names:
        from analysis.estimate.finish.profiles import with_profiled

        return with_profiled(result, fitted, names, progress)
    return result


Mending = tuple[Callable[[Fitted, Progress], Fitted | None], Callable[[Fitted], list[str]]]


def _mended(
    experiment: Experiment, fitted: Fitted, judgement: Judgement, progress: Progress
) -> tuple[Fitted, Judgement]:
    """The fit with a fault of the record found and counted in, if nothing speaks against it then."""
    if judgement.figures.fault is not None:
        found = with_sensor_faults(experiment, fitted, judgement, progress)
        if found is not None:
            return found
    ways: list[Mending] = []
    if judgement.figures.tones:
        ways.append((without_hum, hum_words))
    if max(judgement.figures.over_noise.values(), default=0.0) > _ABOVE_NOISE:
        ways.append((cut_at_jumps, jump_words))
    for mend, words in ways:
        other = mend(fitted, progress)
        if other is None:
            continue
        other = in_the_better_reading(experiment, other, progress)
        again = judge(other)
        if again.verdict == "fits":
            return other, replace(again, reasons=[*words(other), *again.reasons])
    return fitted, judgement
