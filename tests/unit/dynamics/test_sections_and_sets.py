"""Sections, many motions at once, bifurcation diagrams and basins."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import DataError, ModelError
from analysis.base.progress import Progress
from analysis.dynamics.basin import basins
from analysis.dynamics.bifurcation import bifurcation, bifurcation_of_section, classify
from analysis.dynamics.section import poincare, stroboscopic
from analysis.dynamics.shooting import periodic_orbit
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.sets import simulate_sets
from analysis.simulation.simulate import simulate
from drivers.library import load_model

DUFFING = load_model("duffing")
T = 2 * np.pi / 1.33
FILTER = Model.from_equations({"x": "(u - x)/tau"}, {"tau": 0.5}, inputs={"u": "measured"})


def test_given_many_parameters_when_simulated_at_once_then_each_is_its_own_simulation() -> None:
    times = np.linspace(0, 3 * T, 301)
    forces = np.linspace(1, 30, 21)  # not a multiple of the tile
    together = simulate_sets(
        DUFFING, times, {"x": 0.5, "v": np.linspace(-1, 1, 21)}, {"a": forces}, substeps=4
    )
    assert together.shape == (2, 301, 21)
    for lane in (0, 7, 20):
        start = [0.5, np.linspace(-1, 1, 21)[lane]]
        alone = simulate(DUFFING, times, start, {"a": forces[lane]}, method="rk4", substeps=4)
        assert np.abs(together[:, :, lane] - alone.states).max() < 1e-9


@pytest.mark.parametrize("name", ["chua", "miura_ori", "coulomb", "magnetorheological_damper"])
def test_given_any_kind_of_model_when_simulated_in_sets_then_it_is_the_plain_simulation(name: str) -> None:
    model = load_model(name)
    times = np.linspace(0, 0.2, 41)
    together = simulate_sets(model, times, None, np.repeat(model.values()[:, None], 3, axis=1), substeps=20)
    alone = simulate(model, times, method="rk4", substeps=20).states
    assert np.allclose(together[:, :, 1], alone, rtol=1e-9, atol=1e-12)


def test_given_measured_inputs_when_simulated_in_sets_then_steps_are_respected() -> None:
    samples = np.where(np.arange(41) < 17, 0.0, 2.0)
    inputs = Inputs.from_samples(0.0, 0.1, [samples])
    times = np.linspace(0, 4, 41)
    together = simulate_sets(FILTER, times, [[1.0, 2.0]], {"tau": np.array([0.5, 0.8])}, inputs, substeps=8)
    for lane, (start, tau) in enumerate(((1.0, 0.5), (2.0, 0.8))):
        alone = simulate(FILTER, times, [start], {"tau": tau}, inputs)
        assert np.abs(together[:, :, lane] - alone.states).max() < 1e-7


def test_given_a_motion_that_escapes_when_in_a_set_then_the_others_go_on() -> None:
    blow_up = Model.from_equations({"x": "x**2"})
    states = simulate_sets(blow_up, np.linspace(0, 3, 31), [[1.0, -1.0]], substeps=10)
    assert not np.isfinite(states[0, -1, 0])
    assert states[0, -1, 1] == pytest.approx(-1 / (1 + 3), rel=1e-6)


def test_given_wrong_shapes_when_sets_are_made_then_one_sentence_says_so() -> None:
    with pytest.raises(DataError, match="different lengths"):
        simulate_sets(DUFFING, [0.0, 1.0], None, {"a": [1.0, 2.0], "c": [1.0, 2.0, 3.0]})
    with pytest.raises(DataError, match="do not go with"):
        simulate_sets(DUFFING, [0.0, 1.0], np.ones((2, 3)), {"a": [1.0, 2.0]})
    with pytest.raises(ModelError, match="no parameter"):
        simulate_sets(DUFFING, [0.0, 1.0], None, {"q": 1.0})


def test_given_an_unstable_orbit_when_cut_stroboscopically_then_it_returns_to_its_point() -> None:
    orbit = periodic_orbit(DUFFING, [4.480826, 1.207851], T)
    section = stroboscopic(DUFFING, T, 4, initial=orbit.state, rtol=1e-12)
    assert np.abs(section.states - orbit.state[:, None]).max() < 1e-5
    later = stroboscopic(DUFFING, T, 2, transient=3, phase=0.25, initial=orbit.state, rtol=1e-12)
    direct = simulate(DUFFING, [0.0, 3.25 * T, 4.25 * T], orbit.state, rtol=1e-12).states[:, 1:]
    assert np.abs(later.states - direct).max() < 1e-6


@pytest.mark.parametrize("direction", [1, -1, 0])
def test_given_the_lorenz_system_when_cut_then_crossings_are_those_of_an_independent_event_search(
    direction,
) -> None:
    def rhs(t, y):
        return [16 * (y[1] - y[0]), 45.92 * y[0] - y[1] - y[0] * y[2], -4 * y[2] + y[0] * y[1]]

    def plane(t, y):
        return y[2] - 44.92

    plane.direction = direction
    truth = solve_ivp(rhs, (0, 6), [10.0, 1.0, 30.0], method="DOP853", rtol=1e-12, atol=1e-12, events=plane)
    section = poincare(load_model("lorenz"), "z", 200, 44.92, direction, longest=6.0, rtol=1e-12)
    assert len(section) == len(truth.t_events[0])
    assert np.abs(section.times - truth.t_events[0]).max() < 1e-7
    assert np.abs(section.states - truth.y_events[0].T).max() < 1e-5
    assert np.abs(section.states[2] - 44.92).max() < 1e-11


def test_given_a_sum_of_states_when_cut_then_points_lie_on_the_plane() -> None:
    section = poincare(load_model("roessler"), {"x": 1.0, "y": -2.0}, 50, 0.5, transient=50.0)
    assert len(section) == 50
    assert section.times[0] > 50
    assert np.abs(section.states[0] - 2 * section.states[1] - 0.5).max() < 1e-11


def test_given_too_little_time_when_cut_then_fewer_points_come_back() -> None:
    assert 0 < len(poincare(load_model("roessler"), "y", 50, longest=30.0)) < 10


@pytest.mark.parametrize("force", [5.0, 17.0, 21.0, 27.0])
def test_given_a_force_when_its_diagram_is_made_then_points_agree_with_accurate_integration(
    force: float,
) -> None:
    diagram = bifurcation(DUFFING, "a", [force], T, transient=0, keep=12, steps=400)
    truth = simulate(DUFFING, np.arange(13) * T, None, {"a": force}, rtol=1e-11)
    assert np.abs(diagram.points[:, :6, 0] - truth.states[:, 1:7]).max() < 1e-3


def test_given_the_duffing_diagram_then_periods_agree_with_the_orbits_that_newton_finds() -> None:
    forces = np.linspace(5, 30, 26)
    diagram = bifurcation(DUFFING, "a", forces, T, transient=150, keep=64, steps=150)
    assert diagram.periods[list(forces).index(27.0)] == 0  # the published chaotic case
    checked = 0
    for index, period in enumerate(diagram.periods):
        if period > 0:
            start = diagram.points[:, -1, index]
            orbit = periodic_orbit(DUFFING, start, period * T, {"a": forces[index]}, segments=int(period))
            assert orbit.converged
            assert np.abs(orbit.state - start).max() < 0.02
            assert np.abs(orbit.multipliers[0]) < 1
            checked += 1
    assert checked >= 8
    assert len(set(diagram.periods[diagram.periods > 0])) >= 2


def test_given_a_resonance_when_swept_up_and_down_then_it_shows_hysteresis() -> None:
    model = Model.from_equations(
        {"x": "v", "v": "-0.1*v - x - x**3 + 0.5*cos(w*t)"}, {"w": 1.0}, initial={"x": 0.0, "v": 0.0}
    )
    w = np.linspace(0.9, 2.6, 35)
    up, down = (
        bifurcation(model, "w", w, 2 * np.pi / w, transient=120, keep=8, direction=d, steps=100)
        for d in ("up", "down")
    )
    size = [np.abs(d.points[:, -1]).max(axis=0) for d in (up, down)]
    different = np.abs(size[0] - size[1]) > 0.3
    assert 3 <= different.sum() <= 25
    assert not different[0]
    assert not different[-1]
    assert np.all(up.periods == 1)


def test_given_the_roessler_system_then_its_period_doubling_comes_in_the_known_order() -> None:
    diagram = bifurcation_of_section(
        load_model("roessler"), "c", [2.5, 3.5, 4.0, 5.7], "y", transient=400.0, keep=64, longest=600.0
    )
    assert diagram.periods.tolist() == [1, 2, 4, 0]


def test_given_a_diverging_range_when_classified_then_it_is_marked() -> None:
    diagram = bifurcation(load_model("two_well_beam"), "a", [0.1, 9.0], 2 * np.pi, transient=400, keep=8)
    assert diagram.periods[1] == -1
    assert diagram.periods[0] == 1


def test_given_sequences_when_classified_then_the_smallest_period_counts() -> None:
    base = np.array([0.0, 1.0, 3.0, 1.0])
    points = np.stack([np.tile(base, 8), np.zeros(32), np.random.default_rng(1).normal(size=32)], axis=1)[
        None
    ]
    assert classify(points).tolist() == [4, 1, 0]


def test_given_two_wells_when_basins_are_drawn_then_each_start_goes_where_its_simulation_goes() -> None:
    model = load_model("two_well_beam").with_values({"c": 0.2, "a": 0.05})
    axis_x, axis_v = np.linspace(-2.0, 2.0, 24), np.linspace(-1.5, 1.5, 18)
    result = basins(model, {"x": axis_x, "v": axis_v}, 2 * np.pi, transient=40, steps=60)
    assert result.labels.shape == (18, 24)
    assert len(result.attractors) == 2
    assert result.shares.sum() == pytest.approx(1.0)
    wells = [np.sign(a[0].mean()) for a in result.attractors]
    assert set(wells) == {-1.0, 1.0}
    for row, column in ((0, 0), (9, 12), (17, 23), (5, 20), (12, 3)):
        run = simulate(model, [0.0, 80 * np.pi], [axis_x[column], axis_v[row]])
        assert wells[result.labels[row, column]] == np.sign(run["x"][-1])


def test_given_escapes_when_basins_are_drawn_then_they_are_marked() -> None:
    model = load_model("two_well_beam").with_values({"c": 0.2, "a": 0.0})
    result = basins(
        model, {"x": np.linspace(-1, 8, 10), "v": np.array([0.0])}, 2 * np.pi, transient=30, steps=200
    )
    assert result.labels[0, -1] == -1
    assert result.labels[0, 1] >= 0


def test_given_a_watcher_when_a_diagram_is_made_then_progress_reaches_the_end() -> None:
    seen: list[float] = []
    bifurcation(
        DUFFING,
        "a",
        [5.0],
        T,
        transient=20,
        keep=4,
        progress=Progress(on_step=lambda s: seen.append(s.fraction)),
    )
    assert seen[-1] == 1.0
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    "arguments",
    [
        {"values": [np.nan], "period": T},
        {"values": [1.0], "period": -T},
        {"values": [1.0], "period": T, "direction": "sideways"},
        {"values": [1.0], "period": T, "keep": 1},
    ],
)
def test_given_wrong_arguments_when_a_diagram_is_made_then_one_sentence_says_so(arguments) -> None:
    with pytest.raises(DataError):
        bifurcation(DUFFING, "a", **arguments)
