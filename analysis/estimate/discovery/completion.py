"""A model with what it lacks: terms and faults of channels that the score test names, taken in one by one.

The records' last quarter is set aside. The model is fitted to the rest; the score test (see finish/score.py)
names what would explain the residuals; the likeliest are fitted, each by itself, and the one that predicts
the quarter set aside best is kept if it predicts it better than before, block by block. So it goes on until
nothing is named, or nothing named predicts better. At last all records are fitted and judged.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ShakedownError
from analysis.base.identification import Estimate, Identification
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Record
from analysis.estimate.finish import finish
from analysis.estimate.finish.channels import DELAY, DISPERSION, OFFSET, dispersion
from analysis.estimate.finish.evidence import lacking
from analysis.estimate.finish.fit import fit, run_engine
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.linearised import linearisations, regressions_of
from analysis.estimate.finish.score import Missing
from analysis.estimate.methods import entry
from analysis.estimate.shooting.build import problem_of, start_point
from analysis.estimate.shooting.grow import grow
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment
from analysis.model import Model
from analysis.model.reading import from_tables

Array = NDArray[np.float64]

MOST = 6  # additions
_SET_ASIDE = 0.25  # of every record
_SHORTEST = 80  # samples of a record of which a quarter can be set aside
_TRIED = 3  # candidates that are fitted at each step
_BLOCKS = 20  # of the quarter set aside, whose errors are compared
_BETTER = 2.0  # standard errors by which the prediction must be better
_SETTLED = 0.2  # standard errors by which a dispersion may still move
_ROUNDS = 4  # of fit and new dispersion
_REACH = 100.0  # factor up and down within which the scale of a term is searched
_QUOTIENT = re.compile(r"\((?P<sum>.*)\)\s*/\s*(?P<mass>[A-Za-z]\w*)$", re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One addition: what it is, how sure, and the error before and after it."""

    added: str  # such as `v*abs(v) in dv/dt`; empty: the model as given
    t: float  # of the score test
    fitted: dict[str, float]  # rms of what is left of each output, of the part that was fitted
    predicted: dict[str, float]  # the same of the part set aside


@dataclass(frozen=True, eq=False)
class Completion:
    """The completed model, its fit to all records, and the way to it."""

    model: Model
    conditions: Conditions
    result: Identification
    steps: tuple[Step, ...]
    refused: tuple[str, ...]  # named by the last score test, but of no help in predicting


@dataclass(frozen=True, eq=False)
class _Trial:
    """A model with its conditions, fitted to the larger part, and its errors in the part set aside."""

    model: Model
    conditions: Conditions
    fitted: Fitted
    errors: list[Array]  # [q, N] of each record

    @property
    def predicted(self) -> dict[str, float]:
        return _rms(self.model, self.errors)

    @property
    def left(self) -> dict[str, float]:
        return _rms(self.model, [piece.residuals for piece in self.fitted.pieces])


def complete(
    model: Model,
    records: Record | Sequence[Record],
    method: str = "auto",
    conditions: Conditions | None = None,
    progress: Progress = SILENT,
    most: int = MOST,
) -> Completion:
    """The model with at most so many additions that the records ask for."""
    given = [records] if isinstance(records, Record) else list(records)
    here = _first(model, given, method, conditions or Conditions(), progress.part(0.0, 0.3))
    steps = [Step("", 0.0, here.left, here.predicted)]
    named: list[Missing] = []
    for number in range(most):
        share = 0.3 + 0.5 * number / most
        progress.report(share, f"{number} terms added")
        named = _named(here.fitted)
        trials = list(_trials(here, given, named))
        better = [(m, t) for m, t in trials if _predicts_better(here, t)]
        if not better:
            break
        missing, here = min(better, key=lambda pair: _size(pair[1], here))
        steps.append(Step(_words(missing), missing.t, here.left, here.predicted))
        named = []
    result, conditions = _finished(here, given, progress.part(0.8, 1.0))
    kept = {n: v for n, v in result.values().items() if n in here.model.parameters}
    refused = tuple(_words(m) for m in named[:_TRIED])
    return Completion(here.model.with_values(kept), conditions, result, tuple(steps), refused)


def _first(
    model: Model, records: list[Record], method: str, conditions: Conditions, progress: Progress
) -> _Trial:
    """The model as it was given."""
    whole = Experiment(model, records, conditions)
    part = whole.parts(_pieces(whole)[0], own_phases=False)
    load = entry(method).load
    if load is None:
        raise ShakedownError(f"Method {method} has no equations that could be completed: choose another one.")
    start = load()().start(part, progress)
    found = start.fitted or fit(part, start, progress)
    read = found.experiment.conditions  # a method may have found that the inputs are held
    return _judged(model, read, records, found)


def _judged(model: Model, conditions: Conditions, records: list[Record], fitted: Fitted) -> _Trial:
    whole = Experiment(model, records, conditions)
    apart = whole.parts(_pieces(whole)[1], own_phases=False).with_nothing_free(fitted.sigma)
    k = len(fitted.experiment.model.parameters)
    values, sensors = fitted.values[:, :k], fitted.values[:, k:]
    if fitted.engine == "path":
        predicted = run_engine(apart, Start("select", values, (), sensors))
        return _Trial(model, conditions, fitted, [piece.residuals for piece in predicted.pieces])
    problem = problem_of(apart)
    motion = grow(problem, start_point(apart, values, apart.start_states(values), sensors))
    if not np.isfinite(motion.cost):
        raise ShakedownError("The model's motion leaves the record that was set aside.")
    return _Trial(model, conditions, fitted, problem.residuals(motion.evaluation))


def _pieces(experiment: Experiment) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """The larger part of every record, and what is set aside."""
    fitted, apart = [], []
    for number, run in enumerate(experiment.runs):
        samples = len(run.times)
        if samples < _SHORTEST:
            raise DataError(
                f"A record has {samples} samples: a quarter of it is set aside to judge what is added to the "
                f"model, which takes {_SHORTEST} samples at least."
            )
        edge = round((1.0 - _SET_ASIDE) * samples)
        fitted.append((number, 0, edge))
        apart.append((number, edge, samples))
    return fitted, apart


def _named(fitted: Fitted) -> list[Missing]:
    """What the score test holds for missing, the surest first."""
    linear = linearisations(fitted)
    regressions, followed = regressions_of(fitted, linear)
    if not followed:
        return []
    found = [m for m in lacking(fitted, linear, regressions) if m.speaks_against]
    return [m for m in found if m.text or m.name in (OFFSET, DELAY, DISPERSION)]


def _trials(
    here: _Trial, records: list[Record], named: Sequence[Missing]
) -> Iterator[tuple[Missing, _Trial]]:
    """The surest of what is missing, each fitted by itself; and what gains more by its fit than the test can
    tell: a dispersion, and terms with a scale of their own."""
    chosen = list(named[:_TRIED])
    chosen += [m for m in named[_TRIED:] if m.name == DISPERSION or m.scale > 0]
    alike = {(m.text or m.name, m.place): m for m in reversed(chosen)}  # dry and saturating friction are one
    for missing in alike.values():
        try:
            trial = _added(here, records, missing)
        except (ShakedownError, np.linalg.LinAlgError):  # lost from there: no candidate
            continue
        if trial is not None:
            yield missing, trial


def _added(here: _Trial, records: list[Record], missing: Missing) -> _Trial | None:
    """The fit with one addition; None where it is there already or where the fit does not end."""
    model, conditions = here.model, here.conditions
    guesses: dict[str, float] = {}
    if missing.name == DISPERSION:
        return _with_dispersion(here, records, missing)
    if missing.name in (OFFSET, DELAY):
        outputs = (missing.place,) if missing.place in model.outputs else model.outputs
        there = conditions.offsets if missing.name == OFFSET else conditions.delays
        grown = tuple(dict.fromkeys((*there, *outputs)))
        if grown == there:
            return None
        if missing.name == OFFSET:
            conditions = replace(conditions, offsets=grown)
        else:
            conditions = replace(conditions, delays=grown)
    else:
        model, guesses = _with_term(model, missing, _values(here.fitted))
    return _fitted(here, model, conditions, records, guesses)


def _with_dispersion(here: _Trial, records: list[Record], missing: Missing) -> _Trial | None:
    """Fit and dispersion in turn: the records are read anew with each value."""
    trial: _Trial | None = here
    found: Missing | None = missing
    for _ in range(_ROUNDS):
        if trial is None or found is None or abs(found.coefficient) < _SETTLED * found.stderr:
            break
        more = trial.conditions.dispersion + found.coefficient
        conditions = replace(trial.conditions, dispersion=more)
        trial = _fitted(trial, trial.model, conditions, records, {})
        found = None if trial is None else _dispersion(trial.fitted)
    return trial


def _dispersion(fitted: Fitted) -> Missing | None:
    """By how much the dispersion should be another."""
    linear = linearisations(fitted)
    regressions, followed = regressions_of(fitted, linear)
    return next(iter(dispersion(fitted, linear, regressions)), None) if followed else None


def _fitted(
    near: _Trial, model: Model, conditions: Conditions, records: list[Record], guesses: dict[str, float]
) -> _Trial | None:
    whole = Experiment(model, records, conditions)
    part = whole.parts(_pieces(whole)[0], own_phases=False)
    found = fit(part, _start(part, near.fitted, guesses))
    return _judged(model, conditions, records, found) if found.converged else None


def _start(experiment: Experiment, near: Fitted, guesses: dict[str, float]) -> Start:
    """Where another fit ended, for a model with more parameters or records that are read anew."""
    before, known = near.as_start(), list(near.experiment.model.parameters)
    rows = experiment.guesses()
    for i, name in enumerate(experiment.model.parameters):
        if name in known:
            rows[:, i] = near.values[:, known.index(name)]
        elif name in guesses:
            rows[:, i] = guesses[name]
    return replace(before, values=rows)


def _values(fitted: Fitted) -> dict[str, float]:
    return dict(zip(fitted.experiment.model.parameters, fitted.values[0].tolist(), strict=False))


def _with_term(model: Model, missing: Missing, values: dict[str, float]) -> tuple[Model, dict[str, float]]:
    """The model with one more term, and where its parameters start.

    Of an equation written (forces)/m the term is one of the forces, with a minus as springs and dampers have.
    """
    tables: dict[str, Any] = tomllib.loads(model.to_toml())
    state = missing.place.removeprefix("d").removesuffix("/dt")
    coefficient = _free_name(model, "a")
    parameters = dict(tables.get("parameters", {}))
    guesses = {coefficient: missing.coefficient}
    text = missing.text
    if "{s}" in text:
        scale = _free_name(model, "s")
        text = text.replace("{s}", scale)
        bounds = {"lower": missing.scale / _REACH, "upper": missing.scale * _REACH}
        guesses[scale] = missing.scale
        parameters[scale] = {"guess": missing.scale, **bounds, "unit": model.unit(state)}
    equation = str(tables["states"][state])
    quotient = _QUOTIENT.match(equation)
    if quotient and _closed(quotient["sum"]) and quotient["mass"] in model.parameters:
        equation = f"({quotient['sum']} - {coefficient}*{text})/{quotient['mass']}"
        guesses[coefficient] *= -values[quotient["mass"]]
    else:
        equation = f"{equation} + {coefficient}*{text}"
    parameters[coefficient] = {"guess": guesses[coefficient]}
    tables["parameters"], tables["states"] = parameters, {**tables["states"], state: equation}
    return from_tables(tables, model.name), guesses


def _closed(text: str) -> bool:
    """Whether every bracket of a text is closed within it."""
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _free_name(model: Model, letter: str) -> str:
    known = model.equations
    taken = {*model.parameters, *known.states, *known.measured, *known.driven, *known.definitions}
    return next(f"{letter}{i}" for i in range(1, len(taken) + 2) if f"{letter}{i}" not in taken)


def _predicts_better(before: _Trial, after: _Trial) -> bool:
    """Whether the errors set aside are smaller by more than chance makes blocks of them differ: by the mean
    of the logarithms, so that one burst does not decide."""
    gains = []
    count = max(_BLOCKS // len(before.errors), 4)
    for a, b in zip(before.errors, after.errors, strict=True):
        for old, new in zip(a, b, strict=True):
            seen = np.isfinite(old) & np.isfinite(new)  # each reading has its own lost samples
            blocks = np.array_split(np.stack([old[seen], new[seen]]) ** 2, count, axis=1)
            powers = [np.maximum(block.mean(axis=1), 1e-300) for block in blocks if block.size]
            gains += [float(np.log(power[0] / power[1])) for power in powers]
    spread = float(np.std(gains, ddof=1)) / np.sqrt(len(gains))
    return float(np.mean(gains)) > _BETTER * spread


def _size(trial: _Trial, beside: _Trial) -> float:
    """Squared errors set aside over those of another fit, mean over the outputs."""
    ratios = [(trial.predicted[n] / value) ** 2 for n, value in beside.predicted.items() if value > 0]
    return float(np.mean(ratios))


def _rms(model: Model, rows: Sequence[Array]) -> dict[str, float]:
    found = {}
    for i, name in enumerate(model.outputs):
        known = np.concatenate([row[i] for row in rows])
        known = known[np.isfinite(known)]
        if len(known):
            found[name] = float(np.sqrt(np.mean(known**2)))
    return found


def _words(missing: Missing) -> str:
    if missing.text:
        return f"{missing.name} in {missing.place}"
    return f"{missing.name} of {missing.place}"


def _finished(here: _Trial, records: list[Record], progress: Progress) -> tuple[Identification, Conditions]:
    """All records fitted and judged; a dispersion settled on them, with its error in all others."""
    conditions, near = here.conditions, here.fitted
    for _ in range(_ROUNDS):
        whole = Experiment(here.model, records, conditions)
        start = replace(_start(whole, near, {}), states=())
        near = fit(whole, start, progress)
        found = _dispersion(near) if conditions.dispersion != 0.0 else None
        if found is None or abs(found.coefficient) < _SETTLED * found.stderr:
            break
        conditions = replace(conditions, dispersion=conditions.dispersion + found.coefficient)
    result = finish(whole, replace(start, fitted=near), progress, options=asdict(conditions))
    return (result if found is None else _with_filter(result, near, conditions, found)), conditions


def _with_filter(
    result: Identification, fitted: Fitted, conditions: Conditions, found: Missing
) -> Identification:
    """The result with the dispersion as one more parameter, and what its error adds to the others'."""
    follow = np.array(found.shift) / found.coefficient if found.coefficient else np.zeros(len(found.shift))
    moved = dict(zip(fitted.names, follow * found.stderr, strict=True))
    parameters: dict[str, Estimate] = {}
    for name, e in result.parameters.items():
        ratio = float(np.hypot(1.0, moved.get(name, 0.0) / e.stderr)) if e.stderr > 0 else 1.0
        parameters[name] = replace(
            e,
            stderr=ratio * e.stderr,
            lower=e.value - ratio * (e.value - e.lower),
            upper=e.value + ratio * (e.upper - e.value),
        )
    parameters[DISPERSION] = Estimate.normal(conditions.dispersion, found.stderr, "s^3")
    covariance: Any = result.covariance
    if len(covariance) == len(result.parameters):
        step = np.array([*(moved.get(n, 0.0) for n in result.parameters), found.stderr])
        grown = np.zeros((len(step), len(step)))
        grown[:-1, :-1] = np.array(covariance)
        covariance = (grown + np.outer(step, step)).tolist()
    return replace(result, parameters=parameters, covariance=covariance)
