"""Numbers inside terms, states that nothing shows, and other sensors: truth integrated by SciPy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from analysis.base.errors import DataError, ModelError, ShakedownError
from analysis.base.record import Record
from analysis.estimate.discovery.library import Shape, oscillator, system
from analysis.estimate.discovery.scene import Scene
from analysis.estimate.discovery.selection import Selection, select_terms
from analysis.estimate.discovery.separation import advice
from analysis.experiment import Experiment
from app.cli import main
from drivers.formats import write

RATE, SAMPLES = 40.0, 1200
LINES = 2 * np.pi * np.arange(0.1, 1.2, 0.07)
NOISE = 0.01
Law = Callable[[np.ndarray], list[float]]  # rates of the states without the drive, which acts on the second


def moved(rng: np.random.Generator, law: Law, states: int = 2, late: float = 0.0, x: float = 0.1) -> Record:
    """x, v, a under a multisine f that acts ``late`` seconds after it was recorded, from x and rest."""
    phases = rng.uniform(0, 2 * np.pi, len(LINES))

    def force(t: float) -> float:
        return 1.5 * float(np.cos(LINES * t + phases).sum())

    def rate(t: float, z: np.ndarray) -> list[float]:
        found = law(z)
        found[1] += force(t - late)
        return found

    times = np.arange(SAMPLES) / RATE
    first = [x, *[0.0] * (states - 1)]
    z = solve_ivp(rate, (0, times[-1]), first, "RK45", times, rtol=1e-7, atol=1e-9, max_step=0.05).y
    rows = {"x": z[0], "v": z[1], "a": np.array([rate(t, s)[1] for t, s in zip(times, z.T, strict=True)])}
    noisy = {n: row + NOISE * row.std() * rng.normal(size=SAMPLES) for n, row in rows.items()}
    return Record.from_arrays(RATE, {**noisy, "f": np.array([force(t) for t in times])})


def hardening(z: np.ndarray) -> list[float]:
    return [z[1], -0.5 * z[1] - 5 * z[0] - 6 * z[0] ** 3]


def seen(record: Record, *names: str) -> Record:
    return Record.from_arrays(RATE, {n: record[n] for n in (*names, "f")})


def terms_of(found: Selection) -> set[str]:
    return {found.library.candidates[n].term for n in found.kept}


CUBIC = ["1", "x", "x^2", "x^3", "v"]


def test_given_a_contact_with_an_unknown_gap_then_the_gap_is_found_with_its_term(
    rng: np.random.Generator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = moved(rng, lambda z: [z[1], -0.5 * z[1] - 5 * z[0] - 30 * max(z[0] - 0.3, 0.0)])
    write(seen(record, "x", "v"), tmp_path / "stop.csv")
    command = ["select", str(tmp_path / "stop.csv"), "--drive", "f", "--terms", "1,x,x^3,v,max(x-g,0)"]
    assert main([*command, "--shape", "g", "--json", "-"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer["kept"].values()) == {"x", "v", "max(x-g,0)"}
    gap = answer["parameters"]["g"]
    assert abs(gap["value"] - 0.3) < 4 * gap["stderr"] < 0.01
    assert main(command) == 1
    assert "name it as a shape" in capsys.readouterr().err
    assert main([*command, "--shape", "g=1"]) == 1
    assert "NAME=LOW..HIGH" in capsys.readouterr().err


def test_given_the_state_of_a_hysteresis_that_nobody_measures_then_it_is_found_with_its_numbers(
    rng: np.random.Generator,
) -> None:
    def law(z: np.ndarray) -> list[float]:
        x, v, h = z
        return [v, -0.3 * v - 5 * x - 8 * h, v - 3 * abs(v) * h]

    library = system(
        {"x": "v", "v": "f - ?", "z": "v - b*abs(v)*z"},
        ["1", "x", "x^3", "v", "z"],
        inputs={"f": "measured"},
        shapes=["b"],
    )
    found = select_terms(library, seen(moved(rng, law, 3), "x", "v"))
    assert terms_of(found) == {"x", "v", "z"}
    assert found.result.verdict == "fits"
    assert found.result.parameters["b"].covers(3.0)
    assert found.result.parameters["b"].stderr < 0.1


def test_given_bouc_and_wens_law_and_one_sensor_then_its_numbers_lie_on_the_side_that_leaves_less(
    rng: np.random.Generator,
) -> None:
    """Below zero the state of the hysteresis grows without bound, and its term turns more."""

    def law(z: np.ndarray) -> list[float]:
        x, v, h = z
        return [v, -0.3 * v - 5 * x - 8 * h, v - 3 * abs(v) * h - v * abs(h)]

    library = system(
        {"x": "v", "v": "f - ?", "z": "v - b*abs(v)*z - g*v*abs(z)"},
        ["1", "x", "v", "z"],
        inputs={"f": "measured"},
        shapes=["b", "g"],
    )
    record = seen(moved(rng, law, 3, x=0.0), "x")
    scene = Scene(Experiment(library.model(), record), library)
    assert scene.grids["b"].min() > 0
    found = select_terms(library, record)
    assert terms_of(found) == {"x", "v", "z"}
    assert found.result.verdict == "fits"
    values = found.result.parameters
    assert abs(values["b"].value - 3) < 4 * values["b"].stderr < 1
    assert abs(values["g"].value - 1) < 4 * values["g"].stderr < 1.5


def test_given_one_sensor_of_any_kind_then_the_same_terms_are_found(rng: np.random.Generator) -> None:
    record = moved(rng, hardening)
    library = system({"x": "v", "v": "f - ?"}, CUBIC, inputs={"f": "measured"}, rates={"a": "v"})
    for sensor in ("v", "a"):
        found = select_terms(library, seen(record, sensor))
        assert terms_of(found) == {"x", "x**3", "v"}
        assert found.result.verdict == "fits"
        assert abs(found.result.parameters["v_x3"].value - 6) < 4 * found.result.parameters["v_x3"].stderr < 1


def test_given_a_drive_that_acts_late_then_the_delay_brings_no_terms_with_it(
    rng: np.random.Generator,
) -> None:
    record = moved(rng, hardening, late=0.07)
    library = system({"x": "v", "v": "f - ?"}, CUBIC, inputs={"f": "measured"}, rates={"a": "v"})
    found = select_terms(library, seen(record, "x", "v"))
    assert terms_of(found) == {"x", "x**3", "v"}
    assert found.result.parameters["delay x"].value == pytest.approx(0.07, abs=0.001)


def test_given_two_laws_then_the_motion_that_tells_them_apart_is_named(rng: np.random.Generator) -> None:
    library = system({"x": "v", "v": "f - ?"}, CUBIC, inputs={"f": "measured"}, rates={"a": "v"})
    experiment = Experiment(library.model(), seen(moved(rng, hardening), "x", "v"))
    scene, whole = Scene(experiment, library), experiment.model
    plain = whole.with_values({"v_x": 5.0, "v_v": 0.5})
    cubic = whole.with_values({"v_x": 5.0, "v_v": 0.5, "v_x3": 0.1})
    damped = whole.with_values({"v_x": 5.0, "v_v": 0.51})
    assert "three times as large" in advice(scene, plain, cubic, 4.0, 8.0)
    assert "about 4.5 times this length" in advice(scene, plain, damped, 4.0, 8.0)


def test_given_velocity_alone_then_laws_about_another_zero_are_told_to_be_one(
    rng: np.random.Generator,
) -> None:
    """5x + 3x^2 + 6x^3 about x = -1/6 is -7/9 + 4.5x + 6x^3: no velocity tells them apart."""
    library, record = oscillator(CUBIC, drive="f", keep=()), moved(rng, hardening)
    models = [
        {"k1": 5.0, "k2": 3.0, "k3": 6.0, "c1": 0.5},
        {"k0": -7 / 9, "k1": 4.5, "k3": 6.0, "c1": 0.5},
    ]
    said = {}
    for sensors in (("v",), ("x", "v")):
        experiment = Experiment(library.model(), seen(record, *sensors))
        whole = experiment.model
        one, other = (whole.with_values(values) for values in models)
        said[sensors] = advice(Scene(experiment, library), one, other, 0.1, 8.0)
    assert "another zero of x" in said["v",] and "a recording of x would tell" in said["v",]
    assert "another zero" not in said["x", "v"]


def test_given_shapes_and_channels_that_make_no_sense_then_one_sentence_says_so(
    rng: np.random.Generator,
) -> None:
    record = seen(moved(rng, hardening), "x", "v")
    with pytest.raises(ModelError, match="only scales its term"):
        select_terms(oscillator(["x", "s*x^3"], "f", shapes=["s"]), record)
    with pytest.raises(ModelError, match="in no term"):
        oscillator(["x"], "f", shapes=["g"])
    with pytest.raises(ModelError, match="means something else"):
        oscillator(["x", "max(x-v,0)"], "f", shapes=["v"])
    with pytest.raises(ModelError, match="is empty"):
        Shape(1.0, 1.0)
    with pytest.raises(DataError, match="f is a copy of x"):
        select_terms(oscillator(["x", "s*x^3"], "f", shapes=["s"]), record.with_channels(f=2 * record["x"]))


def test_given_a_force_with_noise_then_it_brings_no_false_terms(rng: np.random.Generator) -> None:
    record = moved(rng, hardening)
    noisy = record["f"] + 0.05 * record["f"].std() * rng.normal(size=SAMPLES)
    library = oscillator(["1", "x", "x^2", "x^3", "x^5", "v", "v^3", "v*abs(v)"], "f", keep=())
    found = select_terms(library, seen(record, "x").with_channels(f=noisy))
    assert terms_of(found) == {"x", "x**3", "v"} and found.result.verdict == "fits"
    assert found.result.extra["input noise"]["f"] == pytest.approx(0.05 * record["f"].std(), rel=0.2)


def test_given_records_of_different_quality_then_they_are_searched_together(rng: np.random.Generator) -> None:
    good, poor = moved(rng, hardening), moved(rng, hardening)
    blurred = poor["x"] + 0.1 * poor["x"].std() * rng.normal(size=SAMPLES)
    library = oscillator(["1", "x", "x^2", "x^3", "v", "v*abs(v)"], "f", keep=())
    found = select_terms(library, [seen(good, "x"), seen(poor, "x").with_channels(x=blurred)])
    assert terms_of(found) == {"x", "x**3", "v"} and found.result.verdict == "fits"


def test_given_twelve_samples_a_period_then_weights_are_those_of_the_fit_and_bars_no_wider() -> None:
    """The flow of a fit is finer than its derivatives: weighed with coarse ones, the kept set had a weight of
    1e-20 and its error bars were 30 times too wide."""
    rate, w = 20_000.0, 2 * np.pi * 1200.0  # micrometres and seconds
    t, rng = np.arange(1500) / rate, np.random.default_rng(3)
    turns = 2 * np.pi * np.outer(t, np.linspace(300, 2500, 40)) + rng.uniform(0, 2 * np.pi, 40)
    drive = CubicSpline(t, 40.0 * w * w * np.cos(turns).mean(axis=1))

    def slope(at: float, z: np.ndarray) -> list[float]:
        return [z[1], float(drive(at)) - w * w * (z[0] + 4e-4 * z[0] ** 3) - 0.04 * w * z[1]]

    x = solve_ivp(slope, (0, t[-1]), [0.0, 0.0], "DOP853", t, rtol=1e-9, atol=1e-9).y[0]
    record = Record.from_arrays(rate, {"x": x + 0.01 * x.std() * rng.normal(size=len(x)), "f": drive(t)})
    found = select_terms(
        oscillator(["1", "x", "x^2", "x^3", "v", "v^3", "x^2*v"], drive="f", keep=()), record
    )
    assert {found.library.candidates[n].term for n in found.kept} == {"x", "x**3", "v"}
    assert found.result.verdict == "fits" and found.weight > 0.5
    assert not [n for n, p in found.probability.items() if p > 0.9 and n not in found.kept]
    for e in (found.result.parameters[n] for n in found.kept):
        assert e.stderr < 1.5 * e.stderr_ideal


def test_given_channels_of_noise_then_no_term_explains_them(rng: np.random.Generator) -> None:
    record = Record.from_arrays(RATE, {"x": rng.normal(size=600), "y": rng.normal(size=600)})
    with pytest.raises(ShakedownError, match="No term of the library explains"):
        select_terms(system({"x": "?", "y": "?"}, ["x", "y", "x*y"]), record)
