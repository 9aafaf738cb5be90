"""Method ``path``: maximum likelihood over the states at all samples and the parameters, and the shared
finisher.

Every method turns a record into a start; :func:`finish` takes it from there to the accuracy that the noise
allows, with error bars. The array-level work is in :mod:`analysis.estimate.path.estimate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ModelError
from analysis.base.identification import Identification, estimates
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Record
from analysis.estimate.identifiability import covariance_of, undetermined_words
from analysis.estimate.measurement import Measurement, measurements, path_segments
from analysis.estimate.path.estimate import PathEstimate, Segment, estimate_path
from analysis.estimate.profile import chosen, trace_profile, with_profiles
from analysis.signal.noise import colour_words

if TYPE_CHECKING:
    from analysis.model import Model

__all__ = ["Options", "PathEstimate", "Segment", "estimate_path", "finish", "identify"]

Array = NDArray[np.float64]

REFERENCES = [
    "Z. Liu, H. Fang, K.-W. Wang, J. Xu, Mech. Syst. Signal Process. 108 (2018) 97-111",
    "H. G. Bock, Recent advances in parameter identification for ordinary differential equations (1983)",
    "A. E. Bryson, M. Frazier, Smoothing for linear and nonlinear dynamic systems (1963)",
]


@dataclass(frozen=True)
class Options:
    """Options of the maximum-likelihood path."""

    per_record: tuple[str, ...] = ()  # parameters with a value of their own in each record
    offsets: tuple[str, ...] = ()  # outputs whose sensor has an unknown constant offset
    delays: tuple[str, ...] = ()  # outputs whose sensor lags by an unknown time
    drifts: tuple[str, ...] = ()  # outputs whose zero wanders at a constant rate, another in each record
    noise: Mapping[str, float] = field(default_factory=dict)  # known standard deviations; others estimated
    inputs: str = "cubic"  # measured inputs between samples: cubic, linear or hold
    denoise: bool = True  # count the noise of measured inputs; off: they are exact
    max_iterations: int = 60
    profile: tuple[str, ...] = ()  # parameters whose profile likelihood is traced; `all` for every one


def identify(model: Model, records: Sequence[Record], options: Options, progress: Progress) -> Identification:
    """Maximum likelihood from the model's own guesses."""
    return _fit(model, records, options, None, None, progress)


def finish(
    model: Model,
    records: Sequence[Record],
    start: Identification,
    progress: Progress = SILENT,
    states: Sequence[Array] | None = None,
    **options: Any,
) -> Identification:
    """Take another method's result to maximum likelihood; what that method found stays in ``extra["start"]``.

    ``states``: a path [n, N] for each record to start from, if the method knows a better one than the data.
    """
    return _fit(model, records, Options(**options), start, states, progress)


def _fit(
    model: Model,
    records: Sequence[Record],
    options: Options,
    start: Identification | None,
    states: Sequence[Array] | None,
    progress: Progress,
) -> Identification:
    data = measurements(model, records, options.inputs, options.denoise)
    values = _start_values(model, len(records), start)
    segments = path_segments(model, data, list(values), states)
    free, local = _free(model, options)
    found = estimate_path(
        model.kernels(),
        segments,
        values,
        free,
        local=local,
        lower=np.array([p.lower for p in model.parameters.values()]),
        upper=np.array([p.upper for p in model.parameters.values()]),
        sigma=np.array([options.noise.get(name, np.nan) for name in model.outputs]),
        max_iterations=options.max_iterations,
        progress=progress,
    )
    result = _identification(model, data, segments, found, options, start, len(records))
    names = chosen(options.profile, [name for name in model.free if name not in options.per_record])
    return path_profiles(model, segments, found, names, result, progress) if names else result


def path_profiles(
    model: Model,
    segments: Sequence[Segment],
    found: PathEstimate,
    names: Sequence[str],
    result: Identification,
    progress: Progress,
) -> Identification:
    """The result with the profile likelihood of some parameters, the whole path following each of them."""
    if len({record for _, record in found.unknowns}) > 1:
        raise ModelError("A profile is traced only where no parameter differs from record to record.")
    lower = np.array([p.lower for p in model.parameters.values()])
    upper = np.array([p.upper for p in model.parameters.values()])
    profiles = []
    for name in names:
        index = model.index(name)
        bounds = float(lower[index]), float(upper[index])
        follow = _holding(model.kernels(), segments, found, index, lower, upper, progress)
        profiles.append(trace_profile(name, result.parameters[name], follow, found, found.chi2, bounds))
    return with_profiles(result, profiles)


def _holding(
    kernels: Any,
    segments: Sequence[Segment],
    found: PathEstimate,
    index: int,
    lower: Array,
    upper: Array,
    progress: Progress,
) -> Callable[[float, PathEstimate], tuple[float, PathEstimate]]:
    """Chi-square of the most likely path with one parameter held, each time from the last path."""
    k = len(lower)
    others = [j for j, _ in found.unknowns if j != index]

    def follow(value: float, last: PathEstimate) -> tuple[float, PathEstimate]:
        progress.report(0.95, "profile likelihood")
        values = last.values[:, :k].copy()
        values[:, index] = value
        warm = [replace(s, states=x) for s, x in zip(segments, last.states, strict=True)]
        sensors = last.values[0, k:]
        fit = estimate_path(
            kernels, warm, values, others, lower=lower, upper=upper, sigma=found.sigma, sensors=sensors
        )
        return (fit.chi2 if fit.converged else np.inf), fit

    return follow


def _start_values(model: Model, records: int, start: Identification | None) -> Array:
    values = np.tile(model.values(), (records, 1))
    if start is not None:
        known = start.values()
        for j, name in enumerate(model.parameters):
            for r in range(records):
                values[r, j] = known.get(f"{name}[{r + 1}]", known.get(name, values[r, j]))
    lower = np.array([p.lower for p in model.parameters.values()])
    upper = np.array([p.upper for p in model.parameters.values()])
    return np.asarray(np.clip(values, lower, upper))


def _free(model: Model, options: Options) -> tuple[list[int], list[int]]:
    k, q = len(model.parameters), len(model.outputs)
    if not model.free:
        raise ModelError(f"{model.name} has no free parameter: give one a guess instead of a value.")
    for name in options.per_record:
        if name not in model.free:
            raise ModelError(f"{model.name} has no free parameter `{name}` that could differ by record.")
    for name in (*options.offsets, *options.delays, *options.drifts):
        if name not in model.outputs:
            raise ModelError(f"{model.name} has no output `{name}`; it has {', '.join(model.outputs)}.")
    free = [model.index(name) for name in model.free]
    free += [k + model.outputs.index(name) for name in options.offsets]
    free += [k + q + model.outputs.index(name) for name in options.delays]
    drifts = [k + 2 * q + model.outputs.index(name) for name in options.drifts]
    return free + drifts, [*(model.index(name) for name in options.per_record), *drifts]


def _name(model: Model, index: int, record: int, records: int) -> str:
    k, q = len(model.parameters), len(model.outputs)
    if index < k:
        name = list(model.parameters)[index]
    else:
        name = f"{model.outputs[(index - k) % q]} {('offset', 'delay', 'drift')[(index - k) // q]}"
    return name if record < 0 or records == 1 else f"{name}[{record + 1}]"


def _identification(
    model: Model,
    data: list[Measurement],
    segments: list[Segment],
    found: PathEstimate,
    options: Options,
    start: Identification | None,
    records: int,
) -> Identification:
    names = [_name(model, index, record, records) for index, record in found.unknowns]
    covariance = covariance_of(found.information) + found.input_covariance
    units = {name: model.unit(name.split("[")[0]) for name in names}
    residual = {"chi2": found.chi2, "dof": float(found.dof), "chi2/dof": found.chi2 / max(found.dof, 1)}
    for i, name in enumerate(model.outputs):
        joined = np.concatenate([r[i] for r in found.residuals])
        joined = joined[np.isfinite(joined)]
        if len(joined):
            residual[f"rms {name}"] = float(np.sqrt(np.mean(joined**2)))
            residual[f"noise {name}"] = float(found.sigma[i])
    extra: dict[str, Any] = {"steps": found.steps, "defect": found.defect, "segments": len(segments)}
    if found.inputs_estimated:
        extra["input noise"] = {name: float(data[0].input_noise[i]) for i, name in enumerate(model.inputs)}
    if start is not None:
        extra["start"] = {"method": start.method, "parameters": start.values(), **start.extra}
    return Identification(
        method=start.method if start is not None else "path",
        model=model.name,
        converged=found.converged,
        parameters=estimates(names, found.estimate, covariance, units),
        iterations=found.iterations + (start.iterations if start is not None else 0),
        evaluations=found.evaluations + (start.evaluations if start is not None else 0),
        residual=residual,
        undetermined=undetermined_words(found.information, found.estimate, names),
        warnings=_warnings(model, found, options) + (list(start.warnings) if start is not None else []),
        covariance=covariance.tolist(),
        history=found.history,
        curves=dict(start.curves) if start is not None else {},
        extra=extra,
        options=dict(start.options) if start is not None else asdict(options),  # those of the method named
        model_text=model.text,
        references=[*(start.references if start is not None else []), *REFERENCES],
    )


def _warnings(model: Model, found: PathEstimate, options: Options) -> list[str]:
    words = [found.message] if found.message else []
    words += colour_words(model.outputs, found.residuals)
    ratio = found.chi2 / max(found.dof, 1)
    if options.noise and ratio > 1.5:
        words.append(f"The misfit is {np.sqrt(ratio):.2g} times what the given noise explains.")
    bounds = np.array([[p.lower, p.upper] for p in model.parameters.values()])
    for (index, _), value in zip(found.unknowns, found.estimate, strict=True):
        if index < len(bounds) and value in bounds[index]:
            words.append(f"{list(model.parameters)[index]} lies on its bound {value:g}.")
    return words
