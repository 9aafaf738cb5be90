"""Method ``energetic``: unknown functions of an oscillator, v' = (what the model says) - c(t) v - H.

From the whole record (default): penalised splines by the weak form with generalised least squares, refined by
output error, smoothed by restricted likelihood, with bands. With ``boundary``: the published energetic
boundary functions, which use the ends of the record alone (Liu, Chen, Chang 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.identification import Z95, Curve, Estimate, Identification, Residual
from analysis.base.progress import Progress
from analysis.base.record import Record
from analysis.estimate.finish.assemble import write_start
from analysis.estimate.functions.energetic.channels import oscillator_states
from analysis.estimate.functions.energetic.judged import judged
from analysis.estimate.functions.energetic.recovery import Recovery, Wanted, recover
from analysis.estimate.functions.energetic.splines import Grid, KnownValue
from analysis.estimate.functions.energetic.terms import to_model
from analysis.estimate.start import Start

if TYPE_CHECKING:
    from analysis.model import Model

__all__ = ["Options", "identify", "to_model"]

Array = NDArray[np.float64]
CURVE_POINTS = 201
SECTION_POINTS = 41  # of H(x, v) along either variable
FAINT = 4.0  # a band so many times wider than usual marks where the motion hardly went
_WELL_INSIDE = 0.85  # of half the visited range: beyond it a band is wide by nature
REFERENCES = [
    "C.-S. Liu, Y.-W. Chen, J.-R. Chang, J. Marine Science and Technology 27 (2019) 202-209",
    "S. N. Wood, M. Fasiolo, A generalized Fellner-Schall method for smoothing parameter optimization, "
    "Biometrics 73, 2017",
]


@dataclass(frozen=True)
class Options:
    """What to recover, and what is known about it."""

    unknown: str = "H(x)"  # c(t); H(x); H(x,v); c(t)+H(x); c(t)+H(x,v)
    intervals: int = 0  # of the splines; 0: by the number of samples (the penalty limits the detail)
    rough: int = 0  # derivative that is penalised: 3 smooth, 2 kinks; 0: kinks and steps where data ask
    c_known: tuple[float, ...] = ()  # known values of c: triples time, derivative (0 or 1), value
    h_known: tuple[float, ...] = ()  # known values of H(x): triples x, derivative (0 or 1), value
    start: tuple[float, ...] = ()  # displacement and velocity at the first sample, if known
    segment: int = 0  # samples to a segment of the output-error refinement; 0: a few swings
    refine: bool = True  # output error after the weak form
    denoise: bool = True  # smooth noisy inputs first
    boundary: bool = False  # the published method: ends of the record alone
    terms: int = 2  # boundary functions (m)
    tolerance: float = 1e-3  # of their iteration


def identify(model: Model, records: Sequence[Record], options: Options, progress: Progress) -> Identification:
    """The unknown functions with pointwise 95 % bands, as ``curves``."""
    if options.rough not in (0, 1, 2, 3):
        raise DataError("The penalty sees the first, second or third derivative: rough is 1, 2, 3, or 0.")
    if options.boundary:
        from analysis.estimate.functions.energetic.ends import identify_from_ends

        return identify_from_ends(model, records, options)
    if len(options.start) not in (0, 2):
        raise DataError("start wants two numbers: displacement and velocity at the first sample.")
    wanted = Wanted(
        options.unknown,
        options.intervals,
        triples(options.c_known),
        triples(options.h_known),
        (options.start[0], options.start[1]) if options.start else None,
        options.segment,
        options.refine,
        options.rough,
    )
    found = recover(model, records, wanted, options.denoise, progress)
    progress.report(1.0, "done")
    return _identification(model, found, options)


def triples(flat: tuple[float, ...]) -> tuple[KnownValue, ...]:
    if len(flat) % 3:
        raise DataError("Known values come in triples: place, derivative (0 or 1), value.")
    return tuple(KnownValue(flat[i], int(flat[i + 1]), flat[i + 2]) for i in range(0, len(flat), 3))


@dataclass(frozen=True)
class _Described:
    """The recovered functions: as curves, as numbers, as what simulates them, and where they are faint."""

    curves: dict[str, Curve]
    parameters: dict[str, Estimate]
    functions: dict[str, Any]
    warnings: list[str]


def _described(found: Recovery, x_name: str, v_name: str) -> _Described:
    unknowns, fit = found.unknowns, found.fit
    curves: dict[str, Curve] = {}
    parameters: dict[str, Estimate] = {}
    functions: dict[str, Any] = {}
    warnings: list[str] = []
    if unknowns.c:
        where = slice(0, unknowns.c_size)
        t = np.linspace(unknowns.c.lower, unknowns.c.upper, CURVE_POINTS)
        curves["c"], _ = _curve(t, unknowns.c_rows(t), fit, where, "t [s]", "c")
        parameters["c_mean"] = _combination(np.mean(unknowns.c_rows(t), axis=0), fit, where)
        functions["c"] = _function(unknowns.c, fit, where)
    if unknowns.x:
        where = slice(unknowns.c_size, unknowns.size)
        inner = _inside(unknowns.x)
        if unknowns.v is None:
            x = np.linspace(unknowns.x.lower, unknowns.x.upper, CURVE_POINTS)
            curves["H"], spread = _curve(x, unknowns.h_rows(x, x), fit, where, x_name, "H")
            warnings += _faint(x, spread, x_name)
            functions["H"] = _function(unknowns.x, fit, where)
        else:
            functions["H"] = _surface(unknowns.x, unknowns.v, fit, where)
            cuts = _sections(unknowns.x, unknowns.v, x_name, v_name)
            for (name, points), axis in zip(cuts.items(), (0, 1), strict=True):
                label = (x_name, v_name)[axis]
                curves[name], _ = _curve(points[axis], unknowns.h_rows(*points), fit, where, label, "H")
        rows = unknowns.h_rows(inner, np.zeros(2))
        parameters["k_mean"] = _combination((rows[1] - rows[0]) / (inner[1] - inner[0]), fit, where)
    return _Described(curves, parameters, functions, warnings)


def _identification(model: Model, found: Recovery, options: Options) -> Identification:
    x_name, v_name = oscillator_states(model)
    fit = found.fit
    told = _described(found, x_name, v_name)
    warnings = list(told.warnings)
    if model.free:
        names = ", ".join(model.free)
        warnings.append(
            f"The model's own parameters are taken as known, at their guesses: {names}. To find them beside "
            f'the function write it into the model (H = {{ function = "x", knots = 12 }}) and use path.'
        )
    if found.from_middle:
        warnings.append(f"No sensor shows the zero of {x_name}: it is counted from its mean in the records.")
    if not fit.converged:
        warnings.append("The fit did not settle; treat the curves with care.")
    residual = Residual(
        2.0 * fit.misfit.cost,
        found.samples - fit.freedom,
        rms={left.name: left.rms for left in found.left},
        noise=found.noise,
        other={"freedom": fit.freedom, "samples": float(found.samples)},
    )
    start = Start(
        "energetic",
        model.values(),
        converged=fit.converged,
        iterations=fit.iterations,
        evaluations=found.evaluations,
        history=fit.history,
        warnings=warnings,
        parameters=told.parameters,
        residual=residual,
        findings={
            "functions": told.functions,
            "segments": found.segments,
            "penalty_weights": fit.weights.tolist(),
            "states": [x_name, v_name],
        },
        curves=told.curves,
        references=REFERENCES,
    )
    written = write_start(start, model.name, model.to_toml(), asdict(options), found.about_time)
    return judged(written, found)


def _inside(grid: Grid) -> Array:
    """The ends of the visited range."""
    from analysis.estimate.functions.energetic.recovery import BEYOND

    margin = (grid.upper - grid.lower) * BEYOND / (1.0 + 2.0 * BEYOND)
    return np.array([grid.lower + margin, grid.upper - margin])


def _spread(rows: Array, covariance: Array) -> Array:
    return np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, covariance, rows), 0.0))


def _curve(x: Array, rows: Array, fit: Any, where: slice, x_label: str, y_label: str) -> tuple[Curve, Array]:
    value = rows @ fit.theta[where]
    spread = _spread(rows, fit.covariance[where, where])
    low, high = value - Z95 * spread, value + Z95 * spread
    return Curve(x.tolist(), value.tolist(), low.tolist(), high.tolist(), x_label, y_label), spread


def _combination(row: Array, fit: Any, where: slice) -> Estimate:
    variance = float(row @ fit.covariance[where, where] @ row)
    return Estimate.normal(float(row @ fit.theta[where]), float(np.sqrt(max(variance, 0.0))))


def _function(grid: Grid, fit: Any, where: slice) -> dict[str, Any]:
    """A spline as JSON: its grid, B-spline coefficients and their covariance."""
    turn = grid.turn()
    return {
        "lower": grid.lower,
        "upper": grid.upper,
        "coefficients": (turn @ fit.theta[where]).tolist(),
        "covariance": (turn @ fit.covariance[where, where] @ turn.T).tolist(),
    }


def _surface(x: Grid, v: Grid, fit: Any, where: slice) -> dict[str, Any]:
    """H(x, v) on a grid of points with its band."""
    points = np.linspace(x.lower, x.upper, SECTION_POINTS), np.linspace(v.lower, v.upper, SECTION_POINTS)
    along_x, along_v = points[0], points[1]
    rows = np.asarray(np.kron(x.basis(along_x) @ x.turn(), v.basis(along_v) @ v.turn()), dtype=np.float64)
    shape = (SECTION_POINTS, SECTION_POINTS)
    value = (rows @ fit.theta[where]).reshape(shape)
    spread = _spread(rows, fit.covariance[where, where]).reshape(shape)
    return {
        "x": along_x.tolist(),
        "v": along_v.tolist(),
        "value": value.tolist(),
        "lower": (value - Z95 * spread).tolist(),
        "upper": (value + Z95 * spread).tolist(),
    }


def _sections(x: Grid, v: Grid, x_name: str, v_name: str) -> dict[str, tuple[Array, Array]]:
    """Cuts through H(x, v): at rest, and through the middle displacement."""
    along_x, along_v = (np.linspace(g.lower, g.upper, CURVE_POINTS) for g in (x, v))
    rest = np.clip(0.0, v.lower, v.upper)
    middle = np.clip(0.0, x.lower, x.upper)
    return {
        f"H({x_name}, {v_name} = {rest:.3g})": (along_x, np.full(CURVE_POINTS, rest)),
        f"H({x_name} = {middle:.3g}, {v_name})": (np.full(CURVE_POINTS, middle), along_v),
    }


def _faint(x: Array, spread: Array, name: str) -> list[str]:
    """Places inside the visited range that the motion hardly visited."""
    usual = float(np.median(spread))
    inside = np.abs(np.linspace(-1, 1, len(x))) < _WELL_INSIDE
    faint = inside & (spread > FAINT * usual)
    if usual <= 0 or not faint.any():
        return []
    return [
        f"The motion hardly went through {name} = {x[faint].min():.4g} to {x[faint].max():.4g}: "
        f"the band there is up to {float(np.max(spread[faint])) / usual:.0f} times as wide as elsewhere."
    ]
