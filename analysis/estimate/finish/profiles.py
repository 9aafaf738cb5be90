"""Profile likelihood of a fit: one unknown held, all others and the whole path following it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ModelError
from analysis.base.identification import Identification
from analysis.base.progress import Progress
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.path_engine import segments_of
from analysis.estimate.path.estimate import PathEstimate, Segment, estimate_path
from analysis.estimate.profile import trace_profile, with_profiles

Array = NDArray[np.float64]


def with_profiled(
    result: Identification, fitted: Fitted, names: Sequence[str], progress: Progress
) -> Identification:
    """The result with the profile likelihood of some parameters in place of their symmetric intervals."""
    if len(fitted.experiment.runs) > 1 and any(u.record >= 0 for u in fitted.unknowns):
        raise ModelError("A profile is traced only where no parameter differs from record to record.")
    model = fitted.experiment.model
    segments, _ = segments_of(fitted.experiment, fitted.as_start())
    profiles = []
    for name in names:
        index, p = model.index(name), model.parameters[name]
        follow = _holding(fitted, segments, index, progress)
        here = _Warm(fitted.values, [s.states for s in segments])
        profiles.append(
            trace_profile(name, result.parameters[name], follow, here, fitted.chi2, (p.lower, p.upper))
        )
    return with_profiles(result, profiles)


class _Warm:
    """Where the last search ended."""

    def __init__(self, values: Array, states: list[Array]) -> None:
        self.values, self.states = values, states


def _holding(
    fitted: Fitted, segments: Sequence[Segment], index: int, progress: Progress
) -> Callable[[float, _Warm], tuple[float, _Warm]]:
    """Chi-square of the most likely path with one parameter held, each time from the last path."""
    model = fitted.experiment.model
    parameters, k = model.parameters.values(), len(model.parameters)
    others = [u.index for u in fitted.unknowns if u.index != index]

    def follow(value: float, last: _Warm) -> tuple[float, _Warm]:
        progress.report(0.95, "profile likelihood")
        values = last.values[:, :k].copy()
        values[:, index] = value
        found: PathEstimate = estimate_path(
            model.kernels(),
            [replace(s, states=x) for s, x in zip(segments, last.states, strict=True)],
            values,
            others,
            lower=np.array([p.lower for p in parameters]),
            upper=np.array([p.upper for p in parameters]),
            sigma=fitted.sigma,
            sensors=last.values[:, k:],
        )
        return (found.chi2 if found.converged else np.inf), _Warm(found.values, found.states)

    return follow
