"""Profile likelihood: how far a parameter can go while all the others follow it.

For each value of the chosen parameter the misfit is minimised over all other unknowns. The 95 % interval ends
where chi-square has risen by 3.84 (A. Raue et al., Bioinformatics 25 (2009) 1923). Unlike the standard error
it need not be symmetric, and it can be open: then the data set no limit on that side, which is said in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from analysis.base.errors import ModelError
from analysis.base.identification import Z95, Curve, Estimate, Identification, Profiled, with_bounds
from analysis.base.progress import SILENT, Progress

Warm = TypeVar("Warm")  # the other unknowns as last found, from where the next search starts
Follow = Callable[[float, Warm], tuple[float, Warm]]  # value -> least chi-square over all others

_STRIDE = 0.4  # rise of the root of chi-square between two points of the profile
_MOST_STEPS = 25  # on one side; the stride triples where the profile is flat
_AT_THE_END = 0.005  # accuracy of the root of the rise at the end of the interval
_BETTER = 0.05  # a fall of chi-square that means that the fit was not the best one


@dataclass(frozen=True, eq=False)
class _Side:
    """A profile traced one way: points in the order of tracing, and where the interval ends."""

    values: list[float]
    rises: list[float]
    end: float  # of the 95 % interval, or the bound, or infinite
    open: bool  # the data set no limit before the end


@dataclass(frozen=True, eq=False)
class Profile:
    """Rise of the least chi-square (units of the noise's variance) over one parameter, and its interval."""

    name: str
    unit: str
    best: float
    values: list[float]  # ascending
    rises: list[float]
    lower: float  # end of the 95 % interval; infinite where the data set none
    upper: float
    open_below: bool  # the data set no limit down to ``lower``
    open_above: bool

    def curve(self) -> Curve:
        label = f"{self.name} [{self.unit}]" if self.unit else self.name
        return Curve(self.values, self.rises, self.rises, self.rises, label, "rise of chi-square")

    def sentence(self) -> str:
        """The 95 % interval in words."""
        if not (self.open_below or self.open_above):
            below, above = self.best - self.lower, self.upper - self.best
            value, less, more = with_bounds(self.best, below, above)
            return f"{self.name} = {value} (-{less}, +{more}; 95 %, profile likelihood)."
        if self.open_below and self.open_above:
            words = f"The data set no limit to {self.name} on either side"
        elif self.open_below:
            words = (
                f"{self.name} is at most {self.upper:.4g}; the data set no lower limit{_bound(self.lower)}"
            )
        else:
            words = (
                f"{self.name} is at least {self.lower:.4g}; the data set no upper limit{_bound(self.upper)}"
            )
        return f"{words} (95 %, profile likelihood)."

    def better(self) -> str:
        """A sentence if a better fit was met on the way, else nothing."""
        least = int(np.argmin(self.rises))
        if self.rises[least] > -_BETTER:
            return ""
        return (
            f"A better fit was met at {self.name} = {self.values[least]:.5g}: run again with that guess, the "
            "interval means nothing yet."
        )


def _bound(end: float) -> str:
    return f" within its bound {end:.4g}" if np.isfinite(end) else ""


def trace_profile(
    name: str,
    estimate: Estimate,
    follow: Follow[Warm],
    start: Warm,
    chi2: float,
    bounds: tuple[float, float],
    logarithmic: bool = False,
    progress: Progress = SILENT,
) -> Profile:
    """The profile of one parameter from its estimate outwards, both sides.

    ``chi2`` is the least chi-square, met at ``start``; a ``logarithmic`` parameter is stepped by factors.
    Each point is reported as it comes, as ``value`` and ``rise``.
    """

    def value(coordinate: float) -> float:
        return float(np.exp(coordinate)) if logarithmic else coordinate

    def follow_coordinate(coordinate: float, last: Warm) -> tuple[float, Warm]:
        return follow(min(max(value(coordinate), bounds[0]), bounds[1]), last)

    best = float(np.log(estimate.value)) if logarithmic else estimate.value
    ends = (float(np.log(bounds[0])), float(np.log(bounds[1]))) if logarithmic else bounds
    error = estimate.stderr / estimate.value if logarithmic else estimate.stderr
    size = 1.0 if logarithmic else abs(best) or 1.0  # a factor e, or the parameter itself
    span = 0.5 * (ends[1] - ends[0]) if np.isfinite(ends[1] - ends[0]) else size
    step = min(error, span) if np.isfinite(error) and error > 0 else 0.1 * span

    def teller(part: Progress) -> Callable[[float, float], None]:
        def tell(coordinate: float, rise: float) -> None:
            done = min(np.sqrt(max(rise, 0.0)) / Z95, 1.0)
            part.report(done, f"profile of {name}", value=value(coordinate), rise=rise)

        return tell

    down = _side(follow_coordinate, start, best, -step, chi2, ends[0], teller(progress.part(0.0, 0.5)))
    up = _side(follow_coordinate, start, best, step, chi2, ends[1], teller(progress.part(0.5, 1.0)))
    pairs = [(value(c), rise) for side in (down, up) for c, rise in zip(side.values, side.rises, strict=True)]
    pairs = sorted([*pairs, (estimate.value, 0.0)])
    return Profile(
        name,
        estimate.unit,
        estimate.value,
        [v for v, _ in pairs],
        [rise for _, rise in pairs],
        value(down.end) if np.isfinite(down.end) else down.end,
        value(up.end) if np.isfinite(up.end) else up.end,
        down.open,
        up.open,
    )


def _side(
    follow: Follow[Warm],
    warm: Warm,
    best: float,
    step: float,
    chi2: float,
    bound: float,
    tell: Callable[[float, float], None],
) -> _Side:
    values: list[float] = []
    rises: list[float] = []
    here, root, stride = best, 0.0, _STRIDE * step

    def root_at(value: float) -> float:
        nonlocal warm
        least, found = follow(value, warm)
        if not np.isfinite(least):
            return np.nan
        warm = found
        values.append(value)
        rises.append(least - chi2)
        tell(value, least - chi2)
        return float(np.sqrt(max(least - chi2, 0.0)))

    for _ in range(_MOST_STEPS):
        target = here + stride
        at_bound = (target - bound) * np.sign(step) >= 0
        target = bound if at_bound else target
        if target == here:
            return _Side(values, rises, bound, True)
        reached = root_at(target)
        if np.isnan(reached):  # no motion there: nearer
            stride *= 0.3
            continue
        if reached >= Z95:
            return _Side(values, rises, _crossing(root_at, here, root, target, reached), False)
        if at_bound:
            return _Side(values, rises, bound, True)
        gain = reached - root
        stride *= float(np.clip(_STRIDE / gain, 1 / 3, 3.0)) if gain > 0 else 3.0
        here, root = target, reached
    return _Side(values, rises, float(np.sign(step)) * np.inf, True)


def _crossing(
    root_at: Callable[[float], float], inside: float, low: float, outside: float, high: float
) -> float:
    """Where the root of the rise passes 1.96, between a value inside and one outside.

    The root is nearly straight where the parameter is well determined; where it is not, halving helps.
    """
    halve = False
    for _ in range(_MOST_STEPS):
        straight = inside + (Z95 - low) / (high - low) * (outside - inside)
        if min(abs(high - Z95), abs(low - Z95)) < _AT_THE_END:
            break
        middle = 0.5 * (inside + outside) if halve else straight
        width = abs(outside - inside)
        root = root_at(middle)
        if root < Z95:
            inside, low = middle, root
        else:  # no motion there counts as outside
            outside, high = middle, (high if np.isnan(root) else root)
        halve = not halve and abs(outside - inside) > 0.5 * width
    return straight


def chosen(asked: Sequence[str], known: Sequence[str]) -> list[str]:
    """The parameters to be profiled; ``all`` stands for every one."""
    if "all" in asked:
        return list(known)
    for name in asked:
        if name not in known:
            raise ModelError(f"There is no free parameter `{name}` to profile: {', '.join(known)}, or all.")
    return list(asked)


def with_profiles(result: Identification, profiles: Sequence[Profile]) -> Identification:
    """The result with the profiles' intervals instead of the symmetric ones, their curves and words."""
    parameters = dict(result.parameters)
    for profile in profiles:
        estimate = parameters[profile.name]
        parameters[profile.name] = replace(estimate, lower=profile.lower, upper=profile.upper)
    words = {p.name: p.sentence() for p in profiles}
    limitless = [words[p.name] for p in profiles if p.open_below or p.open_above]
    return replace(
        result,
        parameters=parameters,
        curves={**result.curves, **{f"profile of {p.name}": p.curve() for p in profiles}},
        undetermined=[*result.undetermined, *limitless],
        warnings=[*result.warnings, *(p.better() for p in profiles if p.better())],
        profiles={**result.profiles, **{p.name: Profiled(p.lower, p.upper, words[p.name]) for p in profiles}},
    )
