"""Validation: a right model passes, wrong ones do not, and the numbers agree with independent ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.base.progress import SILENT
from analysis.base.record import Excitation, Record
from analysis.model import Model
from analysis.signal.frequency_response import FrequencyResponse, frequency_response
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate
from analysis.validation import (
    Sweep,
    Validation,
    energy_distance,
    prepare_subject,
    validate,
)
from analysis.validation.bifurcation import check_bifurcation
from analysis.validation.dimension import check_dimension
from analysis.validation.drive import drive_period, opened, tone_of
from analysis.validation.equilibria import check_equilibria, main_mode, rest_states
from analysis.validation.exponents import check_exponents
from analysis.validation.force import check_force
from analysis.validation.orbits import check_orbits
from analysis.validation.residuals import _bound, _words, autocorrelation, check_residuals, ljung_box
from analysis.validation.response import check_response, predict_response
from analysis.validation.section import check_section
from analysis.validation.transfer import check_transfer, linearised
from app.cli import main
from drivers.formats import write
from drivers.library import load_model

DRIVE = 2 * np.pi  # the beam's unit of time is the drive's period over 2 pi


def beam_record(noise: float, amplitude: float = 0.25, seed: int = 1, periods: int = 450) -> Record:
    model = load_model("two_well_beam").with_values({"a": amplitude})
    times = DRIVE / 25 * np.arange(25 * periods)
    x = simulate(model, times, np.array([0.72, 0.0])).states[0, 25 * 50 :]
    noisy = x + noise * x.std() * np.random.default_rng(seed).normal(size=len(x))
    return Record.from_arrays(25 / DRIVE, {"x": noisy}, excitation=Excitation(1 / DRIVE, amplitude, 0.0))


def duffing_record(noise: float) -> Record:
    step = 2 * np.pi / 1.33 / 40
    states = simulate(load_model("duffing"), step * np.arange(40 * 250)).states[:, 40 * 50 :]
    rng = np.random.default_rng(2)
    x, v = (row + noise * row.std() * rng.normal(size=len(row)) for row in states)
    return Record.from_arrays(1 / step, {"x": x, "v": v}, excitation=Excitation(1.33 / DRIVE, 27.0, 0.0))


@pytest.fixture(scope="module")
def noisy_duffing() -> Record:
    return duffing_record(0.01)


@pytest.fixture(scope="module")
def noisy_beam() -> Record:
    return beam_record(0.01)


@pytest.fixture(scope="module")
def beam_checks(noisy_beam: Record) -> Validation:
    return validate(load_model("two_well_beam"), noisy_beam, {})


def statuses(found: Validation) -> dict[str, str]:
    return {check.name: check.status for check in found.checks}


def test_given_the_right_model_and_one_noisy_channel_then_every_check_that_can_be_made_passes(
    beam_checks: Validation,
) -> None:
    assert beam_checks.passed, beam_checks.verdict
    made = {name: s for name, s in statuses(beam_checks).items() if s != "not possible"}
    assert set(made) == {"response", "residuals", "orbits", "exponents", "dimension", "section", "force"}
    assert list(made.values()).count("passed") >= 6, made


def test_given_the_right_model_then_multipliers_and_exponents_agree_with_independent_ones(
    beam_checks: Validation,
) -> None:
    rows = [r for r in beam_checks["orbits"].rows if r["in_model"] and (r["periods"] or 9) <= 2]
    assert rows
    for row in rows:  # local linear maps of the record against the model's own variational equations
        assert row["measured_multiplier"] == pytest.approx(row["multiplier"], rel=0.35)
    numbers = beam_checks["exponents"].numbers
    # The divergence of the flow is -c, so the exponents add up to it exactly.
    assert numbers["model_1"] + numbers["model_2"] == pytest.approx(-0.035, abs=2e-3)
    assert numbers["model_1"] == pytest.approx(0.128, abs=0.03)
    rests = beam_checks["equilibria"].rows
    assert [r["stable"] for r in rests] == [True, False, True]


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_given_duffing_records_then_the_right_model_passes(noise: float) -> None:
    found = validate(load_model("duffing"), duffing_record(noise), {})
    assert found.passed, found.verdict
    assert found["residuals"].status == "passed"
    if noise:
        assert found["residuals"].numbers["ljung_box_probability"] > 1e-3
        assert found["residuals"].numbers["rms"] == pytest.approx(
            found["residuals"].numbers["noise"], rel=0.1
        )


@pytest.mark.parametrize(
    "wrong", [{"k3": 0.0, "k1": 12.0}, {"c": 0.3}, {"c": 0.22}],
    ids=["no cubic term", "damping half too large", "damping a tenth too large"],
)  # fmt: skip
def test_given_a_wrong_model_of_a_duffing_record_then_it_is_rejected(
    noisy_duffing: Record, wrong: dict[str, float]
) -> None:
    found = validate(load_model("duffing"), noisy_duffing.cut(0, 40 * 75), wrong)
    assert not found.passed
    assert found.verdict.startswith("The model is NOT validated")
    assert found["residuals"].status == "failed"


def test_given_a_linear_model_of_a_two_well_record_then_it_is_rejected(noisy_beam: Record) -> None:
    linear = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x + f"}, {"c": 0.035, "k": 0.3, "a": 0.25}, inputs={"f": "a*cos(t)"}
    )
    found = validate(linear, noisy_beam, {})
    assert not found.passed
    assert found["orbits"].status == "failed"
    assert found["exponents"].status == "failed"  # a linear model is never chaotic


def test_given_a_model_that_escapes_then_the_verdict_says_so(noisy_beam: Record) -> None:
    subject = prepare_subject(load_model("two_well_beam"), noisy_beam, {"k4": -3.0})
    for check in (check_section(subject), check_dimension(subject), check_exponents(subject, None)):
        assert check.status == "failed"
        assert "escapes" in check.sentence


def shaken(values: dict[str, float], force: np.ndarray, noise: float, rate: float) -> Record:
    """A hardening oscillator under a measured force."""
    model = forced_model().with_values(values)
    times = np.arange(len(force)) / rate
    run = simulate(model, times, [0.0, 0.0], None, Inputs.from_samples(0.0, 1 / rate, force[None, :]))
    rng = np.random.default_rng(3)
    x = run.states[0] + noise * run.states[0].std() * rng.normal(size=len(times))
    f = force + noise * force.std() * rng.normal(size=len(times))
    return Record.from_arrays(rate, {"x": x, "f": f}, units={"x": "mm", "f": "N"})


def forced_model() -> Model:
    return Model.from_equations(
        {"x": "v", "v": "-c*v - k1*x - k3*x**3 + f"},
        {"c": {"guess": 1.2}, "k1": {"guess": 400.0}, "k3": {"guess": 2000.0}},
        inputs={"f": "measured"},
    )


@pytest.fixture(scope="module")
def broadband() -> np.ndarray:
    """A multisine from 0.5 to 8 Hz, so that the record is band-limited as a measured one is."""
    rng = np.random.default_rng(4)
    t = np.arange(8000) / 100.0
    lines = np.arange(0.5, 8.0, 0.05)
    return np.asarray(sum(np.cos(2 * np.pi * f * t + rng.uniform(0, DRIVE)) for f in lines))


def test_given_a_measured_broadband_input_then_the_right_model_passes_and_the_rest_says_why_not(
    broadband: np.ndarray,
) -> None:
    found = validate(forced_model(), shaken({}, broadband, 0.005, 100.0), {})
    assert found.passed, found.verdict
    status = statuses(found)
    assert status["response"] == status["transfer"] == status["force"] == "passed"
    assert status["residuals"] in ("passed", "doubtful")  # the input's noise is not in the model
    assert "largest_cross_correlation" in found["residuals"].numbers
    for name in ("orbits", "exponents", "section", "bifurcation"):
        assert status[name] == "not possible"
        assert "no tone" in found[name].sentence


@pytest.mark.parametrize("wrong", [{"k1": 320.0}, {"c": 2.4}, {"k3": 0.0}])
def test_given_a_measured_broadband_input_then_a_wrong_model_fails(
    broadband: np.ndarray, wrong: dict[str, float]
) -> None:
    subject = prepare_subject(forced_model(), shaken({}, 8 * broadband, 0.005, 100.0), wrong)
    assert check_residuals(subject, SILENT).status == "failed"
    assert check_transfer(subject, None, [])[0].status == "failed"


def test_given_a_measured_tone_then_it_stands_for_the_input_and_orbits_become_possible() -> None:
    record = beam_record(0.003, periods=700)  # 450 show from 2 to 11 orbits, by the last digits of the motion
    force = 0.25 * np.cos(record.times)
    rng = np.random.default_rng(5)
    record = record.with_channels(f=force + 0.001 * rng.normal(size=len(force)))
    record = record.cut(1009, len(record))  # at another phase of the drive
    model = load_model("two_well_beam")
    measured = Model.from_equations(
        {name: e.text for name, e in model.equations.states.items()},
        {n: p for n, p in model.parameters.items() if n != "a"},
        inputs={"f": "measured"},
    )
    subject = prepare_subject(measured, record, {})
    assert subject.forced
    assert subject.driven is not None
    assert subject.base == pytest.approx(DRIVE, rel=1e-5)
    assert subject.driven.parameters["f_cos1"].value == pytest.approx(0.25, rel=1e-3)
    orbits = check_orbits(subject, SILENT)
    assert orbits.status != "not possible"
    assert orbits.numbers["found"] >= 4, orbits.sentence
    assert check_bifurcation(subject, Sweep(), [], SILENT).panels


def test_given_a_velocity_in_other_units_then_the_restoring_force_is_the_same(noisy_duffing: Record) -> None:
    text = "-0.2*{v} - b*x - x**3 + f"
    parameters = {"b": 1.0}
    forces = []
    for factor in (1.0, 40.0):  # v in the record is dx/dt over the factor
        rate = f"({text.format(v=f'{factor}*v')})/{factor}"
        model = Model.from_equations(
            {"x": f"{factor}*v", "v": rate}, parameters, inputs={"f": "27*cos(1.33*t)"}
        )
        record = noisy_duffing.with_channels(v=noisy_duffing["v"] / factor)
        check = check_force(prepare_subject(model, record, {}))
        assert check.status == "passed", check.sentence
        measured, own = check.panels[0].traces[:2]
        np.testing.assert_allclose(own.y, own.x + own.x**3, rtol=1e-12)
        forces.append(measured.y)
    np.testing.assert_allclose(forces[1], forces[0], rtol=1e-6)


def test_given_recordings_at_other_drives_then_the_bifurcation_diagram_is_tested() -> None:
    # at both amplitudes the motion settles on one orbit, whatever a rounding error makes of the way there
    others = [beam_record(0.003, a, 7) for a in (0.12, 0.3)]
    first, model = beam_record(0.003), load_model("two_well_beam")
    right = check_bifurcation(prepare_subject(model, first, {}), Sweep(), others, SILENT)
    assert right.status == "passed", right.sentence
    assert [row["value"] for row in right.rows] == pytest.approx([1.0, 0.48, 1.2])
    # a rounding error in the start decides where a single chaotic run ends; the check does not rest on one
    moved = first.with_channels(x=first["x"] + 1e-12)
    again = check_bifurcation(prepare_subject(model, moved, {}), Sweep(), others, SILENT)
    for one, other in zip(right.rows, again.rows, strict=True):
        assert one["distance_over_chance"] < 1 and other["distance_over_chance"] < 1
    wrong = check_bifurcation(prepare_subject(model, first, {"c": 0.2}), Sweep("a", 0.1, 0.3), others, SILENT)
    assert wrong.status == "failed"
    alone = check_bifurcation(prepare_subject(model, first, {}), Sweep("a"), [], SILENT)
    assert alone.status == "not possible"
    assert alone.panels  # drawn all the same


def test_given_a_broadband_record_then_h1_is_the_exact_transfer_function(broadband: np.ndarray) -> None:
    record = shaken({"k3": 0.0}, broadband, 0.0, 100.0)
    f, x = record["f"][800:], record["x"][800:]
    found = frequency_response(Record.from_arrays(100.0, {"f": f, "x": x}), "f", "x")
    s = 2j * np.pi * found.frequency
    exact = 1 / (s**2 + 1.2 * s + 400.0)
    inside = (found.frequency > 1) & (found.frequency < 7) & (found.coherence > 0.95)
    assert np.count_nonzero(inside) > 20
    assert np.median(np.abs(found.response - exact)[inside] / np.abs(exact)[inside]) < 0.05
    frequency, damping = main_mode(
        FrequencyResponse(found.frequency, 1 / (s**2 + 1.2 * s + 400.0), found.coherence)
    )
    assert frequency == pytest.approx(np.sqrt(400 - 0.36) / DRIVE, rel=1e-6)
    assert damping == pytest.approx(0.03, rel=1e-6)


def test_given_a_measured_transfer_function_then_the_linearised_model_is_held_beside_it(
    noisy_beam: Record,
) -> None:
    model = load_model("two_well_beam")
    subject = prepare_subject(model, noisy_beam, {})
    well = [e for e in rest_states(subject) if e.stable][1]
    f = np.linspace(0.01, 0.3, 400)
    exact = linearised(opened(model), well, f)
    # x'' + c x' + (k1 + 2 k2 x0 + 3 k3 x0^2 + 4 k4 x0^3) x = f around the well x0
    x0 = well.state[0]
    stiffness = -0.28 + 2 * 0.178 * x0 + 3 * 0.336 * x0**2 - 4 * 0.064 * x0**3
    s = 2j * np.pi * f
    np.testing.assert_allclose(exact, 1 / (s**2 + 0.035 * s + stiffness), rtol=1e-6)
    given = FrequencyResponse(f, exact, np.ones(len(f)))
    for values, expected in (({}, "passed"), ({"k1": -0.6}, "failed")):
        subject = prepare_subject(model, noisy_beam, values)
        transfer, measured = check_transfer(subject, given, rest_states(subject))
        assert transfer.status == expected
        assert check_equilibria(subject, rest_states(subject), measured).status == expected


def test_given_a_weak_gain_from_a_large_input_then_the_linearised_response_keeps_its_digits() -> None:
    text = """
[states]
x = "v"
v = "-2*v - 900*(x - 1e6) + 1e-9*f"
[inputs]
f = "measured"
"""
    times = np.arange(2000) / 100.0
    force = 1e9 * np.random.default_rng(3).normal(size=len(times))
    model = Model.from_toml(text)
    x = simulate(model, times, [1e6, 0.0], None, Inputs.from_samples(0.0, 0.01, [force], "hold")).states[0]
    subject = prepare_subject(model, Record.from_arrays(100.0, {"x": x, "f": force}), {})
    f = np.linspace(1.0, 10.0, 50)
    s = 2j * np.pi * f
    given = FrequencyResponse(f, 1e-9 / (s**2 + 2 * s + 900), np.ones(len(f)), "f", "x")
    check, _ = check_transfer(subject, given, rest_states(subject))
    assert check.numbers["miss"] < 1e-5


@pytest.mark.parametrize(("values", "passed"), [({}, True), ({"mu": 0.0}, False)])
def test_given_a_swing_that_dies_away_then_only_what_makes_sense_is_checked(
    values: dict[str, float], passed: bool
) -> None:
    times = np.arange(4000) / 200.0
    angle = simulate(load_model("pendulum"), times, [1.2, 0.0]).states[0]
    angle = angle + 1e-3 * np.random.default_rng(6).normal(size=len(times))
    found = validate(load_model("pendulum"), Record.from_arrays(200.0, {"angle": angle}), values)
    assert found.passed is passed, found.verdict  # without its dry friction the model is wrong
    assert "not steady" in found["exponents"].sentence


def test_given_an_undriven_motion_of_two_states_then_it_is_not_asked_for_chaos() -> None:
    """A swing that hardly fades: neighbours part as its period changes with amplitude, which is no chaos."""
    model = load_model("pendulum").with_values({"c": 0.01, "mu": 0.0})
    angle = simulate(model, np.arange(2000) / 200.0, [1.2, 0.0]).states[0]
    subject = prepare_subject(model, Record.from_arrays(200.0, {"angle": angle}), {})
    assert not subject.fading
    found = check_exponents(subject, None)
    assert found.status == "not possible" and "two states" in found.sentence


def test_given_a_carriage_without_a_spring_then_no_restoring_force_is_asked_for() -> None:
    times = np.arange(4000) / 1000.0
    force = 60.0 * np.sin(7.0 * times) + 40.0 * np.sin(3.0 * times + 1.0)
    motion = simulate(load_model("emps"), times, [0.0, 0.0], inputs=Inputs.from_samples(0.0, 1e-3, [force]))
    record = Record.from_arrays(1000.0, {"q": motion.states[0], "force": force})
    found = check_force(prepare_subject(load_model("emps"), record, {}))
    assert found.status == "not possible" and "no force that depends on q" in found.sentence


def test_given_a_coarsely_sampled_lorenz_record_then_the_right_model_leaves_nothing() -> None:
    model = load_model("lorenz")
    states = simulate(model, np.arange(3200) / 40.0).states[:, 800:]
    subject = prepare_subject(
        model, Record.from_arrays(40.0, dict(zip(model.states, states, strict=True))), {}
    )
    assert subject.driven is not None
    assert not subject.forced
    assert check_residuals(subject, SILENT).numbers["systematic_of_spread"] < 1e-3
    assert check_response(subject, 1.5, SILENT).status == "passed"
    assert check_orbits(subject, SILENT).status == "passed"


def test_given_white_noise_then_ljung_box_finds_nothing_and_given_coloured_noise_it_does(
    rng: np.random.Generator,
) -> None:
    white = [rng.normal(size=300) for _ in range(10)]
    lags, _, band = autocorrelation(white)
    assert band == pytest.approx(4.21 / np.sqrt(3000), rel=5e-3)  # Sidak: 40 lags, 1 in 1000 together
    assert ljung_box(white, lags) > 1e-3
    coloured = [w[1:] + 0.3 * w[:-1] for w in white]
    assert ljung_box(coloured, lags) < 1e-6


def test_given_equal_clouds_then_the_energy_distance_is_small(rng: np.random.Generator) -> None:
    one, other = rng.normal(size=(2, 400)), rng.normal(size=(2, 400))
    assert energy_distance(one, other) < 0.15
    assert energy_distance(one, other + 1.0) > 0.5


def test_given_models_then_the_period_of_their_drive_is_found() -> None:
    assert drive_period(load_model("duffing")) == pytest.approx(DRIVE / 1.33)
    assert drive_period(load_model("two_well_beam")) == pytest.approx(DRIVE)
    assert drive_period(load_model("lorenz")) is None


def test_given_a_tone_with_harmonics_then_it_is_found() -> None:
    t = np.arange(2000) / 100.0
    found = tone_of(0.3 + 2 * np.cos(DRIVE * 1.5 * t) + 0.1 * np.sin(2 * DRIVE * 1.5 * t), t, 1.5)
    assert found.offset == pytest.approx(0.3)
    assert found.cosines[0] == pytest.approx(2.0)
    assert found.sines[1] == pytest.approx(0.1)
    assert found.miss < 1e-9


def test_given_the_true_model_when_it_predicts_then_the_error_stays_small(broadband: np.ndarray) -> None:
    record = shaken({}, broadband, 0.0, 100.0)
    right = predict_response(prepare_subject(forced_model(), record, {}), 2.0)
    assert right.names == ("x",)
    assert np.all(right.error < 1e-2)
    assert right.horizon == float("inf")
    wrong = predict_response(prepare_subject(forced_model(), record, {"k1": 700.0}), 4.0)
    assert wrong.horizon < 3.0
    assert wrong.growth[0, 0] < 0.02 < wrong.growth[0, -1]


def test_given_the_command_then_json_holds_every_check(
    noisy_beam: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, figure = tmp_path / "beam.h5", tmp_path / "checks.png"
    write(noisy_beam, path)
    table = tmp_path / "transfer.csv"
    f = np.linspace(0.02, 0.2, 50)
    response = 1 / ((2j * np.pi * f) ** 2 + 0.05 * 2j * np.pi * f + 1.0)
    rows = [f"{a},{b.real},{b.imag}" for a, b in zip(f, response, strict=True)]
    table.write_text("\n".join(["frequency,real,imag", *rows]))
    code = main(
        ["validate", str(path), "two_well_beam", "--over", "a=0.1:0.3", "--transfer", str(table)]
        + ["--json", "-", "--plot", str(figure)]
    )
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) == {"passed", "verdict", "checks"}
    assert code == (0 if answer["passed"] else 1)
    names = ["response", "residuals", "orbits", "exponents", "dimension", "section", "bifurcation", "force"]
    assert list(answer["checks"]) == [*names, "equilibria", "transfer"]
    assert answer["checks"]["transfer"]["status"] == "failed"  # a made-up transfer function
    assert figure.stat().st_size > 10_000


def test_given_a_bad_sweep_then_one_sentence_says_so(
    noisy_beam: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "beam.h5"
    write(noisy_beam, path)
    assert main(["validate", str(path), "two_well_beam", "--over", "a=1-2"]) == 1
    assert "NAME=FROM:TO" in capsys.readouterr().err


def test_given_white_residuals_then_the_bound_drawn_is_passed_as_rarely_as_they_are_ruled_out() -> None:
    rng = np.random.default_rng(12)
    outside = narrow = 0
    for _ in range(2000):
        rows = [rng.standard_normal(300), rng.standard_normal(300)]
        lags, correlation, bound = autocorrelation(rows)
        outside += bool(np.any(np.abs(correlation) > bound))
        narrow += bool(np.any(np.abs(correlation) > 0.7 * bound))
    assert len(lags) == 40
    assert outside <= 8  # 2 expected at 1 in 1000
    assert narrow > 100  # a bound that is wider than need be would not be passed either
    assert bound * np.sqrt(600) == pytest.approx(4.21, abs=0.02)  # Sidak: 40 lags, 1 in 1000 together


def test_given_one_lag_outside_then_the_words_tell_that_and_not_the_other_test_alone() -> None:
    numbers = {"rms": 0.011, "noise": 0.01, "systematic_of_spread": 0.002, "ljung_box_probability": 0.31}
    words = _words("x", numbers, 40, 1, False, "passed")
    assert "not white (Ljung and Box, probability 0.31; 1 of 40 lags outside the bounds drawn)" in words
    assert "none of 38 lags outside" in _words("x", numbers, 38, 0, True, "passed")


def test_given_a_correlation_on_both_sides_then_its_bound_counts_all_its_lags() -> None:
    rows = [np.ones(300), np.ones(300)]
    assert _bound(rows, 81) * np.sqrt(600) == pytest.approx(4.37, abs=0.02)  # Sidak: 81 lags, 1 in 1000


@pytest.mark.parametrize(
    ("off", "status"), [({}, "doubtful"), ({"k1": -0.266}, "failed"), ({"c": 0.07}, "failed")]
)
def test_given_chaos_that_was_stopped_then_the_right_model_is_not_refuted_and_wrong_ones_are(
    off: dict[str, float], status: str
) -> None:
    shipped = load_model("two_well_beam")
    model = Model.from_equations(
        {name: e.text for name, e in shipped.equations.states.items()},
        {n: p for n, p in shipped.parameters.items() if n != "a"},
        inputs={"f": "measured"},
    )
    step = DRIVE / 100
    times = step * np.arange(100 * 260)
    force = 0.25 * np.cos(times) * np.clip((150 * DRIVE - times) / DRIVE, 0, 1)  # STOP after 150 periods
    run = simulate(model, times, [0.72, 0.0], None, Inputs.from_samples(0.0, step, force[None, :]))
    x, v = run.states + 0.002 * np.random.default_rng(161616).normal(size=run.states.shape)
    record = Record.from_arrays(
        1 / step, {"x": x, "v": v, "f": force}, excitation=Excitation(1 / DRIVE, 0.25)
    )
    subject = prepare_subject(model, record, off)
    assert subject.fading and subject.driven is None  # no exponent says how soon motions part
    found = check_response(subject, 0.0, SILENT)
    assert found.status == status, found.sentence
    assert ("may do no better" in found.sentence) == (status == "doubtful")
