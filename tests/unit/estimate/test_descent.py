"""The common descent against closed forms and dense linear algebra."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from analysis.estimate.descent import bordered_step, bounded_step, minimise, promised_decrease


@dataclass
class Point:
    x: np.ndarray
    residual: np.ndarray
    jacobian: np.ndarray

    @property
    def cost(self) -> float:
        return 0.5 * float(self.residual @ self.residual) if np.isfinite(self.residual).all() else np.inf


@dataclass
class Curve:
    """Residuals and their derivatives as a function of x, with bounds."""

    function: object
    low: np.ndarray = field(default_factory=lambda: np.full(2, -np.inf))
    high: np.ndarray = field(default_factory=lambda: np.full(2, np.inf))
    dampings: list[float] = field(default_factory=list)

    def at(self, x) -> Point:
        return Point(np.array(x, dtype=float), *self.function(np.array(x, dtype=float)))

    def proposed(self, here, damping):
        self.dampings.append(damping)
        matrix, gradient = here.jacobian.T @ here.jacobian, -here.jacobian.T @ here.residual
        step = bounded_step(matrix, gradient, here.x, self.low, self.high, damping)
        return step, float(gradient @ step - 0.5 * step @ matrix @ step)

    def after(self, here, step):
        return self.at(here.x + step)


def rosenbrock(x):
    residual = np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])
    return residual, np.array([[-20 * x[0], 10.0], [-1.0, 0.0]])


def lost_beyond_three(x):
    """(log x0 - 1)^2 + (x1 - x0)^2, nothing where x0 <= 0 or x0 > 3: the minimum e lies near the edge."""
    if not 0 < x[0] <= 3:
        return np.full(2, np.nan), np.zeros((2, 2))
    return np.array([np.log(x[0]) - 1, x[1] - x[0]]), np.array([[1 / x[0], 0.0], [-1.0, 1.0]])


def test_given_a_curved_valley_when_descended_then_the_minimum_is_found_and_no_step_went_up():
    found = minimise(Curve(rosenbrock), Curve(rosenbrock).at([-1.2, 1.0]), 1e-12, 100, unresolved=1e-20)
    assert found.converged
    assert found.evaluation.x == pytest.approx([1.0, 1.0], abs=1e-8)
    assert all(b < a for a, b in zip(found.history, found.history[1:], strict=False))
    short = minimise(Curve(rosenbrock), Curve(rosenbrock).at([-1.2, 1.0]), 1e-12, 3)
    assert not short.converged and short.iterations == 3


def test_given_a_bound_across_the_valley_when_descended_then_the_minimum_on_it_is_found():
    problem = Curve(rosenbrock, high=np.array([0.5, np.inf]))  # on x0 = 1/2 the best x1 is 1/4
    found = minimise(problem, problem.at([-1.2, 1.0]), 1e-12, 100)
    assert found.converged
    assert found.evaluation.x == pytest.approx([0.5, 0.25], abs=1e-7)
    assert found.cost == pytest.approx(0.125, rel=1e-12)


def test_given_places_without_a_motion_when_a_step_leads_there_then_it_is_damped_and_the_search_goes_on():
    problem = Curve(lost_beyond_three)
    found = minimise(problem, problem.at([0.05, 0.0]), 1e-12, 60, first_damping=0.0, unresolved=1e-18)
    assert found.converged
    assert found.evaluation.x == pytest.approx([np.e, np.e], abs=1e-7)
    nowhere = minimise(problem, problem.at([-1.0, 0.0]), 1e-12, 60)
    assert not nowhere.converged and nowhere.iterations == 0


def test_given_a_heavily_damped_step_when_it_promises_little_then_that_is_no_convergence():
    """A residual that falls slowly: the promise of a damped step is small anywhere."""
    problem = Curve(lambda x: (np.array([1.0 + np.exp(-x[0]), 0.0]), np.array([[-np.exp(-x[0]), 0], [0, 0]])))
    start = problem.at([0.0, 0.0])
    assert not minimise(problem, start, 1e-3, 1, first_damping=1e4).converged
    assert minimise(problem, start, 1e-3, 1, first_damping=1e14).converged  # promises 1e-14 of the cost
    assert minimise(problem, start, 1e-3, 50, enough=2.5).iterations == 0


def test_given_unknowns_of_each_stretch_when_eliminated_then_the_step_is_that_of_the_whole_system():
    rng = np.random.default_rng(3)
    shared, own, stretches, damping = 3, 2, 4, 0.3
    blocks = [rng.standard_normal((20, shared + own)) for _ in range(stretches)]
    residuals = [rng.standard_normal(20) for _ in range(stretches)]
    whole = np.zeros((20 * stretches, shared + own * stretches))
    for i, block in enumerate(blocks):
        rows = slice(20 * i, 20 * (i + 1))
        whole[rows, :shared] = block[:, :shared]
        whole[rows, shared + own * i : shared + own * (i + 1)] = block[:, shared:]
    matrix, downhill = whole.T @ whole, whole.T @ np.concatenate(residuals)
    fixed = shared + 1  # second own unknown of the first stretch is held
    keep = [i for i in range(len(matrix)) if i != fixed]
    damped = matrix + damping * np.diag(np.diag(matrix))
    expected = np.zeros(len(matrix))
    expected[keep] = np.linalg.solve(damped[np.ix_(keep, keep)], downhill[keep])

    @dataclass
    class Here:
        gradient: np.ndarray
        hessian: np.ndarray
        local: list

    grams = [b.T @ b for b in blocks]
    slopes = [b.T @ r for b, r in zip(blocks, residuals, strict=True)]
    here = Here(
        sum(s[:shared] for s in slopes),
        sum(g[:shared, :shared] for g in grams),
        [(s[shared:], g[shared:, shared:], g[:shared, shared:]) for s, g in zip(slopes, grams, strict=True)],
    )
    held = [np.array([i == 0 and j == 1 for j in range(own)]) for i in range(stretches)]
    free = np.full(shared, np.inf)
    step, own_steps = bordered_step(here, -free, free, damping, held)
    assert np.concatenate([step, *own_steps]) == pytest.approx(expected, abs=1e-12)
    gain = downhill @ expected - 0.5 * expected @ matrix @ expected
    assert promised_decrease(here, step, own_steps) == pytest.approx(gain, rel=1e-12)
    reach = np.array([0.5 * abs(step[0]), np.inf, np.inf])
    capped, _ = bordered_step(here, -reach, reach, damping, held)
    assert capped[0] == pytest.approx(0.5 * step[0], rel=1e-12)
