"""Every model of the library behaves as its published study says."""

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.dynamics.equilibrium import equilibria
from analysis.dynamics.lyapunov import lyapunov_spectrum
from analysis.dynamics.shooting import periodic_orbit
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import sensitivities, simulate
from drivers.library import load_model, model_files

DATA = Path(__file__).parents[2].parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the real measurements are not here")
T = 2 * np.pi / 1.33  # period of the Duffing oscillator's drive


def independent(rhs, times, start, rtol=1e-10):
    """The motion by SciPy's DOP853 from equations written again by hand."""
    span = (times[0], times[-1])
    return solve_ivp(rhs, span, start, method="DOP853", rtol=rtol, atol=1e-12, t_eval=times).y


@pytest.mark.parametrize("name", sorted(model_files()))
def test_given_any_model_when_its_jacobians_are_taken_then_they_are_the_differences_of_its_slope(
    name,
) -> None:
    model = load_model(name)
    rng = np.random.default_rng(5)
    kernels, p = model.kernels(), model.values()
    box = {"tank_reactor": ([1.0, 330.0], [2.0, 360.0]), "miura_ori": ([0.0, -1], [0.05, 1])}
    low, high = box.get(name, (np.full(len(model.states), 0.1), np.full(len(model.states), 0.9)))
    if name.startswith("miura"):
        low, high = box["miura_ori"]
    x = rng.uniform(low, high)
    u = {"tank_reactor": np.array([1.0, 2.0, 323.0, 335.0, 15.0])}.get(name, np.full(len(model.inputs), 1e-3))
    n, t = len(x), 0.37
    dx, jx, jp = np.empty(n), np.empty((n, n)), np.empty((n, len(p)))
    kernels.jac(t, x, u, p, dx, jx, jp)
    assert np.all(np.isfinite(dx))

    def slope(x, p):
        out = np.empty(n)
        kernels.rhs(t, x, u, p, out)
        return out

    scale = np.abs(jx).max() + 1e-300
    for j in range(n):
        h = 1e-6 * max(abs(x[j]), 1e-2)
        step = np.eye(n)[j] * h
        assert np.abs((slope(x + step, p) - slope(x - step, p)) / (2 * h) - jx[:, j]).max() < 1e-5 * scale
    for j, value in enumerate(p):
        h = 1e-6 * max(abs(value), 1e-3)
        step = np.eye(len(p))[j] * h
        difference = (slope(x, p + step) - slope(x, p - step)) / (2 * h)
        assert (
            np.abs(difference - jp[:, j]).max() < 1e-5 * np.abs(jp[:, j]).max() + 1e-9 * np.abs(dx).max() / h
        )


@pytest.mark.parametrize(
    ("k", "point", "multiplier"),
    [
        (1, (4.228545, -0.631450), -1.8774),
        (1, (4.743512, 0.273050), -1.8774),
        (1, (4.480826, 1.207851), 4.8954),
        (2, (4.182505, -1.549941), -3.8572),
        (2, (4.625123, 2.017348), -3.8572),
        (3, (3.778889, -1.348440), 3.0360),
    ],
)
def test_given_the_duffing_oscillator_then_its_unstable_orbits_are_the_known_ones(
    k, point, multiplier
) -> None:
    orbit = periodic_orbit(load_model("duffing"), np.array(point) + 1e-3, k * T, segments=k)
    assert orbit.converged
    assert np.abs(orbit.state - point).max() < 1e-5
    assert orbit.multipliers[0].real == pytest.approx(multiplier, abs=1e-3)
    assert np.prod(orbit.multipliers).real == pytest.approx(np.exp(-0.2 * k * T), rel=1e-6)


# exponents in bits per unit time and how well they are known; sum in nats where the divergence is constant
@pytest.mark.parametrize(
    ("name", "duration", "transient", "bits", "tolerance", "total"),
    [
        ("duffing", 1500 * T, 100.0, [0.209, -0.497], 0.015, -0.2),
        ("coulomb", 2000.0, 100.0, [0.16, -37.7], [0.03, 2.5], None),
        ("parametric", 20000.0, 500.0, [0.0426, -0.0570], 0.006, -0.01),
        ("lorenz", 1000.0, 30.0, [2.17, 0.0, -32.46], 0.04, -21.0),
        ("two_well_beam", 6000.0, 200.0, [0.185, -0.235], 0.045, -0.035),
        ("roessler", 4000.0, 200.0, [0.103, 0.0, -7.78], 0.05, None),
    ],
)
def test_given_a_chaotic_model_then_its_exponents_are_the_published_ones(
    name, duration, transient, bits, tolerance, total
) -> None:
    spectrum = lyapunov_spectrum(load_model(name), duration, transient)
    assert np.all(np.abs(spectrum.bits - bits) < tolerance)
    assert spectrum.bits[0] > 5 * spectrum.bits_stderr[0]  # certainly chaotic
    if total is not None:
        assert spectrum.exponents.sum() == pytest.approx(total, abs=1e-6)


def test_given_chaos_that_ends_then_the_spectrum_says_when_and_its_error_spans_both_motions() -> None:
    lorenz = load_model("lorenz")
    lasting = lyapunov_spectrum(lorenz, 60.0, transient=20.0)
    assert lasting.left_chaos is None and "left chaos" not in str(lasting)
    values = {
        "sigma": 10.0,
        "beta": 8 / 3,
        "rho": 22.0,
    }  # chaos dies out below rho = 24.06 (Kaplan, Yorke 1979)
    for start in np.arange(1.0, 20.0):
        ending = lyapunov_spectrum(lorenz, 60.0, initial={"x": start, "y": 0.0, "z": 20.0}, values=values)
        if ending.left_chaos is not None:
            break
    assert ending.left_chaos is not None and 5 < ending.left_chaos < 55
    assert "left chaos after" in str(ending)
    first, last = ending.blocks[0][0], ending.blocks[0][-1]
    assert ending.stderr[0] > (first - last) / 10  # not that of a mean of twenty alike


def test_given_the_lorenz_system_then_its_shortest_orbit_closes_with_a_trivial_multiplier() -> None:
    lorenz = load_model("lorenz")
    run = simulate(lorenz, np.arange(0, 60, 0.005))
    lag = 110 * 5  # recurrences cluster at 110 samples of 0.025
    gaps = np.linalg.norm(run.states[:, 2000:-lag] - run.states[:, 2000 + lag :], axis=0)
    start = run.states[:, 2000 + int(np.argmin(gaps))]
    orbit = periodic_orbit(lorenz, start, 2.75, free_period=True, segments=4)
    assert orbit.converged
    assert np.min(np.abs(orbit.multipliers - 1)) < 1e-6  # along the flow
    assert abs(orbit.period - 2.75) < 0.05


def test_given_the_friction_system_when_tanh_takes_the_displacement_as_printed_then_it_escapes() -> None:
    model = load_model("coulomb")
    times = np.linspace(0, 300, 3001)
    assert np.abs(simulate(model, times)["x"]).max() < 5
    printed = load_model("coulomb").text.replace("tanh(s*v)", "tanh(s*x)")
    run = simulate(type(model).from_toml(printed), times)
    assert run.diverged_at is not None or np.abs(run["x"]).max() > 20


@pytest.mark.parametrize(("force", "printed"), [(0.1, 0.25), (0.5, 1.0), (1.0, 2.0), (2.0, 3.0)])
def test_given_the_tanh_stiffness_then_its_steady_amplitude_is_that_of_table_11(force, printed) -> None:
    times = np.linspace(0, 150, 6001)
    run = simulate(load_model("tanh_stiffness"), times, values={"a": force})
    truth = independent(
        lambda t, y: [y[1], -0.3 * y[1] - y[0] - 0.5 * np.tanh(y[0]) + force * np.cos(1.3 * t)],
        times,
        [0.0, 0.0],
    )
    assert np.abs(run.states - truth).max() < 1e-7
    assert run["x"][-1000:].max() == pytest.approx(printed, rel=0.11)  # the table gives one or two digits


def test_given_the_two_well_beam_then_wells_and_frequencies_are_those_of_chapter_4() -> None:
    left, middle, right = equilibria(load_model("two_well_beam"), {"x": (-3.0, 3.0)}, {"a": 0.0})
    assert (left.stable, middle.stable, right.stable) == (True, False, True)
    roots = np.roots([-0.064, 0.336, 0.178, -0.28, 0.0])
    for well, near in ((left, -1.1), (middle, 0.0), (right, 0.72)):
        assert well.state[0] == pytest.approx(roots[np.argmin(np.abs(roots - near))].real, abs=1e-10)
    assert right.eigenvalues.real == pytest.approx([-0.0175, -0.0175])
    assert 7.5 * 2 * np.pi * right.frequencies[0] == pytest.approx(4.784, abs=1e-3)  # Hz; the thesis rounds x
    assert 7.5 * 2 * np.pi * left.frequencies[0] == pytest.approx(6.843, abs=1e-3)


def test_given_the_chua_circuits_then_the_motion_is_that_of_an_independent_integration() -> None:
    model = load_model("chua")
    start = np.array([model.initial[name].value for name in model.states])
    times = np.linspace(0, 2, 101)
    ga, gb, c1, c2, ell, r0, rc = -0.74, -0.41, 0.01, 0.1, 0.01868, 0.019, 10.0
    r = np.array([1.599, 1.228, 0.917, 3.628])

    def rhs(_, y):
        v1, v2, i = y.reshape(4, 3).T
        diode = gb * v1 + 0.5 * (ga - gb) * (np.abs(v1 + 1) - np.abs(v1 - 1))
        coupling = (v1.sum() - 4 * v1) / rc
        d1 = ((v2 - v1) / r - diode + coupling) / c1
        return np.stack([d1, ((v1 - v2) / r + i) / c2, -(v2 + r0 * i) / ell], axis=1).ravel()

    truth = independent(rhs, times, start)
    assert np.abs(simulate(model, times).states - truth).max() < 1e-5
    long = simulate(model, np.linspace(0, 150, 7501))
    assert long.diverged_at is None
    assert 0.5 < np.abs(long.states).max() < 20


def test_given_the_nominal_cool_inputs_then_the_reactor_rests_at_the_known_state() -> None:
    inputs = [1.0, 2.0, 323.0, 335.0, 15.0]
    (rest,) = equilibria(load_model("tank_reactor"), {"C": (0.1, 2.2), "T": (300.0, 420.0)}, inputs=inputs)
    assert rest.state == pytest.approx([1.5965, 341.38], rel=2e-5)
    assert rest.stable


def test_given_stepped_inputs_when_the_reactor_runs_then_every_step_is_exact() -> None:
    dt = 1 / 12
    levels = np.array(
        [[1.0, 2.0, 323.0, 335.0, 15.0], [1.5, 2.0, 323.0, 335.0, 15.0], [1.5, 1.8, 323.0, 350.0, 15.0]]
    )
    held = np.repeat(levels, 120, axis=0)
    times = np.arange(len(held)) * dt
    run = simulate(load_model("tank_reactor"), times, inputs=Inputs.from_samples(0.0, dt, held.T), rtol=1e-11)

    def rhs(u):
        def slope(_, y):
            c, temperature = y
            rate = 0.461 * np.exp(-8330 * (1 / temperature - 1 / 350))
            cooling = 1.678 * u[4] ** 1.5 / (u[4] + 1.678 * np.sqrt(u[4]) / 2)
            heat = 130 * rate * c + u[0] * u[2] + cooling * u[3]
            return [-(rate + u[0]) * c + u[0] * u[1], -(cooling + u[0]) * temperature + heat]

        return slope

    state = np.array([1.5965, 341.38])
    for block, level in enumerate(levels):
        inside = times[block * 120 : (block + 1) * 120]
        piece = independent(rhs(level), np.append(inside, inside[-1] + dt), state)
        assert np.abs(run.states[:, block * 120 : (block + 1) * 120] - piece[:, :-1]).max() < 1e-6
        state = piece[:, -1]


def test_given_the_miura_ori_then_heights_frequencies_and_snap_forces_are_the_known_ones() -> None:
    model = load_model("miura_ori")
    nested, flat, bulged = equilibria(model, {"X": (0.0, 0.06)}, {"Y0": 0.0})
    heights = [1e3 * (e.state[0] + 0.0401) for e in (nested, flat, bulged)]
    assert heights == pytest.approx([50.45, 60.07, 81.45], abs=0.006)
    assert (nested.stable, flat.stable, bulged.stable) == (True, False, True)
    assert nested.natural_frequencies[0] == pytest.approx(5.61, abs=0.006)
    assert bulged.natural_frequencies[0] == pytest.approx(4.88, abs=0.006)
    x = np.linspace(0.0504, 0.0815, 2000) - 0.0401  # between the wells, at rest: m dV/dt = -F
    states, slopes = np.stack([x, np.zeros_like(x)]), np.empty((2, len(x)))
    p = model.values({"Y0": 0.0})
    model.kernels().rhs_many(np.zeros_like(x), states, np.empty((0, len(x))), p, slopes)
    force = -0.135 * slopes[1]
    assert force.max() == pytest.approx(0.24, abs=0.01)
    assert force.min() == pytest.approx(-0.46, abs=0.01)


def test_given_the_shaken_miura_ori_then_it_snaps_between_its_wells_within_the_known_range() -> None:
    run = simulate(load_model("miura_ori"), np.arange(0, 30, 1e-3))
    height = 1e3 * run["height"][10_000:]
    assert run.diverged_at is None
    assert height.min() == pytest.approx(43, abs=1)
    assert height.max() == pytest.approx(93, abs=1)
    measured = load_model("miura_ori_measured")
    dt = 1e-3
    t = np.arange(0, 0.5, dt)
    w = 2 * np.pi * 6.6
    base = Inputs.from_samples(0.0, dt, [0.00617 * np.sin(w * t), 0.00617 * w * np.cos(w * t)])
    again = simulate(measured, t, inputs=base)
    assert np.abs(again["X"] - run["X"][: len(t)]).max() < 2e-6


def van_der_pol(alpha: float, beta: float):
    return lambda t, y: [
        y[1],
        0.1 * (1 - y[0] ** 2) * y[1] - alpha * y[0] - beta * y[0] ** 3 + 0.5 * np.cos(0.79 * t),
    ]


@pytest.mark.parametrize(
    ("case", "alpha", "beta", "end"),
    [("single_well", 0.5, 0.5, 20.0), ("double_well", -0.5, 0.5, 20.0), ("double_hump", 1.5, -0.5, 2.5)],
)
def test_given_a_van_der_pol_duffing_oscillator_then_wells_and_motion_are_right(
    case, alpha, beta, end
) -> None:
    model = load_model(f"van_der_pol_duffing_{case}")
    times = np.linspace(0, end, 201)
    truth = independent(van_der_pol(alpha, beta), times, [1.0, 0.0])
    assert np.abs(simulate(model, times).states - truth).max() < 1e-7
    rest = equilibria(model, {"x": (-3.0, 3.0)}, {"g": 0.0})
    away = np.sqrt(max(-alpha / beta, 0))
    expected = [-away, 0.0, away] if away else [0.0]
    assert [e.state[0] for e in rest] == pytest.approx(expected, abs=1e-9)
    if case == "double_hump":  # over a hump the motion never comes back
        assert simulate(model, np.linspace(0, 50, 101), [1.75, 0.5]).diverged_at is not None


def engine_mount(t, y, m_l=0.02, m_h=0.0019, m_m=0.002, g=9810.0):
    """Written with the Lagrange multiplier's coordinate, units tonne, mm, N, s."""
    x1, v1, x3, v3, x4, v4 = y
    force = 100 * np.sin(4 * np.pi * 5 / np.log(25) * (25 ** (t / 5) - 1))
    q = (3.6 * x3 + 95 * x4) / 98.6
    pull = 375 * (x1 - q)
    return [
        v1,
        (force + m_l * g - 123 * x1 - 2.5 * x1**3 - 5e-3 * v1 - pull) / m_l,
        v3,
        (pull * 3.6 / 98.6 - 9 * x3 - 0.01 * v3) / m_m,
        v4,
        (pull * 95 / 98.6 - 0.8e-4 * v4 - 2e-9 * v4**3) / m_h,
    ]


def test_given_the_engine_mount_then_the_sweep_gives_the_motion_of_an_independent_integration() -> None:
    times = np.linspace(0, 1.5, 301)
    run = simulate(load_model("engine_mount"), times, rtol=1e-10)
    truth = independent(engine_mount, times, np.zeros(6))
    assert np.abs(run.states - truth).max(axis=1) == pytest.approx(np.zeros(6), abs=1e-4)
    assert simulate(load_model("engine_mount"), np.linspace(0, 5, 501)).diverged_at is None


def test_given_the_engine_mount_then_only_consistent_units_show_the_fluid_damping() -> None:
    times = np.linspace(0, 5, 501)
    effect = {}
    for name in ("engine_mount", "engine_mount_printed"):
        model = load_model(name)
        _, s = sensitivities(model, times, wrt=["d_H2"], rtol=1e-8)
        effect[name] = 2e-9 * np.abs(s[0, 0]).max()  # of x1 for a change of d_H2 by its own size
    assert effect["engine_mount"] > 0.1
    assert effect["engine_mount_printed"] < 1e-6


def test_given_the_magnetorheological_damper_then_hysteresis_saturates_at_the_known_level() -> None:
    run = simulate(load_model("magnetorheological_damper"), np.linspace(0, 1, 2001))
    limit = np.sqrt(120 / (100 + 100))  # (A/(beta + gamma))^(1/n)
    assert np.abs(run["z"]).max() == pytest.approx(limit, rel=1e-4)
    assert np.abs(run["force"]).max() == pytest.approx(1860.3, rel=1e-3)
    loop = np.trapezoid(run["force"][1000:1801], 1.5 * np.sin(5 * np.pi * run.times[1000:1801]))
    assert loop > 4 * 1.5 * 880 * limit * 0.9  # dissipates: at least nearly the rigid-plastic loop


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_given_the_damper_when_its_hysteresis_is_rescaled_then_the_force_stays(scale) -> None:
    model = load_model("magnetorheological_damper")
    times = np.linspace(0, 1, 501)
    other = {"alpha": 880 * scale, "A": 120 / scale, "beta": 100 * scale, "gamma": 100 * scale}
    rescaled, plain = (simulate(model, times, values=v)["force"] for v in (other, None))
    assert np.abs(rescaled - plain).max() < 1e-6 * np.abs(plain).max()


@pytest.mark.parametrize("name", ["duffing_damping", "ship_roll"])
def test_given_time_varying_damping_then_the_motion_is_the_sine_of_the_example(name: str) -> None:
    times = np.linspace(0, 1, 201)
    run = simulate(load_model(name), times)
    assert np.abs(run["x"] - np.sin(times)).max() < 1e-8
    assert np.abs(run["v"] - np.cos(times)).max() < 1e-7


def test_given_the_bistable_beam_then_its_wells_and_frequency_follow_from_the_coefficients() -> None:
    k1, k3, k5 = -2500.0, 1.3e8, 1.6e12
    well = np.sqrt((-k3 + np.sqrt(k3**2 - 4 * k5 * k1)) / (2 * k5))
    frequency = np.sqrt(k1 + 3 * k3 * well**2 + 5 * k5 * well**4) / (2 * np.pi)
    left, middle, right = equilibria(load_model("bistable_beam"), {"x": (-0.01, 0.01)}, inputs=[0.0])
    assert [left.state[0], middle.state[0], right.state[0]] == pytest.approx([-well, 0.0, well], abs=1e-9)
    assert right.natural_frequencies[0] == pytest.approx(frequency, rel=1e-6)
    assert not middle.stable


def test_given_a_constant_force_then_the_positioning_system_reaches_its_steady_velocity() -> None:
    times = np.linspace(0, 8, 801)
    run = simulate(load_model("emps"), times, inputs=Inputs.from_samples(0.0, 0.01, [np.full(801, 60.0)]))
    assert run["v"][-1] == pytest.approx((60 + 3.17 - 20.39) / 203.5, rel=1e-5)
    stuck = simulate(load_model("emps"), times, inputs=Inputs.from_samples(0.0, 0.01, [np.full(801, 10.0)]))
    assert abs(stuck["v"][-1]) < 1e-3  # below the Coulomb force it only creeps


def test_given_a_pendulum_then_its_period_grows_with_amplitude_as_the_elliptic_integral_says() -> None:
    from scipy.special import ellipk

    model = load_model("pendulum").with_values({"c": 0.0, "mu": 0.0})
    for amplitude in (0.1, 2.0):
        period = 4 * ellipk(np.sin(amplitude / 2) ** 2) / np.sqrt(64.1)
        orbit = periodic_orbit(model, [amplitude, 0.0], period)
        assert orbit.gap < 1e-6


@needs_data
def test_given_the_silverbox_drive_then_the_measured_response_comes_out() -> None:
    data = np.genfromtxt(DATA / "silverbox" / "SNLS80mV.csv", delimiter=",", skip_header=1, max_rows=40_500)
    rate = 1e7 / 2**14
    u, y = (data[:, i] - data[:200, i].mean() for i in (0, 1))
    times = np.arange(len(u)) / rate
    inputs = Inputs.from_samples(0.0, 1 / rate, [u])
    run = simulate(load_model("silverbox"), times, inputs=inputs, rtol=1e-7, atol=1e-9)
    assert (
        np.sqrt(np.mean((run["y"] - y) ** 2)) < 0.6e-3
    )  # V; the response is 53 mV rms, the best fit 0.39 mV


@needs_data
def test_given_the_measured_force_then_the_positioning_system_follows_its_record() -> None:
    from scipy.io import loadmat

    data = loadmat(DATA / "emps" / "nlid_emps_sim_data_training.mat")
    t, q = data["t"].ravel(), data["qm"].ravel()
    force = data["gtau"].item() * data["vir"].ravel()
    inputs = Inputs.from_samples(0.0, t[1] - t[0], [force])
    run = simulate(load_model("emps"), t - t[0], [q[0], 0.0], inputs=inputs, rtol=1e-7, atol=1e-9)
    assert np.abs(run["q"] - q).max() < 0.02  # m, open loop over 25 s; the travel is 0.25 m
    assert np.corrcoef(run["q"], q)[0, 1] > 0.995


# how long the motion stays smooth enough for differences, and the Runge-Kutta steps it needs
@pytest.mark.parametrize(
    ("name", "end", "steps"),
    [
        ("duffing", 3.0, 20),
        ("coulomb", 2.0, 200),
        ("lorenz", 0.5, 20),
        ("chua", 0.1, 1000),  # the corners of the diode cost order
        ("miura_ori", 0.1, 20),
        ("engine_mount", 0.05, 40),
        ("magnetorheological_damper", 0.05, 400),
        ("van_der_pol_duffing_double_well", 5.0, 20),
    ],
)
def test_given_any_model_when_its_sensitivities_are_taken_then_both_integrators_give_the_differences(
    name, end, steps
) -> None:
    model = load_model(name)
    times = np.linspace(0, end, 11)
    _, s = sensitivities(model, times, wrt_initial=model.states[:1], rtol=1e-10)
    _, fixed = sensitivities(model, times, wrt_initial=model.states[:1], method="rk4", substeps=steps)
    scale = np.maximum(np.abs(s).max(axis=(0, 2), keepdims=True), 1e-300)
    known = scale[0, :, 0] > 1e-9 * np.array([*(abs(1 / model.parameters[n].value) for n in model.free), 1.0])
    assert np.abs((s - fixed) / scale)[:, known].max() < 1e-4
    for column, parameter in enumerate(model.free):
        if known[column]:
            value = model.parameters[parameter].value
            h = 1e-4 * abs(value)
            up, down = (
                simulate(model, times, values={parameter: value + d}, rtol=1e-12).states for d in (h, -h)
            )
            assert np.abs(s[:, column] - (up - down) / (2 * h)).max() < 2e-4 * scale[0, column, 0]
