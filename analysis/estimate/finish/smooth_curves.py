"""Unknown functions of a fit as smooth curves with bands: how smooth, the data choose.

The fit has a coefficient for every B-spline, the unknowns theta with information M. A curve that bends is
penalised by lambda b'Sb, b its coefficients and S the squares of their second differences. Near the fit

    theta_lambda = (M + sum lambda S)^-1 M theta,      covariance (M + sum lambda S)^-1,

and each lambda is where the restricted likelihood of the data is largest (Wood 2011; Eilers and Marx 1996):

    l = 1/2 [log |sum lambda S|+ - log |M + sum lambda S| - theta' (M - M (M + sum lambda S)^-1 M) theta].

A coefficient that no sample touches has no information; the penalty makes the curve go straight on there,
with a band that says how little is known.

A function of two arguments has a penalty and a weight for either (Eilers and Marx 2003). The two matrices
commute, so that log |lambda S + mu T|+ is a sum over their common eigenvectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.identification import Z95, Curve, Estimate, Identification, Surface
from analysis.base.progress import SILENT
from analysis.estimate.finish.curve_formulas import SEEN, formulas, sentence
from analysis.model.functions import Function, Spline
from analysis.model.functions import Surface as UnknownSurface

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted

Array = NDArray[np.float64]

_POINTS = 121  # of a curve
_WEIGHTS = np.arange(-6.0, 13.0, 0.5)  # powers of ten of a penalty over the information it acts on
_REFITS = 2  # of a surface with its penalty
_ROUNDS = 3  # over the penalties of several functions
_GRID = 41  # places of a surface along either argument
_ZERO = 1e-9  # of the largest eigenvalue of a penalty: a shape that it does not see
_FAINT = 1e-6  # of the information of a function: a penalty that only matters where there is none
_TOUCHED = 1e-9  # of the largest information of a coefficient: one that some sample touched


@dataclass(frozen=True, eq=False)
class Roughness:
    """The penalties of one function among all unknowns."""

    matrices: list[Array]  # [P, P], one for each argument
    spectra: Array  # [arguments, coefficients]: their eigenvalues, in the same order of common eigenvectors

    @classmethod
    def of(cls, function: Function, places: list[int] | None = None, size: int = 0) -> Roughness:
        """``places`` of the function's coefficients among ``size`` unknowns; by default it is alone."""
        own = function.penalties()
        if places is not None:
            own = [_embedded(penalty, places, size) for penalty in own]
        return cls(own, function.spectra())

    def determinant(self, weights: Array) -> float:
        """Logarithm of the product of the eigenvalues, but zeros, of the weighted sum."""
        spectra = np.where(self.spectra > _ZERO * self.spectra.max(), self.spectra, 0.0)
        return float(np.log(weights @ spectra[:, spectra.any(axis=0)]).sum())


def with_curves(result: Identification, fitted: Fitted) -> Identification:
    """The result with its unknown functions smooth, as curves with bands; as it is where it has none."""
    functions = fitted.experiment.model.equations.functions
    if not functions:
        return result
    names = fitted.names
    widening = np.array([_widening(result.parameters[n]) for n in names])
    M = fitted.information / np.outer(widening, widening)
    theta = np.array([result.parameters[n].value for n in names])
    found = []
    for name, function in functions.items():
        coefficients = function.coefficients(name)
        places = [names.index(c) for c in coefficients if c in names]
        if len(places) == len(coefficients):  # otherwise some were given: the curve is what the file says
            found.append(_Found(name, function, places, Roughness.of(function, places, len(names))))
    if not found:
        return result
    roughness = [f.roughness for f in found]
    right = M @ theta
    smooth, covariance, weights = smoothed(M, right, roughness)
    if fitted.engine == "path" and any(isinstance(f.function, UnknownSurface) for f in found):
        for _ in range(_REFITS):
            near = _around(fitted, smooth, _summed(weights, roughness), widening)
            if near is None:
                break
            M, right = near
            # how the search without the penalty ended matters no more
            result = replace(result, warnings=[w for w in result.warnings if w != fitted.message])
            smooth, covariance, weights = smoothed(M, right, roughness)
    told = {f.name: _formulas(f.name, f.function, M, right, f.places) for f in found}
    return _rewritten(result, names, smooth, covariance, M, found, weights, told)


def _around(fitted: Fitted, smooth: Array, penalty: Array, widening: Array) -> tuple[Array, Array] | None:
    """Information M of the data alone, and M times their estimate, where the penalised fit ends.

    A coefficient of a surface that few samples touch wanders far without a penalty; around there the
    linearisation is none of the surface that the penalty then gives. None where no penalised fit ends.
    """
    from analysis.estimate.finish.path_engine import fit_path

    scaled = penalty * np.outer(widening, widening)
    k = len(fitted.experiment.model.parameters)
    own, start = np.zeros((k, k)), fitted.as_start()
    places = [i for i, u in enumerate(fitted.unknowns) if u.record < 0 and u.kind == "parameter"]
    index = [fitted.unknowns[i].index for i in places]
    own[np.ix_(index, index)] = scaled[np.ix_(places, places)]
    values = np.array(start.values)
    values[:, index] = smooth[places]
    try:
        again = fit_path(fitted.experiment, replace(start, values=values), SILENT, penalty=own)
    except (ShakedownError, np.linalg.LinAlgError):
        return None
    if not again.converged:
        return None
    M, there, both = again.information, again.estimate, np.outer(widening, widening)
    # the gradient of the data is that of the penalty where the fit ends
    return M / both, (M / both) @ there + penalty @ there


@dataclass(frozen=True, eq=False)
class _Found:
    """A function all of whose coefficients were identified."""

    name: str
    function: Function
    places: list[int]  # of its coefficients among the unknowns
    roughness: Roughness


def with_smoothness(fitted: Fitted) -> Array:
    """The information of a fit and, faintly, that its unknown functions are smooth: a coefficient that no
    sample touches is then known as far as smoothness tells it, and no reason to refuse the others."""
    M, names = fitted.information, fitted.names
    total = np.array(M)
    for name, function in fitted.experiment.model.equations.functions.items():
        places = [names.index(c) for c in function.coefficients(name) if c in names]
        if len(places) == len(function.coefficients(name)):
            size = float(np.trace(M[np.ix_(places, places)]))
            for S in Roughness.of(function, places, len(names)).matrices:
                total += _FAINT * size / float(np.trace(S)) * S
    return total


def _formulas(name: str, function: Function, M: Array, right: Array, own: list[int]) -> str:
    """Which formulas agree with a curve as it was found, before its smoothing, other unknowns adjusted."""
    other = [i for i in range(len(right)) if i not in own]
    through = M[np.ix_(own, other)] @ _inverse(M[np.ix_(other, other)])
    information = M[np.ix_(own, own)] - through @ M[np.ix_(other, own)]
    coefficients = np.linalg.pinv(information, SEEN, hermitian=True) @ (right[own] - through @ right[other])
    return sentence(name, formulas(function, coefficients, information))


def smoothed(M: Array, right: Array, penalties: list[Roughness]) -> tuple[Array, Array, Array]:
    """Unknowns, their covariance and the weights of the penalties at the largest restricted likelihood.

    ``right`` is M times the estimate without a penalty.
    """
    weights = _chosen(M, right, penalties)
    covariance = _inverse(M + _summed(weights, penalties))
    return covariance @ right, covariance, weights


def _summed(weights: Array, penalties: list[Roughness]) -> Array:
    matrices = [S for penalty in penalties for S in penalty.matrices]
    return np.asarray(sum(w * S for w, S in zip(weights, matrices, strict=True)))


def _rewritten(
    result: Identification,
    names: list[str],
    smooth: Array,
    covariance: Array,
    M: Array,
    found: list[_Found],
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
    curves, surfaces, said, freedom = dict(result.curves), dict(result.surfaces), [], {}
    penalties: dict[str, float | list[float]] = {}
    left = weights.tolist()
    for one in found:
        name, function, own = one.name, one.function, one.places
        own_covariance = covariance[np.ix_(own, own)]
        freedom[name] = float(np.trace((covariance @ M)[np.ix_(own, own)]))
        weight, left = left[: len(function.axes)], left[len(function.axes) :]
        if isinstance(function, Spline):
            curves[name] = _curve(name, function, smooth[own], own_covariance, told[name])
            said += _beyond(name, function, np.diag(M)[own])
            penalties[name] = weight[0]
        else:
            surfaces[name] = _surface(name, function, smooth[own], own_covariance, told[name])
            curves |= _cuts(name, function, smooth[own], own_covariance)
            penalties[name] = weight
    extra: dict[str, Any] = {
        "penalty": penalties,
        "degrees of freedom": freedom,
    }
    return replace(
        result,
        parameters=parameters,
        covariance=whole.tolist(),
        curves=curves,
        surfaces=surfaces,
        warnings=[*result.warnings, *said],
        extra={**result.extra, **extra},
        references=list(dict.fromkeys([*result.references, *REFERENCES, *(OF_SURFACES if surfaces else ())])),
    )


REFERENCES = (
    "Eilers and Marx 1996, Flexible smoothing with B-splines and penalties, Statistical Science 11, 89.",
    "Wood 2011, Fast stable restricted maximum likelihood estimation of semiparametric generalized linear "
    "models, Journal of the Royal Statistical Society B 73, 3.",
)
OF_SURFACES = (
    "Eilers and Marx 2003, Multivariate calibration with temperature interaction using two-dimensional "
    "penalized signal regression, Chemometrics and Intelligent Laboratory Systems 66, 159.",
)


def _curve(name: str, spline: Spline, coefficients: Array, covariance: Array, formula: str) -> Curve:
    x = np.linspace(*spline.ends, _POINTS)
    y, width = _with_band(spline.basis(x), coefficients, covariance)
    band = (y - width).tolist(), (y + width).tolist()
    return Curve(x.tolist(), y.tolist(), *band, spline.argument, name, formula)


def _surface(
    name: str, function: UnknownSurface, coefficients: Array, covariance: Array, formula: str
) -> Surface:
    x, y = (np.linspace(*axis.ends, _GRID) for axis in function.axes)
    basis = function.basis(np.repeat(x, _GRID), np.tile(y, _GRID))
    z, width = (row.reshape(_GRID, _GRID) for row in _with_band(basis, coefficients, covariance))
    band = (z - width).tolist(), (z + width).tolist()
    first, second = (axis.argument for axis in function.axes)
    return Surface(x.tolist(), y.tolist(), z.tolist(), *band, first, second, name, formula)


def _cuts(name: str, function: UnknownSurface, coefficients: Array, covariance: Array) -> dict[str, Curve]:
    """The surface along either argument where the other is zero, or in the middle of its range."""
    found = {}
    for along, across in ((0, 1), (1, 0)):
        axis, other = function.axes[along], function.axes[across]
        low, high = other.ends
        held = 0.0 if low < 0 < high else 0.5 * (low + high)
        places = [np.full(_POINTS, held), np.full(_POINTS, held)]
        places[along] = np.linspace(*axis.ends, _POINTS)
        y, width = _with_band(function.basis(places[0], places[1]), coefficients, covariance)
        band = (y - width).tolist(), (y + width).tolist()
        title = f"{name} at {other.argument} = {held:.4g}"
        found[title] = Curve(places[along].tolist(), y.tolist(), *band, axis.argument, name)
    return found


def _with_band(basis: Array, coefficients: Array, covariance: Array) -> tuple[Array, Array]:
    """A function and half the width of its 95 % band, at the places of the rows of ``basis``."""
    variance = np.einsum("ij,ij->i", basis @ covariance, basis)
    return basis @ coefficients, Z95 * np.sqrt(np.maximum(variance, 0.0))


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


def _chosen(M: Array, right: Array, penalties: list[Roughness]) -> Array:
    """The weights of the penalties at the largest restricted likelihood, one after the other."""
    matrices = [S for penalty in penalties for S in penalty.matrices]
    scales = [float(np.trace(M[np.diag(S) > 0][:, np.diag(S) > 0]) / np.trace(S)) for S in matrices]
    weights = np.array([s * 1e-2 for s in scales])
    for _ in range(_ROUNDS if len(matrices) > 1 else 1):
        for i, scale in enumerate(scales):

            def tried(power: float, i: int = i, scale: float = scale) -> float:
                other = weights.copy()
                other[i] = scale * 10.0**power
                return _restricted(M, right, penalties, other)

            best = max(_WEIGHTS, key=tried)
            best = max(best + np.arange(-0.4, 0.41, 0.1), key=tried)
            weights[i] = scale * 10.0**best
    return weights


def _restricted(M: Array, right: Array, penalties: list[Roughness], weights: Array) -> float:
    """The restricted log-likelihood, up to a constant."""
    total = M + _summed(weights, penalties)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(total), 1e-300))
    sign, determinant = np.linalg.slogdet(total * np.outer(scale, scale))
    if sign <= 0:
        return -np.inf
    determinant -= 2 * float(np.log(scale).sum())
    size, used = 0.0, 0
    for penalty in penalties:
        size += penalty.determinant(weights[used : used + len(penalty.matrices)])
        used += len(penalty.matrices)
    return 0.5 * (size - determinant + float(right @ _inverse(total) @ right))


def _inverse(total: Array) -> Array:
    scale = 1.0 / np.sqrt(np.maximum(np.diag(total), 1e-300))
    inner = np.linalg.pinv(total * np.outer(scale, scale), rcond=1e-13, hermitian=True)
    return np.asarray(inner * np.outer(scale, scale))
