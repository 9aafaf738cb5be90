"""Profile likelihood of a fit: one parameter held, all others and the whole motion following it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from analysis.base.errors import Cancelled, ModelError, ShakedownError
from analysis.base.identification import Estimate, Identification
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
    """The result with the profile likelihood of some parameters in place of their symmetric intervals.

    Where the verdict widened an error bar, chi-square counts in units of the noise widened as much.
    """
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
        own = progress.part(0.9 + 0.1 * done / len(names), 0.9 + 0.1 * (done + 1) / len(names))
        own.report(0.0, f"profile of {name}")
        p, estimate = model.parameters[name], result.parameters[name]
        unit = _widened(estimate) ** 2
        follow = _holding(fitted, name, unit, own)
        logarithmic = p.lower > 0 and p.upper / p.lower >= _LOG_SPAN and estimate.value > 0
        profiles.append(
            trace_profile(
                name, estimate, follow, fitted.as_start(), fitted.chi2 / unit, (p.lower, p.upper),
                logarithmic, own,
            )
        )  # fmt: skip
    return with_profiles(result, profiles)


def _shows_no_noise(fitted: Fitted) -> bool:
    for i, sigma in enumerate(np.max(fitted.sigma, axis=0)):
        data = np.concatenate([run.outputs[i] for run in fitted.experiment.runs])
        if np.isfinite(data).any() and sigma > _NOISELESS * float(np.nanstd(data)):
            return False
    return True


def _widened(estimate: Estimate) -> float:
    """How many times larger the error bar is than white noise and a right model would make it."""
    ratio = estimate.stderr / estimate.stderr_ideal if estimate.stderr_ideal > 0 else np.nan
    return float(max(ratio, 1.0)) if np.isfinite(ratio) else 1.0


def _holding(
    fitted: Fitted, name: str, unit: float, progress: Progress
) -> Callable[[float, Start], tuple[float, Start]]:
    """Least chi-square, over ``unit``, with one parameter held; each time from the last end."""
    place = fitted.experiment.model.index(name)
    watch = Progress(cancelled=progress.cancelled)  # the point itself is what is reported

    def follow(value: float, last: Start) -> tuple[float, Start]:
        held = fitted.experiment.holding(name, value, fitted.sigma)
        values = last.values.copy()
        values[:, place] = value
        last = replace(last, values=values)
        try:
            found = run_engine(held, last, watch)
        except Cancelled:
            raise
        except ShakedownError:
            return float("inf"), last
        return (found.chi2 / unit if found.converged else float("inf")), found.as_start()

    return follow
