"""Method ``weak``: the weak form with B-spline test functions (Liu, Fang, Wang, Xu 2018), improved and as
published.

By default rows are weighted by the covariance that sensor noise gives them, the width of the test functions
follows from the bandwidth of the data, and maximum likelihood over the path finishes the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.base.identification import Residual
from analysis.base.progress import Progress
from analysis.base.words import rounded
from analysis.estimate.start import OwnEstimate, Start
from analysis.estimate.unknowns import Unknowns
from analysis.estimate.weak.fit import Block, WeakEstimate, fit_weak
from analysis.estimate.weak.plain import REFERENCES, start_plain
from analysis.estimate.weak.system import Equation, WeakSystem, nodes
from analysis.experiment import Experiment, Run, Unknown
from analysis.experiment.states import StateSamples, direct_states, state_samples
from analysis.signal.noise import noise_bound

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]

_PASS = (
    0.3  # knot spacing times the highest frequency that matters: the test function lets 40 % of it through
)
_NARROWEST = 2  # knots at every sample alias what the samples hardly resolve
_MEASURABLE = 1e-9  # least noise, as a fraction of a channel's standard deviation


@dataclass(frozen=True)
class Weak:
    """Options of the weak form."""

    name: ClassVar[str] = "weak"

    plain: bool = False  # the published method: cubic splines on the samples, unweighted Gauss-Newton
    weighted: bool = True  # rows weighted by their covariance (when the path does not finish the work)
    spacing: int | None = None  # samples between knots of the test functions; None: from the bandwidth

    def start(self, experiment: Experiment, progress: Progress, alone: bool = False) -> Start:
        """Parameters from the weak form; ``alone`` when no maximum likelihood is to follow."""
        if self.plain:
            return start_plain(experiment, progress)
        return _start(self, experiment, progress, alone)


def _start(options: Weak, experiment: Experiment, progress: Progress, alone: bool) -> Start:
    model, runs = experiment.model, experiment.runs
    if not model.free:
        raise ModelError(f"{model.name} has no free parameter: give one a guess instead of a value.")
    samples = [state_samples(model, run, model.values(), smoothed=False) for run in runs]
    equations = _equations(model, samples[0])
    noise = [_noise(model, run, s) for run, s in zip(runs, samples, strict=True)]
    spacing = options.spacing or _spacing(runs, samples, noise)
    blocks = _blocks(model, runs, samples, noise, equations, spacing)
    n = len(model.states)
    places = _places(experiment)
    wide = np.full(3 * n, np.inf)
    found = fit_weak(
        blocks,
        np.hstack([experiment.guesses(), np.zeros((len(runs), 3 * n))]),
        Unknowns([*places], len(runs)),
        np.concatenate([[p.lower for p in model.parameters.values()], -wide]),
        np.concatenate([[p.upper for p in model.parameters.values()], wide]),
        [model.index(name) for name in model.linear],
        reweight=options.weighted and alone,  # the finish weighs everything anew
        progress=progress,
    )
    return _as_start(experiment, found, places, spacing, _count(blocks))


def _places(experiment: Experiment) -> dict[tuple[int, int], Unknown]:
    """The unknowns by (index, record), sensors' unknowns counted by the state that they show."""
    model = experiment.model
    k, n, q = len(model.parameters), len(model.states), len(model.outputs)
    found = {}
    for unknown in experiment.unknowns:
        index = unknown.index
        if index >= k:
            output = model.outputs[(index - k) % q]
            if output not in model.states:
                raise ModelError(
                    f"{model.name} has no measured state `{output}` whose sensor could be corrected."
                )
            index = k + (index - k) // q * n + model.states.index(output)
        found[(index, unknown.record)] = unknown
    return found


def _as_start(
    experiment: Experiment,
    found: WeakEstimate,
    places: dict[tuple[int, int], Unknown],
    spacing: int,
    functions: int,
) -> Start:
    model = experiment.model
    k, n, q = len(model.parameters), len(model.states), len(model.outputs)
    sensors = np.zeros((len(experiment.runs), 3 * q))
    for i, output in enumerate(model.outputs):
        if output in model.states:
            sensors[:, i::q] = found.values[:, k + model.states.index(output) :: n]
    unknowns = [places[item] for item in found.unknowns]
    own = OwnEstimate(
        [u.name for u in unknowns],
        found.estimate,
        found.information,
        residual=Residual(found.chi2, float(found.dof), other={"misfit/noise": found.misfit}),
        units={u.name: u.unit for u in unknowns},
    )
    warnings = []
    if found.model_error:
        warnings.append(
            f"The equations miss the data by {rounded(found.misfit)} times what the sensors' noise explains: "
            "the model is too simple or a channel is wrong. Rows are unweighted; maximum likelihood was left "
            "out."
        )
    return Start(
        "weak",
        found.values[:, :k],
        sensors=sensors,
        converged=found.converged,
        iterations=found.iterations,
        evaluations=found.evaluations,
        history=found.history,
        warnings=warnings,
        own=own,
        finishable=not found.model_error,
        findings={"spacing": spacing, "functions": functions, "model_error": found.model_error},
        references=REFERENCES,
    )


def _equations(model: Model, samples: StateSamples) -> list[Equation]:
    """Which equations the data can be put into; an unmeasured state is refused with a pointer onwards."""
    hidden = [s for i, s in enumerate(model.states) if not samples.seen[i] and i not in samples.derived]
    if hidden:
        raise DataError(
            f"The weak form needs every state measured, but nothing shows {', '.join(hidden)}: "
            "use method auto or homotopy, which do without."
        )
    used = {i for i, _ in samples.derived.values()} | set(samples.derived)
    first_order = [Equation(i) for i in range(len(model.states)) if i not in used]
    return first_order + [Equation(j, i, factor) for j, (i, factor) in samples.derived.items()]


def _noise(model: Model, run: Run, samples: StateSamples) -> Array:
    """Noise [n] of the states' samples: as said of the outputs that show them, else from differences."""
    levels = np.array([noise_bound(row) for row in samples.values])
    for output, state in direct_states(model).items():
        if np.isfinite(run.noise[output]) and run.measured[output]:
            levels[state] = run.noise[output]
    return levels


def _spacing(data: Sequence[Run], samples: Sequence[StateSamples], noise: Sequence[Array]) -> int:
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
    data: Sequence[Run],
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
