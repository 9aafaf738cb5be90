"""Random effects against published numbers and closed forms; change points against truth, alarms counted."""

import math

import numpy as np
import pytest
from scipy.signal import lfilter

from analysis import DataError
from analysis.population import DRIFT, change_points, control, random_effects
from analysis.population.change import _tail

# Thirteen trials of the BCG vaccine (Colditz et al. 1994): log relative risk and its variance.
BCG = (
    (-0.8893, 0.3256), (-1.5854, 0.1946), (-1.3481, 0.4154), (-1.4416, 0.0200), (-0.2175, 0.0512),
    (-0.7861, 0.0069), (-1.6209, 0.2230), (0.0120, 0.0040), (-0.4694, 0.0564), (-1.3713, 0.0730),
    (-0.3394, 0.0124), (0.4459, 0.5325), (-0.0173, 0.0714),
)  # fmt: skip


def test_the_trials_of_bcg_give_the_published_spread_and_mean() -> None:
    values, variances = zip(*BCG, strict=True)
    found = random_effects(values, np.sqrt(variances))
    assert found.between.value**2 == pytest.approx(
        0.3132, abs=2e-4
    )  # REML, Viechtbauer 2010, J. Stat. Softw.
    assert found.mean.value == pytest.approx(-0.7145, abs=2e-4)
    assert found.mean.stderr == pytest.approx(0.1798, rel=0.03)  # at least; here times sqrt(Q*/12)
    assert found.between.lower > 0 and found.p_same < 1e-6


def test_a_balanced_design_gives_the_spreads_of_the_analysis_of_variance(rng: np.random.Generator) -> None:
    specimens, repeats, error = 30, 6, 0.4
    truth = 10 + 1.5 * rng.standard_normal(specimens)
    y = truth[:, None] + math.hypot(0.7, error) * rng.standard_normal((specimens, repeats))
    within = np.mean(np.var(y, axis=1, ddof=1))  # mean squares: omega² + s²
    between = repeats * np.var(y.mean(axis=1), ddof=1)
    groups = [f"beam {i}" for i in range(specimens) for _ in range(repeats)]
    found = random_effects(y.ravel(), np.full(y.size, error), groups)
    assert found.within is not None
    assert found.within.value**2 == pytest.approx(within - error**2, rel=1e-4)
    assert found.between.value**2 == pytest.approx((between - within) / repeats, rel=1e-4)
    assert found.mean.value == pytest.approx(y.mean(), rel=1e-9)
    assert found.between.covers(1.5) and found.within.covers(0.7)


def test_specimens_that_are_the_same_have_no_spread(rng: np.random.Generator) -> None:
    y = 5 + 0.1 * rng.standard_normal(200)
    found = random_effects(y, np.full(200, 0.1))
    assert found.between.lower == 0 and found.between.upper < 0.06 and found.p_same > 0.01
    assert found.mean.covers(5)


def test_errors_far_larger_than_the_scatter_leave_a_limit_of_the_spread_all_the_same(
    rng: np.random.Generator,
) -> None:
    """Against the restricted likelihood of the dense covariance matrix."""
    y, s = 4.0 + 1e-3 * rng.standard_normal(9), rng.uniform(0.2, 0.4, 9)

    def deviance(tau: float) -> float:
        inverse = np.linalg.inv(np.diag(s**2) + tau**2 * np.eye(9))
        mu = inverse.sum(axis=0) @ y / inverse.sum()
        squares = float((y - mu) @ inverse @ (y - mu))
        return -float(np.linalg.slogdet(inverse)[1]) + math.log(inverse.sum()) + squares

    between = random_effects(y, s).between
    assert between.value == between.lower == 0.0
    assert deviance(between.upper) - deviance(0.0) == pytest.approx(3.8415, abs=1e-3)


def test_too_few_specimens_and_errors_that_are_none_are_refused() -> None:
    with pytest.raises(DataError, match="three"):
        random_effects([1.0, 2.0], [0.1, 0.1])
    with pytest.raises(DataError, match="positive standard error"):
        random_effects([1.0, 2.0, 3.0], [0.1, 0.0, 0.1])
    with pytest.raises(DataError, match="standard error"):
        change_points([1.0, math.nan, 1.0], [0.1, 0.1, 0.1])


def test_the_tail_of_the_largest_step_is_that_of_simulated_series(rng: np.random.Generator) -> None:
    n, draws, least = 24, 40_000, 3
    w = 1 / rng.uniform(0.5, 2.0, n) ** 2
    z = rng.standard_normal((draws, n))  # sqrt(w) y
    root = np.sqrt(w)
    z -= np.outer(z @ root, root) / w.sum()
    left = np.cumsum(w)[least - 1 : n - least]
    steps = np.cumsum(root * z, axis=1)[:, least - 1 : n - least]
    r = np.sqrt(steps**2 * w.sum() / (left * (w.sum() - left)))
    largest = (r / np.linalg.norm(z, axis=1)[:, None]).max(axis=1)
    for level in (0.1, 0.01, 0.001):
        mark = float(np.quantile(largest, 1 - level))
        bound = _tail(mark, left / w.sum(), n - 1)
        assert level * 0.8 < bound < level * 1.6


def test_a_step_is_found_where_it_is_with_its_size(rng: np.random.Generator) -> None:
    hits = sizes = sets = 0
    for _ in range(100):
        y = 40 * (1 + 0.005 * rng.standard_normal(60))
        y[37:] *= 0.979
        (step,) = change_points(y, np.full(60, 0.2), 1e-4)
        hits += abs(step.after - 37) <= 2
        sizes += step.percent.covers(-2.1)
        sets += step.first <= 37 <= step.last
    assert hits >= 97 and sizes >= 88 and sets >= 90


def test_series_without_a_step_raise_alarms_at_the_rate_that_is_stated(rng: np.random.Generator) -> None:
    errors = rng.uniform(0.5, 1.5, 40)
    alarms = sum(bool(change_points(errors * rng.standard_normal(40), errors, 0.05)) for _ in range(1000))
    assert 15 <= alarms <= 70  # 50 expected, the bound is a little careful


def test_errors_of_very_different_size_beside_a_common_scatter_raise_no_more_alarms(
    rng: np.random.Generator,
) -> None:
    alarms = 0
    for number in range(400):
        errors = 10 ** rng.uniform(-4, -1, 12)
        if number % 2:  # values of small error are few and far between
            errors = np.where(rng.random(12) < 0.2, 0.0004, 0.1)
        y = 4 + 0.016 * rng.standard_normal(12) + errors * rng.standard_normal(12)
        alarms += bool(change_points(y, errors, 0.05))
    assert alarms <= 34  # 20 expected; more has a chance below 1 in 500


def test_two_steps_a_drift_and_a_short_series(rng: np.random.Generator) -> None:
    y = np.repeat([1.0, 1.5, 1.2], 30) + 0.05 * rng.standard_normal(90)
    assert [s.after for s in change_points(y, np.full(90, 0.05))] == [30, 60]
    drift = np.linspace(0, 1, 80) + 0.02 * rng.standard_normal(80)
    assert {step.rival for step in change_points(drift, np.full(80, 0.02))} == {DRIFT}
    assert change_points([1.0, 2.0, 9.0], [0.1, 0.1, 0.1]) == []
    assert change_points(np.ones(20), np.zeros(20)) == []


def test_a_level_that_wanders_and_a_quantity_that_is_followed_are_named_beside_the_steps(
    rng: np.random.Generator,
) -> None:
    n, bare, found = 60, 0, 0
    for _ in range(20):
        noise = lfilter([1.0], [1.0, -0.8], rng.standard_normal(n + 50))[50:]
        steps = change_points(40 + 0.2 * noise, np.full(n, 0.01), 0.05)
        found += bool(steps)
        bare += any(not step.rival for step in steps)
    assert found >= 12 and bare <= 3
    temperature = 20 + 5 * np.sin(0.2 * np.arange(n)) + rng.standard_normal(n)
    y = 40 - 0.05 * temperature + 0.02 * rng.standard_normal(n)
    steps = change_points(y, np.full(n, 0.02), 0.05, others={"temperature": temperature})
    assert steps and {step.rival for step in steps} == {"temperature"}
    y[37:] -= 1.0
    steps = change_points(y, np.full(n, 0.02), 0.05, others={"temperature": temperature})
    assert 37 in [step.after for step in steps]


def test_real_steps_are_not_taken_for_something_else(rng: np.random.Generator) -> None:
    for n, sizes in ((60, [0.0, -0.5]), (60, [0.0, 0.6, 0.1]), (12, [0.0, 1.0])):
        y = 40 + np.repeat(sizes, n // len(sizes)) + 0.1 * rng.standard_normal(n)
        steps = change_points(y, np.full(n, 0.1), 0.01, others={"load": rng.standard_normal(n)})
        assert len(steps) == len(sizes) - 1 and not any(step.rival for step in steps)


def test_outliers_are_named_and_do_not_widen_the_limits(rng: np.random.Generator) -> None:
    errors = rng.uniform(0.05, 0.2, 100)
    y = 10 + 0.3 * rng.standard_normal(100) + errors * rng.standard_normal(100)
    y[[7, 60]] = 13.5, 12.9
    found = control(y, errors)
    assert sorted(found.outliers) == [7, 60]
    assert found.effects.between.covers(0.3)
    assert found.lower[3] < 10 < found.upper[3] < 12.5


def test_like_specimens_have_outliers_at_the_rate_that_is_stated(rng: np.random.Generator) -> None:
    errors = np.full(50, 0.1)
    alarms = sum(
        bool(control(0.3 * rng.standard_normal(50) + 0.1 * rng.standard_normal(50), errors, 0.05).outliers)
        for _ in range(150)
    )
    assert alarms <= 16  # 7.5 expected; 16 has a chance below 1 in 200


def test_errors_that_are_stated_far_too_large_do_not_make_the_size_of_a_step_too_sure(
    rng: np.random.Generator,
) -> None:
    held = found = 0
    for _ in range(60):
        stated = np.where(rng.random(12) < 0.3, 0.001, 0.2)
        y = 1.0 + 0.004 * rng.standard_normal(12) - 0.03 * (np.arange(12) >= 7)
        for step in change_points(y, stated, 0.05 / 300):
            found += 1
            held += step.change.lower <= -0.03 <= step.change.upper
    assert found >= 40 and held >= 0.8 * found  # of 95 %
