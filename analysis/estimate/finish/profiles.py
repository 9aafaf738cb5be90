"""Profile likelihood of a fit: one parameter held, all others and the whole motion following it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from analysis.base.errors import ModelError, ShakedownError
from analysis.base.identification import Identification
from analysis.base.progress import Progress
from analysis.estimate.finish.fit import run_engine
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.profile import trace_profile, with_profiles
from analysis.estimate.start import Start

_LOG_SPAN = 1e3  # bounds further apart than this factor: the parameter is stepped by factors
_NOISELESS = 1e-5  # noise over an output's spread below which a record shows none


def with_profiled(
    result: Identification, fitted: Fitted, names: Sequence[str], progress: Progress
) -> Identification:
    """The result with the profile likelihood of some parameters in place of their symmetric intervals."""
    if len(fitted.experiment.runs) > 1 and any(u.record >= 0 for u in fitted.unknowns):
        raise ModelError("A profile is traced only where no parameter differs from record to record.")
    if _shows_no_noise(fitted):
        words = (
            "The record shows no noise, so its profile likelihood would tell of rounding: none was traced."
        )
        return replace(result, warnings=[*result.warnings, words])
    model = fitted.experiment.model
    profiles = []
    for done, name in enumerate(names):
        progress.report(0.9 + 0.1 * done / len(names), f"profile of {name}")
        p = model.parameters[name]
        follow = _holding(fitted, name, progress)
        logarithmic = p.lower > 0 and p.upper / p.lower >= _LOG_SPAN and result.parameters[name].value > 0
        profiles.append(
            trace_profile(
                name, result.parameters[name], follow, fitted.as_start(), fitted.chi2, (p.lower, p.upper),
                logarithmic,
            )
        )  # fmt: skip
    return with_profiles(result, profiles)


def _shows_no_noise(fitted: Fitted) -> bool:
    for i, sigma in enumerate(fitted.sigma):
        data = np.concatenate([run.outputs[i] for run in fitted.experiment.runs])
        if np.isfinite(data).any() and sigma > _NOISELESS * float(np.nanstd(data)):
            return False
    return True


def _holding(fitted: Fitted, name: str, progress: Progress) -> Callable[[float, Start], tuple[float, Start]]:
    """Least chi-square (in units of the fit's noise) with one parameter held, each time from the last end."""
    place = fitted.experiment.model.index(name)

    def follow(value: float, last: Start) -> tuple[float, Start]:
        progress.report(0.95, "profile likelihood")
        held = fitted.experiment.holding(name, value, fitted.sigma)
        values = last.values.copy()
        values[:, place] = value
        last = replace(last, values=values)
        try:
            found = run_engine(held, last, progress.part(0.95, 0.95))
        except ShakedownError:
            return float("inf"), last
        return (found.chi2 if found.converged else float("inf")), found.as_start()

    return follow
