"""Planning: the exchange against all combinations, information against independent sensitivities, time."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from analysis import (
    Bound,
    DataError,
    Estimate,
    Identification,
    Model,
    Prospect,
    choose_segments,
    choose_separating,
    knowledge_of,
    larger_bars,
    misfit,
    seconds_needed,
    stderr_after,
)
from analysis.base.identification import Residual

Array = NDArray[np.float64]

OSCILLATOR = Model.from_equations(
    {"x": "v", "v": "f - c*v - k*x - q*x**3"},
    {
        "c": {"guess": 0.4, "lower": 0.0, "upper": 5.0},
        "k": {"guess": 9.0, "lower": 0.0, "upper": 100.0},
        "q": {"guess": 2.0, "lower": -50.0, "upper": 50.0},
    },
    name="oscillator",
    inputs={"f": "measured"},
    outputs={"x": "x"},
)
TRUTH = np.array([0.4, 9.0, 2.0])
STDERR = np.array([0.02, 0.1, 0.3])


def a_fit(**changes: object) -> Identification:
    parameters = {n: Estimate.normal(v, s) for n, v, s in zip(OSCILLATOR.free, TRUTH, STDERR, strict=True)}
    fit = Identification(
        "path", "oscillator", True, parameters, residual=Residual(noise={"x": 0.01}), verdict="fits"
    )
    return replace(fit, **changes)  # type: ignore[arg-type]


def a_prospect(**changes: object) -> Prospect:
    given = {"noise": {"x": 0.01}, "input_noise": np.zeros(1), "highest": 2.0} | changes
    return Prospect(knowledge_of(OSCILLATOR, a_fit()), 50.0, **given)  # type: ignore[arg-type]


def a_drive(seconds: float = 10.0, size: float = 4.0) -> Array:
    t = np.arange(round(50 * seconds)) / 50.0
    return size * np.array([np.sin(2 * np.pi * 0.45 * t) + 0.5 * np.sin(2 * np.pi * 0.8 * t + 1.0)])


def test_given_few_candidates_then_the_exchange_finds_the_best_of_all_combinations() -> None:
    rng = np.random.default_rng(1)
    roots = rng.normal(size=(7, 3, 3, 3)) * rng.uniform(0.1, 2.0, size=(7, 1, 1, 1))
    information = roots @ roots.swapaxes(2, 3)
    prior = np.diag([0.1, 1.0, 5.0])

    def merit(chosen: tuple[int, ...]) -> float:
        total = prior + information[list(chosen)].sum(axis=0)
        return float(np.mean([np.log(np.linalg.det(m)) for m in total]))

    best = max(combinations_with_replacement(range(7), 3), key=merit)
    assert tuple(choose_segments(information, prior, 3)) == best

    def variance(chosen: tuple[int, ...]) -> float:
        total = prior + information[list(chosen)].sum(axis=0)
        return float(np.mean([np.diag(np.linalg.inv(m)) * np.diag(prior) for m in total]))

    least = min(combinations_with_replacement(range(7), 3), key=variance)
    assert tuple(choose_segments(information, prior, 3, "A")) == least


def test_given_a_usual_drive_then_no_unknown_is_paid_for_with_another() -> None:
    """One candidate tells the first unknown very well and the second badly, the other one the reverse."""
    told = np.array([np.diag([400.0, 1.0]), np.diag([3.0, 9.0])])[:, None]
    prior, usual = np.eye(2), np.diag([10.0, 24.0])[None]

    def bars(chosen: list[int]) -> Array:
        return larger_bars(told[chosen].sum(axis=0), usual, prior)

    free = choose_segments(told, prior, 4)
    assert bars(free).max() > 0.0  # D alone gives the second unknown up
    fair = choose_segments(told, prior, 4, "D", usual)
    assert (bars(fair) < 0.0).all() and fair == [0, 1, 1, 1]
    assert larger_bars(usual / 4, usual, prior) == pytest.approx(np.log(2.0) * np.ones(2))
    none = larger_bars(np.diag([5.0, 0.0])[None], usual, prior)
    assert none[1] > 5.0  # told nothing at all


def test_given_a_smooth_motion_then_information_is_that_of_sensitivities_with_the_start_projected_out() -> (
    None
):
    prospect, drive = a_prospect(), a_drive()
    prospect = prospect.with_fine_steps(drive)
    run = prospect.motion(drive, TRUTH)
    assert run is not None
    found = prospect.information(run, TRUTH)
    t = np.arange(drive.shape[1]) / 50.0

    def outputs(unknowns: Array) -> Array:
        c, k, q, x0, v0 = unknowns

        def slope(time: float, z: Array) -> list[float]:
            return [z[1], float(np.interp(time, t, drive[0])) - c * z[1] - k * z[0] - q * z[0] ** 3]

        return np.asarray(solve_ivp(slope, (0, t[-1]), [x0, v0], "RK45", t, rtol=1e-8, atol=1e-9).y[0])

    at = np.array([*TRUTH, 0.0, 0.0])
    steps = np.array([1e-3, 1e-3, 1e-3, 1e-3, 1e-3])
    J = np.array([(outputs(at + s) - outputs(at - s)) / (2 * s.sum()) for s in np.diag(steps)]).T / 0.01
    own = J[:, :3] - J[:, 3:] @ np.linalg.lstsq(J[:, 3:], J[:, :3], rcond=None)[0]
    assert np.sqrt(np.diag(np.linalg.inv(found))) == pytest.approx(
        np.sqrt(np.diag(np.linalg.inv(own.T @ own))), rel=0.03
    )


def test_given_more_samples_than_needed_then_they_are_counted_and_not_computed() -> None:
    drive = a_drive()
    t, fine = np.arange(500) / 50.0, np.arange(5000) / 500.0
    dense = np.array([np.interp(fine, t, drive[0])])
    thin = Prospect(knowledge_of(OSCILLATOR, a_fit()), 500.0, {"x": 0.01}, np.zeros(1), 2.0)
    assert thin.thinning == 12
    run, every = thin.motion(dense, TRUTH), replace(thin, highest=20.0)
    assert run is not None and every.thinning == 1
    assert thin.information(run, TRUTH) == pytest.approx(every.information(run, TRUTH), rel=0.03)


def test_given_noise_on_the_input_or_one_sensor_less_then_less_is_known() -> None:
    drive = a_drive()
    exact, noisy = a_prospect(), a_prospect(input_noise=np.array([0.5]))
    run = exact.motion(drive, TRUTH)
    assert run is not None
    ratio = np.diag(exact.information(run, TRUTH)) / np.diag(noisy.information(run, TRUTH))
    assert (ratio > 1.2).all()
    assert not exact.information(run, TRUTH, without=("x",)).any()
    with pytest.raises(DataError, match="measures none of the outputs"):
        a_prospect(noise={"y": 1.0})


def test_given_bounds_then_the_first_that_is_broken_is_named() -> None:
    prospect = a_prospect(bounds=(Bound("f", -100, 100), Bound("x", -0.5, 0.5, "its limit")))
    drive = a_drive()
    run = prospect.motion(drive, TRUTH)
    broken = prospect.broken(run, drive)
    assert broken is not None and broken.name == "x"
    assert run is not None
    first = prospect.first_break(run, drive)
    assert abs(run["x"][first]) > 0.5 >= np.abs(run["x"][:first]).max()
    assert prospect.broken(prospect.motion(0.05 * drive, TRUTH), 0.05 * drive, 0.1) is None
    assert prospect.broken(None, drive) is not None
    assert prospect.resonances() == pytest.approx([np.sqrt(9 - 0.04) / (2 * np.pi)])


def test_given_draws_then_they_have_the_fits_covariance_and_keep_the_bounds() -> None:
    covariance = np.outer(STDERR, STDERR) * np.array([[1, 0.8, 0], [0.8, 1, -0.3], [0, -0.3, 1]])
    known = knowledge_of(OSCILLATOR, a_fit(covariance=covariance.tolist()))
    draws = known.draws(4000, np.random.default_rng(0))
    assert np.cov(draws.T) == pytest.approx(covariance, abs=0.06 * STDERR.max() ** 2)
    wide = {n: Estimate.normal(v, 1.0) for n, v in zip(OSCILLATOR.free, TRUTH, strict=True)}
    assert (
        knowledge_of(OSCILLATOR, a_fit(parameters=wide)).draws(200, np.random.default_rng(0))[:, 0].min() >= 0
    )


def test_given_error_bars_that_were_widened_then_those_predicted_are_as_well() -> None:
    drive = a_drive()
    widened = {n: replace(e, stderr_ideal=0.5 * e.stderr) for n, e in a_fit().parameters.items()}
    plain = a_prospect()
    close = a_fit(parameters=widened, verdict="close")
    twice = replace(plain, knowledge=knowledge_of(OSCILLATOR, close))
    assert (knowledge_of(OSCILLATOR, a_fit(parameters=widened)).widening == 1).all()
    run = plain.motion(drive, TRUTH)
    assert run is not None
    none = np.zeros((3, 3))
    before, after = (stderr_after(p.information(run, TRUTH)[None], none) for p in (plain, twice))
    assert after == pytest.approx(2 * before)


def test_given_a_target_then_the_time_is_that_of_errors_that_fall_with_its_root() -> None:
    information = np.diag([4.0, 25.0])  # standard errors 0.5 and 0.2 after 10 s
    values = np.array([10.0, -2.0])  # 5 % and 10 %
    assert seconds_needed(values, information, 10.0, 0.05) == pytest.approx(40.0, rel=1e-4)
    assert seconds_needed(values, information, 10.0, 0.2) == pytest.approx(10.0 * 0.25, rel=1e-4)
    prior = np.diag([16.0, 50.0])  # all that is wanted of the first, half of what is wanted of the second
    late = np.array([0.1 * information, 0.9 * information])[:, None]  # most of it in the second half
    assert seconds_needed(values, late, 10.0, 0.2) == pytest.approx(10.0 * (0.5 + 0.15 / 1.8), rel=1e-4)
    assert seconds_needed(values, late, 10.0, 0.05) == pytest.approx(40.0, rel=1e-4)
    assert seconds_needed(values, information, 10.0, 0.05, prior) == pytest.approx(20.0, rel=1e-4)
    assert seconds_needed(values, information, 10.0, 0.01, np.diag([1e4, 1e4])) == 0.0
    assert seconds_needed(np.array([10.0, 0.0]), information, 10.0, 0.05) == np.inf
    with pytest.raises(DataError, match="between 0 and 1"):
        seconds_needed(values, information, 10.0, 2.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "pendulum"}, "one of pendulum, not of oscillator"),
        ({"model_text": OSCILLATOR.to_toml().replace("q*x**3", "q*x**5")}, "not of oscillator"),
        ({"model_text": "no model"}, "not of oscillator"),
        ({"verdict": "misses"}, "MISSES"),
        ({"verdict": "cannot tell"}, "CANNOT TELL"),
        ({"converged": False}, "did not converge"),
        ({"undetermined": ["c and k only as a product."]}, "undetermined parameter .c and k"),
        ({"parameters": {"c": Estimate(0.4, 0.1), "k": Estimate(9.0, 0.1)}}, "no value of q"),
        ({"parameters": {n: Estimate(1.0) for n in "ckq"}}, "c has no standard error"),
        ({"parameters": {n: Estimate(1.0, 0.1) for n in ("c", "k", "q[1]", "q[2]")}}, "q for each record"),
    ],
)
def test_given_a_fit_that_nothing_can_be_planned_from_then_one_sentence(
    changes: dict[str, object], words: str
) -> None:
    with pytest.raises(DataError, match=words) as caught:
        knowledge_of(OSCILLATOR, a_fit(**changes))
    assert str(caught.value).count("\n") == 0


LINEAR = Model.from_equations(
    {"x": "v", "v": "f - c*v - k*x"},
    {"c": {"guess": 0.4, "lower": 0.0}, "k": {"guess": 9.0, "lower": 0.0}},
    name="linear",
    inputs={"f": "measured"},
    outputs={"x": "x"},
)


def test_given_a_rival_then_what_it_leaves_is_what_its_best_fit_leaves() -> None:
    from scipy.optimize import least_squares

    truth, drive = a_prospect(), a_drive()
    parameters = {"c": Estimate.normal(0.4, 10.0), "k": Estimate.normal(9.3, 300.0)}
    fit = Identification("path", "linear", True, parameters, verdict="fits")
    rival = Prospect(knowledge_of(LINEAR, fit), 50.0, {"x": 0.01}, np.zeros(1), 2.0)
    weak = 0.3 * drive  # the cubic term is small: the linearised fit is the fit
    run = truth.motion(weak, TRUTH)
    assert run is not None
    left = misfit(run, rival, weak)
    assert left is not None

    def residuals(unknowns: Array) -> Array:
        moved = replace(rival, initial=unknowns[2:]).motion(weak, unknowns[:2])
        assert moved is not None
        return np.asarray((run["x"] - moved["x"]) / 0.01)[:: rival.thinning] * np.sqrt(rival.thinning)

    best = 2 * least_squares(residuals, [0.4, 9.3, 0.0, 0.0], x_scale=[0.4, 9, 0.1, 0.1]).cost
    assert left.chi2(rival.knowledge.information) == pytest.approx(best, rel=0.15)
    same = misfit(run, truth, weak)
    assert same is not None and same.chi2(truth.knowledge.information) < 1e-6 * best
    strong = truth.motion(drive, TRUTH)
    assert strong is not None
    more = misfit(strong, rival, drive)
    assert more is not None
    assert more.chi2(rival.knowledge.information) > 10 * left.chi2(rival.knowledge.information)
    priors = [rival.knowledge.information]
    # one size of motion has an equivalent stiffness; two sizes have none in common
    assert choose_separating([[left], [more]], priors, 2) == [0, 1]
