"""The weak form on systems whose parameters are known."""

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.base.identification import Identification
from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.experiment.states import derivative_pairs, scaled_derivatives
from analysis.model import Model
from analysis.simulation.simulate import simulate
from drivers.library import load_model

LORENZ = {"sigma": 16.0, "rho": 45.92, "beta": 4.0}


@pytest.fixture(scope="module")
def lorenz():
    model = load_model("lorenz")
    clean = simulate(model, np.arange(4000) * 0.01, np.array([10.0, 1.0, 30.0])).states
    return model.with_values({name: 1.3 * value for name, value in LORENZ.items()}), clean


def noisy(model, clean, rate, level, seed):
    rng = np.random.default_rng(seed)
    data = clean + level * clean.std(axis=1, keepdims=True) * rng.standard_normal(clean.shape)
    return Record.from_arrays(rate, dict(zip(model.states, data, strict=True)))


def test_given_noisy_lorenz_when_weighted_then_errors_are_small_and_covered(lorenz):
    model, clean = lorenz
    record = noisy(model, clean, 100, 0.05, 0)
    plain = identify(model, record, "weak", plain=True)
    weak = identify(model, record, "weak", finish=False)
    done = identify(model, record, "weak")
    off = [
        max(abs(fit.parameters[name].value / truth - 1) for name, truth in LORENZ.items())
        for fit in (plain, weak, done)
    ]
    assert off[0] > 3 * off[2]  # the published method is biased by the noise in its regressors
    assert off[1] < 6e-3
    assert off[2] < 3e-3  # three standard errors
    assert weak.residual.per_dof == pytest.approx(1.0, abs=0.1)
    for name, truth in LORENZ.items():
        assert abs(done.parameters[name].value - truth) < 3.5 * done.parameters[name].stderr
    assert done.extra["start"]["method"] == "weak"


def test_given_a_finished_result_when_run_again_by_its_own_method_and_options_then_it_is_the_same(lorenz):
    model, clean = lorenz
    record = noisy(model, clean[:, :1500], 100, 0.02, 7).with_channels(z=clean[2, :1500] + 0.5)
    first = identify(model, record, "weak", offsets=("z",), spacing=6)
    assert first.options["offsets"] == ("z",) and first.options["spacing"] == 6
    again = identify(Model.from_toml(first.model_text), record, first.method, **first.options)
    assert again.values() == pytest.approx(first.values(), rel=1e-12)
    assert again.options == first.options


def test_given_clean_data_when_published_method_is_used_then_one_step_suffices(lorenz):
    model, clean = lorenz
    record = noisy(model, clean, 100, 0.0, 0)
    plain = identify(model, record, "weak", plain=True)
    assert plain.iterations == 1
    for name, truth in LORENZ.items():
        assert plain.parameters[name].value == pytest.approx(truth, rel=2e-3)


def decaying(guess: float, lost: slice) -> Identification:
    t = 0.05 * np.arange(400)
    x = np.exp(-0.3 * t) + 0.003 * np.random.default_rng(0).normal(size=len(t))
    x[lost] = np.nan
    model = Model.from_equations({"x": "-a*x"}, {"a": {"guess": guess}})
    return identify(model, Record.from_arrays(20.0, {"x": x}), "weak", plain=True)


def test_given_any_guess_then_the_published_method_has_the_errors_of_what_is_left_at_the_end() -> None:
    near, far = (decaying(guess, slice(0, 0)) for guess in (0.3, 30.0))
    assert far.converged and far.values()["a"] == pytest.approx(near.values()["a"], rel=1e-9)
    assert far.parameters["a"].stderr == pytest.approx(near.parameters["a"].stderr, rel=1e-6)
    assert far.residual.other["cost"] == pytest.approx(near.residual.other["cost"], rel=1e-6)
    assert abs(far.values()["a"] - 0.3) < 3 * far.parameters["a"].stderr < 0.03


def test_given_lost_samples_then_the_published_method_has_the_rows_of_both_sides() -> None:
    assert decaying(0.3, slice(0, 0)).residual.other["rows"] == 400 - 6
    parted = decaying(0.3, slice(150, 170))
    assert parted.residual.other["rows"] == (150 - 6) + (230 - 6)
    assert parted.values()["a"] == pytest.approx(0.3, abs=0.03)
    assert decaying(0.3, slice(11, 30)).residual.other["rows"] == 370 - 6  # the first piece is too short


def test_given_lost_samples_when_fitted_then_they_are_skipped_not_interpolated(lorenz):
    model, clean = lorenz
    record = noisy(model, clean, 100, 0.01, 1)
    broken = {name: record[name].copy() for name in record.names}
    for name in broken:
        broken[name][1000:1400] = np.nan
    broken["y"][2500] = np.nan
    fit = identify(model, Record.from_arrays(100, broken), "weak", finish=False)
    for name, truth in LORENZ.items():
        assert abs(fit.parameters[name].value - truth) < 4 * fit.parameters[name].stderr
    whole = identify(model, record, "weak", finish=False)
    ratio = fit.parameters["sigma"].stderr / whole.parameters["sigma"].stderr
    assert 1.0 < ratio < 1.3


DUFFING = {"c": 0.2, "k1": 0.5, "k3": 1.0}


def duffing():
    return Model.from_equations(
        {"x": "v", "v": "-c*v - k1*x - k3*x**3 + f"},
        {name: {"guess": 0.7 * value, "lower": 0, "upper": 10} for name, value in DUFFING.items()},
        inputs={"f": "27*cos(1.33*t)"},
    )


@pytest.fixture(scope="module")
def motion():
    return simulate(duffing().with_values(DUFFING), np.arange(3000) * 0.05, np.array([1.0, 0.0])).states


def test_given_displacement_alone_when_fitted_then_two_integrations_by_parts_do(motion):
    rng = np.random.default_rng(2)
    record = Record.from_arrays(20, {"x": motion[0] + 0.01 * rng.standard_normal(3000)})
    weak = identify(duffing(), record, "weak", finish=False)
    done = identify(duffing(), record, "weak")
    for name, truth in DUFFING.items():
        assert weak.parameters[name].value == pytest.approx(truth, rel=0.05)
        assert abs(done.parameters[name].value - truth) < 3.5 * done.parameters[name].stderr


def test_given_a_velocity_in_other_units_when_only_displacement_is_measured_then_it_is_found(motion):
    model = Model.from_equations(
        {"x": "w*y", "y": "(-c*w*y - k1*x - k3*x**3 + 27*cos(1.33*t))/w"},
        {"w": 40.0, **{name: {"guess": 0.7 * value} for name, value in DUFFING.items()}},
    )
    rng = np.random.default_rng(5)
    record = Record.from_arrays(20, {"x": motion[0] + 0.01 * rng.standard_normal(3000)})
    weak = identify(model, record, "weak", finish=False)
    usual = identify(duffing(), record, "weak", finish=False)
    for name, truth in DUFFING.items():
        assert weak.parameters[name].value == pytest.approx(truth, rel=0.05)
        assert weak.parameters[name].value == pytest.approx(usual.parameters[name].value, rel=1e-6)
    assert derivative_pairs(model) == {}
    assert scaled_derivatives(model) == {1: (0, 40.0)}


def test_given_offset_and_late_sensor_when_freed_then_both_are_found(motion):
    rng = np.random.default_rng(3)
    late = simulate(duffing().with_values(DUFFING), np.arange(6000) * 0.025, np.array([1.0, 0.0])).states[
        1, 1::2
    ]
    data = {"x": motion[0] + 0.4, "v": late}
    record = Record.from_arrays(
        20, {name: row + 0.01 * rng.standard_normal(3000) for name, row in data.items()}
    )
    fit = identify(duffing(), record, "weak", finish=False, offsets=("x",), delays=("v",))
    assert fit.parameters["offset x"].value == pytest.approx(0.4, abs=0.01)
    assert fit.parameters["delay v"].value == pytest.approx(-0.025, abs=2e-4)
    assert fit.parameters["k3"].value == pytest.approx(1.0, rel=0.01)


def test_given_sensors_whose_zero_wanders_when_freed_then_each_run_has_its_drift(motion):
    rng = np.random.default_rng(6)
    records, drifts = [], (0.003, -0.002)
    for drift in drifts:
        x = motion[0] + drift * np.arange(3000) * 0.05
        data = {"x": x + 0.01 * rng.standard_normal(3000), "v": motion[1] + 0.01 * rng.standard_normal(3000)}
        records.append(Record.from_arrays(20, data))
    blind = identify(duffing(), records, "weak")
    for finish in (False, True):
        fit = identify(duffing(), records, "weak", finish=finish, drifts=("x",))
        for i, drift in enumerate(drifts):
            found = fit.parameters[f"drift x[{i + 1}]"]
            assert abs(found.value - drift) < 4 * found.stderr
            assert found.stderr < 2e-4
        assert fit.parameters["k3"].value == pytest.approx(1.0, rel=3e-3)
    assert fit.residual.rms["x"] == pytest.approx(0.01, rel=0.05)
    assert blind.residual.rms["x"] > 0.05
    assert any("What is left of x is not white" in words for words in blind.reasons)


def test_given_a_state_that_nothing_shows_when_fitted_then_homotopy_is_named(lorenz):
    model, clean = lorenz
    with pytest.raises(DataError, match=r"nothing shows z: use method auto or homotopy"):
        identify(model, Record.from_arrays(100, {"x": clean[0], "y": clean[1]}), "weak")


def test_given_a_stepped_input_when_fitted_then_the_jump_leaves_no_bias():
    model = Model.from_equations(
        {"x": "a*(u - x) - b*x**2"},
        {"a": {"guess": 0.5, "lower": 0, "upper": 9}, "b": {"guess": 0.5, "lower": 0, "upper": 9}},
        inputs={"u": "measured"},
    )
    from analysis.signal.inputs import Inputs

    times = np.arange(600) * 0.05
    steps = np.where((times // 3) % 2 == 0, 1.0, 3.0)
    inputs = Inputs.from_samples(0.0, 0.05, steps[None], "hold")
    clean = simulate(
        model.with_values({"a": 1.0, "b": 0.3}), times, np.array([0.5]), inputs=inputs, rtol=1e-11
    ).states
    record = Record.from_arrays(20, {"x": clean[0], "u": steps})
    fit = identify(model, record, "weak", finish=False)
    assert fit.parameters["a"].value == pytest.approx(1.0, rel=2e-4)
    assert fit.parameters["b"].value == pytest.approx(0.3, rel=2e-4)
    plain = identify(model, record, "weak", plain=True)
    assert abs(fit.parameters["a"].value - 1) < 0.1 * abs(plain.parameters["a"].value - 1) + 1e-6


def weak_system(model, times, states, inputs=None, spacing=3):
    from analysis.estimate.weak.system import Equation, Nodes, WeakSystem

    inputs = np.zeros((0, len(times))) if inputs is None else inputs
    data = Nodes(times, states, inputs, np.zeros(1, dtype=np.int64))
    equations = [Equation(i) for i in range(len(states))]
    return WeakSystem(model.kernels(), data, spacing, equations, len(model.parameters))


def dense(band):
    """The symmetric matrix of a band whose element (i, j) is at [j, i - j]."""
    N, width = band.shape
    full = np.zeros((N, N))
    for j in range(N):
        reach = min(width, N - j)
        full[j : j + reach, j] = band[j, :reach]
        full[j, j : j + reach] = band[j, :reach]
    return full


def test_given_shifts_of_one_function_when_their_covariance_is_formed_then_it_is_that_of_any_functions(
    lorenz,
):
    from analysis.estimate.weak.system import WeakSystem
    from analysis.signal.splines import Probes

    model, clean = lorenz
    states = np.ascontiguousarray(clean[:, :1000])
    system = weak_system(model, np.arange(1000) * 0.01, states)
    P = system.probes
    each = Probes(P.first, *(np.repeat(w, len(P), axis=0) for w in (P.value, P.slope, P.curvature)))
    general = WeakSystem(model.kernels(), system.data, 3, system.equations, 3, each)
    values, sigma = np.concatenate([model.values(), np.zeros(9)]), np.array([0.1, 0.2, 0.3])
    band = system.covariance(values, sigma)
    assert band == pytest.approx(general.covariance(values, sigma), rel=1e-10, abs=1e-12 * band.max())
    assert system.variances(values, sigma).T.ravel() == pytest.approx(band[:, 0], rel=1e-8)


def test_given_noise_on_states_and_input_when_drawn_often_then_residuals_scatter_as_their_covariance_says():
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x**3 + x*f"}, {"c": 0.3, "k": {"guess": 1.0}}, inputs={"f": "measured"}
    )
    rng = np.random.default_rng(4)
    times = np.arange(60) * 0.05
    X, f = np.vstack([np.sin(times), np.cos(times)]), np.cos(3 * times)[None] + 2
    values, sigma = np.concatenate([model.values(), np.zeros(6)]), np.array([1e-4, 2e-4, 3e-4])
    expected = dense(weak_system(model, times, X, f).covariance(values, sigma))
    rows = []
    for _ in range(4000):
        noise = sigma[:, None] * rng.standard_normal((3, 60))
        rows.append(weak_system(model, times, X + noise[:2], f + noise[2]).residual(values).T.ravel())
    found = np.cov(np.array(rows).T)
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs(found - expected).max() < 0.08 * size.max()
    assert np.diag(found) == pytest.approx(np.diag(expected), rel=0.12)


@pytest.mark.parametrize("samples", [30, 60, 200])
def test_given_few_samples_when_fitted_then_their_noise_is_not_taken_as_none(samples):
    t = np.arange(samples) * 0.1
    noise = 0.01 * np.random.default_rng(samples).standard_normal(samples)
    x = np.exp(-0.15 * t) * np.cos(np.sqrt(4 - 0.15**2) * t) + noise
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"}, {"c": {"guess": 0.4}, "k": {"guess": 5.0}}, outputs={"x": "x"}
    )
    record = Record.from_arrays(10.0, {"x": x})
    best = identify(model, record, "weak")
    assert best.verdict == "fits"
    alone = identify(model, record, "weak", finish=False).parameters["k"]
    assert abs(alone.value - 4.0) < 4 * alone.stderr
    assert alone.stderr < 20 * best.parameters["k"].stderr
