"""Terms that the data support: truth from integrations by SciPy and by arithmetic, not by this program."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import DataError, ModelError
from analysis.base.record import Excitation, Record
from analysis.estimate.discovery.library import monomials, named_terms, oscillator, system
from analysis.estimate.discovery.quadratic import Quadratic, neighbours
from analysis.estimate.discovery.selection import Selection, select_terms
from app.cli import main
from app.commands.select import _show, payload
from app.desktop.widgets.termfinder import ranking, rival_words
from drivers.formats import write

LIBRARY = ["1", "x", "x^2", "x^3", "x^4", "x^5", "v", "v*abs(v)", "tanh(20*v)"]
STEP = 2 * np.pi / 1.33 / 60


def lorenz_record(noise: float, rng: np.random.Generator, samples: int = 3000) -> Record:
    def rate(_: float, u: np.ndarray) -> list[float]:
        return [10 * (u[1] - u[0]), u[0] * (28 - u[2]) - u[1], u[0] * u[1] - 8 / 3 * u[2]]

    times = 10 + 0.01 * np.arange(samples)
    states = solve_ivp(rate, (0, times[-1]), [1, 2, 20], "DOP853", times, rtol=1e-9, atol=1e-9).y
    noisy = states + noise * states.std(axis=1, keepdims=True) * rng.normal(size=states.shape)
    return Record.from_arrays(100.0, dict(zip("xyz", noisy, strict=True)))


def duffing_record(noise: float, rng: np.random.Generator, samples: int = 3000, dry: float = 0.0) -> Record:
    """Ueda's oscillator (Yuan 1995): x'' + 0.2 x' + x^3 = 27 cos(1.33 t), with dry friction if asked for."""

    def rate(t: float, u: np.ndarray) -> list[float]:
        return [u[1], 27 * np.cos(1.33 * t) - 0.2 * u[1] - u[0] ** 3 - dry * np.tanh(u[1])]

    times = STEP * np.arange(1200, 1200 + samples)
    states = solve_ivp(rate, (0, times[-1]), [0.1, 0.2], "DOP853", times, rtol=1e-9, atol=1e-9).y
    x, v = (row + noise * row.std() * rng.normal(size=samples) for row in states)
    return Record.from_arrays(
        1 / STEP, {"x": x, "v": v}, excitation=Excitation(1.33 / (2 * np.pi), 27.0, 0.0)
    )


def terms_of(found: Selection) -> set[tuple[str, str]]:
    return {(c.state, c.term) for c in (found.library.candidates[n] for n in found.kept)}


def test_given_lorenz_at_thirty_per_cent_noise_then_exactly_its_seven_terms_are_found(
    rng: np.random.Generator,
) -> None:
    library = system(dict.fromkeys("xyz", "?"), monomials("xyz", 2))
    found = select_terms(library, lorenz_record(0.3, rng))
    assert terms_of(found) == {
        ("x", "x"), ("x", "y"), ("y", "x"), ("y", "y"), ("y", "x*z"), ("z", "z"), ("z", "x*y"),
    }  # fmt: skip
    assert found.result.verdict == "fits"
    values = found.result.parameters
    assert abs(values["y_x"].value - 28) < 4 * values["y_x"].stderr < 4
    assert min(found.probability[n] for n in found.kept) > 0.9
    assert [len(r.terms) for r in found.sizes] == list(range(11))
    assert min(found.sizes, key=lambda r: r.criterion).terms == found.kept


def test_given_no_noise_then_rounding_gives_no_term_a_probability(rng: np.random.Generator) -> None:
    found = select_terms(system(dict.fromkeys("xyz", "?"), monomials("xyz", 2)), lorenz_record(0.0, rng))
    assert found.result.verdict == "fits" and len(found.kept) == 7
    assert all(found.probability[n] > 0.99 for n in found.kept)
    assert max(p for n, p in found.probability.items() if n not in found.kept) < 0.1
    assert all(e.stderr < 1e-4 * abs(e.value) for e in found.result.parameters.values())


def test_given_a_state_that_rests_between_bursts_then_its_constant_is_found(rng: np.random.Generator) -> None:
    """Roessler's z: the weak form does not see the constant, and without it no path follows the bursts."""

    def rate(_: float, u: np.ndarray) -> list[float]:
        return [-u[1] - u[2], u[0] + 0.2 * u[1], 0.2 + u[2] * (u[0] - 5.7)]

    times = 100 + 0.05 * np.arange(4000)
    states = solve_ivp(rate, (0, times[-1]), [1, 2, 0.1], "DOP853", times, rtol=1e-9, atol=1e-9).y
    noisy = states + 0.05 * states.std(axis=1, keepdims=True) * rng.normal(size=states.shape)
    record = Record.from_arrays(20.0, dict(zip("xyz", noisy, strict=True)))
    found = select_terms(system(dict.fromkeys("xyz", "?"), monomials("xyz", 2)), record)
    assert terms_of(found) == {
        ("x", "y"), ("x", "z"), ("y", "x"), ("y", "y"), ("z", "1"), ("z", "z"), ("z", "x*z"),
    }  # fmt: skip
    assert found.result.verdict == "fits" and found.result.parameters["z_xz"].covers(1.0)


def test_given_displacement_alone_then_the_true_terms_and_the_drive_are_found(
    rng: np.random.Generator,
) -> None:
    whole = duffing_record(0.05, rng)
    record = replace(whole, channels={"x": whole.channels["x"]})
    found = select_terms(oscillator(LIBRARY, "tone", {"w": 1.33}), record)
    assert terms_of(found) == {("v", "v"), ("v", "x**3")}
    assert set(found.model.free) == {"c1", "k3", "p", "q"}
    assert found.result.verdict == "fits"
    assert found.result.parameters["k3"].covers(1.0)
    assert found.result.parameters["p"].value == pytest.approx(27.0, rel=0.02)


def test_given_a_term_outside_the_library_then_the_verdict_says_that_one_is_missing(
    rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    library = oscillator(["1", "x", "x^3", "v"], "tone", {"w": 1.33})
    found = select_terms(library, duffing_record(0.01, rng, dry=0.6))
    assert found.result.verdict in ("close", "misses")
    assert "no term has a probability" in found.caveat
    said = payload(found)
    assert said["probability"] == {} and said["caveat"] == found.caveat
    assert set(said["shares"]) == set(found.library.candidates)
    _show(found)
    text = capsys.readouterr().out
    assert found.caveat in text and "%" not in text.split("probability")[1]
    assert {row[1] for row in ranking(found)} <= {"always", "none"}
    assert rival_words(found).startswith(found.caveat)


def test_given_the_quadratic_then_it_ranks_subsets_as_least_squares_does(rng: np.random.Generator) -> None:
    design, truth = rng.normal(size=(200, 5)), np.array([2.0, 0.0, -1.0, 0.0, 0.5])
    data = design @ truth + rng.normal(size=200)
    point = rng.normal(size=5)
    gradient = design.T @ (data - design @ point)
    quadratic = Quadratic.around(point, design.T @ design, gradient, frozenset(), np.log(200))
    for chosen in ({0}, {0, 2, 4}, {1, 3}):
        columns = design[:, sorted(chosen)]
        rest = data - columns @ np.linalg.lstsq(columns, data, rcond=None)[0]
        expected = rest @ rest - data @ data + np.log(200) * len(chosen)
        assert quadratic.criterion(chosen) == pytest.approx(expected, rel=1e-6)
    assert quadratic.best(frozenset(), quadratic.candidates) == {0, 2, 4}
    assert len(set(neighbours(frozenset({0, 2}), quadratic.candidates))) == 3 + 2 + 6


def test_given_names_of_terms_then_coefficients_are_named_after_them() -> None:
    assert named_terms(["1", "x", "x^3", "v", "sin(x)"]) == {
        "k0": "1", "k1": "x", "k3": "x**3", "c1": "v", "a1": "sin(x)",
    }  # fmt: skip
    library = system({"x": "v", "v": "f - ?"}, ["x", "x^2*v", "abs(v)*v"], inputs={"f": "measured"})
    assert set(library.candidates) == {"v_x", "v_x2v", "v_a1"}
    assert library.model(["v_x"]).to_toml().count("v_x") >= 2
    assert monomials("xy", 2) == ["1", "x", "y", "x**2", "x*y", "y**2"]


def test_given_input_that_makes_no_sense_then_one_sentence_says_so(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(2, 400)).cumsum(axis=1)
    both = {"x": "?", "y": "?"}
    record = Record.from_arrays(10.0, {"x": x, "y": y})
    with pytest.raises(DataError, match="copy of x"):
        select_terms(system(both, monomials("xy", 2)), record.with_channels(y=3 * x + 1))
    with pytest.raises(ModelError, match="are the same along this record"):
        select_terms(system(both, ["1", "x", "2*x"]), record)
    with pytest.raises(DataError, match="samples a term"):
        select_terms(system(both, monomials("xy", 3)), record.cut(0, 20))
    with pytest.raises(ModelError, match="no finite value"):
        select_terms(system(both, ["1", "log(x-1000)"]), record)
    with pytest.raises(DataError, match="No channel shows z"):
        select_terms(system({**both, "z": "?"}, ["1", "x", "z"]), record)
    with pytest.raises(ModelError, match="twice"):
        named_terms(["x", "x^1"])
    with pytest.raises(ModelError, match="at least one"):
        oscillator([], keep=())
    with pytest.raises(ModelError, match="nothing to find"):
        system({"x": "v", "v": "-x"}, ["x"])
    with pytest.raises(ModelError, match="nothing is left to select"):
        oscillator(["x", "v"], keep=["x", "v"])


def test_given_the_command_then_a_model_file_is_written_that_identify_reads(
    rng: np.random.Generator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording, model, figure = tmp_path / "run.h5", tmp_path / "found.toml", tmp_path / "path.png"
    write(duffing_record(0.01, rng), recording)
    arguments = ["select", str(recording), "--terms", "1,x,x^2,x^3,tanh(20*v)", "--out", str(model)]
    assert main([*arguments, "--plot", str(figure), "--json", "-"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kept"] == {"k3": "x**3", "c1": "v"}
    assert answer["verdict"] == "fits"
    assert answer["parameters"]["p"]["value"] == pytest.approx(27.0, rel=0.01)
    assert figure.stat().st_size > 5000
    assert main(["identify", str(recording), str(model), "--method", "weak", "--json", "-"]) == 0
    fitted = json.loads(capsys.readouterr().out)["parameters"]
    assert fitted["k3"]["value"] == pytest.approx(1.0, rel=0.01)


def test_given_a_record_of_three_states_then_the_command_takes_each_channel_as_a_state(
    rng: np.random.Generator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(lorenz_record(0.05, rng, 2000), tmp_path / "lorenz.csv")
    assert main(["select", str(tmp_path / "lorenz.csv"), "--degree", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("The equation found fits the data")
    found = set(re.findall(r"\n([xyz]_\w+) ", printed))
    assert found == {"x_x", "x_y", "y_x", "y_y", "y_xz", "z_z", "z_xy"}
    write(Record.from_arrays(10.0, {"x": np.ones(9), "f": np.ones(9)}), tmp_path / "force.csv")
    assert main(["select", str(tmp_path / "force.csv")]) == 1
    assert "--drive f" in capsys.readouterr().err
    assert main(["select", str(tmp_path / "force.csv"), "--equation", "x + 1"]) == 1
    assert "should read STATE = RATE" in capsys.readouterr().err


def test_given_a_velocity_in_another_unit_then_the_search_is_refused_in_a_sentence(
    rng: np.random.Generator,
) -> None:
    record = duffing_record(0.01, rng)
    wrong = replace(
        record, channels={**record.channels, "v": replace(record.channels["v"], data=record["v"] / 47)}
    )
    with pytest.raises(DataError, match=r"v is 0\.0213 times the rate of change of x"):
        select_terms(oscillator(LIBRARY, "tone", {"w": 1.33}), wrong)
    mirrored = replace(
        record, channels={**record.channels, "v": replace(record.channels["v"], data=-record["v"])}
    )
    with pytest.raises(DataError, match="v is -"):
        select_terms(oscillator(LIBRARY, "tone", {"w": 1.33}), mirrored)


def test_given_a_force_of_unknown_mass_then_its_gain_is_found_with_the_terms(
    rng: np.random.Generator,
) -> None:
    mass = 0.04
    record = duffing_record(0.01, rng)
    force = mass * 27 * np.cos(1.33 * STEP * np.arange(1200, 1200 + len(record)))
    told = Record.from_arrays(record.rate, {"x": record["x"], "f": force})
    library = oscillator(["1", "x", "x^2", "x^3", "v", "v*abs(v)"], "f", gain="gain")
    found = select_terms(library, told)
    assert terms_of(found) == {("v", "x**3"), ("v", "v")} and found.result.verdict == "fits"
    gain = found.result.parameters["gain"]
    assert abs(gain.value - 1 / mass) < 4 * gain.stderr < 0.2
    assert ranking(found)[0][:2] == ("drive", "always")
