"""Does the model fit the data? Verdict, reasons and honest error bars of a fit.

The verdict comes from evidence that the fit could not make for itself: whiteness of what is left, its size
beside the sensor's own noise, traces of the inputs in it, agreement of parts and records, terms that would
explain it, prediction of data that were held out. Each test has a rate of false alarms; together they stay
below two in a hundred (see docs/explanation/verdict.md, where they are counted).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Z95, Curve
from analysis.base.progress import SILENT, Progress
from analysis.base.words import rounded
from analysis.estimate.finish.errors import ROUNDING, ErrorBars, error_bars, noiseless_bars
from analysis.estimate.finish.evidence import NOISELESS, Evidence, gather
from analysis.estimate.finish.fitted import RIVALS, Fitted
from analysis.estimate.finish.linearised import joined
from analysis.estimate.finish.missing_force import missing_force
from analysis.estimate.finish.rivals import Rival, rival
from analysis.estimate.finish.running_on import does_not_last
from analysis.estimate.finish.sampling import alias
from analysis.estimate.finish.time_unit import time_unit_words
from analysis.estimate.finish.twins import twin
from analysis.estimate.identifiability import covariance_of, pseudo_inverse, undetermined_parameters
from analysis.estimate.start import Start
from analysis.experiment.drive_time import DRIVE_TIME
from analysis.experiment.units import unit_words

Array = NDArray[np.float64]

SMALL_SHARE = 0.17  # of the spread, rms: what `close` may miss (97 % of the variance explained)
_ABSURD = 1e6  # a value so many times its guess is no estimate
_FAR_OFF = 100.0  # a guess so many times off is worth a sentence: a wrong unit, a rate, an aliased motion
_PUSHED = 2.0  # standard errors by which the data ask for a value beyond a bound
_SIGNAL = 0.05  # share of the variance explained below which there is nothing to judge


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a person must know before using the numbers of a fit."""

    verdict: str  # fits | close | misses | cannot tell; empty: not judged
    reasons: list[str]  # sentences, each with its number
    estimate: Array  # [P] of the unknowns, as reported
    covariance: Array  # [P, P] as reported; undetermined unknowns have infinite variance
    quantile: Array  # [P] half-width of the 95 % interval over the standard error
    warnings: list[str] = field(default_factory=list)
    findings: dict[str, Any] = field(default_factory=dict)  # figures behind the verdict, JSON values only
    curves: dict[str, Curve] = field(default_factory=dict)  # what is missing, where something is
    better: Start | None = None  # other numbers that follow the record better: the fit is to go on from there


def judge(fitted: Fitted, progress: Progress = SILENT) -> Judgement:
    """Verdict, reasons and error bars of a fit."""
    if not np.all(np.isfinite(fitted.estimate)) or not all(
        np.isfinite(p.states).all() for p in fitted.pieces
    ):
        return _ideal(fitted, _unusable(fitted, fitted.converged))
    evidence = gather(fitted)
    # a search among rounding errors has nowhere to end; a path may still miss its equations
    rounding = evidence.noiseless and fitted.findings.get("defect", 0.0) < NOISELESS
    unusable = _unusable(fitted, fitted.converged or rounding)
    bars = noiseless_bars(fitted) if evidence.noiseless else error_bars(fitted, evidence, progress)
    elsewhere = None if unusable else _elsewhere(fitted, progress)
    unusable += _at_bounds(fitted, evidence, bars)
    unusable += [elsewhere.words] if elsewhere else []
    unusable += [words] if (words := time_unit_words(fitted)) else []
    leaves = "" if unusable else does_not_last(fitted)
    verdict, reasons = _verdict(evidence, bars, unusable, _units(fitted), leaves)
    covariance = np.array(bars.errors.covariance)
    for i in (*_undetermined(fitted), *(elsewhere.concerned if elsewhere else ())):
        covariance[i, i] = np.inf
    quantile = np.full(len(fitted.estimate), bars.errors.quantile)
    findings = {**evidence.figures(), **bars.figures()}
    curves: dict[str, Curve] = {}
    reasons += _far_from_guess(fitted)
    if evidence.lacking and verdict != "fits" and not unusable:
        curves, words = missing_force(fitted, evidence.linear, evidence.excerpts, evidence.lacking)
        reasons += [words] if words else []
    better = elsewhere.better if elsewhere else None
    return Judgement(verdict, reasons, bars.estimate, covariance, quantile, [], findings, curves, better)


def _elsewhere(fitted: Fitted, progress: Progress) -> Rival | None:
    """Other numbers that follow the record better, else such that follow it as well."""
    first = alias(fitted, progress) or rival(fitted, progress)
    if first is not None and first.better is not None:
        return first
    second = twin(fitted)
    return second if first is None or (second is not None and second.better is not None) else first


def _ideal(fitted: Fitted, reasons: list[str]) -> Judgement:
    covariance = covariance_of(fitted.information) + fitted.input_covariance
    quantile = np.full(len(fitted.estimate), Z95)
    return Judgement("cannot tell", reasons, fitted.estimate, covariance, quantile)


def _verdict(
    evidence: Evidence, bars: ErrorBars, unusable: list[str], units: list[str], leaves: str
) -> tuple[str, list[str]]:
    against = [*units, *evidence.against(), *bars.against()]
    if unusable:
        return "cannot tell", [*unusable, *against]
    if leaves:
        return "misses", [leaves, *against]
    if evidence.noiseless:
        words = (
            f"The record shows no noise: what is left is {max(evidence.left.values()):.1g} of the spread. "
            f"The errors are those of a noise of {ROUNDING:g} of it."
        )
        return ("close" if units else "fits"), [*units, words]
    if evidence.explained < _SIGNAL:
        share = f"{100 * evidence.explained:.2g} %"
        words = f"The model explains {share} of the variance: there is nothing to judge."
        return ("misses" if against else "cannot tell"), [words, *against]
    if not against:
        return "fits", [*evidence.supporting(), *bars.supporting(), *evidence.notes()]
    verdict = "misses" if evidence.missed > SMALL_SHARE else "close"
    return verdict, [*against, *evidence.notes()]


def _unusable(fitted: Fitted, ended: bool) -> list[str]:
    """What makes the numbers unusable whatever the residuals say."""
    words = []
    if not ended:
        words.append("The search did not end: the numbers are where it stopped.")
    if not np.all(np.isfinite(fitted.estimate)):
        words.append("The estimate is not finite.")
        return words
    names = [fitted.names[i] for i in _undetermined(fitted)]
    if names:
        words.append(f"The data do not determine {', '.join(names)}.")
    if not names and _none_is_known(fitted):
        words.append("No parameter is known to better than its own size.")
    if fitted.dof <= 0:
        words.append(f"There are no more samples than unknowns ({len(fitted.estimate)}).")
    return [*words, *fitted.start.findings.get(RIVALS, []), *_absurd(fitted)]


def _undetermined(fitted: Fitted) -> list[int]:
    """Unknowns without any trace in the data: a direction of no information, or an error that is absurd.

    The second kind is what an unknown initial state takes up: of its information only rounding is left.
    """
    found = set(undetermined_parameters(fitted.information))
    error = np.sqrt(np.diag(covariance_of(fitted.information)))
    parameters = list(fitted.experiment.model.parameters.values())
    for i, (unknown, value) in enumerate(zip(fitted.unknowns, fitted.estimate, strict=True)):
        if unknown.kind == "parameter":
            size = max(abs(float(value)), abs(parameters[unknown.index].value))
            if size > 0 and error[i] > _ABSURD * size:
                found.add(i)
    return sorted(found)


def _units(fitted: Fitted) -> list[str]:
    """Sentences on channels whose units contradict the model's: the parameters are in neither."""
    given, records = fitted.experiment.given, fitted.experiment.records
    return list(dict.fromkeys(words for record in records for words in unit_words(given, record)))


def _none_is_known(fitted: Fitted) -> bool:
    error = np.sqrt(np.diag(covariance_of(fitted.information)))
    parameters = np.array([u.kind == "parameter" for u in fitted.unknowns])
    return bool(parameters.any() and np.all(error[parameters] > np.abs(fitted.estimate[parameters])))


def _absurd(fitted: Fitted) -> list[str]:
    """Values far from any guess; the drive's time has none, and a scan for one costs more than the fit."""
    words = []
    guesses = list(fitted.experiment.model.parameters.items())
    for unknown, value in zip(fitted.unknowns, fitted.estimate, strict=True):
        if unknown.kind != "parameter":
            continue
        name, parameter = guesses[unknown.index]
        guess = parameter.value
        if name != DRIVE_TIME and guess != 0 and abs(value) > _ABSURD * abs(guess):
            words.append(f"{unknown.name} = {value:.3g} is {abs(value / guess):.1g} times its guess.")
    return words


def _far_from_guess(fitted: Fitted) -> list[str]:
    """Sentences on parameters that are known well and nowhere near their guess."""
    words = []
    error = np.sqrt(np.diag(covariance_of(fitted.information)))
    parameters = list(fitted.experiment.model.parameters.values())
    for unknown, value, own in zip(fitted.unknowns, fitted.estimate, error, strict=True):
        guess = parameters[unknown.index].value if unknown.kind == "parameter" else 0.0
        if unknown.name == DRIVE_TIME or guess == 0 or not 0 < own < abs(value):
            continue
        ratio = abs(value / guess)
        if not 1 / _FAR_OFF < ratio < _FAR_OFF:
            times = f"{rounded(ratio)} times" if ratio > 1 else f"1/{rounded(1 / ratio)} of"
            words.append(
                f"{unknown.name} = {value:.4g} is {times} its guess {guess:g}: are units and rate right?"
            )
    return words


def _at_bounds(fitted: Fitted, evidence: Evidence, bars: ErrorBars) -> list[str]:
    """Parameters that the data would take well beyond their bounds, if they were let."""
    held = [
        i
        for i, (u, value) in enumerate(zip(fitted.unknowns, fitted.estimate, strict=True))
        if value <= u.lower or value >= u.upper
    ]
    if not held:
        return []
    information, score = joined(evidence.regressions)
    step = pseudo_inverse(information) @ score
    words = []
    for i in held:
        u, value = fitted.unknowns[i], float(fitted.estimate[i])
        outward = float(step[i] if value >= u.upper else -step[i]) / max(float(bars.errors.stderr[i]), 1e-300)
        if outward > _PUSHED:
            words.append(
                f"{u.name} lies on its bound {value:g}; the data ask for a value {outward:.1f} standard "
                "errors beyond it."
            )
    return words
