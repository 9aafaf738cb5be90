"""Homotopy shooting on the systems of Manikantan et al. (2020); truth by independent integration (DOP853)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import Cancelled, DataError, ShakedownError
from analysis.base.options import parse_options
from analysis.base.progress import Progress, Step
from analysis.base.record import Channel, Record
from analysis.estimate.methods import identify
from analysis.estimate.search.global_search import GlobalSearch
from analysis.model import Model
from drivers.library import load_model

WELLS = {"single_well": (20.0, 15), "double_well": (20.0, 15), "double_hump": (2.5, 15)}


def truth_record(
    model: Model,
    seconds: float,
    rate: float,
    channels: list[str],
    max_step: float = np.inf,
    rtol: float = 1e-11,
) -> Record:
    """The outputs of a model at its own values, integrated by SciPy from the model's initial state."""
    kernels, p = model.kernels(), model.values()
    n, none = len(model.states), np.zeros(0)

    def rhs(t: float, x: np.ndarray) -> np.ndarray:
        rate = np.empty(n)
        kernels.rhs(t, x, none, p, rate)
        return rate

    times = np.arange(round(seconds * rate) + 1) / rate
    start = [model.initial[s].value for s in model.states]
    solution = solve_ivp(
        rhs, (0, times[-1]), start, "DOP853", times, rtol=rtol, atol=0.1 * rtol, max_step=max_step
    )
    outputs = np.empty((len(model.outputs), len(times)))
    kernels.out_many(times, np.ascontiguousarray(solution.y), np.zeros((0, len(times))), p, outputs)
    named = dict(zip(model.outputs, outputs, strict=True))
    return Record.from_arrays(rate, {name: named[name] for name in channels}, drive_time=0.0)


def noisy(record: Record, level: float, rng: np.random.Generator) -> Record:
    """Noise of ``level`` times the rms of each channel."""
    arrays = {
        name: record[name] + level * np.sqrt(np.mean(record[name] ** 2)) * rng.normal(size=len(record))
        for name in record.names
    }
    return record.with_channels(**arrays)


@pytest.fixture(scope="module", params=list(WELLS))
def well(request: pytest.FixtureRequest) -> tuple[Model, Record, int]:
    model = load_model(f"van_der_pol_duffing_{request.param}")
    seconds, runs = WELLS[request.param]
    return model, truth_record(model, seconds, 100.0, ["x"]), runs


def errors(model: Model, found: dict[str, float]) -> np.ndarray:
    return np.array([found[name] - model.parameters[name].value for name in model.free])


def test_given_the_upper_bounds_then_the_truth_is_found_in_few_sensitivity_runs(
    well: tuple[Model, Record, int],
) -> None:
    model, record, most = well
    start = model.with_values({name: model.parameters[name].upper for name in model.free})
    steps: list[Step] = []
    result = identify(start, record, "homotopy", Progress(steps.append), finish=False)
    assert result.converged
    assert np.abs(errors(model, result.values())).max() < 1e-6
    assert result.evaluations <= most
    done = identify(start, record, "homotopy")
    assert done.converged and np.abs(errors(model, done.values())).max() < 1e-6
    assert {"lambda", "cost", *model.free} <= set(steps[0].values)
    assert not result.warnings


@pytest.mark.parametrize("rtol", [1e-7, 1e-8, 1e-9, 1e-10])
def test_given_a_record_that_is_itself_computed_inexactly_then_no_run_is_wasted_below_its_accuracy(
    rtol: float,
) -> None:
    for case in WELLS:
        model = load_model(f"van_der_pol_duffing_{case}")
        record = truth_record(model, WELLS[case][0], 100.0, ["x"], rtol=rtol)
        start = model.with_values({name: model.parameters[name].upper for name in model.free})
        result = identify(start, record, "homotopy", finish=False)
        assert result.converged
        assert np.abs(errors(model, result.values())).max() < 1e3 * rtol
        assert result.evaluations <= 12


def test_given_random_starts_in_the_bounds_then_each_finds_the_truth(
    well: tuple[Model, Record, int], rng: np.random.Generator
) -> None:
    model, record, _ = well
    for _ in range(15):
        guess = {n: rng.uniform(model.parameters[n].lower, model.parameters[n].upper) for n in model.free}
        result = identify(model.with_values(guess), record, "homotopy")
        assert np.abs(errors(model, result.values())).max() < 1e-5, guess


def test_given_the_published_scheme_then_it_finds_the_truth_and_counts(
    well: tuple[Model, Record, int],
) -> None:
    model, record, _ = well
    start = model.with_values({name: model.parameters[name].upper for name in model.free})
    result = identify(start, record, "homotopy", plain=True)
    assert np.abs(errors(model, result.values())).max() < 1e-4
    assert [row["lambda"] for row in result.history] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.0])
    assert result.evaluations > result.iterations > 6


def test_given_noise_then_the_intervals_cover_the_truth(rng: np.random.Generator) -> None:
    model = load_model("van_der_pol_duffing_single_well")
    clean = truth_record(model, 20.0, 100.0, ["x"])
    start = model.with_values({name: model.parameters[name].upper for name in model.free})
    covered = []
    for _ in range(20):
        result = identify(start, noisy(clean, 0.05, rng), "homotopy")
        covered += [result.parameters[n].covers(model.parameters[n].value) for n in model.free]
        assert not result.warnings
    # 60 intervals of 95 %: fewer than 51 has a probability below 0.001 for independent ones
    assert sum(covered) >= 51


def test_given_a_gap_and_unknown_initial_velocity_then_both_are_coped_with(rng: np.random.Generator) -> None:
    model = load_model("van_der_pol_duffing_single_well")
    record = noisy(truth_record(model, 20.0, 100.0, ["x"]), 0.01, rng)
    broken = replace(record, channels={"x": Channel(record["x"], gaps=((500, 640),))})
    free = Model.from_toml(model.text.replace("v = 0.0", "v = { guess = 0.8 }"))
    result = identify(free.with_values({"alpha": 5.0, "beta": 5.0, "mu": 1.0}), broken, "homotopy")
    assert result.converged
    assert np.abs(errors(model, result.values())).max() < 0.01
    assert result.parameters["v(0)"].covers(0.0)


def test_given_a_chaotic_record_then_windows_and_path_find_what_one_trajectory_cannot(
    rng: np.random.Generator,
) -> None:
    model = load_model("van_der_pol_duffing_double_well").with_values({"g": 0.3, "w": 1.2})
    record = noisy(truth_record(model, 100 * 2 * np.pi / 1.2, 20.0, ["x"]), 0.01, rng)
    result = identify(model.with_values({"alpha": 2.0, "beta": 3.0, "mu": 1.0}), record, "homotopy")
    assert result.converged
    relative = errors(model, result.values()) / np.array([model.parameters[n].value for n in model.free])
    assert np.abs(relative).max() < 0.005
    assert any("chaotic" in warning for warning in result.warnings)


def test_given_the_engine_mount_from_its_lower_bounds_then_all_four_are_found() -> None:
    model = load_model("engine_mount")
    record = truth_record(model, 5.0, 1000.0, ["x1"])
    start = model.with_values({name: model.parameters[name].lower for name in model.free})
    truth = np.array([model.parameters[n].value for n in model.free])
    result = identify(start, record, "homotopy", finish=False)
    assert result.evaluations <= 25
    for found in (result, identify(start, record, "homotopy")):
        assert np.abs(errors(model, found.values()) / truth).max() < 1e-6


def test_given_the_damper_then_its_redundancy_is_said_and_the_combinations_found() -> None:
    model = load_model("magnetorheological_damper")
    record = truth_record(model, 1.0, 1000.0, ["force"], max_step=1e-3)
    start = model.with_values({name: model.parameters[name].lower for name in model.free})
    result = identify(start, record, "homotopy")
    v, truth = result.values(), model.parameters
    assert 0.5 * result.residual.rms["force"] ** 2 < 1e-10
    for name in ("c0", "k0", "n"):
        assert v[name] == pytest.approx(truth[name].value, rel=1e-4)
    assert v["alpha"] * v["A"] == pytest.approx(880 * 120, rel=1e-3)
    # Scaling z by s leaves the force unchanged when alpha -> alpha/s, A -> s A, beta -> beta s^(1 - n): so
    # the data know beta/alpha^(n - 1), as Table 8 shows (60.52/532.6 = 100/880).
    assert v["beta"] / v["alpha"] == pytest.approx(100 / 880, rel=1e-3)
    assert v["gamma"] / v["alpha"] == pytest.approx(100 / 880, rel=1e-3)
    assert any("alpha" in sentence and "A" in sentence for sentence in result.undetermined)
    assert np.isinf(result.parameters["alpha"].stderr) or np.isnan(result.parameters["alpha"].stderr)


def test_given_a_record_without_any_output_then_one_sentence_says_so() -> None:
    model = load_model("van_der_pol_duffing_single_well")
    with pytest.raises(DataError):
        identify(model, Record.from_arrays(100.0, {"z": np.zeros(500)}), "homotopy")


def test_given_a_guess_whose_motion_explodes_then_one_sentence_says_so() -> None:
    wild = """
name = "Explosion"
[states]
x = "a*exp(x**2)"
[parameters]
a = { guess = 900.0, lower = 500 }
[initial]
x = 1.0
"""
    with pytest.raises(DataError, match="grows beyond all bounds"):
        identify(
            Model.from_toml(wild), Record.from_arrays(10.0, {"x": np.linspace(1.0, 1.1, 400)}), "homotopy"
        )


def test_given_cancel_then_the_work_stops() -> None:
    model = load_model("van_der_pol_duffing_single_well")
    record = truth_record(model, 20.0, 100.0, ["x"])
    start = model.with_values({name: model.parameters[name].upper for name in model.free})
    with pytest.raises(Cancelled):
        identify(start, record, "homotopy", Progress(cancelled=lambda: True))


@pytest.mark.parametrize("algorithm", ["differential_evolution", "particle_swarm", "genetic"])
def test_given_a_global_search_then_it_explains_most_of_the_double_well(algorithm: str) -> None:
    model = load_model("van_der_pol_duffing_double_well")
    record = truth_record(model, 20.0, 50.0, ["x"])
    start = model.with_values({name: model.parameters[name].upper for name in model.free})
    chosen = parse_options(GlobalSearch, [f"algorithm={algorithm}", "seed=3", "generations=40"])
    steps: list[Step] = []
    result = identify(start, record, "global", Progress(steps.append), finish=False, **chosen)
    assert result.evaluations > 500
    whole = 0.5 * float(np.trapezoid(record["x"] ** 2, dx=record.dt))  # the misfit of no motion at all
    assert result.residual.other["J"] < 0.5 * whole
    cost = [row["cost"] for row in result.history]
    assert cost == sorted(cost, reverse=True) and cost[-1] == result.residual.other["J"]
    for name in model.free:
        low, high = model.parameters[name].lower, model.parameters[name].upper
        assert all(low <= row[name] <= high for row in result.history)
    assert len(steps) == len(cost) and set(model.free) <= set(steps[-1].values)


@pytest.mark.parametrize("algorithm", ["differential_evolution", "particle_swarm", "genetic"])
def test_given_a_seed_then_a_global_search_repeats_itself_and_can_be_cancelled(algorithm: str) -> None:
    model = load_model("van_der_pol_duffing_double_hump")
    record = truth_record(model, 2.5, 50.0, ["x"])
    short = {"algorithm": algorithm, "generations": 4, "population": 15, "finish": False}
    first, again, other = (identify(model, record, "global", seed=s, **short) for s in (1, 1, 2))
    assert first.values() == again.values() != other.values()
    assert len(first.history) == 4 and not first.converged  # stopped, which is no end
    assert any("stopped at the given number of generations" in words for words in first.warnings)
    asked = iter([False, False, True])
    with pytest.raises(Cancelled):
        identify(model, record, "global", Progress(cancelled=lambda: next(asked)), **short)


def test_given_a_population_that_agrees_then_the_global_search_has_converged() -> None:
    text = 'name = "a"\n[states]\nx = "-k*x"\n[parameters]\nk = { guess = 1.0, lower = 0.1, upper = 5 }\n'
    record = Record.from_arrays(20.0, {"x": np.exp(-0.7 * np.arange(60) / 20.0)})
    result = identify(Model.from_toml(text), record, "global", finish=False, generations=200)
    assert result.converged and len(result.history) < 200
    assert np.all(np.diff([row["evaluation"] for row in result.history]) == 10)  # individuals a parameter
    assert not any("stopped" in words for words in result.warnings)
    assert result.values()["k"] == pytest.approx(0.7, rel=1e-3)


def test_given_an_unknown_algorithm_or_no_bounds_then_one_sentence_says_what_there_is() -> None:
    with pytest.raises(ShakedownError, match="not one of differential_evolution, particle_swarm, genetic"):
        parse_options(GlobalSearch, ["algorithm=annealing"])
    free = Model.from_toml('name = "a"\n[states]\nx = "-k*x"\n[parameters]\nk = { guess = 1.0 }\n')
    with pytest.raises(DataError, match="needs a lower and an upper bound"):
        identify(free, Record.from_arrays(1.0, {"x": np.exp(-np.linspace(0, 3, 300))}), "global")
