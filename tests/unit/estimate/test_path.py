"""Maximum-likelihood path against systems whose parameters are known."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import DataError
from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.estimate.path.estimate import estimate_path
from analysis.estimate.path.segment import PathSegment
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate

TRUE = {"c": 0.2, "k1": 0.5, "k3": 1.0, "a": 27.0}
DT = 2 * np.pi / 1.33 / 60


def duffing(**outputs: str) -> Model:
    return Model.from_equations(
        {"x": "v", "v": "-c*v - k1*x - k3*x**3 + a*cos(1.33*t)"},
        {name: {"guess": value} for name, value in TRUE.items()},
        outputs=outputs or None,
    )


def motion(times, start=(1.0, 0.0), values=TRUE):
    def rhs(t, z):
        x, v = z
        force = values["a"] * np.cos(1.33 * t)
        return [v, -values["c"] * v - values["k1"] * x - values["k3"] * x**3 + force]

    solution = solve_ivp(rhs, (0, times[-1]), start, t_eval=times, rtol=1e-11, atol=1e-12, method="DOP853")
    return np.ascontiguousarray(solution.y)


def within(result, truth, deviations=4.0):
    errors = np.sqrt(np.diag(result.covariance))
    return np.all(np.abs(result.estimate - truth) < deviations * errors)


def test_given_noisy_chaos_when_started_half_off_then_the_truth_lies_within_small_error_bars():
    times = np.arange(2000) * DT
    clean = motion(times)
    rng = np.random.default_rng(1)
    noise = 0.03 * clean.std(axis=1)
    data = clean + noise[:, None] * rng.standard_normal(clean.shape)
    model = duffing()
    truth = model.values()
    found = estimate_path(model.kernels(), [PathSegment(times, data, data)], 1.5 * truth, range(4))
    assert found.converged
    assert within(found, truth)
    assert np.all(np.sqrt(np.diag(found.covariance)) < [0.002, 0.02, 0.002, 0.02])
    assert found.sigma[0] == pytest.approx(noise, rel=0.08)
    assert found.chi2 / found.dof == pytest.approx(1.0, abs=0.05)
    smoothed = np.sqrt(np.mean((found.states[0] - clean) ** 2, axis=1))
    assert np.all(smoothed < 0.3 * noise)
    assert found.defect < 1e-4


def test_given_only_displacement_with_a_gap_when_fitted_then_velocity_and_parameters_are_found():
    times = np.arange(1500) * DT
    clean = motion(times)
    rng = np.random.default_rng(2)
    data = clean[:1] + 0.05 * rng.standard_normal((1, 1500))
    data[0, 700:712] = np.nan
    filled = np.interp(times, times[np.isfinite(data[0])], data[0][np.isfinite(data[0])])
    start = np.vstack([filled, np.gradient(filled, DT)])
    model = duffing(x="x")
    truth = model.values()
    found = estimate_path(model.kernels(), [PathSegment(times, data, start)], 1.2 * truth, range(4))
    assert found.converged
    assert within(found, truth)
    assert np.sqrt(np.mean((found.states[0][1] - clean[1]) ** 2)) < 0.05


def test_given_offset_and_lag_of_a_sensor_when_freed_then_both_are_estimated():
    times = np.arange(1500) * DT
    early = motion(np.concatenate([[0.0], times + 0.02]))[:, 1:]  # the path 0.02 s on
    rng = np.random.default_rng(3)
    now = motion(np.concatenate([[0.0], times[1:]]))
    data = np.vstack([now[0], early[1] + 0.7]) + 0.02 * rng.standard_normal((2, 1500))
    model = duffing()
    truth = model.values()
    start = np.vstack([data[0], data[1]])
    found = estimate_path(
        model.kernels(), [PathSegment(times, data, start)], 1.1 * truth, [0, 1, 2, 3, 4 + 1, 4 + 2 + 1]
    )
    assert found.converged
    assert within(found, np.array([*truth, 0.7, -0.02]))
    assert found.estimate[-1] == pytest.approx(-0.02, abs=2e-4)


def test_given_two_records_with_a_parameter_of_their_own_when_fitted_together_then_each_has_its_value():
    times = np.arange(800) * DT
    rng = np.random.default_rng(4)
    segments = []
    for record, a in enumerate((27.0, 20.0)):
        clean = motion(times, (1.0 + record, 0.5), {**TRUE, "a": a})
        data = clean + 0.05 * rng.standard_normal(clean.shape)
        segments += [
            PathSegment(times[:400], data[:, :400].copy(), data[:, :400].copy(), record=record),
            PathSegment(times[400:], data[:, 400:].copy(), data[:, 400:].copy(), record=record),
        ]
    model = duffing()
    found = estimate_path(model.kernels(), segments, 1.2 * model.values(), range(4), local=[3])
    assert found.converged
    assert found.unknowns == [(0, -1), (1, -1), (2, -1), (3, 0), (3, 1)]
    assert within(found, np.array([0.2, 0.5, 1.0, 27.0, 20.0]))


def test_given_clean_data_when_fitted_then_the_parameters_are_exact_and_a_bound_holds():
    times = np.arange(600) * DT
    clean = motion(times)
    model = duffing()
    truth = model.values()
    found = estimate_path(model.kernels(), [PathSegment(times, clean, clean)], 1.3 * truth, range(4))
    assert found.estimate == pytest.approx(truth, rel=1e-6)
    upper = np.array([np.inf, np.inf, 0.9, np.inf])
    held = estimate_path(
        model.kernels(), [PathSegment(times, clean, clean)], 0.8 * truth, range(4), upper=upper
    )
    assert held.estimate[2] == pytest.approx(0.9, abs=1e-12)


def test_given_parameters_of_1e_15_and_1e12_when_fitted_then_they_are_as_exact_as_in_handy_units():
    """Units changed by powers of two leave every rounding as it is: the same fit, digit by digit."""
    times = np.arange(300) * DT
    clean = motion(times)
    handy = duffing()
    fast, weak = 2.0**20, 2.0**-50  # of rates, about 1e6; of the drive's amplitude, about 1e-15
    units = np.array([fast, fast**2, fast**2, weak])
    tiny = Model.from_equations(
        {"x": "v", "v": f"-c*v - k1*x - k3*x**3 + {fast**2 / weak:.1f}*a*cos({1.33 * fast!r}*t)"},
        {name: {"guess": value} for name, value in zip(TRUE, units * handy.values(), strict=True)},
    )
    quick = clean * np.array([[1.0], [fast]])
    for free in (range(4), [3]):
        start = handy.values()
        start[free] *= 1.3
        plain = estimate_path(handy.kernels(), [PathSegment(times, clean, clean)], start, free)
        found = estimate_path(tiny.kernels(), [PathSegment(times / fast, quick, quick)], start * units, free)
        assert found.converged and not found.message
        assert (found.iterations, found.steps) == (plain.iterations, plain.steps)
        assert found.estimate == pytest.approx(tiny.values()[free], rel=1e-8, abs=0.0)
        errors = np.sqrt(np.diag(found.covariance)) / units[free]
        assert errors == pytest.approx(np.sqrt(np.diag(plain.covariance)), rel=1e-6, abs=0.0)


def test_given_a_hard_stop_when_the_search_ends_with_a_long_step_then_the_result_says_so():
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x - b*max(x - d, 0) + a*cos(0.8*t)"},
        {"c": 0.1, "k": 1.0, "b": 200.0, "a": 1.0, "d": 0.5},
    )
    times = np.arange(400) * 0.1
    clean = simulate(model, times, np.array([1.0, 0.0]), rtol=1e-9).states
    for seed in (1, 2):  # the first settles, the second jumps to and fro over the kink
        data = clean + 0.02 * np.random.default_rng(seed).standard_normal(clean.shape)
        found = estimate_path(
            model.kernels(), [PathSegment(times, data, data)], 1.3 * model.values(), range(5)
        )
        last = found.history[-1]["step"]
        assert found.converged and last < 1.0
        assert (f"{last:.2g} standard errors" in found.message) == (last >= 0.1)


def test_given_states_without_values_when_started_then_one_sentence_says_so():
    times = np.arange(50) * DT
    states = np.full((2, 50), np.nan)
    with pytest.raises(DataError, match="missing or infinite"):
        estimate_path(
            duffing().kernels(), [PathSegment(times, np.ones((2, 50)), states)], np.ones(4), range(4)
        )


DRIVEN = {"c": 0.2, "k1": 1.0, "k3": 1.0, "g": 1.0}


@pytest.fixture(scope="module")
def driven():
    """An oscillator under a random force, of which only x and the force are measured."""
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k1*x - k3*x**3 + g*f"},
        {name: {"guess": value} for name, value in DRIVEN.items()},
        inputs={"f": "measured"},
        outputs={"x": "x"},
    )
    times = np.arange(1000) * 0.05
    rng = np.random.default_rng(100)
    frequencies, phases = rng.uniform(0.02, 0.5, 40), rng.uniform(0, 2 * np.pi, 40)
    force = 0.6 * np.cos(2 * np.pi * frequencies[:, None] * times + phases[:, None]).sum(axis=0)
    inputs = Inputs.from_samples(0.0, 0.05, force[None])
    clean = simulate(model, times, np.array([0.5, 0.0]), inputs=inputs, rtol=1e-10, atol=1e-12).states[0]
    return model, clean, force


def fits(driven, level, seeds, **options):
    """Deviations from the truth in standard errors, [seeds, parameters], and the last result."""
    model, clean, force = driven
    rows = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x = clean + 0.005 * clean.std() * rng.standard_normal(len(clean))
        f = force + level * force.std() * rng.standard_normal(len(force))
        guess = model.with_values({name: 1.2 * value for name, value in DRIVEN.items()})
        result = identify(guess, Record.from_arrays(20, {"x": x, "f": f}), "path", **options)
        assert result.converged
        rows.append(
            [
                (result.parameters[n].value - truth) / result.parameters[n].stderr
                for n, truth in DRIVEN.items()
            ]
        )
    return np.array(rows), result


def test_given_a_noisy_random_force_when_fitted_then_its_noise_is_part_of_the_error_bars(driven):
    off, result = fits(driven, 0.05, range(6))
    assert result.extra["input noise"]["f"] == pytest.approx(0.05 * driven[2].std(), rel=0.1)
    assert np.abs(off).max() < 4
    assert 0.5 < np.sqrt(np.mean(off**2)) < 1.5
    assert not any("not white" in words for words in result.reasons)
    assert result.verdict == "fits"
    blind, result = fits(driven, 0.05, range(2), denoise=False)  # the force taken as exact
    ideal = [
        abs(result.parameters[n].value - truth) / result.parameters[n].stderr_ideal
        for n, truth in DRIVEN.items()
    ]
    assert max(ideal) > 5
    assert result.verdict == "close"  # the error bars say what the ideal ones do not
    assert np.abs(blind).max() < 4


def test_given_a_force_with_hardly_any_noise_when_fitted_then_it_counts_as_exact(driven):
    off, result = fits(driven, 1e-4, range(2))
    assert "input noise" not in result.extra
    assert np.abs(off).max() < 4


def test_given_a_hidden_constant_whose_equation_the_start_follows_then_it_is_found_by_the_path() -> None:
    """b' = 0: the start misses that equation by nothing at all, so there is no size to hold it against."""
    times = 0.05 * np.arange(600)
    x = solve_ivp(
        lambda t, z: [z[1], np.cos(1.1 * t) + 0.7 - 0.2 * z[1] - 2 * z[0] - 0.5 * z[0] ** 3],
        (0, times[-1]), (0.3, 0.0), t_eval=times, rtol=1e-9, atol=1e-11,
    ).y[0]  # fmt: skip
    model = Model.from_equations(
        {"x": "v", "v": "cos(1.1*t) + b - c*v - k*x - q*x**3", "b": "0"},
        {"c": {"guess": 0.3}, "k": {"guess": 1.7}, "q": {"guess": 0.4}},
    )
    noisy = x + 0.01 * np.random.default_rng(3117).standard_normal(600)
    found = identify(model, Record.from_arrays(20.0, {"x": noisy}, drive_time=0.0), "path")
    truth = {"c": 0.2, "k": 2.0, "q": 0.5}
    assert found.verdict == "fits"
    assert all(abs(found.parameters[n].value - v) < 4 * found.parameters[n].stderr for n, v in truth.items())
