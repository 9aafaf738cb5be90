"""All checks of a model against a record, and the verdict in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from analysis.base.progress import SILENT, Progress
from analysis.base.record import Record
from analysis.base.words import percent
from analysis.experiment import Conditions
from analysis.experiment.curves import MeasuredCurve
from analysis.model import Model
from analysis.signal.frequency_response import FrequencyResponse
from analysis.validation.bifurcation import Sweep, check_bifurcation
from analysis.validation.check import Check
from analysis.validation.curves import check_curves
from analysis.validation.dimension import check_dimension
from analysis.validation.equilibria import check_equilibria, rest_states
from analysis.validation.exponents import check_exponents, model_spectrum
from analysis.validation.force import check_force
from analysis.validation.held import HeldMotion, check_held
from analysis.validation.orbits import check_orbits
from analysis.validation.reading import read_subject
from analysis.validation.residuals import check_residuals
from analysis.validation.response import check_response
from analysis.validation.section import check_section
from analysis.validation.transfer import check_transfer


@dataclass(frozen=True, eq=False)
class Validation:
    """Every check in order, and what they amount to."""

    checks: tuple[Check, ...]
    passed: bool  # nothing failed, and more passed than is in doubt
    verdict: str

    def __getitem__(self, name: str) -> Check:
        return next(check for check in self.checks if check.name == name)


def validate(
    model: Model,
    record: Record,
    values: Mapping[str, float],
    progress: Progress = SILENT,
    *,
    frequency: float | None = None,
    others: Sequence[Record] = (),
    transfer: FrequencyResponse | Record | None = None,
    sweep: Sweep | None = None,
    stated: float | None = None,
    curves: Sequence[MeasuredCurve] = (),
    held: Sequence[HeldMotion] = (),
    conditions: Conditions | None = None,
) -> Validation:
    """Put the model with these parameter values beside the record.

    ``frequency`` of the drive where the record does not say it; ``others`` are recordings at other settings
    of the drive; ``transfer`` a measured transfer function or a recording under a broadband input; ``sweep``
    what the bifurcation diagram is drawn over; ``stated`` the share of the motion that an
    identification that is close says it misses: the model has to keep to it; ``curves`` are measured response
    curves and backbones, ``held`` orbits that were held on the rig; ``conditions`` say how the channels are
    to be read, where that was stated.
    """
    progress.report(0.0, "reading the record")
    subject = read_subject(model, record, values, frequency, conditions)
    parts = iter(_shares(progress))
    part = next(parts)
    spectrum = model_spectrum(subject, part)
    exponent = float(spectrum.exponents[0]) if spectrum is not None and not subject.fading else 0.0
    rests = rest_states(subject)
    steps: list[Callable[[Progress], Check]] = [
        lambda p: check_response(subject, exponent, p),
        lambda p: check_residuals(subject, p, stated or 0.0),
        lambda p: check_orbits(subject, p),
        lambda p: check_exponents(subject, spectrum),
        lambda p: check_dimension(subject),
        lambda p: check_section(subject),
        lambda p: check_bifurcation(subject, sweep or Sweep(), others, p),
        lambda p: check_force(subject),
    ]
    checks = []
    for step, share in zip(steps, parts, strict=True):
        share.report(0.0, "checking")
        checks.append(step(share))
    crossing, measured = check_transfer(subject, transfer, rests)
    checks += [check_equilibria(subject, rests, measured), crossing]
    if curves:
        checks.append(check_curves(model, values, curves))
    if held:
        checks.append(check_held(subject, held))
    progress.report(1.0, "done")
    return judged(tuple(checks), stated)


def _shares(progress: Progress) -> list[Progress]:
    """Parts of the whole: exponents first, then each check."""
    edges = (0.02, 0.12, 0.25, 0.45, 0.65, 0.75, 0.85, 0.88, 0.97, 1.0)
    return [progress.part(a, b) for a, b in pairwise(edges)]


def judged(checks: tuple[Check, ...], stated: float | None = None) -> Validation:
    """The verdict: rejected by any failure, by residuals that are not noise and were not stated beforehand,
    and when doubts prevail."""
    names: dict[str, list[str]] = {"passed": [], "doubtful": [], "failed": [], "not possible": []}
    for check in checks:
        names[check.status].append(check.title.lower().replace("lyapunov", "Lyapunov"))
    made = len(checks) - len(names["not possible"])
    if not made:
        return Validation(checks, False, "Nothing could be checked.")
    passed = f"{len(names['passed'])} of {made} checks passed"
    doubts = f", with doubts about {_listed(names['doubtful'])}" if names["doubtful"] else ""
    if names["failed"]:
        words = f"The model is NOT validated: {_listed(names['failed'])} failed"
        return Validation(checks, False, f"{words}, {passed}.")
    if stated is not None:
        share = f"beyond the {percent(stated)} that it misses" if stated > 0 else "here"
        return Validation(checks, True, f"The model is close, as identified: nothing failed {share}{doubts}.")
    if lacking := _lacking(checks):
        words = f"The model is NOT validated: it is close, but {lacking}"
        return Validation(checks, False, f"{words}; {passed}{doubts}.")
    if names["doubtful"] and len(names["passed"]) <= len(names["doubtful"]):
        words = f"The model is NOT validated: there are doubts about {_listed(names['doubtful'])}"
        return Validation(checks, False, f"{words}, {passed}.")
    return Validation(checks, True, f"The model is validated: {passed}{doubts}.")


def _lacking(checks: Sequence[Check]) -> str:
    """What a model that is close leaves in the residuals; empty if nothing."""
    for check in checks:
        if check.name == "residuals" and check.status == "doubtful":
            share = 100 * check.numbers.get("systematic_of_spread", float("nan"))
            return f"its residuals hold {share:.2g} % of the motion that is not the sensor's noise"
    return ""


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
