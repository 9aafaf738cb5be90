"""The simplest formula that agrees with an unknown function of a fit: a name for the curve.

The coefficients b of the curve have the information W, all other unknowns adjusted (Schur complement of the
information of the fit). A formula g with k constants is written in the same B-splines and its constants are
those at which

    chi2 = (b - g)' W (b - g)

is smallest: chi-square with rank W - k degrees of freedom if the formula is right. It agrees with the curve
where that is not too large; of those that agree the ones with the fewest constants are told, all of them, for
the data do not tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Estimate, with_error
from analysis.estimate.identifiability import covariance_of
from analysis.model.functions import Function, Spline

Array = NDArray[np.float64]

_LEVEL = 0.01  # share of right formulas that are refused
_MOST = 4  # constants
_TOLD = 3  # formulas with the same number of constants
SEEN = 1e-10  # of the largest eigenvalue of the information: a direction of which the data say something
_GRID = 400  # places at which a formula is written in splines
_GRID_OF_TWO = 40  # along each of two arguments
_SHAPES = np.geomspace(0.05, 20.0, 60)  # constants inside of a function, over the range of the argument
_REFINED = 3  # times the grid of those constants is made finer about its best

POWERS: dict[str, Callable[[Array], Array]] = {
    "1": np.ones_like,
    "u": lambda u: u,
    "u**2": lambda u: u**2,
    "u**3": lambda u: u**3,
    "u**4": lambda u: u**4,
    "u**5": lambda u: u**5,
    "abs(u)": np.abs,
    "u*abs(u)": lambda u: u * np.abs(u),
}
PRODUCTS: dict[str, Callable[[Array, Array], Array]] = {  # of both arguments u and w
    "1": lambda u, w: np.ones_like(u),
    "u": lambda u, w: u,
    "w": lambda u, w: w,
    "u**2": lambda u, w: u**2,
    "u*w": lambda u, w: u * w,
    "w**2": lambda u, w: w**2,
    "u**3": lambda u, w: u**3,
    "u**2*w": lambda u, w: u**2 * w,
    "u*w**2": lambda u, w: u * w**2,
    "w**3": lambda u, w: w**3,
    "u*abs(u)": lambda u, w: u * np.abs(u),
    "w*abs(w)": lambda u, w: w * np.abs(w),
}
SHAPES: dict[str, Callable[[Array, float], Array]] = {
    "sin({0}*u)": lambda u, s: np.sin(s * u),
    "tanh({0}*u)": lambda u, s: np.tanh(s * u),
    "(max(u - {0}, 0) + min(u + {0}, 0))": lambda u, g: np.maximum(u - g, 0) + np.minimum(u + g, 0),
}
_LENGTHS = ("(max",)  # shapes whose constant is a length of the argument and not one over a length


@dataclass(frozen=True)
class Formula:
    """A formula that agrees with a curve: its text in the model language, its constants, and how well."""

    text: str
    terms: tuple[str, ...]  # names of POWERS and SHAPES, or of PRODUCTS
    constants: tuple[Estimate, ...]  # factors of the terms, then the constant inside of a function
    chi2: float
    freedom: int
    probability: float  # of a chi2 as large by chance


def formulas(function: Function, coefficients: Array, information: Array) -> list[Formula]:
    """The formulas with the fewest constants that agree with a curve, the likeliest first; may be none."""
    from scipy.stats import chi2

    values, vectors = np.linalg.eigh(information)
    seen = values > SEEN * values[-1]
    root = (vectors[:, seen] * np.sqrt(values[seen])).T
    fit = _Fit(function, root, root @ coefficients)
    for constants in range(1, min(_MOST, len(root) - 1) + 1):
        agreeing = []
        for terms, found, left in fit.candidates(constants):
            freedom = len(root) - constants
            probability = float(chi2.sf(left, freedom))
            if probability >= _LEVEL:
                text = _text([axis.argument for axis in function.axes], terms, found)
                agreeing.append(Formula(text, terms, found, left, freedom, probability))
        if agreeing:
            return sorted(agreeing, key=lambda f: -f.probability)[:_TOLD]
    return []


def sentence(name: str, found: list[Formula]) -> str:
    """What the formulas of a curve come to, in words."""
    if not found:
        return f"No formula of at most {_MOST} constants lies within the band of {name}."
    best, *others = found
    said = f"Within its band {name} is {best.text} (p = {best.probability:.2g})"
    if others:
        said += "; the data do not tell this from " + " or ".join(f.text for f in others)
    return said + "."


_Candidate = tuple[tuple[str, ...], tuple[Estimate, ...], float]  # terms, constants, what is left


@dataclass(frozen=True)
class _Fit:
    """Least squares of formulas against the coefficients of a curve, both seen through the information."""

    function: Function
    root: Array  # R with R'R the information
    target: Array  # R b

    def candidates(self, constants: int) -> Iterator[_Candidate]:
        """Every formula with so many constants."""
        for terms in combinations(self._written, constants):
            yield terms, *self._solved(np.stack([self._written[t] for t in terms], axis=1))
        if not isinstance(self.function, Spline):
            return
        for name, shape in SHAPES.items():
            for others in ((), ("u",)):
                if len(others) + 2 == constants:
                    yield self._shaped(name, shape, others)

    @cached_property
    def _places(self) -> Array:
        """Of the first argument."""
        if isinstance(self.function, Spline):
            return np.linspace(*self.function.ends, _GRID)
        return np.repeat(np.linspace(*self.function.axes[0].ends, _GRID_OF_TWO), _GRID_OF_TWO)

    @cached_property
    def _others(self) -> Array:
        """Of the second argument."""
        return np.tile(np.linspace(*self.function.axes[-1].ends, _GRID_OF_TWO), _GRID_OF_TWO)

    @cached_property
    def _writing(self) -> Array:
        """From the values of a curve at the places to its splines as the information sees them."""
        if isinstance(self.function, Spline):
            return np.asarray(self.root @ np.linalg.pinv(self.function.basis(self._places)))
        return np.asarray(self.root @ np.linalg.pinv(self.function.basis(self._places, self._others)))

    @cached_property
    def _written(self) -> dict[str, Array]:
        """Terms without a constant inside, written in splines as the information sees them."""
        if isinstance(self.function, Spline):
            return {name: self._writing @ power(self._places) for name, power in POWERS.items()}
        terms = PRODUCTS.items()
        return {name: self._writing @ term(self._places, self._others) for name, term in terms}

    def _columns(self, curves: list[Array]) -> Array:
        return np.asarray(self._writing @ np.stack(curves, axis=1))

    def _solved(self, columns: Array) -> tuple[tuple[Estimate, ...], float]:
        size = np.linalg.norm(columns, axis=0)
        size[size == 0] = 1.0
        inverse = np.linalg.pinv(columns / size)
        factors = inverse @ self.target / size
        errors = np.linalg.norm(inverse, axis=1) / size
        left = self.target - columns @ factors
        return tuple(
            Estimate.normal(v, e) for v, e in zip(factors, errors, strict=True)
        ), float(left @ left)  # fmt: skip

    def _shaped(
        self, name: str, shape: Callable[[Array, float], Array], others: tuple[str, ...]
    ) -> _Candidate:
        """The best formula with one constant inside of a function, found on grids that become finer."""
        reach = float(np.max(np.abs(self.function.axes[0].ends)))
        length = name.startswith(_LENGTHS)
        tried = reach * np.linspace(0.02, 0.98, len(_SHAPES)) if length else _SHAPES / reach

        def at(constant: float) -> Array:
            curves = [shape(self._places, constant), *(POWERS[t](self._places) for t in others)]
            return self._columns(curves)

        for _ in range(_REFINED):
            lefts = [self._solved(at(c))[1] for c in tried]
            best = int(np.argmin(lefts))
            around = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
            constant = float(tried[best])
            tried = np.linspace(*around, 21)
        factors, left = self._solved(at(constant))
        values = np.array([e.value for e in factors])
        errors = self._joint_errors(at, constant, values)
        return (name, *others), tuple(map(Estimate.normal, (*values, constant), errors)), left

    def _joint_errors(self, at: Callable[[float], Array], constant: float, factors: Array) -> Array:
        """Standard errors of the factors and of the constant inside of a function, all adjusted together."""
        step = 1e-4 * constant
        slope = (at(constant + step) - at(constant - step)) @ factors / (2 * step)
        columns = np.column_stack([at(constant), slope])
        return np.asarray(np.sqrt(np.diag(covariance_of(columns.T @ columns))))


def _text(arguments: list[str], terms: tuple[str, ...], constants: tuple[Estimate, ...]) -> str:
    """The formula in the model language, its constants with the digits that their errors support."""
    arguments = [argument if argument.isidentifier() else f"({argument})" for argument in arguments]
    inside = _digits(constants[-1]) if len(constants) > len(terms) else ""
    parts = []
    for term, factor in zip(terms, constants, strict=False):
        shown = _with_arguments(term.format(inside), arguments)
        parts.append(_digits(factor) if term == "1" else f"{_digits(factor)}*{shown}")
    return " + ".join(parts).replace("+ -", "- ")


def _with_arguments(term: str, arguments: list[str]) -> str:
    """The term with its arguments where ``u`` and ``w`` stand alone."""
    given = dict(zip("uw", arguments, strict=False))
    return re.sub(r"\b[uw]\b", lambda found: given[found[0]], term)


def _digits(factor: Estimate) -> str:
    """A factor with the digits of its value that its error supports."""
    shown = with_error(factor).split(" ±")[0]
    return f"{factor.value:.4g}" if shown.startswith("(") else shown
