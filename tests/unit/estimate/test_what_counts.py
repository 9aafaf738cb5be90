"""Counts and decisions behind error bars: degrees of freedom, outliers, and what leaves no trace."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from analysis.estimate.balance.problem import Balance
from analysis.estimate.finish import twins
from analysis.estimate.finish.hum import _next_tone
from analysis.estimate.finish.shooting_engine import _dof, _stable_substeps, _usual
from analysis.estimate.finish.terms import _saturating
from analysis.estimate.observability import _without_trace
from analysis.estimate.shooting.descent import _Steps


def test_given_stretches_then_each_free_initial_value_costs_a_degree_of_freedom() -> None:
    free = SimpleNamespace(lower=np.array([-np.inf, -np.inf]), upper=np.array([np.inf, 3.0]))
    at_rest = SimpleNamespace(lower=np.array([-np.inf, 0.0]), upper=np.array([np.inf, 0.0]))
    problem = SimpleNamespace(
        samples=100, unknowns=["k", "c", "m"], states=2, stretches=[free, free, at_rest]
    )
    assert _dof(cast(Any, problem)) == 100 - 3 - (2 + 2 + 1)


def test_given_outliers_then_the_noise_is_that_of_the_other_samples() -> None:
    row = np.random.default_rng(1).normal(scale=0.3, size=2000)
    spoiled = np.where(np.arange(2000) % 100 == 0, 30.0, row)
    spoiled[5] = np.nan
    left = _usual(spoiled)
    assert len(left) == 2000 - 20 - 1
    assert np.std(left) == pytest.approx(0.3, rel=0.05)
    assert np.all(_usual(np.full(4, 2.0)) == 2.0) and len(_usual(np.array([np.nan, 1.0]))) == 1


@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_given_outputs_that_show_a_sum_then_each_of_its_states_leaves_no_trace_of_its_own(
    unit: float,
) -> None:
    scale = np.diag([1.0, unit, 1.0])
    of_the_sum = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    assert _without_trace(scale @ of_the_sum @ scale, ("x", "y", "z")) == ("x", "y")
    assert _without_trace(scale @ np.diag([1.0, 2.0, 0.0]) @ scale, ("x", "y", "z")) == ("z",)
    nearly = np.array([[1.0, 1 - 1e-6, 0.0], [1 - 1e-6, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert _without_trace(nearly, ("x", "y", "z")) == ()
    assert _without_trace(np.zeros((2, 2)), ("x", "y")) == ("x", "y")


@pytest.mark.parametrize("begin", [0.0, 250.0])
def test_given_a_stiff_motion_then_its_substeps_follow_the_fastest_rate_at_any_time_of_day(
    begin: float,
) -> None:
    def jac_many(times: Any, states: Any, inputs: Any, values: Any, dx: Any, jx: Any, jp: Any) -> None:
        jx[:] = np.array([[0.0, 1.0], [-(70.0**2), 0.0]])[:, :, None]  # eigenvalues of size 70

    class Stretch(SimpleNamespace):
        def __len__(self) -> int:
            return len(self.times)

    times = begin + 0.1 * np.arange(200)
    stretch = Stretch(times=times, record=0, inputs=SimpleNamespace(values=lambda t: np.zeros((0, len(t)))))
    kernels = SimpleNamespace(jac_many=jac_many)
    problem = SimpleNamespace(stretches=[stretch], states=2, parameters=1, kernels=kernels)
    motion = SimpleNamespace(states=np.zeros((2, 200)))
    point = SimpleNamespace(values=np.ones((1, 1)))
    found = SimpleNamespace(evaluation=SimpleNamespace(motions=[motion], point=point))
    assert _stable_substeps(cast(Any, problem), cast(Any, found)) == 7  # 70 * 0.1


@pytest.mark.parametrize("loud", [0, 1])
def test_given_tones_in_two_outputs_then_the_surer_one_is_named_first(loud: int) -> None:
    rng, times = np.random.default_rng(2), 0.05 * np.arange(1200)
    residuals = 0.1 * rng.normal(size=(2, 1200))
    for i, frequency in enumerate((1.3, 2.7)):
        residuals[i] += (0.5 if i == loud else 0.06) * np.cos(2 * np.pi * frequency * times)
    run = SimpleNamespace(dt=0.05, times=times, outputs=residuals + np.exp(-times))  # a motion that dies away
    piece = SimpleNamespace(residuals=residuals, run=run, first=0, stop=1200)
    fitted = SimpleNamespace(sigma=np.ones((1, 2)), pieces=[piece], experiment=SimpleNamespace(runs=[run]))
    (hum,) = _next_tone(cast(Any, fitted))
    assert hum.output == loud and hum.frequency == pytest.approx((1.3, 2.7)[loud], abs=0.005)


@pytest.mark.parametrize(("slopes", "seen"), [([0.0, 0.0], False), ([0.0, 2.0], True)])
def test_given_rows_of_which_some_see_the_drive_then_its_time_matters(
    slopes: list[float], seen: bool
) -> None:
    row = SimpleNamespace(jacobian=lambda *_: (None, None, np.array(slopes)))
    start = SimpleNamespace(values=None, offsets=None)
    balance = SimpleNamespace(model=None, start=start, rows=[row])
    assert Balance._drive_is_seen(cast(Any, balance)) is seen


@pytest.mark.parametrize("scale", [0.3, 5.0])
def test_given_a_scale_then_saturating_damping_grows_as_the_closed_form_and_without_one_it_is_dry(
    scale: float,
) -> None:
    model = cast(Any, SimpleNamespace(states=("x", "v")))
    X, U = np.array([[7.0, 7.0, 7.0], [-3.0, 0.1, 40.0]]), np.zeros((0, 3))
    smooth, dry = _saturating(model, 1, 1, scale), _saturating(model, 1, 1, 0.0)
    assert smooth.values(X, U) == pytest.approx(X[1] / np.sqrt(X[1] ** 2 + scale**2))
    assert list(dry.values(X, U)) == [-1.0, 1.0, 1.0]


def test_given_a_fit_then_other_answers_are_sought_by_factors_to_both_sides_and_without_other_signs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(twins, "_settled", lambda *_: None)
    now = np.array([2.0, -8.0, 5.0])
    unknowns = SimpleNamespace(current=lambda values: now.copy(), moved=lambda values, step: now + step)
    wide = np.full(3, np.inf)
    problem = SimpleNamespace(unknowns=unknowns, index=np.arange(3), lower=-wide, upper=wide)
    begin = SimpleNamespace(values=now, initials=())
    found = [p.values / now for p in twins._elsewhere(cast(Any, problem), cast(Any, begin), [0, 1])]
    factors = np.array(found)
    assert np.all(factors > 0) and np.all(factors[:, 2] == 1.0)
    below, above = np.sum(factors[:, :2] < 1, axis=0), np.sum(factors[:, :2] > 1, axis=0)
    assert np.all(np.abs(below - above) <= 2)  # a Latin hypercube has as many on either side


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_given_any_unit_then_a_step_reaches_as_many_sizes_of_its_unknown_and_no_further_than_its_bounds(
    unit: float,
) -> None:
    """A positive unknown by its logarithm, one of either sign, one of size zero, one near its bound."""
    values = np.array([3.0, -2.0 * unit, 0.0, unit])
    low, high = np.array([-np.inf, -np.inf, -np.inf, 0.9 * unit]), np.full(4, np.inf)
    problem = SimpleNamespace(
        unknowns=SimpleNamespace(current=lambda _: values),
        search=lambda _: np.array([np.log(3.0), *values[1:]]),
        search_bounds=lambda: (low, high),
        logarithmic=np.array([True, False, False, False]),
        index=np.arange(4),
        scale=np.array([3.0, unit, 0.0, unit]),
    )
    steps = SimpleNamespace(problem=problem, initial_only=False)
    point = SimpleNamespace(point=SimpleNamespace(values=None))
    lowest, highest = _Steps._reach(cast(Any, steps), cast(Any, point))
    wide = np.e - 1.0  # as far as a factor e upwards
    assert highest == pytest.approx([1.0, 2 * wide * unit, np.inf, wide * unit])
    assert lowest == pytest.approx([-1.0, -2 * wide * unit, -np.inf, -0.1 * unit])
