"""Which terms of a library the data support: the smallest model, by information criterion.

Every candidate term has a coefficient that enters the equations linearly and is zero when the term is left
out. The whole library is fitted once, by the weak form or by balance on orbits, and finished by maximum
likelihood where that converges (noise in powers of x biases any fit that takes the samples as they are). For
a model linear in its coefficients the rise of chi2 when a set D is dropped follows without another fit,

    chi2(without D) - chi2(all) = a_D' C_DD^-1 a_D,    a the estimates, C their covariance,

so every subset of a small library is compared, not only one path. Of the best models of each size the one
with the smallest Bayesian information criterion, rise of chi2 + k ln(rows), is kept (Schwarz 1978) and fitted
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError, ShakedownError
from analysis.base.identification import Identification
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.experiment import Experiment
from analysis.experiment.states import state_samples
from analysis.model import Model

Array = NDArray[np.float64]

_NEAR_ZERO = 2.0  # standard errors
_ALL_SUBSETS = 13  # candidates up to which every subset is compared; beyond, the weakest goes first
DRIVE = "drive"  # name of the input


@dataclass(frozen=True)
class Step:
    """The best model of one size."""

    terms: tuple[str, ...]  # coefficients in the model
    chi2: float  # above that of the whole library
    bic: float  # likewise


@dataclass(frozen=True)
class Selection:
    """The best model of each size from the whole library down, and the one that is kept."""

    path: tuple[Step, ...]
    kept: tuple[str, ...]
    indistinguishable: tuple[str, ...]  # zero within two standard errors in the whole library's fit
    whole: Identification  # fit of the whole library
    model: Model  # the kept terms only, ready to be identified
    result: Identification  # its fit


def polynomials(degree: int) -> dict[str, str]:
    """Powers of x and of v up to a degree, with a constant: the plainest library."""
    if not 1 <= degree <= 9:
        raise ModelError("The degree of the polynomials must lie between 1 and 9.")
    return named_terms(
        ["1", *(f"x**{k}" for k in range(1, degree + 1)), *(f"v**{k}" for k in range(1, degree + 1))]
    )


def named_terms(terms: Sequence[str]) -> dict[str, str]:
    """Coefficients for terms in x and v: k0, k1, ... for powers of x, c1, ... for v, a1, ... for others."""
    found: dict[str, str] = {}
    others = 0
    for text in terms:
        term = text.strip().replace("^", "**")
        letter, _, power = term.partition("**")
        if term == "1":
            name = "k0"
        elif letter in ("x", "v") and (not power or power.isdigit()):
            name = ("k" if letter == "x" else "c") + (power or "1")
            term = letter if power in ("", "1") else term
        else:
            others += 1
            name = f"a{others}"
        if name in found:
            raise ModelError(f"The term {text.strip()} is in the library twice.")
        found[name] = term
    return found


def oscillator(terms: Mapping[str, str], drive: str = "0", known: Mapping[str, float] | None = None) -> Model:
    """x'' = drive - sum of coefficient*term over x, v and t, such as {"k3": "x**3", "mu": "tanh(50*v)"}.

    ``drive``: an expression in t, the name of a measured channel, or "tone" for a cosine and a sine of
    unknown size at the angular frequency ``w`` in ``known``.
    """
    if not terms:
        raise ModelError("Give at least one term, such as x, x**3 or tanh(50*v).")
    parameters: dict[str, Any] = {name: {"guess": 0.0} for name in terms}
    parameters |= {n: {"value": v} for n, v in (known or {}).items()}
    inputs = {DRIVE: drive}
    if drive == "tone":
        inputs = {DRIVE: "p*cos(w*t) + q*sin(w*t)"}
        parameters |= {"p": {"guess": 0.0}, "q": {"guess": 0.0}}
    elif drive.isidentifier():
        inputs = {drive: "measured"}
    (name,) = inputs
    force = "".join(f" - {coefficient}*({term})" for coefficient, term in terms.items())
    return Model.from_equations(
        {"x": "v", "v": name + force}, parameters, inputs=inputs, name="library of terms"
    )


def select_terms(
    model: Model,
    record: Record,
    candidates: Sequence[str],
    progress: Progress = SILENT,
    method: str = "auto",
    **options: Any,
) -> Selection:
    """Keep those candidates (free parameters of the model) that the data support.

    ``method``: weak, balance, or auto (the weak form when every state is measured, else balance on orbits);
    ``options`` are those of the method. Free parameters that are no candidates always stay.
    """
    _check(model, candidates)
    chosen = _method(model, record) if method == "auto" else method
    whole = _fit(model, record, chosen, progress.part(0.0, 0.6), options)
    path = _path(whole, list(candidates))
    kept = min(path, key=lambda step: step.bic).terms
    progress.report(0.6, f"{len(kept)} of {len(candidates)} terms are kept")
    reduced = without(model, [name for name in candidates if name not in kept])
    options = {**options, **_orbits_of(whole)}
    result = _fit(reduced, record, chosen, progress.part(0.6, 1.0), options) if reduced.free else whole
    near = tuple(n for n in candidates if not _significance(whole, n) >= _NEAR_ZERO)
    result = replace(result, extra={**result.extra, "selection": [asdict(step) for step in path]})
    return Selection(path, kept, near, whole, reduced.with_values(_own(reduced, result)), result)


def _check(model: Model, candidates: Sequence[str]) -> None:
    for name in candidates:
        if name not in model.free:
            raise ModelError(f"'{name}' is not a free parameter of the model, so it cannot be dropped.")
        if name not in model.linear:
            raise ModelError(f"'{name}' does not enter the equations linearly, so it cannot be dropped.")


def _method(model: Model, record: Record) -> str:
    experiment = Experiment(model, record)
    samples = state_samples(experiment.model, experiment.runs[0], experiment.model.values(), smoothed=False)
    if samples.seen.all() or record.excitation is None:
        return "weak"
    return "balance"


def _fit(
    model: Model, record: Record, method: str, progress: Progress, options: Mapping[str, Any]
) -> Identification:
    """Maximum likelihood where it converges, else the method by itself; weak where no orbit is found."""
    if options.get("finish") is False:
        return identify(model, record, method, progress, **options)
    try:
        found = identify(model, record, method, progress, **{**options, "finish": True})
    except DataError:
        if method != "balance":
            raise
        return _fit(model, record, "weak", progress, {})
    except ShakedownError:
        return identify(model, record, method, progress, **{**options, "finish": False})
    if found.converged and _usable(found):
        return found
    return identify(model, record, method, progress, **{**options, "finish": False})


def _usable(found: Identification) -> bool:
    return len(found.covariance) > 0 and bool(np.isfinite(found.covariance).all())


def _own(model: Model, found: Identification) -> dict[str, float]:
    return {n: v for n, v in found.values().items() if n in model.parameters}


def without(model: Model, dropped: Sequence[str]) -> Model:
    """The model with these terms taken out; what is not written as coefficient*(term) becomes zero."""
    import tomllib

    from analysis.model.reading import from_tables

    tables = tomllib.loads(model.text)
    parameters = dict(tables["parameters"])
    terms = {}
    for state, text in tables["states"].items():
        for name in dropped:
            text = _cut(text, name)
        terms[state] = text
    whole = " ".join([*terms.values(), *map(str, tables.get("inputs", {}).values())])
    for name in dropped:
        if name not in whole:
            parameters.pop(name)
        else:
            parameters[name] = 0.0
    return from_tables({**tables, "states": terms, "parameters": parameters}, model.name)


def _cut(text: str, name: str) -> str:
    """The expression without `` - name*(...)``."""
    start = text.find(f" - {name}*(")
    if start < 0:
        return text
    depth = 0
    for at in range(text.index("(", start), len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[:start] + text[at + 1 :]
    return text


def _path(whole: Identification, candidates: list[str]) -> tuple[Step, ...]:
    """The best model of every size, the whole library first."""
    names = list(whole.parameters)
    places = [names.index(name) for name in candidates]
    estimate = np.array([whole.parameters[n].value for n in candidates])
    covariance = np.array(whole.covariance)[np.ix_(places, places)]
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    rows = whole.residual.dof + len(names)
    price = float(np.log(rows))
    count = len(candidates)
    steps = []
    left: list[tuple[int, ...]] = [tuple(range(count))]
    best = left[0]
    for size in range(count, -1, -1):
        if size < count:
            if count <= _ALL_SUBSETS:
                left = list(combinations(range(count), size))
            else:
                left = [tuple(i for i in best if i != j) for j in best]
            rises = [_rise(estimate / scale, covariance / np.outer(scale, scale), kept) for kept in left]
            best, rise = left[int(np.argmin(rises))], float(min(rises))
        else:
            rise = 0.0
        steps.append(Step(tuple(candidates[i] for i in best), rise, rise + (size - count) * price))
    return tuple(steps)


def _rise(estimate: Array, correlation: Array, kept: tuple[int, ...]) -> float:
    """Rise of chi2 when all but ``kept`` are dropped (estimates in standard errors)."""
    dropped = [i for i in range(len(estimate)) if i not in kept]
    part = correlation[np.ix_(dropped, dropped)] + 1e-12 * np.eye(len(dropped))
    return float(estimate[dropped] @ np.linalg.solve(part, estimate[dropped]))


def _orbits_of(found: Identification) -> dict[str, Any]:
    """Options that balance the same segments again; nothing for orbits without a drive."""
    orbits = found.extra.get("orbits", ())
    if not orbits or any(orbit["multiple"] is None for orbit in orbits):
        return {}
    return {
        "orbits": tuple(orbit["multiple"] for orbit in orbits),
        "starts": tuple(orbit["start"] for orbit in orbits),
        "most_orbits": len(orbits),
    }


def _significance(found: Identification, name: str) -> float:
    """Size of a coefficient in standard errors."""
    estimate = found.parameters[name]
    return abs(estimate.value) / estimate.stderr if estimate.stderr > 0 else np.inf
