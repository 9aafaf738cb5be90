"""Two sets of numbers with which a model does the very same, in closed form, and models with one set."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.record import Record
from analysis.estimate.finish.angles import in_the_guess_turn
from analysis.estimate.finish.fit import fit
from analysis.estimate.methods import identify
from analysis.estimate.start import Start
from analysis.experiment import Experiment
from analysis.experiment.drive_time import DRIVE_TIME
from analysis.model import Model

J, R, B, K, L = 0.02, 1.0, 1.2, 0.5, 0.05


def motor(bounds: dict[str, dict[str, float]] | None = None) -> Model:
    """A motor with a speed sensor: R/L + b/J and R b + K^2 are seen, so R and b can be exchanged."""
    guesses = {"R": {"guess": 1.6, "lower": 0.0}, "b": {"guess": 0.8, "lower": 0.0}}
    for name, more in (bounds or {}).items():
        guesses[name] |= more
    return Model.from_equations(
        {"i": f"(u - R*i - {K}*w)/{L}", "w": f"({K}*i - b*w)/{J}"},
        guesses,
        inputs={"u": "measured"},
        outputs={"w": "w"},
    )


def motor_record(seed: int) -> Record:
    rng = np.random.default_rng(seed)
    t = np.arange(800) * 0.004
    tones, phases = rng.uniform(0.5, 20.0, 12), rng.uniform(0, 2 * np.pi, 12)

    def voltage(at: np.ndarray | float) -> np.ndarray:
        return np.asarray(np.cos(2 * np.pi * np.multiply.outer(at, tones) + phases).sum(axis=-1))

    def slope(at: float, y: np.ndarray) -> list[float]:
        return [(float(voltage(at)) - R * y[0] - K * y[1]) / L, (K * y[0] - B * y[1]) / J]

    solved = solve_ivp(slope, (0, t[-1]), [0.2, -0.1], t_eval=t, rtol=1e-9, atol=1e-12)
    w = solved.y[1]
    return Record.from_arrays(
        250.0, {"w": w + 0.005 * w.std() * rng.standard_normal(len(t)), "u": voltage(t)}
    )


# R'/L + b'/J and R' b' as R/L + b/J and R b: the other root is R' = b L/J, b' = R J/L.
TWIN = {"R": B * L / J, "b": R * J / L}


def test_given_a_motor_seen_by_its_speed_then_the_other_numbers_that_follow_it_are_named() -> None:
    result = identify(motor(), motor_record(1), "shooting")
    assert result.verdict == "cannot tell"
    found = {name: result.parameters[name].value for name in ("R", "b")}
    truth = {"R": R, "b": B}
    branch = min((truth, TWIN), key=lambda v: abs(v["R"] - found["R"]))
    other = TWIN if branch is truth else truth
    assert found["R"] == pytest.approx(branch["R"], rel=0.03)
    assert all(np.isinf(result.parameters[name].stderr) for name in ("R", "b"))
    said = next(words for words in result.reasons if "follows the record as well" in words)
    named = float(said.split("R = ")[1].split()[0])
    assert named == pytest.approx(other["R"], rel=0.03)


def test_given_bounds_that_leave_out_one_of_them_then_the_numbers_are_told() -> None:
    result = identify(motor({"R": {"upper": 2.0}, "b": {"lower": 0.7}}), motor_record(1), "shooting")
    assert result.verdict == "fits", result.reasons
    for name, truth in (("R", R), ("b", B)):
        assert abs(result.parameters[name].value - truth) < 4 * result.parameters[name].stderr


def test_given_a_reaction_seen_by_what_comes_between_then_its_rates_can_be_exchanged() -> None:
    """A -> B -> C: with k1 and k2 exchanged and A(0) k1/k2 times as large B is the same, in closed form."""
    k1, k2 = 0.6, 0.2
    t = np.arange(300) * 0.1
    b = k1 / (k1 - k2) * (np.exp(-k2 * t) - np.exp(-k1 * t))
    b += 0.02 * b.std() * np.random.default_rng(1).standard_normal(len(t))
    model = Model.from_equations(
        {"A": "-k1*A", "B": "k1*A - k2*B"},
        {"k1": {"guess": 0.15, "lower": 0.0}, "k2": {"guess": 0.5, "lower": 0.0}},
        outputs={"B": "B"},
    )
    result = identify(model, Record.from_arrays(10.0, {"B": b}))
    assert result.verdict == "cannot tell", result.reasons
    assert any("follows the record as well" in words for words in result.reasons)


def chain() -> Model:
    """Two masses, the sensor on the driven one, its own damping known: nothing can be exchanged."""
    return Model.from_equations(
        {"x": "v", "y": "w", "v": "f - 0.1*v - k*x - q*(x - y)", "w": "-0.2*w - q*(y - x)"},
        {"k": {"guess": 5.0, "lower": 0.0}, "q": {"guess": 2.0, "lower": 0.0}},
        inputs={"f": "measured"},
        outputs={"x": "x"},
    )


@pytest.mark.parametrize("seed", range(3))
def test_given_a_driven_mass_with_another_behind_it_then_its_numbers_are_told(seed: int) -> None:
    rng = np.random.default_rng(seed)
    t = np.arange(600) * 0.05
    tones, phases = rng.uniform(0.05, 0.8, 15), rng.uniform(0, 2 * np.pi, 15)

    def force(at: np.ndarray | float) -> np.ndarray:
        return np.asarray(np.cos(2 * np.pi * np.multiply.outer(at, tones) + phases).sum(axis=-1))

    def slope(at: float, s: np.ndarray) -> list[float]:
        x, y, v, w = s
        return [v, w, float(force(at)) - 0.1 * v - 6 * x - 3 * (x - y), -0.2 * w - 3 * (y - x)]

    x = solve_ivp(slope, (0, t[-1]), [0.3, 0, 0, 0], t_eval=t, rtol=1e-9, atol=1e-12).y[0]
    record = Record.from_arrays(20.0, {"x": x + 0.01 * x.std() * rng.standard_normal(len(t)), "f": force(t)})
    result = identify(chain(), record, "shooting")
    assert result.verdict == "fits", result.reasons
    for name, truth in (("k", 6.0), ("q", 3.0)):
        assert abs(result.parameters[name].value - truth) < 4 * result.parameters[name].stderr


def test_given_a_guess_far_off_then_a_sentence_says_so_and_near_it_none_does() -> None:
    t = np.arange(500) * 0.05
    rng = np.random.default_rng(0)
    x = np.exp(-0.1 * t) * np.cos(2.0 * t) + 0.01 * rng.standard_normal(len(t))
    record = Record.from_arrays(20.0, {"x": x})
    for guess, said in ((3.0, False), (1500.0, True)):
        model = Model.from_equations(
            {"x": "v", "v": "-c*v - k*x"}, {"c": {"guess": 0.3}, "k": {"guess": guess}}, outputs={"x": "x"}
        )
        result = identify(model, record, "weak")
        assert result.parameters["k"].value == pytest.approx(4.01, rel=0.01)
        assert any("its guess" in words for words in result.reasons) == said


@pytest.mark.parametrize("phase", [0.5, -0.6])
def test_given_a_phase_then_half_or_a_whole_turn_is_no_other_number(phase: float) -> None:
    """x'' = -0.2 x' - 4 x + cos(2.5 t + 2.5) in closed form: the steady part and a decay to x(0) = 1.

    From a phase nearly half a turn away the amplitude ends below zero; it is given with its guess's sign.
    """
    t = np.arange(600) * 0.05
    steady = np.exp(2.5j) / (4 - 2.5**2 + 0.2 * 2.5j)
    root = -0.1 + 1j * np.sqrt(4 - 0.1**2)
    x = (steady * np.exp(2.5j * t)).real + (1 - steady.real) * np.exp(root * t).real
    x += 0.01 * np.random.default_rng(0).standard_normal(len(t))
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x + a*cos(2.5*t + p)"},
        {"c": {"guess": 0.3}, "k": {"guess": 5.0}, "a": {"guess": 1.5}, "p": {"guess": phase}},
        outputs={"x": "x"},
    )
    result = identify(model, Record.from_arrays(20.0, {"x": x}))
    assert result.verdict == "fits"
    for name, truth in (("a", 1.0), ("p", 2.5)):
        away = result.parameters[name].value - truth
        away -= 2 * np.pi * np.round(away / (2 * np.pi)) if name == "p" else 0.0
        assert abs(away) < 4 * result.parameters[name].stderr


def test_given_an_unknown_time_of_the_drive_then_the_guess_tells_the_sign_of_its_amplitude() -> None:
    """x'' = -0.2 x' - 4 x + 1.5 cos(2.5 t), begun at an unknown time: that and the sign are one choice.

    The search is begun at the other of the two; both follow the record alike.
    """
    t = np.arange(600) * 0.05
    steady = 1.5 / (4 - 2.5**2 + 0.2 * 2.5j)
    root = -0.1 + 1j * np.sqrt(4 - 0.1**2)
    x = (steady * np.exp(2.5j * (t + 0.3))).real + 0.8 * np.exp(root * t).real
    x += 0.01 * np.random.default_rng(0).standard_normal(len(t))
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x + a*cos(2.5*t)"},
        {"c": {"guess": 0.3}, "k": {"guess": 5.0}, "a": {"guess": 1.0}},
        outputs={"x": "x"},
    )
    experiment = Experiment(model, Record.from_arrays(20.0, {"x": x}))
    values = experiment.guesses()
    names = list(experiment.model.parameters)
    values[0, names.index("a")] = -1.4
    values[0, names.index(DRIVE_TIME)] = 0.2 - np.pi / 2.5
    wrong = fit(experiment, Start("shooting", values, list(experiment.start_states()), engine="shooting"))
    assert wrong.estimate[wrong.names.index("a")] == pytest.approx(-1.5, rel=0.01)
    found = in_the_guess_turn(wrong)
    assert found.chi2 == pytest.approx(wrong.chi2, rel=1e-6)
    assert found.estimate[found.names.index("a")] == pytest.approx(1.5, rel=0.01)
    assert found.estimate[found.names.index(DRIVE_TIME)] == pytest.approx(0.3, abs=0.02)
