"""The only place that writes an :class:`Identification`: of a fit, or of a method by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Z95, Estimate, Identification, Residual
from analysis.base.words import rounded
from analysis.estimate.finish.evidence import Figures
from analysis.estimate.finish.fitted import Fitted, Piece
from analysis.estimate.finish.judge import Judgement
from analysis.estimate.finish.smooth_curves import with_smoothness
from analysis.estimate.identifiability import (
    covariance_of,
    pseudo_inverse,
    undetermined_directions,
    undetermined_words,
)
from analysis.estimate.path import REFERENCES
from analysis.estimate.start import OwnEstimate, Start

if TYPE_CHECKING:
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

_ROUNDING = 1e-3  # what is left of slopes that cancel along a direction the data leave free
_MISFIT = 1.5  # chi-square per degree of freedom from which on a misfit beside a given noise is said


def assemble(fitted: Fitted, judgement: Judgement, options: Mapping[str, Any]) -> Identification:
    """The result of a fit as it was judged."""
    experiment, start = fitted.experiment, fitted.start
    ideal = covariance_of(fitted.information) + fitted.input_covariance
    names, values, covariance, units = with_initials(fitted, judgement.estimate, judgement.covariance)
    _, _, ideal, _ = with_initials(fitted, judgement.estimate, ideal)
    quantile = np.concatenate([judgement.quantile, np.full(len(values) - len(judgement.quantile), Z95)])
    findings: dict[str, Any] = {**fitted.findings, **judgement.findings}
    if fitted.inputs_estimated:
        noise = experiment.runs[0].input_noise
        findings["input noise"] = {
            name: float(s) for name, s in zip(experiment.model.inputs, noise, strict=True)
        }
    if by_record := _noise_by_record(fitted):
        findings["noise by record"] = by_record
    if start.method != "path":
        findings["start"] = {"method": start.method, "parameters": _start_values(experiment, start)}
    findings |= start.findings
    if start.jumps:
        findings["jumps"] = list(start.jumps)
    own = OwnEstimate(
        names, values, covariance=covariance, residual=_residual(fitted, judgement.figures), units=units,
        quantile=quantile, ideal=ideal,
    )  # fmt: skip
    ended = replace(
        start,
        converged=fitted.converged,
        iterations=fitted.iterations + start.iterations,
        evaluations=fitted.evaluations + start.evaluations,
        history=fitted.history,
        warnings=[*_warnings(fitted), *judgement.warnings, *start.warnings],
        undetermined=undetermined_words(
            with_smoothness(fitted), fitted.estimate, fitted.names, _expected(fitted)
        ),
        own=own,
        parameters={},
        verdict=judgement.verdict,
        reasons=list(judgement.reasons),
        findings=findings,
        curves={**start.curves, **judgement.curves},
        references=list(dict.fromkeys([*start.references, *REFERENCES])),
    )
    return assemble_start(experiment, ended, options)


def assemble_start(experiment: Experiment, start: Start, options: Mapping[str, Any]) -> Identification:
    """The result of a start: as a method left it, or as the maximum likelihood has completed it."""
    given = experiment.given
    return write_start(start, given.name, given.text, options, experiment.warnings)


def write_start(
    start: Start, model: str, text: str, options: Mapping[str, Any], warnings: Sequence[str] = ()
) -> Identification:
    """The same for whatever has the name ``model`` and is described by ``text``."""
    own, residual = start.own, start.residual
    parameters = dict(start.parameters)
    covariance: Array = np.zeros((0, 0))
    undetermined = list(start.undetermined)
    if own is not None:
        size, residual = len(own.estimate), own.residual
        covariance = np.full((size, size), np.nan)
        if own.information is not None:
            covariance = covariance_of(own.information)
            undetermined += undetermined_words(own.information, own.estimate, own.names)
        if own.covariance is not None:
            covariance = own.covariance
        parameters |= _estimates(own, covariance)
    return Identification(
        method=start.method,
        model=model,
        converged=start.converged,
        parameters=parameters,
        iterations=start.iterations,
        evaluations=start.evaluations,
        residual=residual,
        undetermined=undetermined,
        warnings=[*warnings, *start.warnings],
        verdict=start.verdict or "",
        reasons=list(start.reasons),
        covariance=covariance.tolist(),
        history=start.history,
        curves=dict(start.curves),
        chosen=start.chosen,
        extra=dict(start.findings),
        options=dict(options),
        model_text=text,
        references=list(start.references),
    )


def _estimates(own: OwnEstimate, covariance: Array) -> dict[str, Estimate]:
    ideal = covariance if own.ideal is None else own.ideal
    errors, least = (np.sqrt(np.maximum(np.diag(c), 0.0)) for c in (covariance, ideal))
    quantile = np.full(len(errors), Z95) if own.quantile is None else own.quantile
    return {
        name: Estimate(
            float(value),
            float(error),
            float(value - width * error),
            float(value + width * error),
            own.units.get(name, ""),
            float(smallest),
        )
        for name, value, error, width, smallest in zip(
            own.names, own.estimate, errors, quantile, least, strict=True
        )
    }


def with_initials(
    fitted: Fitted, estimate: Array, covariance: Array
) -> tuple[list[str], Array, Array, dict[str, str]]:
    """The unknowns and, behind them, the initial values that the model asks for, with their covariance.

    The best first state follows the unknowns, z(0) = z + Z (p - p_hat), so its variance is what it has with
    the unknowns given plus Z C Z': marginal, not conditional.
    """
    model, runs = fitted.experiment.model, fitted.experiment.runs
    wanted = [model.states.index(name) for name, initial in model.initial.items() if initial.free]
    names, units = list(fitted.names), {u.name: u.unit for u in fitted.unknowns}
    firsts: list[Piece] = [p for p in fitted.pieces if p.first == 0] if wanted else []
    size, count = len(estimate), len(wanted)
    total = np.zeros((size + count * len(firsts),) * 2)
    total[:size, :size] = covariance
    known = np.where(np.isfinite(covariance), covariance, pseudo_inverse(fitted.information))
    free = undetermined_directions(fitted.information)
    values = [estimate]
    for i, piece in enumerate(firsts):
        rows = slice(size + i * count, size + (i + 1) * count)
        slope = piece.initial_slope[wanted]
        own = covariance_of(piece.initial_information)[np.ix_(wanted, wanted)] + slope @ known @ slope.T
        total[rows, :size] = slope @ known
        total[:size, rows] = total[rows, :size].T
        own[np.diag_indices(count)] += np.where(_follows(slope, free), np.inf, 0.0)
        total[rows, rows] = own
        values.append(piece.states[wanted, 0])
        suffix = f"[{piece.record + 1}]" if len(runs) > 1 else ""
        for state in wanted:
            name = f"{model.states[state]}(0){suffix}"
            names.append(name)
            units[name] = model.unit(model.states[state])
    return names, np.concatenate(values), total, units


def _follows(slope: Array, free: Array) -> NDArray[np.bool_]:
    """Whether each first state moves along directions [P, d] of the unknowns that the data leave free."""
    return np.any(np.abs(slope @ free) > _ROUNDING * (np.abs(slope) @ np.abs(free)), axis=1)


def _expected(fitted: Fitted) -> Array:
    """The guess of every parameter; zero for what is expected to be zero, as offsets are.

    The drive's time counts as one of those: to scan for its guess would cost more than the fit.
    """
    guesses = fitted.experiment.model.values()
    return np.array([guesses[u.index] if u.kind == "parameter" else 0.0 for u in fitted.unknowns])


def _residual(fitted: Fitted, figures: Figures) -> Residual:
    rms, noise, r2 = {}, {}, {}
    counts = samples_by_record(fitted)
    for i, name in enumerate(fitted.experiment.model.outputs):
        left = np.concatenate([piece.residuals[i] for piece in fitted.pieces])
        data = np.concatenate([piece.run.outputs[i, piece.first : piece.stop] for piece in fitted.pieces])
        there = np.isfinite(left)
        if there.any():
            rms[name] = float(np.sqrt(np.mean(left[there] ** 2)))
            noise[name] = float(np.sqrt(np.sum(counts[:, i] * fitted.sigma[:, i] ** 2) / counts[:, i].sum()))
            spread = float(np.std(data[there]))
            r2[name] = 1.0 - (rms[name] / spread) ** 2 if spread > 0 else math.nan
    return Residual(
        fitted.chi2, float(fitted.dof), rms, noise, r2, held_out_r2=figures.held_out_r2, missed=figures.missed
    )


def samples_by_record(fitted: Fitted) -> Array:
    """How many samples of each output were fitted [records, q]."""
    counts = np.zeros(fitted.sigma.shape)
    for piece in fitted.pieces:
        counts[piece.record] += np.isfinite(piece.residuals).sum(axis=1)
    return counts


def _noise_by_record(fitted: Fitted) -> dict[str, list[float]]:
    """Noise of the outputs whose records have levels of their own, by record."""
    levels, measured = fitted.sigma, samples_by_record(fitted) > 0
    return {
        name: [float(s) for s in levels[:, i]]
        for i, name in enumerate(fitted.experiment.model.outputs)
        if len(np.unique(levels[measured[:, i], i])) > 1
    }


def _warnings(fitted: Fitted) -> list[str]:
    experiment = fitted.experiment
    words = [fitted.message] if fitted.message else []
    ratio = fitted.chi2 / max(fitted.dof, 1)
    if np.isfinite(experiment.sigma).any() and ratio > _MISFIT:
        words.append(f"The misfit is {rounded(np.sqrt(ratio), 2)} times what the given noise explains.")
    for unknown, value in zip(fitted.unknowns, fitted.estimate, strict=True):
        if value in (unknown.lower, unknown.upper):
            words.append(f"{unknown.name} lies on its bound {value:g}.")
    return words


def _start_values(experiment: Experiment, start: Start) -> dict[str, float]:
    """The start's own numbers by the unknowns' names."""
    k = len(experiment.model.parameters)
    values = np.atleast_2d(start.values)
    return {
        u.name: float(values[min(max(u.record, 0), len(values) - 1), u.index])
        for u in experiment.unknowns
        if u.index < k
    }
