"""Which states and parameters the outputs can show, from the record at hand and before any fit.

Two questions. *At one instant*: can the states be computed from the outputs of the same sample, the free
parameters unknown (what the weak form needs)? An output such as -c v - k x + f depends on x and v and still
shows neither. *Along the record*: does every combination of parameters and initial states leave a trace in
the outputs? The rank of the sensitivities, each column scaled to unit length, answers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.evaluation import Point
from analysis.estimate.identifiability import undetermined_words
from analysis.estimate.shooting.build import problem_of, start_point, stretches_of
from analysis.estimate.shooting.problem import ROUGH
from analysis.experiment.states import scaled_derivatives

if TYPE_CHECKING:
    from analysis.experiment import Experiment, Run
    from analysis.model import Model

Array = NDArray[np.float64]

NO_TRACE = 1e-5  # singular value of the scaled sensitivities below which a combination is undetermined
_SAMPLES = 32  # at which the outputs' dependence on the states is looked at
_WINDOWS, _LONGEST = 6, 400  # stretches of the record, and samples of each, that sensitivities run along
_ROUNDING = 1e-8  # of a projector's entries


@dataclass(frozen=True)
class Observability:
    """What the outputs cannot show at the guessed parameters, by name and in words."""

    hidden: tuple[str, ...]  # states that no output shows at an instant, nor through a derivative
    states: tuple[str, ...]  # states that leave no trace along the record, either
    sentences: tuple[str, ...]  # on parameters without a trace of their own

    @property
    def words(self) -> list[str]:
        """All of it in sentences, before the fit; empty where everything can be seen."""
        said = []
        if self.hidden:
            said.append(
                f"No output shows {', '.join(self.hidden)} at an instant: it must be told from the motion."
            )
        if self.states:
            said.append(f"{', '.join(self.states)} leaves no trace in the outputs at all.")
        return said + [f"At the guess: {sentence}" for sentence in self.sentences]


def observability(experiment: Experiment) -> Observability:
    """Both questions, at the model's guesses."""
    model = experiment.model
    shown = shown_at_an_instant(model, experiment.runs[0])
    hidden = tuple(s for s, seen in zip(model.states, shown, strict=True) if not seen)
    lost, sentences = _along_the_record(experiment)
    return Observability(hidden, lost, sentences)


def shown_at_an_instant(model: Model, run: Run) -> NDArray[np.bool_]:
    """States that follow from the outputs of the same sample, or as the rate of a state that does.

    Outputs with free parameters in them show nothing by themselves: what they show is what is sought.
    """
    n, q, k = len(model.states), len(model.outputs), len(model.parameters)
    rng = np.random.default_rng(0)
    places = np.sort(rng.choice(len(run.times), min(_SAMPLES, len(run.times)), replace=False))
    times = np.ascontiguousarray(run.times[places])
    X = rng.standard_normal((n, len(places)))
    Y, Yx, Yp = np.empty((q, len(places))), np.empty((q, n, len(places))), np.empty((q, k, len(places)))
    U = np.ascontiguousarray(run.inputs.values(times))
    model.kernels().out_jac_many(times, X, U, model.values(), Y, Yx, Yp)
    free = [model.index(name) for name in model.free]
    plain = run.measured & ~np.any(np.nan_to_num(Yp[:, free]) != 0, axis=(1, 2))
    shown = np.zeros(n, dtype=bool)
    if plain.any():
        slopes = np.nan_to_num(Yx[plain].transpose(2, 0, 1))
        projector = np.linalg.pinv(slopes) @ slopes  # onto what the outputs determine
        shown = np.all(np.abs(projector - np.eye(n)).max(axis=2) < _ROUNDING, axis=0)
    for velocity, (position, _) in scaled_derivatives(model).items():
        shown[velocity] |= shown[position]
    return shown


def _along_the_record(experiment: Experiment) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """States and parameters without a trace; nothing where the guessed motion is lost at once."""
    problem = problem_of(experiment)
    paths = experiment.start_states()
    values = start_point(experiment, experiment.guesses(), paths).values
    size, n = len(problem.unknowns), problem.states
    information = np.zeros((size, size))
    trace = np.zeros((n, n))
    for stretch, (run, begin, _) in zip(problem.stretches, stretches_of(experiment), strict=True):
        length = min(len(stretch), _LONGEST)
        for first in np.linspace(0, len(stretch) - length, _WINDOWS).astype(int):
            part = problem.on([stretch.cut(int(first), int(first) + length)])
            point = Point(values, (np.array(paths[run][:, begin + int(first)]),))
            part.settle_substeps(point, ROUGH)
            here = part.evaluate(point)
            if not np.isfinite(here.cost):
                continue
            _, inner, cross = here.local[0]
            if not all(np.isfinite(part).all() for part in (inner, cross, here.hessian)):
                continue  # a guessed motion that runs away tells nothing
            trace += inner / np.maximum(np.trace(inner), 1e-300)
            scale = np.sqrt(np.maximum(np.diag(inner), 1e-300))
            solved = np.linalg.lstsq(inner / np.outer(scale, scale), (cross / scale).T, rcond=1e-12)[0]
            information += here.hessian - (cross / scale) @ solved
    if not information.any():
        return (), ()
    factor = np.where(
        problem.logarithmic[problem.index], problem.unknowns.current(values), 1.0
    )  # back to own units
    own = information / np.outer(factor, factor)
    names = {(u.index, u.record): u.name for u in experiment.unknowns}
    labels = [names[item] for item in problem.unknowns.items]
    sentences = undetermined_words(own, problem.unknowns.current(values), labels)
    return _without_trace(trace, experiment.model.states), tuple(s for s in sentences if "hardly" not in s)


def _without_trace(trace: Array, names: tuple[str, ...]) -> tuple[str, ...]:
    size = np.sqrt(np.maximum(np.diag(trace), 0.0))
    seen = size > 0
    lost = [name for name, there in zip(names, seen, strict=True) if not there]
    if seen.any():
        scaled = trace[np.ix_(seen, seen)] / np.outer(size[seen], size[seen])
        values, vectors = np.linalg.eigh(scaled)
        null = vectors[:, values < NO_TRACE**2 * values.max()]
        share = np.sqrt(np.sum(null**2, axis=1))
        lost += [n for n, s in zip(np.array(names)[seen], share, strict=True) if s > 0.5]
    return tuple(str(name) for name in lost)
