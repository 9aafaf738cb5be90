"""Inputs between their samples, found out from the data: smooth, straight, or held by a converter.

A force that a converter holds, splined through its samples, acts half a sample late: a bias of many standard
errors in the damping. Where nothing was said and the fit is not good, the other ways are tried from the same
point; one that lowers the cost by more than a tenth is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.base.progress import Progress
from analysis.estimate.shooting.build import problem_of
from analysis.estimate.shooting.descent import minimise
from analysis.estimate.shooting.grow import STEPS_AT_LAST, TIGHT
from analysis.estimate.shooting.problem import ROUGH
from analysis.estimate.shooting.search import MOST_WORK, Search
from analysis.experiment import Experiment

if TYPE_CHECKING:
    from analysis.estimate.shooting.method import Shooting

LOWER = 0.9  # of the present cost, below which another interpolation is taken
CHEAP = 0.1 * MOST_WORK  # what a search may have cost that is made anew for each interpolation


def other_interpolations(
    experiment: Experiment, found: Search, method: Shooting, progress: Progress
) -> tuple[Experiment, Search]:
    """The experiment and search with held or straight inputs, where these follow the record better."""
    if experiment.conditions.inputs != "auto" or not experiment.model.inputs:
        return experiment, found
    best_experiment, best = experiment, found
    for kind in ("hold", "linear"):
        conditions = replace(experiment.conditions, inputs=kind, denoise=kind != "hold")
        other = Experiment(experiment.given, experiment.records, conditions)
        trial = _from_there(other, found, progress)
        poor = trial is None or not (trial.judged and trial.judged.good)
        if trial is None or (poor and found.problem.work < CHEAP):
            anew = method.search(other, progress)  # a poor fit is no place to compare from
            if trial is None or (anew.cost < trial.cost):
                trial = anew
        if trial.cost < LOWER * best.cost:
            best_experiment, best = other, trial
            best.trials[:] = [
                *found.trials,
                *(replace(t, name=f"{t.name}, inputs {kind}") for t in trial.trials),
            ]
        if best.judged is not None and best.judged.good:
            break
    return best_experiment, best


def _from_there(experiment: Experiment, found: Search, progress: Progress) -> Search | None:
    """A fit from the best point with the inputs read in another way."""
    if found.best is None:
        return None
    problem = problem_of(experiment)
    trial = Search(problem, found.noise, found.watch)
    point = found.best.evaluation.point
    problem.settle_substeps(point, ROUGH)
    trial.take("refit", minimise(problem, problem.evaluate(point), TIGHT, STEPS_AT_LAST, watch=found.watch))
    return trial
