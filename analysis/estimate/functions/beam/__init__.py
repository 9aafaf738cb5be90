"""Method ``beam``: stiffness, mass and damping along a beam from point sensors, frequencies or responses.

The beam is described in TOML (:mod:`analysis.estimate.functions.beam.description`) instead of by equations.
Quintic-spline
Galerkin state and cubic-spline properties (Banks, Crowley 1983); the properties' logarithms are penalised
splines whose weight follows the restricted likelihood, so that a flat guess is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.base.identification import Z95, Curve, Estimate, Identification, Residual
from analysis.base.progress import Progress
from analysis.base.record import Record
from analysis.estimate.finish.assemble import write_start
from analysis.estimate.functions.beam.description import Beam
from analysis.estimate.functions.beam.fit import Problem, fit, problem
from analysis.estimate.functions.beam.judged import judged
from analysis.estimate.functions.beam.local_search import Choice, with_local_losses
from analysis.estimate.functions.beam.mode_numbers import with_mode_numbers
from analysis.estimate.functions.beam.observation import observe
from analysis.estimate.functions.beam.published import fit_plain
from analysis.estimate.functions.beam.system import BeamSystem
from analysis.estimate.functions.beam.unknowns import Block, UnknownProperties, layout
from analysis.estimate.functions.penalised import Fit
from analysis.estimate.start import Start

__all__ = ["Beam", "Options", "identify", "load", "simulate"]

Array = NDArray[np.float64]
load = Beam.from_toml  # a beam's description takes the place of a model
FOLDER = "beams"  # of resources, where descriptions are found by name
CURVE_POINTS = 101
WIDE = 0.35  # standard error of a logarithm from which on the data say little about a place
_NO_TRACE = 1e-8  # eigenvalue of the scaled information below which a common factor leaves no trace
_TAKES_PART = 0.05  # of the largest share in it, from which on a quantity is named
REFERENCES = [
    "H. T. Banks, J. M. Crowley, Parameter identification in continuum models, NASA CR-172132, 1983",
    "S. N. Wood, M. Fasiolo, A generalized Fellner-Schall method for smoothing parameter optimization, "
    "Biometrics 73, 2017",
]


@dataclass(frozen=True)
class Options:
    """How to identify a beam."""

    fit: str = "penalised"  # "penalised", or "published": plain least squares without a penalty
    elements: int = 0  # of the quintic-spline state, N; 0: as the description says
    intervals: int = 0  # of every property's cubic spline, M; 0: as the description says
    modes: int = 40  # kept in the response (all of them if there are fewer)
    stages: int = 60  # at most so many steps of the penalty
    losses: int = 2  # local losses of stiffness that are tried beside a smooth curve; 0: none


def identify(beam: Beam, records: Sequence[Record], options: Options, progress: Progress) -> Identification:
    """Properties along a beam with 95 % bands, from records of one test or of a scan point by point."""
    if not isinstance(beam, Beam):
        raise ModelError("The method 'beam' wants the description of a beam, not a model of equations.")
    if options.fit not in ("penalised", "published"):
        raise ModelError(f"The fit of a beam is 'penalised' or 'published', not '{options.fit}'.")
    if not (records or beam.frequencies or beam.responses):
        raise DataError("A beam needs a record, measured natural frequencies or frequency responses.")
    beam, gap = with_mode_numbers(beam, options.elements or None)
    unknowns = layout(beam, log=options.fit == "penalised", intervals=_intervals(beam, options.intervals))
    system = BeamSystem(beam, unknowns, options.elements or None, options.modes)
    used = records if beam.sensors else []
    task = problem(system, [observe(beam, record) for record in used])
    if task.samples + len(beam.frequencies) + len(beam.responses) == 0:
        raise DataError("There is nothing to compare with: the record holds no valid sample of a sensor.")
    if options.fit == "published":
        chosen = Choice(task, fit_plain(task), [])
    else:
        smooth = fit(task, options.stages, progress=progress.part(0.0, 0.6))
        chosen = with_local_losses(task, smooth, options.losses, progress.part(0.6, 1.0))
    progress.report(1.0, "done")
    return judged(_identification(chosen, options, gap), chosen.task, chosen.fit)


def simulate(beam: Beam, record: Record, elements: int = 0, modes: int = 40) -> Record:
    """The record that the described beam would give: its sensors beside the drives of ``record``.

    Properties are taken at their values or guesses; the length and the rate are those of ``record``.
    """
    unknowns = UnknownProperties(beam, (), np.zeros(0))
    system = BeamSystem(beam, unknowns, elements or None, modes)
    blank = record.with_channels(**{s.name: np.zeros(len(record)) for s in beam.sensors})
    observation = observe(beam, blank)
    state = system.state(unknowns.start, derivatives=False)
    response, _ = observation.predict(system, state, unknowns.start)
    seen = response - observation.data  # the prepared data are zero minus the motion of the base
    return blank.with_channels(**dict(zip(observation.names, seen, strict=True)))


def _intervals(beam: Beam, count: int) -> dict[str, int]:
    """A common number of intervals replaces those of properties that vary."""
    return {k: count for k, p in beam.profiles.items() if count and p.free and p.intervals}


def _described(chosen: Choice) -> tuple[dict[str, Estimate], dict[str, Curve], list[str]]:
    """Each unknown as a number or as a curve along the beam, and the places that the data do not reach."""
    result, unknowns, beam = chosen.fit, chosen.task.unknowns, chosen.task.system.beam
    parameters: dict[str, Estimate] = {}
    curves: dict[str, Curve] = {}
    warnings: list[str] = []
    x = np.linspace(0.0, beam.length, CURVE_POINTS)
    for block in unknowns.blocks:
        covariance = result.covariance[block.where, block.where]
        if block.local:
            parameters |= _local_loss(block, result.theta, covariance, beam.length)
            continue
        if block.key not in beam.profiles or block.intervals == 0:
            parameters[block.symbol] = _number(block, result.theta, covariance, beam.length)
            continue
        value, rows, spread = _along(unknowns, block, result, x)
        lower, upper = _band(block, value, spread)
        if chosen.rival is not None and block.key == "stiffness":
            value, lower, upper = _of_both(value, lower, upper, chosen.rival, x)
        curves[block.symbol] = Curve(
            x.tolist(),
            value.tolist(),
            lower.tolist(),
            upper.tolist(),
            "x [m]",
            f"{block.symbol} [{block.unit}]",
        )
        mean_row = np.trapezoid(rows, x, axis=0) / beam.length
        mean = float(np.trapezoid(value, x)) / beam.length
        error = float(np.sqrt(max(float(mean_row @ result.covariance @ mean_row), 0.0)))
        parameters[f"{block.symbol}_mean"] = Estimate.normal(mean, error, block.unit)
        warnings += _silent_places(block, x, spread if block.log else spread / np.abs(value))
    if beam.inertia is not None and "EI" in parameters:
        parameters["E"] = _scaled(parameters["EI"], 1.0 / beam.inertia, "Pa")
    return parameters, curves, warnings


def _identification(chosen: Choice, options: Options, gap: list[str]) -> Identification:
    task, result = chosen.task, chosen.fit
    system, unknowns = task.system, task.unknowns
    beam = system.beam
    parameters, curves, words = _described(chosen)
    warnings = [*gap, *chosen.words, *words]
    residual = Residual(
        2.0 * result.misfit.cost,
        other={"noise": _pooled(task), "freedom": result.freedom, "samples": float(task.samples)},
    )
    found, _ = system.frequencies(system.state(result.theta, derivatives=False))
    if not result.converged:
        warnings.append("The fit did not settle; more stages, or better guesses, may help.")
    start = Start(
        "beam",
        result.theta,
        converged=result.converged,
        iterations=result.iterations,
        evaluations=system.evaluations,
        history=result.history,
        warnings=warnings,
        undetermined=_undetermined(unknowns, result),
        parameters=parameters,
        residual=residual,
        findings={
            "elements": system.space.elements,
            "modes": system.count,
            "frequencies_hz": found[: max(8, len(beam.frequencies))].tolist(),
            "measured_hz": list(beam.frequencies),
            "measured_modes": list(beam.frequency_modes),
            "penalty_weights": result.weights.tolist(),
        },
        curves=curves,
        references=REFERENCES,
    )
    return write_start(start, beam.name, beam.text, asdict(options))


def _number(block: Block, theta: Array, covariance: Array, length: float) -> Estimate:
    inner, spread = float(theta[block.where][0]), float(np.sqrt(max(covariance[0, 0], 0.0)))
    if block.key == "length":
        inner += float(np.log(length))
    if not block.log:
        return Estimate.normal(inner, spread, block.unit)
    return _log_number(inner, spread, block.unit)


def _log_number(inner: float, spread: float, unit: str) -> Estimate:
    """A positive number from its logarithm."""
    value = float(np.exp(inner))
    factor = float(np.exp(min(Z95 * spread, 700.0 - abs(inner))))
    return Estimate(value, value * spread, value / factor, value * factor, unit)


def _band(block: Block, value: Array, spread: Array) -> tuple[Array, Array]:
    if block.log:
        factor = np.exp(np.minimum(Z95 * spread, 50.0))
        return value / factor, value * factor
    return value - Z95 * spread, value + Z95 * spread


def _along(unknowns: UnknownProperties, block: Block, result: Fit, x: Array) -> tuple[Array, Array, Array]:
    """A property along the beam, its derivatives by all unknowns [len(x), P], and its standard error
    (that of its logarithm where the spline is one)."""
    value = unknowns.property_at(block.key, result.theta, x)
    rows = np.zeros((len(x), unknowns.size))
    for own in (block, *(unknowns.losses if block.key == "stiffness" else ())):
        rows[:, own.where] = unknowns.slopes(own, result.theta, x, value)
    spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, result.covariance, rows), 0.0))
    return value, rows, spread / value if block.log else spread


def _of_both(
    value: Array, lower: Array, upper: Array, rival: tuple[Problem, Fit], x: Array
) -> tuple[Array, Array, Array]:
    """Mean (of the logarithms) of the stiffness and its rival, and the band that covers both."""
    task, fitted = rival
    block = task.unknowns.block("stiffness")
    assert block is not None
    other, _, spread = _along(task.unknowns, block, fitted, x)
    low, high = _band(block, other, spread)
    return np.sqrt(value * other), np.minimum(lower, low), np.maximum(upper, high)


def _local_loss(block: Block, theta: Array, covariance: Array, length: float) -> dict[str, Estimate]:
    """Place, width and share of the stiffness that is lost."""
    place, width, depth = theta[block.where]
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    q = float(np.exp(depth))
    name = block.symbol.replace(" ", "")
    return {
        f"{name}_place": Estimate.normal(float(place) * length, float(errors[0]) * length, "m"),
        f"{name}_width": _log_number(float(width) + np.log(length), float(errors[1]), "m"),
        f"{name}_share": Estimate.normal(-float(np.expm1(-q)), q * float(np.exp(-q)) * float(errors[2]), ""),
    }


def _scaled(estimate: Estimate, factor: float, unit: str) -> Estimate:
    low, high = estimate.lower * factor, estimate.upper * factor
    return Estimate(estimate.value * factor, estimate.stderr * factor, low, high, unit)


def _silent_places(block: Block, x: Array, spread: Array) -> list[str]:
    wide = spread > WIDE
    if not wide.any():
        return []
    share = 100.0 * float(np.mean(wide))
    return [
        f"{block.symbol} is hardly determined over {share:.0f} % of the beam, between "
        f"x = {x[wide].min():.3g} and {x[wide].max():.3g}: its band "
        f"there mostly repeats the assumption that it varies smoothly."
    ]


def _pooled(task: Problem) -> float:
    levels = np.concatenate(task.noise) if task.noise else np.zeros(1)
    return float(np.sqrt(np.mean(levels**2)))


def _undetermined(unknowns: UnknownProperties, result: Fit) -> list[str]:
    """Common factors of the unknowns along which the data do not change."""
    blocks = [b for b in unknowns.blocks if not b.local]
    if not all(b.log for b in blocks):
        return []
    shifts = unknowns.shifts()[:, : len(blocks)]  # losses come last
    information = shifts.T @ result.hessian @ shifts
    scale = 1.0 / np.sqrt(np.maximum(np.diag(information), 1e-300))
    values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
    out = []
    for value, vector in zip(values, vectors.T, strict=True):
        direction = np.abs(scale * vector)
        if value < _NO_TRACE:
            names = [
                b.symbol for b, d in zip(blocks, direction, strict=True) if d > _TAKES_PART * direction.max()
            ]
            out.append(
                f"A common factor of {', '.join(names)} leaves the data unchanged: fix one of them, "
                f"weigh the beam ([mass] total) or measure the force."
            )
    return out
