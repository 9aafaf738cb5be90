"""Method ``beam``: stiffness, mass and damping along a beam from point sensors or natural frequencies.

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
from analysis.estimate.functions.beam.mode_numbers import with_mode_numbers
from analysis.estimate.functions.beam.observation import observe
from analysis.estimate.functions.beam.published import fit_plain
from analysis.estimate.functions.beam.system import BeamSystem
from analysis.estimate.functions.beam.unknowns import Block, Unknowns, layout
from analysis.estimate.functions.penalised import Fit
from analysis.estimate.start import Start

__all__ = ["Beam", "Options", "identify", "load", "simulate"]

Array = NDArray[np.float64]
load = Beam.from_toml  # a beam's description takes the place of a model
FOLDER = "beams"  # of resources, where descriptions are found by name
CURVE_POINTS = 101
WIDE = 0.35  # standard error of a logarithm from which on the data say little about a place
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


def identify(beam: Beam, records: Sequence[Record], options: Options, progress: Progress) -> Identification:
    """Properties along a beam with 95 % bands, from records of one test or of a scan point by point."""
    if not isinstance(beam, Beam):
        raise ModelError("The method 'beam' wants the description of a beam, not a model of equations.")
    if options.fit not in ("penalised", "published"):
        raise ModelError(f"The fit of a beam is 'penalised' or 'published', not '{options.fit}'.")
    if not records and not beam.frequencies:
        raise DataError("A beam needs a record or measured natural frequencies.")
    beam, gap = with_mode_numbers(beam, options.elements or None)
    unknowns = layout(beam, log=options.fit == "penalised", intervals=_intervals(beam, options.intervals))
    system = BeamSystem(beam, unknowns, options.elements or None, options.modes)
    used = records if beam.sensors else []
    task = problem(system, [observe(beam, system, record) for record in used])
    if task.samples + len(beam.frequencies) == 0:
        raise DataError("There is nothing to compare with: the record holds no valid sample of a sensor.")
    result = fit_plain(task) if options.fit == "published" else fit(task, options.stages, progress=progress)
    progress.report(1.0, "done")
    return judged(_identification(task, result, options, gap), task, result)


def simulate(beam: Beam, record: Record, elements: int = 0, modes: int = 40) -> Record:
    """The record that the described beam would give: its sensors beside the drives of ``record``.

    Properties are taken at their values or guesses; the length and the rate are those of ``record``.
    """
    unknowns = Unknowns(beam, (), np.zeros(0))
    system = BeamSystem(beam, unknowns, elements or None, modes)
    blank = record.with_channels(**{s.name: np.zeros(len(record)) for s in beam.sensors})
    observation = observe(beam, system, blank)
    state = system.state(unknowns.start, derivatives=False)
    response, _ = observation.predict(system, state, unknowns.start)
    seen = response - observation.data  # the prepared data are zero minus the motion of the base
    return blank.with_channels(**dict(zip(observation.names, seen, strict=True)))


def _intervals(beam: Beam, count: int) -> dict[str, int]:
    """A common number of intervals replaces those of properties that vary."""
    return {k: count for k, p in beam.profiles.items() if count and p.free and p.intervals}


def _identification(task: Problem, result: Fit, options: Options, gap: list[str]) -> Identification:
    system, unknowns = task.system, task.unknowns
    beam = system.beam
    parameters: dict[str, Estimate] = {}
    curves: dict[str, Curve] = {}
    warnings: list[str] = list(gap)
    x = np.linspace(0.0, beam.length, CURVE_POINTS)
    for block in unknowns.blocks:
        covariance = result.covariance[block.where, block.where]
        if block.key not in beam.profiles or block.intervals == 0:
            parameters[block.symbol] = _number(block, result.theta, covariance)
            continue
        basis = unknowns.basis(block, x)
        value = unknowns.property_at(block.key, result.theta, x)
        spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", basis, covariance, basis), 0.0))
        lower, upper = _band(block, value, spread)
        curves[block.symbol] = Curve(
            x.tolist(),
            value.tolist(),
            lower.tolist(),
            upper.tolist(),
            "x [m]",
            f"{block.symbol} [{block.unit}]",
        )
        parameters[f"{block.symbol}_mean"] = _mean(unknowns, block, result.theta, covariance, x)
        warnings += _silent_places(block, x, spread if block.log else spread / np.abs(value))
    if beam.inertia is not None and "EI" in parameters:
        parameters["E"] = _scaled(parameters["EI"], 1.0 / beam.inertia, "Pa")
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


def _number(block: Block, theta: Array, covariance: Array) -> Estimate:
    inner, spread = float(theta[block.where][0]), float(np.sqrt(max(covariance[0, 0], 0.0)))
    if not block.log:
        return Estimate.normal(inner, spread, block.unit)
    value = float(np.exp(inner))
    factor = float(np.exp(min(Z95 * spread, 700.0 - abs(inner))))
    return Estimate(value, value * spread, value / factor, value * factor, block.unit)


def _band(block: Block, value: Array, spread: Array) -> tuple[Array, Array]:
    if block.log:
        factor = np.exp(np.minimum(Z95 * spread, 50.0))
        return value / factor, value * factor
    return value - Z95 * spread, value + Z95 * spread


def _mean(unknowns: Unknowns, block: Block, theta: Array, covariance: Array, x: Array) -> Estimate:
    """Mean of a property over the length."""
    value = unknowns.property_at(block.key, theta, x)
    slope = unknowns.basis(block, x) * (value[:, None] if block.log else 1.0)
    row = np.trapezoid(slope, x, axis=0) / unknowns.beam.length
    mean = float(np.trapezoid(value, x)) / unknowns.beam.length
    return Estimate.normal(mean, float(np.sqrt(max(float(row @ covariance @ row), 0.0))), block.unit)


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


def _undetermined(unknowns: Unknowns, result: Fit) -> list[str]:
    """Common factors of the unknowns along which the data do not change."""
    if not all(b.log for b in unknowns.blocks):
        return []
    shifts = unknowns.shifts()
    information = shifts.T @ result.hessian @ shifts
    scale = 1.0 / np.sqrt(np.maximum(np.diag(information), 1e-300))
    values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
    out = []
    for value, vector in zip(values, vectors.T, strict=True):
        direction = np.abs(scale * vector)
        if value < 1e-8:
            names = [
                b.symbol
                for b, d in zip(unknowns.blocks, direction, strict=True)
                if d > 0.05 * direction.max()
            ]
            out.append(
                f"A common factor of {', '.join(names)} leaves the data unchanged: fix one of them, "
                f"weigh the beam ([mass] total) or measure the force."
            )
    return out
