"""The pure functions behind error bars and verdict, against closed forms and counted chances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.signal import lfilter
from scipy.stats import chi2, kstest, norm
from scipy.stats import t as student

from analysis.estimate.finish.autoregression import Autoregression, fit_autoregression
from analysis.estimate.finish.honest import (
    Errors,
    agreement,
    noise_processes,
    sandwich,
    shift_test,
    spread_between,
)
from analysis.estimate.finish.linearised import Regression
from analysis.estimate.finish.score import Added, scores
from analysis.estimate.finish.whiteness import whiteness

RHO = 0.8


def regression(jacobian: np.ndarray, errors: np.ndarray) -> Regression:
    """One output; rows [N, P] and [N]."""
    return Regression(errors[None], np.where(np.isfinite(errors)[:, None], jacobian, 0.0)[None])


def white() -> list[Autoregression]:
    return [Autoregression(np.zeros(0), 1.0)]


def test_given_a_second_order_process_with_gaps_when_fitted_then_order_and_coefficients_are_found():
    rng = np.random.default_rng(1)
    e = lfilter([1.0], [1.0, -1.2, 0.5], 0.3 * rng.standard_normal(6000))[500:]
    e[1000:1200] = np.nan
    e[3000] = np.nan
    found = fit_autoregression([e[:4000], e[4000:]])
    assert found.order == 2
    assert found.coefficients == pytest.approx([-1.2, 0.5], abs=4 * np.sqrt((1 - 0.25) / 5300))
    assert found.variance == pytest.approx(0.09, rel=4 * np.sqrt(2 / 5300))
    assert fit_autoregression([rng.standard_normal(2000)]).order == 0


def test_given_coloured_errors_when_summed_then_their_covariance_is_that_of_the_toeplitz_matrix():
    rng = np.random.default_rng(2)
    weights = rng.standard_normal((150, 3)).cumsum(axis=0)
    weights[40:50] = 0.0  # missing samples
    exact = toeplitz(2.0 * RHO ** np.arange(150) / (1 - RHO**2))
    found = Autoregression(np.array([-RHO]), 2.0).sum_covariance(weights)
    assert found == pytest.approx(weights.T @ exact @ weights, rel=1e-9)
    whitened = Autoregression(np.array([-RHO]), 2.0).whitened(np.linalg.cholesky(exact)[:, 0])
    assert whitened == pytest.approx([1.0 / np.sqrt(1 - RHO**2)] + 149 * [0.0], abs=1e-9)


def test_given_coloured_noise_when_estimated_then_the_errors_are_those_of_the_estimates():
    rng = np.random.default_rng(3)
    N = 500
    J = np.stack([np.cos(0.05 * np.arange(N)), np.sin(0.011 * np.arange(N))], axis=1)
    H = np.linalg.inv(J.T @ J)
    C = toeplitz(RHO ** np.arange(N))  # unit variance
    exact = H @ J.T @ C @ J @ H
    process = [Autoregression(np.array([-RHO]), 1 - RHO**2)]
    assert sandwich([regression(J, np.zeros(N))], process) == pytest.approx(exact, rel=1e-9)
    errors = []
    for _ in range(20):  # the process is estimated from the residuals, whose freedom the unknowns took up
        e = lfilter([np.sqrt(1 - RHO**2)], [1.0, -RHO], rng.standard_normal(N + 200))[200:]
        e -= J @ (H @ J.T @ e)
        errors.append(np.diag(sandwich([regression(J, e)], noise_processes([regression(J, e)], 2))))
    assert np.mean(errors, axis=0) == pytest.approx(np.diag(exact), rel=0.15)
    plain = noise_processes([regression(J[:9], np.ones(9))], 4.5)  # too short for any colour
    assert plain[0].variance == pytest.approx(2.0)


def parts_of(rng: np.random.Generator, spread: float, count: int = 8) -> list[Regression]:
    """A fit over parts of unequal information whose two parameters differ from part to part."""
    parts = []
    for k in range(count):
        J = rng.standard_normal((60, 2)) * (3.0 if k == 0 else 0.5)
        parts.append((J, J @ (spread * rng.standard_normal(2)) + rng.standard_normal(60)))
    H = np.linalg.inv(sum(J.T @ J for J, _ in parts))
    theta = H @ sum(J.T @ e for J, e in parts)
    return [regression(J, e - J @ theta) for J, e in parts]


def test_given_equal_parts_when_tested_then_every_probability_is_as_frequent_as_it_says():
    rng = np.random.default_rng(4)
    found = [agreement([[p] for p in parts_of(rng, 0.0)], white()).probability for _ in range(400)]
    assert kstest(found, "uniform").pvalue > 0.01
    assert 0.002 <= np.mean(np.array(found) < 0.01) <= 0.03
    different = [agreement([[p] for p in parts_of(rng, 0.5)], white()).probability for _ in range(20)]
    assert np.mean(np.array(different) < 0.01) > 0.9
    joined = parts_of(rng, 0.0)
    by_two = agreement([joined[:4], joined[4:]], white())
    assert by_two.freedom == 2


@pytest.mark.parametrize("unit", [1e-12, 1e9])
def test_given_parameters_of_very_different_sizes_when_parts_are_compared_then_their_units_do_not_count(unit):
    rng = np.random.default_rng(9)
    turn, units = (
        rng.standard_normal((3, 3)),
        np.array([1.0, 3.0, unit]),
    )  # none is told apart from the others
    parts = [regression(rng.standard_normal((60, 3)) @ turn, rng.standard_normal(60)) for _ in range(8)]
    other = [Regression(p.errors, p.jacobian * units) for p in parts]
    one, two = (agreement([[p] for p in some], white()) for some in (parts, other))
    assert two.statistic == pytest.approx(one.statistic, rel=1e-9)
    assert two.freedom == one.freedom == 21  # seven differences of three parameters
    assert two.probability == pytest.approx(one.probability, rel=1e-6)


def test_given_parts_that_differ_when_reported_then_the_error_is_their_spread_not_divided():
    rng = np.random.default_rng(5)
    found = []
    for _ in range(60):
        J = [rng.standard_normal((400, 1)) for _ in range(8)]
        own = 0.7 * rng.standard_normal(8)
        theta = sum(j.T @ j * o for j, o in zip(J, own, strict=True)) / sum(j.T @ j for j in J)
        parts = [
            regression(j, (j * (o - theta)).ravel() + 0.1 * rng.standard_normal(400))
            for j, o in zip(J, own, strict=True)
        ]
        errors = spread_between(parts, [Autoregression(np.zeros(0), 0.01)])
        assert errors.freedom == 7
        found.append(errors.covariance[0, 0])
    assert np.mean(found) == pytest.approx(0.49, rel=0.25)
    assert errors.quantile == pytest.approx(2.3646, abs=1e-4)  # Student's t, 7 degrees of freedom
    assert Errors(np.eye(1)).quantile == pytest.approx(1.95996, abs=1e-5)


def test_given_two_fits_when_they_differ_then_the_shift_is_held_against_its_own_variance():
    rng = np.random.default_rng(6)
    fine, coarse = np.diag([1.0, 4.0, 1.0]), np.diag([2.0, 5.0, 1.01])
    shifts = rng.standard_normal((300, 3)) * np.sqrt([1.0, 1.0, 0.01])
    tests = [shift_test(s, coarse, fine) for s in shifts]
    assert {t.freedom for t in tests} == {2}  # the third only shows where the searches stopped
    assert kstest([t.probability for t in tests], "uniform").pvalue > 0.01
    assert shift_test(np.array([3.0, 0.0, 0.0]), coarse, fine).probability == pytest.approx(chi2.sf(9.0, 2))


def test_given_a_column_when_scored_then_t_coefficient_and_error_are_those_of_regression():
    rng = np.random.default_rng(7)
    N = 800
    J, U = rng.standard_normal((N, 2)), rng.standard_normal((N, 2)) + 0.5
    U = np.column_stack([U, J[:, 0] + 1e-3 * rng.standard_normal(N)])  # the last one is the model's own
    e = 0.15 * U[:, 0] + rng.standard_normal(N)
    wide = np.column_stack([J, U[:, 0]])
    b = np.linalg.lstsq(wide, e, rcond=None)[0]
    e = e - J @ np.linalg.lstsq(J, e, rcond=None)[0]
    exact = np.linalg.inv(wide.T @ wide)[2, 2]
    found = scores([Added(regression(J, e), U[None])], 2, lambda r, used: white())
    coefficients, errors = found.coefficients()
    assert coefficients[0] == pytest.approx(b[2], rel=1e-9)
    assert errors[0] == pytest.approx(np.sqrt(exact), rel=0.05)
    assert found.freedom == N - 4  # two parameters and the two columns that are not the model's own
    as_rare = norm.isf(student.sf(coefficients[0] / errors[0], found.freedom))
    assert found.t_values()[0] == pytest.approx(as_rare, rel=1e-9)
    assert found.t_values()[2] == 0.0
    assert not found.own[2]
    statistic, freedom = found.joint()
    assert freedom == 2
    assert statistic > found.t_values()[0] ** 2 - 1e-9


def test_given_residuals_when_tested_for_whiteness_then_chance_is_counted_and_colour_is_seen():
    rng = np.random.default_rng(8)
    found = [whiteness([rng.standard_normal(700), rng.standard_normal(300)]).probability for _ in range(200)]
    assert np.mean(np.array(found) < 0.05) < 0.09
    assert np.mean(np.array(found) < 0.5) > 0.35
    e = rng.standard_normal(3000)
    slow = e + 0.25 * np.cos(2 * np.pi * np.arange(3000) / 90)  # one lag shows nothing of it
    slow[500:900] = np.nan
    seen = whiteness([slow])
    assert abs(seen.first) < 0.1
    assert seen.probability < 1e-6
    short = rng.standard_normal(50)
    r = np.array([short[k:] @ short[: 50 - k] for k in range(1, 17)]) / (short @ short)
    by_hand = chi2.sf(50 * 52 * np.sum(r**2 / (50 - np.arange(1, 17))), 16)
    two = chi2.sf(50 * 52 * np.sum(r[:2] ** 2 / (50 - np.arange(1, 3))), 2)
    assert whiteness([short]).probability == pytest.approx(min(1.0, 2 * min(by_hand, two)))
