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
from analysis.base.words import percent, rounded
from analysis.estimate.finish.errors import ROUNDING, ErrorBars, asked_by, error_bars, noiseless_bars
from analysis.estimate.finish.evidence import NOISELESS, RARE, Evidence, Figures, gather
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.laws import law_words
from analysis.estimate.finish.missing_force import missing_force
from analysis.estimate.finish.rivals import Rival, rival
from analysis.estimate.finish.running_on import does_not_last
from analysis.estimate.finish.sampling import alias
from analysis.estimate.finish.score import Missing
from analysis.estimate.finish.smooth_curves import with_smoothness
from analysis.estimate.finish.time_unit import time_unit_words
from analysis.estimate.finish.twins import twin
from analysis.estimate.identifiability import covariance_of, pseudo_inverse, undetermined_parameters
from analysis.estimate.observability import shown_at_an_instant
from analysis.estimate.shooting.problem import MOST_SUBSTEPS
from analysis.estimate.start import Start
from analysis.experiment.drive_time import DRIVE_TIME
from analysis.experiment.units import unit_words

Array = NDArray[np.float64]

SMALL_SHARE = 0.17  # of the spread, rms: what `close` may miss (97 % of the variance explained)
_ABSURD = 1e6  # a value so many times its guess is no estimate
_FAR_OFF = 100.0  # a guess so many times off is worth a sentence: a wrong unit, a rate, an aliased motion
_BEYOND = 2.0  # standard errors by which a missing term must move a parameter to be worth a sentence
_SMALL_TERM = 0.3  # share of the force up to which the first order tells about what a missing term changes
_PUSHED = 2.0  # standard errors by which the data ask for a value beyond a bound
_RESOLVED = 1e-9  # of a state's range: a first value known better is known better than it is integrated
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
    figures: Figures = field(default_factory=Figures)  # numbers behind the verdict
    findings: dict[str, Any] = field(default_factory=dict)  # others that a result lists, JSON values only
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
    rounding = evidence.noiseless and (fitted.defect or 0.0) < NOISELESS
    unusable = _unusable(fitted, fitted.converged or rounding)
    bars = noiseless_bars(fitted) if evidence.noiseless else error_bars(fitted, evidence, progress)
    elsewhere = None if unusable else _elsewhere(fitted, progress)
    unusable += _at_bounds(fitted, evidence, bars)
    unusable += [elsewhere.words] if elsewhere else []
    unusable += [words] if (words := time_unit_words(fitted)) else []
    unusable += _units(fitted, sure=True)
    leaves = "" if unusable else does_not_last(fitted)
    verdict, reasons = _verdict(evidence, bars, unusable, _units(fitted), leaves)
    covariance = np.array(bars.errors.covariance)
    for i in (*_undetermined(fitted), *(elsewhere.concerned if elsewhere else ())):
        covariance[i, i] = np.inf
    quantile = np.full(len(fitted.estimate), bars.errors.quantile)
    findings = {**evidence.findings(), **bars.figures()}
    curves: dict[str, Curve] = {}
    reasons += _far_from_guess(fitted)
    if evidence.lacking and verdict != "fits" and not unusable:
        curves, words = missing_force(fitted, evidence.linear, evidence.excerpts, evidence.lacking)
        reasons += [words] if words else []
    better = elsewhere.better if elsewhere else None
    warnings: list[str] = []
    if verdict == "close" and evidence.lacking:
        reasons += _numbers_with_the_term(fitted, evidence.lacking[0], bars)
    elif verdict in ("fits", "close"):
        warnings = law_words(fitted, evidence, bars.errors.stderr)
    return Judgement(
        verdict,
        reasons,
        bars.estimate,
        covariance,
        quantile,
        warnings,
        evidence.figures(),
        findings,
        curves,
        better,
    )


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
    against = [*(u for u in units if u not in unusable), *evidence.against(), *bars.against()]
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
        share = percent(evidence.explained)
        words = f"The model explains {share} of the variance: there is nothing to judge."
        return ("misses" if against else "cannot tell"), [words, *against]
    if not against:
        return "fits", [*evidence.supporting(), *bars.supporting(), *evidence.notes()]
    verdict = "misses" if evidence.missed > SMALL_SHARE else "close"
    return verdict, [*against, *evidence.notes()]


def _numbers_with_the_term(fitted: Fitted, missing: Missing, bars: ErrorBars) -> list[str]:
    """What the parameters would be, to first order, if the surest of the missing terms were fitted, too.

    The intervals are those of the best approximation without it, and do not reach there.
    """
    if not missing.text or missing.share > _SMALL_TERM:
        return []
    moved = []
    for unknown, value, change, error in zip(
        fitted.unknowns, bars.estimate, missing.shift, bars.errors.stderr, strict=True
    ):
        if not unknown.lower <= value + change <= unknown.upper:
            return []
        if unknown.kind == "parameter" and _BEYOND * error < abs(change) < np.inf:
            moved.append(f"{unknown.name} = {value + change:.3g} (not {value:.3g})")
    if not moved:
        return []
    return [
        f"With {missing.name} in {missing.place} fitted, too, the numbers would be about {', '.join(moved)}: "
        "the error bars are those of the best numbers without it."
    ]


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
    elif not names and _all_may_be_zero(fitted):
        words.append(
            "The record is followed as well with all parameters zero: what they stand for does not show. Is "
            "every channel what the model takes it for (a force, and not an acceleration)?"
        )
    if fitted.dof <= 0:
        words.append(f"There are no more samples than unknowns ({len(fitted.estimate)}).")
    return [*words, *_on_an_edge(fitted), *fitted.start.rivals, *absurd(fitted)]


def _undetermined(fitted: Fitted) -> list[int]:
    """Unknowns without any trace in the data: a direction of no information, or an error that is absurd.

    The second kind is what an unknown initial state takes up: of its information only rounding is left.
    """
    information = with_smoothness(fitted)
    found = set(undetermined_parameters(information))
    error = np.sqrt(np.diag(covariance_of(information)))
    for i, (unknown, size) in enumerate(zip(fitted.unknowns, _sizes(fitted), strict=True)):
        if unknown.kind == "parameter" and size > 0 and error[i] > _ABSURD * size:
            found.add(i)
    return sorted(found)


def _sizes(fitted: Fitted) -> list[float]:
    """Of each unknown, by its value and its guess; of a function's coefficient that of the function."""
    model = fitted.experiment.model
    guesses = [p.value for p in model.parameters.values()]
    sizes = [
        max(abs(float(value)), abs(guesses[u.index]) if u.kind == "parameter" else 0.0)
        for u, value in zip(fitted.unknowns, fitted.estimate, strict=True)
    ]
    for name, function in model.equations.functions.items():
        own = set(function.coefficients(name))
        places = [i for i, unknown in enumerate(fitted.unknowns) if unknown.name in own]
        largest = max((sizes[i] for i in places), default=0.0)
        for i in places:
            sizes[i] = largest
    return sizes


def _units(fitted: Fitted, sure: bool = False) -> list[str]:
    """Sentences on channels whose units contradict the model's: the parameters are in neither."""
    given, records = fitted.experiment.given, fitted.experiment.records
    return list(dict.fromkeys(words for record in records for words in unit_words(given, record, sure)))


def _on_an_edge(fitted: Fitted) -> list[str]:
    """The state whose first value is held more sharply than numbers resolve: the errors mean nothing there.

    It lies where a stiff motion turns away (on an unstable rest, such as that of a fast reaction below zero),
    to which a free first value of a hidden state is drawn, as nothing else determines it.
    """
    if fitted.engine != "shooting" or not fitted.steps > MOST_SUBSTEPS:
        return []
    sharpest, words = _RESOLVED**-2, ""
    for piece in fitted.pieces:
        known = shown_at_an_instant(fitted.experiment.model, piece.run)
        if piece.first == 0:
            known = known | piece.run.initial_known
        sharpness = np.where(
            known, 0.0, np.diag(piece.initial_information) * np.ptp(piece.states, axis=1) ** 2
        )
        i = int(np.argmax(sharpness))
        if sharpness[i] > sharpest:
            sharpest, name = float(sharpness[i]), fitted.experiment.model.states[i]
            words = (
                f"The first value of {name} ({piece.states[i, 0]:.3g}) lies on an edge of the motion, where "
                f"error bars mean nothing: bounds of {name} in [initial], such as lower = 0, keep it off."
            )
    return [words] if words else []


def _none_is_known(fitted: Fitted) -> bool:
    error = np.sqrt(np.diag(covariance_of(fitted.information)))
    parameters = np.array([u.kind == "parameter" for u in fitted.unknowns])
    return bool(parameters.any() and np.all(error[parameters] > np.abs(fitted.estimate[parameters])))


def _all_may_be_zero(fitted: Fitted) -> bool:
    """Whether several parameters together differ from zero by no more than chance."""
    from scipy.special import chdtrc

    places = [i for i, u in enumerate(fitted.unknowns) if u.kind == "parameter"]
    if len(places) < 2:
        return False
    others = [i for i in range(len(fitted.unknowns)) if i not in set(places)]
    M, estimate = fitted.information, fitted.estimate[places]
    through = pseudo_inverse(M[np.ix_(others, others)]) @ M[np.ix_(others, places)] @ estimate
    distance = float(estimate @ (M[np.ix_(places, places)] @ estimate - M[np.ix_(places, others)] @ through))
    return bool(chdtrc(len(places), distance) > RARE)


def absurd(fitted: Fitted) -> list[str]:
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
        for i, (u, value) in enumerate(zip(fitted.unknowns, bars.estimate, strict=True))
        if value <= u.lower or value >= u.upper
    ]
    if not held:
        return []
    step = asked_by(evidence.regressions) if bars.asked is None else bars.asked
    words = []
    for i in held:
        u, value = fitted.unknowns[i], float(bars.estimate[i])
        outward = float(step[i] if value >= u.upper else -step[i]) / max(float(bars.errors.stderr[i]), 1e-300)
        if outward > _PUSHED:
            words.append(
                f"{u.name} lies on its bound {value:g}; the data ask for a value {outward:.1f} standard "
                "errors beyond it."
            )
    return words
