"""Maximum likelihood from a method's start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.base.errors import ModelError, ShakedownError
from analysis.base.progress import SILENT, Progress
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.start import Start

if TYPE_CHECKING:
    from analysis.experiment import Experiment

MOST_ITERATIONS = 60


def fit(
    experiment: Experiment,
    start: Start,
    progress: Progress = SILENT,
    *,
    cuts: int = 1,
    max_iterations: int = MOST_ITERATIONS,
) -> Fitted:
    """The most likely parameters, states and sensors' unknowns of an experiment.

    ``cuts``: the same fit with every unbroken stretch in that many pieces of equal length, each with an
    initial state of its own.
    """
    experiment = start.experiment or experiment
    if not experiment.model.free:
        raise ModelError(
            f"{experiment.model.name} has no free parameter: give one a guess instead of a value."
        )
    return run_engine(experiment, start, progress, cuts, max_iterations)


def optimum_near(
    experiment: Experiment, near: Fitted, progress: Progress = SILENT, *, cuts: int = 1
) -> Fitted | None:
    """The fit of another experiment, or of the same one in pieces, from a fit that is close; None where it
    does not end in an optimum.
    """
    try:
        found = fit(experiment, near.as_start(), progress, cuts=cuts)
    except (ShakedownError, np.linalg.LinAlgError):
        return None
    return found if found.converged else None


def run_engine(
    experiment: Experiment,
    start: Start,
    progress: Progress = SILENT,
    cuts: int = 1,
    max_iterations: int = MOST_ITERATIONS,
) -> Fitted:
    """The same by the engine that the start asks for, also where nothing but the motion is left to find."""
    if start.engine == "shooting":
        from analysis.estimate.finish.shooting_engine import fit_shooting

        return fit_shooting(experiment, start, progress, cuts, max_iterations)
    from analysis.estimate.finish.jumping import as_one_motion
    from analysis.estimate.finish.path_engine import fit_path

    found = fit_path(experiment, start, progress, cuts, max_iterations)
    return as_one_motion(found, progress, max_iterations) if cuts == 1 else found
