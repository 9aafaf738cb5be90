"""A recovered function as a model: the spline itself, or terms fitted to it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ModelError

if TYPE_CHECKING:
    from analysis.base.identification import Identification
    from analysis.model import Model

Array = NDArray[np.float64]
POINTS = 201


def to_model(result: Identification, terms: Sequence[str] = (), c_terms: Sequence[str] = ()) -> Model:
    """The model with the recovered functions in place.

    ``terms``: expressions in the states such as ``x`` and ``x**3``, fitted to H with its uncertainty; their
    factors h1, h2, ... become free parameters that start there. ``c_terms``: likewise for c, in t. Without
    terms a function enters as its spline (written with max and powers), which is fixed.
    """
    from analysis.model import Model

    functions = result.extra.get("functions")
    if not functions:
        raise ModelError("This result holds no recovered function.")
    raw = tomllib.loads(result.model_text)
    x_name, v_name = result.extra["states"]
    definitions = dict(raw.get("definitions", {}))
    parameters = dict(raw.get("parameters", {}))
    unknown = ""
    for symbol, variable, chosen, factor in (("c", "t", c_terms, f"*{v_name}"), ("H", x_name, terms, "")):
        if symbol not in functions:
            continue
        if chosen:
            names = _fitted(functions[symbol], symbol.lower(), chosen, (x_name, v_name), parameters)
            text = " + ".join(f"{n}*({e})" for n, e in zip(names, chosen, strict=True))
        else:
            text = _spline(functions[symbol], f"{symbol}_spline", variable, definitions)
        unknown += f" - ({text}){factor}"
    states = dict(raw["states"])
    states[v_name] = f"({states[v_name]}){unknown}"
    return Model.from_equations(
        states,
        parameters,
        name=f"{result.model}, recovered",
        inputs=raw.get("inputs"),
        definitions=definitions,
        outputs=raw.get("outputs"),
        initial=raw.get("initial"),
    )


def _spline(function: dict[str, Any], name: str, variable: str, definitions: dict[str, Any]) -> str:
    """A cubic spline by truncated powers of the place s in intervals; straight lines outside."""
    if "coefficients" not in function:
        raise ModelError("A function of two variables becomes a model by terms, such as x, x**3, v.")
    c = np.array(function["coefficients"])
    count = len(c) - 3
    width = (function["upper"] - function["lower"]) / count
    third = np.diff(c, 3)
    start = [(c[0] + 4 * c[1] + c[2]) / 6, (c[2] - c[0]) / 2, (c[0] - 2 * c[1] + c[2]) / 2, third[0] / 6]
    end_slope = (c[-1] - c[-3]) / 2
    raw, s = f"{name}_raw", f"{name}_s"
    definitions[raw] = f"({variable} - ({function['lower']!r}))/{width!r}"
    definitions[s] = f"min(max({raw}, 0), {count})"
    text = " + ".join(f"({v!r})*{s}**{k}" if k else f"({v!r})" for k, v in enumerate(map(float, start)))
    for j, jump in enumerate(np.diff(third) / 6, start=1):
        text += f" + ({float(jump)!r})*max({s} - {j}, 0)**3"
    text += f" + ({float(start[1])!r})*min({raw}, 0) + ({float(end_slope)!r})*max({raw} - {count}, 0)"
    definitions[name] = text
    return name


def _fitted(
    function: dict[str, Any],
    letter: str,
    terms: Sequence[str],
    states: tuple[str, str],
    parameters: dict[str, Any],
) -> list[str]:
    """Factors of the terms, weighted by the band; they are added to the parameters with bounds of doubt."""
    points, value, spread = _samples(function, letter)
    matrix = _evaluated(terms, states, points)
    weight = 1.0 / np.maximum(spread, 1e-6 * np.max(np.abs(value)) + 1e-300)
    solution = np.linalg.lstsq(matrix * weight[:, None], value * weight, rcond=None)[0]
    names = [f"{letter}{i}" for i in range(1, len(terms) + 1)]
    clash = [n for n in names if n in parameters]
    if clash:
        raise ModelError(f"The model already has a parameter {clash[0]}.")
    parameters.update({n: {"guess": float(v)} for n, v in zip(names, solution, strict=True)})
    return names


def _samples(function: dict[str, Any], letter: str) -> tuple[Array, Array, Array]:
    """Points [3, n] of (t, x, v), the values there, and their standard errors."""
    from analysis.base.identification import Z95
    from analysis.estimate.functions.energetic.splines import Grid

    if "value" in function:
        x, v = np.meshgrid(function["x"], function["v"], indexing="ij")
        value = np.array(function["value"]).ravel()
        spread = (np.array(function["upper"]).ravel() - value) / Z95
        return np.vstack([np.zeros(x.size), x.ravel(), v.ravel()]), value, spread
    coefficients = np.array(function["coefficients"])
    grid = Grid(function["lower"], function["upper"], len(coefficients) - 3)
    s = np.linspace(grid.lower, grid.upper, POINTS)
    rows = grid.basis(s)
    spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, np.array(function["covariance"]), rows), 0.0))
    points = np.zeros((3, POINTS))
    points[0 if letter == "c" else 1] = s
    return points, rows @ coefficients, spread


def _evaluated(terms: Sequence[str], states: tuple[str, str], points: Array) -> Array:
    """Each term at the points: [n, terms]. The terms are read by the model language, nothing else."""
    from analysis.model import Model

    x_name, v_name = states
    outputs = {f"term{i}": text for i, text in enumerate(terms)}
    model = Model.from_equations({x_name: "0", v_name: "0"}, outputs=outputs, name="terms")
    out = np.empty((len(terms), points.shape[1]))
    states_at = np.ascontiguousarray(points[1:])
    inputs = np.zeros((0, points.shape[1]))
    model.kernels().out_many(np.ascontiguousarray(points[0]), states_at, inputs, model.values(), out)
    return out.T
