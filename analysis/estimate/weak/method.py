"""Method ``weak``: the weak form with B-spline test functions (Liu, Fang, Wang, Xu 2018), improved and as
published.

By default rows are weighted by the covariance that sensor noise gives them, the width of the test functions
follows from the bandwidth of the data, and maximum likelihood over the path finishes the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.base.identification import Identification, estimates
from analysis.base.progress import Progress
from analysis.base.record import Record
from analysis.estimate.identifiability import covariance_of, undetermined_words
from analysis.estimate.measurement import Measurement, StateSamples, measurements, noise_of, state_samples
from analysis.estimate.weak.fit import Block, WeakEstimate, fit_weak
from analysis.estimate.weak.system import Equation, WeakSystem, nodes

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]

REFERENCES = ["Z. Liu, H. Fang, K.-W. Wang, J. Xu, Mech. Syst. Signal Process. 108 (2018) 97-111"]

_PASS = (
    0.3  # knot spacing times the highest frequency that matters: the test function lets 40 % of it through
)
_NARROWEST = 2  # knots at every sample alias what the samples hardly resolve
_MEASURABLE = 1e-9  # least noise, as a fraction of a channel's standard deviation


@dataclass(frozen=True)
class Options:
    """Options of the weak form."""

    plain: bool = False  # the published method: cubic splines on the samples, unweighted Gauss-Newton
    weighted: bool = True  # rows weighted by their covariance (when the path does not finish the work)
    spacing: int | None = None  # samples between knots of the test functions; None: from the bandwidth
    per_record: tuple[str, ...] = ()  # parameters with a value of their own in each record
    offsets: tuple[str, ...] = ()  # outputs whose sensor has an unknown constant offset
    delays: tuple[str, ...] = ()  # outputs whose sensor lags by an unknown time
    drifts: tuple[str, ...] = ()  # outputs whose zero wanders at a constant rate, another in each record
    inputs: str = "cubic"  # measured inputs between samples: cubic, linear or hold
    denoise: bool = True  # count the noise of measured inputs; off: they are exact
    finish: bool = True  # end with maximum likelihood over the path


def identify(model: Model, records: Sequence[Record], options: Options, progress: Progress) -> Identification:
    """Parameters from the weak form, by default finished by maximum likelihood."""
    if options.plain:
        from analysis.estimate.weak.plain import identify_plain

        return identify_plain(model, records, options.inputs, progress)
    share = 0.3 if options.finish else 1.0
    weak = _identify(model, records, options, progress.part(0.0, share))
    if not options.finish or weak.extra["model_error"]:
        return weak
    from analysis.estimate.path.method import finish

    return finish(
        model,
        records,
        weak,
        progress.part(share, 1.0),
        per_record=options.per_record,
        offsets=options.offsets,
        delays=options.delays,
        drifts=options.drifts,
        inputs=options.inputs,
        denoise=options.denoise,
    )


def _identify(
    model: Model, records: Sequence[Record], options: Options, progress: Progress
) -> Identification:
    data = measurements(model, records, options.inputs, options.denoise)
    if not model.free:
        raise ModelError(f"{model.name} has no free parameter: give one a guess instead of a value.")
    samples = [state_samples(model, m, model.values(), smoothed=False) for m in data]
    equations = _equations(model, samples[0])
    noise = [np.array([noise_of(row) for row in s.values]) for s in samples]
    spacing = options.spacing or _spacing(data, samples, noise)
    blocks = _blocks(model, data, samples, noise, equations, spacing)
    n = len(model.states)
    sensors = _sensor_indices(model, options)
    free = [model.index(name) for name in model.free] + list(sensors)
    drifts = [index for index, name in sensors.items() if name.endswith(" drift")]
    wide = np.full(3 * n, np.inf)
    found = fit_weak(
        blocks,
        np.concatenate([model.values(), np.zeros(3 * n)]),
        free,
        [model.index(name) for name in options.per_record] + drifts,
        np.concatenate([[p.lower for p in model.parameters.values()], -wide]),
        np.concatenate([[p.upper for p in model.parameters.values()], wide]),
        [model.index(name) for name in model.linear],
        reweight=options.weighted and not options.finish,  # the finisher weighs everything anew
        progress=progress,
    )
    names = [_name(model, sensors, index, record, len(records)) for index, record in found.unknowns]
    return _identification(model, found, names, options, spacing, _count(blocks))


def _equations(model: Model, samples: StateSamples) -> list[Equation]:
    """Which equations the data can be put into; an unmeasured state is refused with a pointer onwards."""
    hidden = [s for i, s in enumerate(model.states) if not samples.seen[i] and i not in samples.derived]
    if hidden:
        raise DataError(
            f"The weak form needs every state measured, but nothing shows {', '.join(hidden)}: "
            "use method homotopy, which does without."
        )
    used = {i for i, _ in samples.derived.values()} | set(samples.derived)
    first_order = [Equation(i) for i in range(len(model.states)) if i not in used]
    return first_order + [Equation(j, i, factor) for j, (i, factor) in samples.derived.items()]


def _spacing(data: Sequence[Measurement], samples: Sequence[StateSamples], noise: Sequence[Array]) -> int:
    """Knot spacing such that the test functions pass what moves and stop what is only noise.

    The highest frequency that matters: 99 % of the power of the derivative above the noise floor lies below
    it. Wider test functions average more noise but no longer see the motion, narrower ones see mostly noise.
    """
    highest = 0.0
    for s, levels in zip(samples, noise, strict=True):
        for i in np.flatnonzero(s.seen):
            highest = max(highest, _bandwidth(s.values[i], float(levels[i])))
    longest = max(len(m.times) for m in data) // 24  # leave enough test functions
    wanted = np.floor(_PASS / highest) if highest > 0 else longest
    return int(np.clip(wanted, _NARROWEST, max(longest, _NARROWEST)))


def _bandwidth(row: Array, noise: float) -> float:
    """Frequency in cycles per sample."""
    row = row[: 1 << 16]
    N = len(row)
    spectrum = np.abs(np.fft.rfft((row - row.mean()) * np.hanning(N))) ** 2 / (0.375 * N)
    frequency = np.arange(len(spectrum)) / N
    power = np.maximum(spectrum - 1.5 * noise**2, 0.0) * frequency**2
    # Beyond the last frequency at which the averaged spectrum stands above the noise there is nothing to
    # pass.
    width = max(N // 200, 4)
    summed = np.cumsum(np.concatenate([np.zeros(width // 2 + 1), spectrum, np.zeros(width)]))
    averaged = (summed[width : width + len(spectrum)] - summed[: len(spectrum)]) / width
    above = np.flatnonzero(averaged > 3 * noise**2)
    power[above[-1] + 1 if len(above) else 0 :] = 0.0
    total = np.cumsum(power)
    return float(frequency[np.searchsorted(total, 0.99 * total[-1])]) if total[-1] > 0 else 0.0


def _blocks(
    model: Model,
    data: Sequence[Measurement],
    samples: Sequence[StateSamples],
    noise: Sequence[Array],
    equations: list[Equation],
    spacing: int,
) -> list[Block]:
    kernels, blocks = model.kernels(), []
    for record, (m, s, levels) in enumerate(zip(data, samples, noise, strict=True)):
        valid = np.zeros(len(m.times), dtype=bool)
        for start, stop in m.spans:
            valid[start:stop] = True
        valid &= np.isfinite(m.outputs[m.measured]).all(axis=0)
        floor = _MEASURABLE * np.std(s.values, axis=1)
        for stretch in nodes(m.times, s.values, m.inputs, valid):
            system = WeakSystem(kernels, stretch, spacing, equations, len(model.parameters))
            if len(system):
                sigma = np.concatenate([np.maximum(levels, floor), m.input_noise])
                blocks.append(Block(system, record, sigma))
    return blocks


def _count(blocks: list[Block]) -> int:
    return sum(len(b.system.probes) for b in blocks)


def _sensor_indices(model: Model, options: Options) -> dict[int, str]:
    """Unknown offsets, delays and drifts: position behind the parameters, and name."""
    k, n = len(model.parameters), len(model.states)
    found = {}
    kinds = ((options.offsets, "offset"), (options.delays, "delay"), (options.drifts, "drift"))
    for place, (names, what) in enumerate(kinds):
        first = k + place * n
        for name in names:
            if name not in model.states or name not in model.outputs:
                raise ModelError(
                    f"{model.name} has no measured state `{name}` whose sensor could be corrected."
                )
            found[first + model.states.index(name)] = f"{name} {what}"
    return found


def _name(model: Model, sensors: dict[int, str], index: int, record: int, records: int) -> str:
    name = sensors[index] if index in sensors else list(model.parameters)[index]
    return name if record < 0 or records == 1 else f"{name}[{record + 1}]"


def _identification(
    model: Model,
    found: WeakEstimate,
    names: list[str],
    options: Options,
    spacing: int,
    functions: int,
) -> Identification:
    covariance = covariance_of(found.information)
    units = {name: model.unit(name.split("[")[0]) for name in names}
    warnings = []
    if found.model_error:
        warnings.append(
            f"The equations miss the data by {found.misfit:.3g} times what the sensors' noise explains: the "
            "model is too simple or a channel is wrong. Rows are unweighted; maximum likelihood was left out."
        )
    return Identification(
        method="weak",
        model=model.name,
        converged=found.converged,
        parameters=estimates(names, found.estimate, covariance, units),
        iterations=found.iterations,
        evaluations=found.evaluations,
        residual={
            "chi2": found.chi2,
            "dof": float(found.dof),
            "chi2/dof": found.chi2 / found.dof,
            "misfit/noise": found.misfit,
        },
        undetermined=undetermined_words(found.information, found.estimate, names),
        warnings=warnings,
        covariance=covariance.tolist(),
        history=found.history,
        extra={"spacing": spacing, "functions": functions, "model_error": found.model_error},
        options=asdict(options),
        model_text=model.text,
        references=REFERENCES,
    )
