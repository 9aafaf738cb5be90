"""The force that a model lacks, as a function of each state of its equation, with a band.

A smooth function (Legendre polynomials over the range visited) is added to the equation whose missing term
is surest, and its coefficients follow from the residuals by one Gauss-Newton step. What the model's own terms
can imitate is left out of it: the curve shows what is missing beside the fitted parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Z95, Curve
from analysis.base.words import percent
from analysis.estimate.finish.linearised import Linearisation, Regression
from analysis.estimate.finish.missing_terms import Along, state_sizes, tested
from analysis.estimate.finish.score import Missing, Scores, combined, force_columns
from analysis.estimate.finish.terms import Term, candidate_terms, own_states

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted
    from analysis.model import Model

Array = NDArray[np.float64]

_DEGREE = 7
_POINTS = 41
_EDGES = (0.5, 99.5)  # percentiles of the state between which the curve is shown
_PURE = 3.0  # odd over even part (or the reverse) from which the curve is called so


def missing_force(
    fitted: Fitted,
    linear: Sequence[Linearisation],
    regressions: Sequence[Regression],
    lacking: Sequence[Missing],
) -> tuple[dict[str, Curve], str]:
    """Curves over the states of the equation that lacks the surest term, and what the clearest looks like.

    ``lacking``: the terms that speak against the model, the surest first. The curve is likened to the one
    that explains most, which need not be the surest: an offset may be known well and explain little.
    """
    model, surest = fitted.experiment.model, lacking[0]
    likest = max((m for m in lacking if m.place == surest.place), key=lambda m: m.gain)
    rates = {f"d{name}/dt": i for i, name in enumerate(model.states)}
    if surest.place not in rates:
        return {}, ""
    equation = rates[surest.place]
    motions = [Along(model, part) for part in linear]
    curves, words, clearest = {}, "", 0.0
    for state in own_states(model, equation):
        visited = np.concatenate([part.stretch.states[state] for part in linear])
        low, high = (float(edge) for edge in np.percentile(visited, _EDGES))
        if not low < high:
            continue
        terms = [_polynomial(degree, state, equation, low, high) for degree in range(_DEGREE + 1)]
        columns = [force_columns(m.linearisation, terms, m.rates, m.inputs) for m in motions]
        found = tested(fitted, regressions, columns)
        name = model.states[state]
        curve, sure = _curve(found, terms, low, high)
        unit = model.unit(name)
        label = f"{name} [{unit}]" if unit else name
        curves[f"missing in {surest.place} over {name}"] = Curve(*curve, label, f"missing in {surest.place}")
        if sure > clearest:
            own = _symmetry(model, linear, likest, equation, state)
            clearest, words = sure, _looks(name, np.array(curve[0]), np.array(curve[1]), likest, own)
    return curves, words


def _polynomial(degree: int, state: int, equation: int, low: float, high: float) -> Term:
    def values(X: Array, U: Array) -> Array:
        place = np.clip((2.0 * X[state] - low - high) / (high - low), -1.2, 1.2)
        return np.asarray(np.polynomial.legendre.Legendre.basis(degree)(place))

    return Term(f"P{degree}", equation, values)


def _curve(
    found: Scores, terms: Sequence[Term], low: float, high: float
) -> tuple[tuple[list[float], list[float], list[float], list[float]], float]:
    """Places, force and its 95 % band; and its largest distance from zero in standard errors."""
    coefficients, covariance = combined(found)
    x = np.linspace(low, high, _POINTS)
    place = np.linspace(-1.0, 1.0, _POINTS)
    basis = np.stack([np.polynomial.legendre.Legendre.basis(d)(place) for d in range(len(terms))], axis=1)
    force = basis @ coefficients
    error = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", basis, covariance, basis), 0.0))
    sure = float(np.max(np.abs(force) / np.maximum(error, 1e-300))) if error.any() else 0.0
    lower, upper = force - Z95 * error, force + Z95 * error
    return (x.tolist(), force.tolist(), lower.tolist(), upper.tolist()), sure


def _symmetry(
    model: Model, linear: Sequence[Linearisation], likest: Missing, equation: int, state: int
) -> str:
    """Whether a term is odd or even in a state; empty for one that is neither or not known."""
    found = [
        term
        for term in candidate_terms(model, state_sizes(linear))
        if term.name == likest.name and term.equation == equation
    ]
    if not found:
        return ""
    stretch = linear[0].stretch
    mirrored = stretch.states.copy()
    mirrored[state] *= -1.0
    inputs = Along(model, linear[0]).inputs(stretch.times)
    here, there = found[0].values(stretch.states, inputs), found[0].values(mirrored, inputs)
    rounding = 1e-9 * float(np.abs(here).max())
    if np.abs(here - there).max() <= rounding:
        return "even"
    return "odd" if np.abs(here + there).max() <= rounding else ""


def _looks(name: str, x: Array, force: Array, likest: Missing, own: str) -> str:
    """Odd or even about zero, where the term that it grows like is so, too (``own``); and that term."""
    reach = float(min(-x[0], x[-1]))
    parity = ""
    if reach > 0:
        place = np.linspace(0.0, reach, _POINTS)
        right, left = np.interp(place, x, force), np.interp(-place, x, force)
        odd, even = float(np.std(right - left)), float(np.std(right + left))
        parity = "odd" if odd > _PURE * even else "even" if even > _PURE * odd else ""
    agrees = parity == own
    shape = (
        f"{parity} in {name}, "
        if parity and agrees
        else f"over {name} neither odd nor even, "
        if agrees
        else ""
    )
    return f"The missing force is {shape}most like {likest.name}: {percent(likest.share)} of the force."
