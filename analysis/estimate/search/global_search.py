"""Global search without gradients, as a baseline: differential evolution, particle swarm, genetic algorithm.

These are what the homotopy is compared with (Manikantan et al. 2020, Tables 2, 6 and 9). They need finite
bounds for every parameter and many thousand simulations, and give no error bars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.extras import need_extra
from analysis.base.identification import Residual
from analysis.base.progress import Progress
from analysis.estimate.evaluation import Point
from analysis.estimate.homotopy.coupled import Controller, CoupledStretch, segments_of
from analysis.estimate.homotopy.output_error import OutputError, SearchCoordinates
from analysis.estimate.homotopy.plain import objective
from analysis.estimate.homotopy.search import noise_levels
from analysis.estimate.start import OwnEstimate, Start
from analysis.experiment import Experiment

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GlobalSearch:
    """Which algorithm, and how long it may search."""

    name: ClassVar[str] = "global"

    algorithm: Literal["differential_evolution", "particle_swarm", "genetic"] = "differential_evolution"
    population: int = 0  # 0: ten individuals a parameter, as in the paper
    generations: int = 300
    tolerance: float = 1e-8  # spread of the population's objective at which the search ends
    seed: int = 0

    def start(self, experiment: Experiment, progress: Progress, alone: bool = False) -> Start:
        """Minimise J = 1/2 int (y_measured - y)^2 dt over the box of the parameters' bounds."""
        model = experiment.model
        unknowns = SearchCoordinates.of(model)
        low, high = unknowns.search_bounds
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise DataError(
                "Global search needs a lower and an upper bound for every parameter to be identified."
            )
        segments = segments_of(experiment)
        noise = noise_levels(segments, experiment.sigma, experiment.noise_sharing)
        problem = OutputError(model, segments, unknowns, noise)
        return _search(self, problem, low, high, progress, alone)


def _search(
    options: GlobalSearch, problem: OutputError, low: Array, high: Array, progress: Progress, alone: bool
) -> Start:
    model, unknowns = problem.model, problem.unknowns
    start = Point(model.values(), tuple(s.initial for s in problem.segments))
    nothing = Controller.none(model)
    counted = 0
    history: list[dict[str, float]] = []

    def point(search: Array) -> Point:
        values = start.values.copy()
        values[unknowns.positions] = unknowns.to_values(search)
        return Point(values, start.initials)

    def cost(search: Array) -> float:
        nonlocal counted
        counted += 1
        return objective(problem, point(search), nothing, 0.0)

    def watch(generation: int, best: float, search: Array) -> None:
        named = dict(zip(model.free, map(float, unknowns.to_values(search)), strict=True))
        history.append({"evaluation": float(counted), "cost": best, **named})
        progress.report(generation / options.generations, f"generation {generation}", cost=best, **named)

    population = options.population or 10 * len(low)
    run = _differential_evolution if options.algorithm == "differential_evolution" else _pymoo
    search, best, generations = run(cost, low, high, population, options, watch)
    ended = len(history) < options.generations  # by itself: the population agrees
    values = point(np.asarray(search, dtype=np.float64)).values
    names = list(model.free)
    own = OwnEstimate(
        names,
        values[unknowns.positions],
        None,
        residual=Residual(other={"J": float(best)}),
        units={name: model.unit(name) for name in names},
    )
    return Start(
        "global",
        values,
        converged=bool(np.isfinite(best)) and ended,
        iterations=generations,
        evaluations=counted,
        history=history,
        warnings=_limits(problem.segments, ended) if alone else [],
        own=own,
    )


def _limits(segments: Sequence[CoupledStretch], ended: bool) -> list[str]:
    """What a user must know of such a result."""
    words = ["A global search gives no error bars."]
    if not ended:
        words.append("It was stopped at the given number of generations, before its individuals agreed.")
    if any(len(s.free_initial) for s in segments):
        words.append("Unknown initial values were not sought: they are what the first samples tell.")
    return words


def _differential_evolution(
    cost: Any, low: Array, high: Array, population: int, options: GlobalSearch, watch: Any
) -> tuple[Array, float, int]:
    from scipy.optimize import Bounds, differential_evolution

    generation = 0

    def each(intermediate_result: Any) -> None:
        nonlocal generation
        generation += 1
        watch(generation, float(intermediate_result.fun), np.asarray(intermediate_result.x))

    found = differential_evolution(
        cost,
        Bounds(low, high),
        popsize=max(population // len(low), 5),
        maxiter=options.generations,
        tol=options.tolerance,
        rng=np.random.default_rng(options.seed),
        callback=each,
        polish=False,
    )
    return found.x, float(found.fun), int(found.nit)


def _pymoo(
    cost: Any, low: Array, high: Array, population: int, options: GlobalSearch, watch: Any
) -> tuple[Array, float, int]:
    need_extra("search")
    from pymoo.algorithms.soo.nonconvex.ga import GA
    from pymoo.algorithms.soo.nonconvex.pso import PSO
    from pymoo.core.callback import Callback
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.optimize import minimize
    from pymoo.termination.default import DefaultSingleObjectiveTermination

    class Misfit(ElementwiseProblem):
        def __init__(self) -> None:
            super().__init__(n_var=len(low), n_obj=1, xl=low, xu=high)

        def _evaluate(self, x: Array, out: dict[str, float], *args: Any, **kwargs: Any) -> None:
            out["F"] = cost(x)

    class Watch(Callback):
        def notify(self, algorithm: Any) -> None:
            watch(int(algorithm.n_gen), float(algorithm.opt[0].F[0]), np.asarray(algorithm.opt[0].X))

    kind = PSO if options.algorithm == "particle_swarm" else GA
    found = minimize(
        Misfit(),
        kind(pop_size=population),
        DefaultSingleObjectiveTermination(ftol=options.tolerance, n_max_gen=options.generations),
        seed=options.seed,
        callback=Watch(),
    )
    return found.X, float(found.F[0]), int(found.algorithm.n_gen)
