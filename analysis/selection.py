"""Which terms of a library the data support: backward elimination by information criterion, with refitting.

Every candidate term has a coefficient that enters the equations linearly and is zero when the term is left
out. All are fitted by the noise-weighted harmonic balance; then, one at a time, the term whose removal costs
least is dropped and the rest fitted again. Of all models on that path the one with the smallest Bayesian
information criterion, chi2 + k ln(rows), is kept (Schwarz 1978).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis.errors import ModelError
from analysis.identification import Identification
from analysis.methods import identify
from analysis.model import Model
from analysis.progress import SILENT, Progress
from analysis.record import Record

_NEAR_ZERO = 2.0  # standard errors


@dataclass(frozen=True)
class Step:
    """One model on the path."""

    terms: tuple[str, ...]  # coefficients still in the model
    dropped: str  # the one left out last; empty for the whole library
    chi2: float
    bic: float


@dataclass(frozen=True)
class Selection:
    """The path from the whole library down, and the model of the smallest criterion."""

    path: tuple[Step, ...]
    kept: tuple[str, ...]
    indistinguishable: tuple[str, ...]  # zero within two standard errors in the whole library's fit
    result: Identification  # of the model kept


def oscillator(terms: Mapping[str, str], drive: str = "0", known: Mapping[str, float] | None = None) -> Model:
    """x'' = drive - sum of coefficient*term over x, v and t, such as {"k3": "x**3", "mu": "tanh(50*v)"}."""
    if not terms:
        raise ModelError("Give at least one term, such as x, x**3 or tanh(50*v).")
    force = "".join(f" - {name}*({term})" for name, term in terms.items())
    parameters = {
        **{name: {"guess": 0.0} for name in terms},
        **{n: {"value": v} for n, v in (known or {}).items()},
    }
    return Model.from_equations({"x": "v", "v": f"{drive}{force}"}, parameters, name="library of terms")


def select_terms(
    model: Model,
    record: Record,
    candidates: Sequence[str],
    progress: Progress = SILENT,
    **options: Any,
) -> Selection:
    """Drop candidates (free parameters of the model) while the data do not miss them.

    ``options`` are those of the balance. Its orbits are searched for once and used for every fit.
    """
    unknown = [name for name in candidates if name not in model.free]
    if unknown:
        raise ModelError(f"'{unknown[0]}' is not a free parameter of the model, so it cannot be dropped.")
    fixed = [name for name in model.free if name not in candidates]
    whole = _fit(model, record, fixed, candidates, options)
    options = {**options, **_orbits_of(whole)}
    path, fits, here = [_step(tuple(candidates), "", whole)], [whole], whole
    left = list(candidates)
    while len(left) > (0 if fixed else 1):
        weakest = min(left, key=lambda name: _significance(here, name))
        left.remove(weakest)
        progress.report(1 - len(left) / len(candidates), f"without {weakest}")
        here = _fit(model, record, fixed, left, options)
        path.append(_step(tuple(left), weakest, here))
        fits.append(here)
    best = int(np.argmin([step.bic for step in path]))
    near = tuple(n for n in candidates if _significance(whole, n) < _NEAR_ZERO)
    result = replace(fits[best], extra={**fits[best].extra, "selection": [vars(step) for step in path]})
    return Selection(tuple(path), path[best].terms, near, result)


def _fit(
    model: Model, record: Record, fixed: Sequence[str], terms: Sequence[str], options: Mapping[str, Any]
) -> Identification:
    free = [*fixed, *terms]
    reduced = model.with_values({n: 0.0 for n in model.free if n not in free}).with_free(free)
    return identify(reduced, record, "balance", finish=False, **options)


def _orbits_of(found: Identification) -> dict[str, Any]:
    """Options that balance the same segments again; nothing for orbits without a drive."""
    orbits = found.extra["orbits"]
    if any(orbit["multiple"] is None for orbit in orbits):
        return {}
    return {
        "orbits": tuple(orbit["multiple"] for orbit in orbits),
        "starts": tuple(orbit["start"] for orbit in orbits),
        "most_orbits": len(orbits),
    }


def _significance(found: Identification, name: str) -> float:
    """Size of a coefficient in standard errors; dropping it raises chi2 by about its square."""
    estimate = found.parameters[name]
    return abs(estimate.value) / estimate.stderr if estimate.stderr > 0 else np.inf


def _step(terms: tuple[str, ...], dropped: str, found: Identification) -> Step:
    chi2, rows = found.residual["chi2"], found.residual["dof"] + len(found.parameters)
    return Step(terms, dropped, chi2, chi2 + len(found.parameters) * float(np.log(rows)))
