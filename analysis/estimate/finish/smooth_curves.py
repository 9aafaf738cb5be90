"""Unknown functions of a fit as smooth curves with bands: how smooth, the data choose.

The fit has a coefficient for every B-spline, the unknowns theta with information M. A curve that bends is
penalised by lambda b'Sb, b its coefficients and S the squares of their second differences. Near the fit

    theta_lambda = (M + sum lambda S)^-1 M theta,      covariance (M + sum lambda S)^-1,

and each lambda is where the restricted likelihood of the data is largest (Wood 2011; Eilers and Marx 1996):

    l = 1/2 [log |sum lambda S|+ - log |M + sum lambda S| - theta' (M - M (M + sum lambda S)^-1 M) theta].

A coefficient that no sample touches has no information; the penalty makes the curve go straight on there,
with a band that says how little is known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Z95, Curve, Estimate, Identification
from analysis.estimate.finish.curve_formulas import formulas, sentence

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted
    from analysis.model.functions import Spline

Array = NDArray[np.float64]

_POINTS = 121  # of a curve
_WEIGHTS = np.arange(-6.0, 13.0, 0.5)  # powers of ten of a penalty over the information it acts on
_ROUNDS = 3  # over the penalties of several functions
_TOUCHED = 1e-9  # of the largest information of a coefficient: one that some sample touched


def with_curves(result: Identification, fitted: Fitted) -> Identification:
    """The result with its unknown functions smooth, as curves with bands; as it is where it has none."""
    functions = fitted.experiment.model.equations.functions
    if not functions:
        return result
    names = fitted.names
    widening = np.array([_widening(result.parameters[n]) for n in names])
    M = fitted.information / np.outer(widening, widening)
    theta = np.array([result.parameters[n].value for n in names])
    penalties = []
    for name, spline in functions.items():
        places = [names.index(c) for c in spline.coefficients(name) if c in names]
        if len(places) == spline.knots + 2:  # otherwise some were given: the curve is what the file says
            penalties.append((name, spline, places, _embedded(spline.roughness(), places, len(names))))
    if not penalties:
        return result
    smooth, covariance, weights = smoothed(M, theta, [S for *_, S in penalties])
    told = {name: _formulas(name, spline, M, theta, own) for name, spline, own, _ in penalties}
    return _rewritten(result, names, smooth, covariance, M, penalties, weights, told)


def _formulas(name: str, spline: Spline, M: Array, theta: Array, own: list[int]) -> str:
    """Which formulas agree with a curve as it was found, before its smoothing, other unknowns adjusted."""
    other = [i for i in range(len(theta)) if i not in own]
    across = M[np.ix_(own, other)]
    information = M[np.ix_(own, own)] - across @ _inverse(M[np.ix_(other, other)]) @ across.T
    return sentence(name, formulas(spline, theta[own], information))


def smoothed(M: Array, theta: Array, penalties: list[Array]) -> tuple[Array, Array, Array]:
    """Unknowns, their covariance and the weights of the penalties at the largest restricted likelihood."""
    weights = _chosen(M, theta, penalties)
    covariance = _inverse(M + sum(w * S for w, S in zip(weights, penalties, strict=True)))
    return covariance @ (M @ theta), covariance, weights


def _rewritten(
    result: Identification,
    names: list[str],
    smooth: Array,
    covariance: Array,
    M: Array,
    penalties: list[tuple[str, Spline, list[int], Array]],
    weights: Array,
    told: dict[str, str],
) -> Identification:
    parameters, errors = dict(result.parameters), np.sqrt(np.maximum(np.diag(covariance), 0.0))
    for name, value, error in zip(names, smooth, errors, strict=True):
        old = parameters[name]
        new = Estimate.normal(float(value), float(error), old.unit)
        parameters[name] = replace(new, stderr_ideal=min(old.stderr_ideal, float(error)))
    order = list(parameters)
    whole = np.array(result.covariance)
    places = [order.index(n) for n in names]
    if whole.shape == (len(order), len(order)):
        whole[np.ix_(places, places)] = covariance
    curves, said, freedom = dict(result.curves), [], {}
    for name, spline, own, _ in penalties:
        curves[name] = _curve(name, spline, smooth[own], covariance[np.ix_(own, own)], told[name])
        freedom[name] = float(np.trace((covariance @ M)[np.ix_(own, own)]))
        said += _beyond(name, spline, np.diag(M)[own])
    extra: dict[str, Any] = {
        "penalty": {p[0]: float(w) for p, w in zip(penalties, weights, strict=True)},
        "degrees of freedom": freedom,
    }
    return replace(
        result,
        parameters=parameters,
        covariance=whole.tolist(),
        curves=curves,
        warnings=[*result.warnings, *said],
        extra={**result.extra, **extra},
        references=list(dict.fromkeys([*result.references, *REFERENCES])),
    )


REFERENCES = (
    "Eilers and Marx 1996, Flexible smoothing with B-splines and penalties, Statistical Science 11, 89.",
    "Wood 2011, Fast stable restricted maximum likelihood estimation of semiparametric generalized linear "
    "models, Journal of the Royal Statistical Society B 73, 3.",
)


def _curve(name: str, spline: Spline, coefficients: Array, covariance: Array, formula: str) -> Curve:
    x = np.linspace(*spline.ends, _POINTS)
    basis = spline.basis(x)
    y = basis @ coefficients
    width = Z95 * np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", basis, covariance, basis), 0.0))
    band = (y - width).tolist(), (y + width).tolist()
    return Curve(x.tolist(), y.tolist(), *band, spline.argument, name, formula)


def _beyond(name: str, spline: Spline, information: Array) -> list[str]:
    """A sentence on the part of the range in which there are no data."""
    touched = information > _TOUCHED * information.max()
    inside = [k for k in range(spline.knots - 1) if touched[k : k + 4].all()]
    if not inside or len(inside) == spline.knots - 1:
        return []
    low = spline.ends[0] + inside[0] * spline.step
    high = spline.ends[0] + (inside[-1] + 1) * spline.step
    return [
        f"The motion visits {spline.argument} from {low:.4g} to {high:.4g}: beyond, {name} is a straight "
        "continuation that no data support."
    ]


def _widening(e: Estimate) -> float:
    ratio = e.stderr / e.stderr_ideal if e.stderr_ideal > 0 else 1.0
    return float(max(ratio, 1.0)) if np.isfinite(ratio) else 1.0


def _embedded(penalty: Array, places: list[int], size: int) -> Array:
    whole = np.zeros((size, size))
    whole[np.ix_(places, places)] = penalty
    return whole


def _chosen(M: Array, theta: Array, penalties: list[Array]) -> Array:
    """The weights of the penalties at the largest restricted likelihood, one after the other."""
    scales = [float(np.trace(M[np.diag(S) > 0][:, np.diag(S) > 0]) / np.trace(S)) for S in penalties]
    weights = np.array([s * 1e-2 for s in scales])
    for _ in range(_ROUNDS if len(penalties) > 1 else 1):
        for i, scale in enumerate(scales):

            def tried(power: float, i: int = i, scale: float = scale) -> float:
                other = weights.copy()
                other[i] = scale * 10.0**power
                return _restricted(M, theta, penalties, other)

            best = max(_WEIGHTS, key=tried)
            best = max(best + np.arange(-0.4, 0.41, 0.1), key=tried)
            weights[i] = scale * 10.0**best
    return weights


def _restricted(M: Array, theta: Array, penalties: list[Array], weights: Array) -> float:
    """The restricted log-likelihood, up to a constant."""
    total = M + sum(w * S for w, S in zip(weights, penalties, strict=True))
    scale = 1.0 / np.sqrt(np.maximum(np.diag(total), 1e-300))
    sign, determinant = np.linalg.slogdet(total * np.outer(scale, scale))
    if sign <= 0:
        return -np.inf
    determinant -= 2 * float(np.log(scale).sum())
    left = theta @ (M @ theta) - (M @ theta) @ _inverse(total) @ (M @ theta)
    ranks = [int(np.linalg.matrix_rank(S)) for S in penalties]
    size = sum(r * float(np.log(w)) for r, w in zip(ranks, weights, strict=True))
    return 0.5 * (size - determinant - max(float(left), 0.0))


def _inverse(total: Array) -> Array:
    scale = 1.0 / np.sqrt(np.maximum(np.diag(total), 1e-300))
    inner = np.linalg.pinv(total * np.outer(scale, scale), rcond=1e-13, hermitian=True)
    return np.asarray(inner * np.outer(scale, scale))
