"""Simulation and sensitivities against closed forms and independent integration."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import DataError, ModelError
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import sensitivities, simulate

OSCILLATOR = Model.from_equations(
    {"x": "v", "v": "-k*x - c*v"}, {"k": {"guess": 4.0}, "c": {"guess": 0.3}}, initial={"x": 1.0, "v": 0.5}
)
DUFFING = Model.from_equations(
    {"x": "v", "v": "-c*v - x**3 + a*cos(w*t)"},
    {"c": {"guess": 0.2}, "a": {"guess": 27.0}, "w": 1.33},
    initial={"x": 1.0, "v": 0.0},
)
FILTER = Model.from_equations({"x": "(u - x)/tau"}, {"tau": {"guess": 0.5}}, inputs={"u": "measured"})


def closed_form(
    t: np.ndarray, k: float = 4.0, c: float = 0.3, x0: float = 1.0, v0: float = 0.5
) -> np.ndarray:
    w = np.sqrt(k - c * c / 4)
    return np.exp(-c * t / 2) * (x0 * np.cos(w * t) + (v0 + c * x0 / 2) / w * np.sin(w * t))


@pytest.mark.parametrize(("method", "substeps", "tolerance"), [("adaptive", 1, 1e-8), ("rk4", 4, 1e-6)])
def test_given_a_linear_oscillator_when_simulated_then_it_is_the_closed_form(
    method, substeps, tolerance
) -> None:
    t = np.linspace(0, 20, 401)
    run = simulate(OSCILLATOR, t, method=method, substeps=substeps)
    assert np.abs(run["x"] - closed_form(t)).max() < tolerance
    assert run.diverged_at is None


def test_given_a_tighter_tolerance_when_simulated_then_the_error_falls_with_it() -> None:
    t = np.linspace(0, 20, 41)
    errors = [
        np.abs(simulate(OSCILLATOR, t, rtol=r, atol=r)["x"] - closed_form(t)).max() for r in (1e-6, 1e-11)
    ]
    assert errors[1] < 1e-3 * errors[0]
    assert errors[1] < 1e-10


def test_given_rk4_when_the_step_halves_then_the_error_falls_sixteenfold() -> None:
    t = np.linspace(0, 10, 101)
    errors = [
        np.abs(simulate(OSCILLATOR, t, method="rk4", substeps=s)["x"] - closed_form(t)).max() for s in (1, 2)
    ]
    assert 14 < errors[0] / errors[1] < 18


def test_given_the_chaotic_duffing_when_simulated_then_it_agrees_with_an_independent_integration() -> None:
    t = np.linspace(0, 30, 301)
    truth = solve_ivp(
        lambda t, y: [y[1], -0.2 * y[1] - y[0] ** 3 + 27 * np.cos(1.33 * t)],
        (0, 30),
        [1.0, 0.0],
        method="DOP853",
        rtol=1e-12,
        atol=1e-12,
        t_eval=t,
    )
    run = simulate(DUFFING, t, rtol=1e-12, atol=1e-13)
    assert np.abs(run.states - truth.y).max() < 1e-7


def test_given_dense_times_when_simulated_then_they_do_not_change_the_motion() -> None:
    coarse = simulate(DUFFING, np.linspace(0, 10, 11))
    fine = simulate(DUFFING, np.linspace(0, 10, 10_001))
    assert np.abs(coarse.states - fine.states[:, ::1000]).max() < 1e-9


@pytest.mark.parametrize(("method", "substeps", "tolerance"), [("adaptive", 1, 1e-6), ("rk4", 10, 1e-4)])
def test_given_a_chaotic_motion_when_differentiated_then_differences_of_motions_agree(
    method, substeps, tolerance
) -> None:
    t = np.linspace(0, 6, 61)
    _, s = sensitivities(
        DUFFING, t, wrt=["c", "a", "w"], wrt_initial=["v", "x"], method=method, substeps=substeps
    )
    assert s.shape == (2, 5, 61)
    start = {"x": 1.0, "v": 0.0}
    values = {name: p.value for name, p in DUFFING.parameters.items()}
    h = 1e-5
    for column, name in enumerate(("c", "a", "w", "v", "x")):
        motions = []
        for shift in (h, -h):
            shifted_start = start | ({name: start[name] + shift} if name in start else {})
            shifted = values | ({name: values[name] + shift} if name in values else {})
            motions.append(simulate(DUFFING, t, shifted_start, shifted, rtol=1e-12).states)
        difference = (motions[0] - motions[1]) / (2 * h)
        assert np.abs(s[:, column] - difference).max() < tolerance * np.abs(difference).max()


@pytest.mark.parametrize("method", ["adaptive", "rk4"])
def test_given_a_stepped_input_when_simulated_then_the_step_is_exact(method: str) -> None:
    samples = np.where(np.arange(101) < 37, 0.0, 2.0)
    t = np.linspace(0, 10, 101)
    run = simulate(
        FILTER, t, [1.0], inputs=Inputs.from_samples(0.0, 0.1, [samples]), method=method, substeps=4
    )
    before = np.exp(-t / 0.5)
    at_step = np.exp(-3.7 / 0.5)
    after = 2 + (at_step - 2) * np.exp(-(t - 3.7) / 0.5)
    tolerance = 1e-9 if method == "adaptive" else 1e-5
    assert np.abs(run["x"] - np.where(t < 3.7, before, after)).max() < tolerance


def test_given_output_times_off_the_grid_of_a_held_input_when_run_by_rk4_then_jumps_split_the_steps() -> None:
    samples = np.sign(np.sin(np.arange(41) * 0.9)) + 1.0
    inputs = Inputs.from_samples(0.0, 0.25, [samples], "hold")
    t = np.linspace(0, 9.9, 67)
    fixed = simulate(FILTER, t, [0.0], inputs=inputs, method="rk4", substeps=20)
    free = simulate(FILTER, t, [0.0], inputs=inputs, rtol=1e-11)
    assert np.abs(fixed.states - free.states).max() < 1e-7


def test_given_a_measured_sine_when_simulated_then_the_response_is_that_of_the_sine() -> None:
    dt = 0.02
    wave = np.sin(3 * np.arange(501) * dt)
    t = np.linspace(0, 9.9, 100)
    run = simulate(FILTER, t, [0.0], inputs=Inputs.from_samples(0.0, dt, [wave]))
    exact = (np.sin(3 * t) - 1.5 * np.cos(3 * t) + 1.5 * np.exp(-2 * t)) / (1 + 1.5**2)
    assert np.abs(run["x"] - exact).max() < 2e-8  # the spline itself is responsible for 1.2e-8


@pytest.mark.parametrize("method", ["adaptive", "rk4"])
def test_given_a_motion_that_escapes_when_simulated_then_it_stops_and_says_when(method: str) -> None:
    blow_up = Model.from_equations({"x": "x**2"}, initial={"x": 1.0})
    run = simulate(blow_up, np.linspace(0, 3, 301), method=method, substeps=10)
    assert run.diverged_at == pytest.approx(1.0, abs=0.05)  # x = 1/(1 - t)
    assert "diverged at t = 1" in str(run)
    assert np.all(np.isfinite(run.states[:, :99]))
    assert np.all(np.isnan(run.states[:, 110:]))
    assert np.all(np.isnan(run.outputs[:, 110:]))


def test_given_exponential_growth_when_simulated_then_it_stops_at_the_bound() -> None:
    growing = Model.from_equations({"x": "x"}, initial={"x": 1.0})
    run = simulate(growing, np.linspace(0, 1000, 1001), bound=1e6)
    assert run.diverged_at == pytest.approx(np.log(1e6), abs=2.0)


def test_given_a_square_root_of_a_negative_number_when_simulated_then_it_ends_without_a_warning() -> None:
    falling = Model.from_equations({"x": "-1 - sqrt(x)"}, initial={"x": 1.0})
    run = simulate(falling, np.linspace(0, 3, 31))
    assert run.diverged_at is not None
    assert run.diverged_at < 1.0


def test_given_outputs_when_simulated_then_they_are_what_the_sensor_sees() -> None:
    model = Model.from_equations({"x": "-x"}, {"s": 3.0}, initial={"x": 1.0}, outputs={"strain": "s*x**2"})
    run = simulate(model, np.linspace(0, 1, 11))
    assert np.allclose(run["strain"], 3 * np.exp(-2 * run.times))


def test_given_wrong_arguments_when_simulated_then_one_sentence_says_what_is_wrong() -> None:
    with pytest.raises(ModelError, match="start"):
        simulate(FILTER, [0.0, 1.0], inputs=Inputs.from_samples(0, 1, [[1.0, 2.0]]))
    with pytest.raises(DataError, match="measured inputs u"):
        simulate(FILTER, [0.0, 1.0], [0.0])
    with pytest.raises(DataError, match="cover"):
        simulate(FILTER, [0.0, 9.0], [0.0], inputs=Inputs.from_samples(0, 1, [[1.0, 2.0]]))
    with pytest.raises(DataError, match="ascend"):
        simulate(OSCILLATOR, [0.0, 2.0, 1.0])
    with pytest.raises(DataError, match="finite"):
        simulate(OSCILLATOR, [0.0, np.inf])
    with pytest.raises(ModelError, match="2 states"):
        simulate(OSCILLATOR, [0.0, 1.0], [1.0])
    with pytest.raises(DataError, match="No integrator"):
        simulate(OSCILLATOR, [0.0, 1.0], method="euler")
    with pytest.raises(ModelError, match="No state"):
        sensitivities(OSCILLATOR, [0.0, 1.0], wrt_initial=["z"])


def test_given_a_long_run_when_simulated_then_the_models_own_step_takes_over_and_agrees() -> None:
    model = Model.from_equations(
        {"x": "v", "v": "-0.3*v - x - 0.5*tanh(x) + 0.7*cos(1.3*t) + 0*q"},
        {"q": 1.0},
        initial={"x": 0, "v": 0},
    )
    kernels = model.kernels()
    assert kernels.has_own_step
    assert not kernels.is_ready("dop853")
    short = simulate(model, np.linspace(0, 200, 2001), rtol=1e-10)
    assert not kernels.is_ready("dop853")  # not worth it yet
    long = simulate(model, np.linspace(0, 8000, 80_001), rtol=1e-10)
    assert kernels.is_ready("dop853")
    again = simulate(model, np.linspace(0, 200, 2001), rtol=1e-10)
    assert np.abs(again.states - short.states).max() < 1e-8
    assert np.abs(long.states[:, :2001] - short.states).max() < 1e-8
    period = 2 * np.pi / 1.3
    late = simulate(model, np.array([0.0, 100 * period, 1500 * period]))
    assert np.abs(late.states[:, 2] - late.states[:, 1]).max() < 1e-8


def test_given_both_forms_of_a_step_when_taken_once_then_they_agree_to_rounding() -> None:
    from analysis.model.kernels import RHS_TYPE
    from analysis.simulation.integrate import NO_SURFACES, adaptive
    from analysis.simulation.slope import PAIR_TYPE, system_of

    kernels, p = DUFFING.kernels(), DUFFING.values()
    results = []
    for kernel_type, own in ((RHS_TYPE, None), (PAIR_TYPE, kernels.dop853)):
        work, out = np.zeros((27, 2)), np.empty((2, 2))
        adaptive(kernel_type)(
            kernels.rhs, own, *NO_SURFACES, system_of(2, p, Inputs.none()), 0.0, 0.05, 0,
            np.array([0.0, 10.0]), np.array([1.0, 0.5]), 2, np.empty(0), 1e-9, 1e-12, np.zeros(2), 1e9, 10**8,
            1, 0, work, out,
        )  # fmt: skip
        results.append(work)
    assert np.allclose(results[0][[0, *range(4, 17)]], results[1][[0, *range(4, 17)]], rtol=1e-13, atol=1e-13)
    assert np.allclose(results[0][17:19], results[1][17:19], rtol=1e-6, atol=1e-11)  # errors cancel


@pytest.mark.parametrize("kind", ["cubic", "hold"])
def test_given_a_measured_input_when_differentiated_then_both_integrators_agree(kind: str) -> None:
    times = np.linspace(0, 4, 81)
    wave = np.round(np.sin(3 * times), 1 if kind == "hold" else 12)
    inputs = Inputs.from_samples(0.0, 0.05, [wave], kind)
    states, s = sensitivities(FILTER, times, [0.5], None, inputs, ["tau"], ["x"])
    fixed_states, fixed = sensitivities(
        FILTER, times, [0.5], None, inputs, ["tau"], ["x"], method="rk4", substeps=8
    )
    assert np.abs(states - fixed_states).max() < 1e-7
    assert np.abs(s - fixed).max() < 1e-6
    assert np.abs(s[0, 1] - np.exp(-times / 0.5)).max() < 1e-8


def test_given_an_escape_when_differentiated_by_rk4_then_the_rest_is_not_a_number() -> None:
    blow_up = Model.from_equations({"x": "a*x**2"}, {"a": {"guess": 1.0}}, initial={"x": 1.0})
    states, s = sensitivities(blow_up, np.linspace(0, 3, 301), method="rk4", substeps=4)
    assert np.all(np.isfinite(states[:, :95]))
    assert np.all(np.isnan(states[:, 130:]))
    assert np.all(np.isnan(s[:, :, 130:]))


def test_given_a_parameter_without_effect_when_differentiated_then_the_run_goes_on() -> None:
    """|x + 1| - |x - 1| - 2 x is rounding noise around zero: no step can make its error small against it."""
    model = Model.from_equations(
        {"x": "v", "v": "-x + a*(abs(x + 1) - abs(x - 1) - 2*x)"},
        {"a": {"guess": 0.4}},
        initial={"x": 0.3, "v": 0},
    )
    _, s = sensitivities(model, np.linspace(0, 10, 11))
    assert np.abs(s).max() < 1e-12
