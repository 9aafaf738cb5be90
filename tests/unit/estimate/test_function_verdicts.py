"""Verdicts on recovered functions, surfaces and beams: what is wrong is never called `fits`."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ndtri

from analysis.base.identification import Identification
from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.functions.beam import Options as BeamOptions
from analysis.estimate.functions.beam import identify as identify_beam
from analysis.estimate.functions.beam import load, simulate
from analysis.estimate.functions.energetic import Options, identify
from analysis.estimate.functions.judgement import Left, judge_left
from analysis.estimate.methods import identify as identify_by
from analysis.model import Model

DAMPED = Model.from_equations({"x": "v", "v": "f - 0.2*v"}, inputs={"f": "measured"}, name="damped")
TIMES = np.arange(601) / 30.0


def drive(t: float | np.ndarray) -> np.ndarray:
    return np.asarray(2.0 * np.cos(1.3 * t) + 1.5 * np.cos(2.9 * t) + np.cos(0.7 * t + 1.0))


def recovered(law: str, scale: float = 1.0, model: Model = DAMPED) -> Identification:
    def rate(t: float, y: np.ndarray) -> list[float]:
        x, v, z = y
        force = x + x**3 if law == "spring" else x + 2 * z
        memory = 0.0 if law == "spring" else 1.5 * v - abs(v) * z - 0.5 * v * abs(z)  # Bouc and Wen
        return [v, float(drive(t)) - 0.2 * v - force, memory]

    x = solve_ivp(rate, (0, TIMES[-1]), (0.5, 0, 0), t_eval=TIMES, rtol=1e-9, atol=1e-9).y[0]
    rng = np.random.default_rng(1)
    noisy = x + 0.01 * x.std() * rng.standard_normal(len(x))
    record = Record.from_arrays(30.0, {"x": scale * noisy, "f": scale * drive(TIMES)})
    return identify(model, [record], Options(), SILENT)


def test_given_a_right_law_then_it_fits_and_lengths_in_micrometres_change_nothing() -> None:
    metres, small = recovered("spring"), recovered("spring", 1e6)
    assert metres.verdict == small.verdict == "fits", metres.reasons
    np.testing.assert_allclose(
        np.array(small.curves["H"].y) / 1e6, metres.curves["H"].y, rtol=1e-3, atol=1e-3
    )


def test_given_hysteresis_then_no_function_of_x_is_said_to_fit_and_it_is_named() -> None:
    found = recovered("Bouc and Wen")
    assert found.verdict == "misses" and not found.usable
    assert any("hysteresis" in words for words in found.reasons), found.reasons


def test_given_a_wrong_mass_then_it_is_not_said_to_fit() -> None:
    wrong = Model.from_equations({"x": "v", "v": "f/1.2 - 0.2*v"}, inputs={"f": "measured"}, name="wrong")
    found = recovered("spring", model=wrong)
    assert found.verdict in ("close", "misses")
    assert any("mass" in words for words in found.reasons), found.reasons


def test_given_the_velocity_alone_then_a_surface_is_drawn_without_a_warning_of_the_arithmetic() -> None:
    model = Model.from_equations({"x": "v", "v": "-4*x + f"}, inputs={"f": "measured"})
    t = 0.02 * np.arange(3000)
    record = Record.from_arrays(50.0, {"v": -2 * np.sin(2 * t), "f": 0 * t})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = identify_by(model, record, "surface", drive="f")
    assert found.verdict == "close"
    assert found.residual.other["rms from the model / range"] < 0.02
    assert any("integrated" in words for words in found.warnings)


def test_given_damping_that_stays_in_the_force_then_the_surface_names_the_direction() -> None:
    model = Model.from_equations({"x": "v", "v": "-4*x - 0.4*v"}, {})
    t = 0.02 * np.arange(3000)
    x, v = np.cos(2 * t), -2 * np.sin(2 * t)
    rng = np.random.default_rng(2)
    drive_ = 0.4 * v
    forced = Model.from_equations({"x": "v", "v": "-4*x - 0.4*v + f"}, inputs={"f": "measured"})
    noisy = x + 1e-3 * rng.standard_normal(len(t))
    found = identify_by(forced, Record.from_arrays(50.0, {"x": noisy, "f": drive_}), "surface", drive="f")
    assert any("direction" in words for words in found.reasons)
    alone = identify_by(model, Record.from_arrays(50.0, {"x": noisy}), "surface")
    assert alone.verdict == "" and "Nothing was judged" in alone.reasons[0]


BEAM = """
name = "Hammer test"
[beam]
length = {length}
left = "{left}"
right = "free"
[stiffness]
guess = 1.5
intervals = {intervals}
[mass]
value = 1.0
[viscous]
guess = 0.1
[excitation.f]
kind = "force"
at = 0.6
[sensors]
w1 = {{ at = 0.5 }}
w2 = {{ at = 0.9 }}
"""


@pytest.fixture(scope="module")
def struck() -> Record:
    truth = load(BEAM.format(length=1.0, left="clamped", intervals=0))
    truth = truth.with_profile("stiffness", shape=1.0).with_profile("viscous", shape=0.2)
    t = np.arange(800) * 0.01
    record = simulate(truth, Record.from_arrays(100.0, {"f": np.exp(-(((t - 0.3) / 0.1) ** 2))}))
    rng = np.random.default_rng(1)
    noisy = {n: record[n] + 0.01 * record[n].std() * rng.standard_normal(len(t)) for n in ("w1", "w2")}
    return record.with_channels(**noisy)


@pytest.mark.parametrize(
    ("length", "left", "fits"), [(1.0, "clamped", True), (1.05, "clamped", False), (1.0, "pinned", False)]
)
def test_given_a_beam_then_only_the_right_length_and_support_fit(
    struck: Record, length: float, left: str, fits: bool
) -> None:
    beam = load(BEAM.format(length=length, left=left, intervals=4))
    found = identify_beam(beam, [struck], BeamOptions(), SILENT)
    assert (found.verdict == "fits") is fits, (found.verdict, found.reasons)


FREQUENCIES = """
name = "Resonances"
[beam]
length = 1.0
left = "clamped"
[stiffness]
guess = 1.5
intervals = {intervals}
[mass]
value = 1.0
[frequencies]
hz = {hz}
error = 0.003
"""
ROOTS = np.array([1.8751, 4.6941, 7.8548, 10.9955, 14.1372])  # of a clamped-free beam


def frequencies(*modes: int) -> list[float]:
    return [float(ROOTS[m - 1] ** 2 / (2 * np.pi)) for m in modes]


def test_given_a_list_of_resonances_with_a_gap_then_it_is_found_and_the_stiffness_is_right() -> None:
    beam = load(FREQUENCIES.format(intervals=0, hz=frequencies(1, 3, 4, 5)))
    found = identify_beam(beam, [], BeamOptions(), SILENT)
    assert found.parameters["EI"].value == pytest.approx(1.0, rel=0.01)
    assert found.extra["measured_modes"] == [1, 3, 4, 5]
    assert any("mode 2 is not in the list" in words for words in found.warnings)
    assert found.verdict == "fits"


def test_given_wrong_mode_numbers_then_the_beam_misses_its_frequencies() -> None:
    text = FREQUENCIES.format(intervals=0, hz=frequencies(1, 3, 4)) + "modes = [1, 2, 3]\n"
    assert identify_beam(load(text), [], BeamOptions(), SILENT).verdict == "misses"


def test_given_two_frequencies_then_they_do_not_tell_a_curve() -> None:
    beam = load(FREQUENCIES.format(intervals=6, hz=frequencies(1, 2)))
    found = identify_beam(beam, [], BeamOptions(), SILENT)
    assert found.verdict == "cannot tell" and "cannot tell EI" in found.reasons[0]


def test_given_a_beam_that_tapers_to_a_thousandth_then_its_modes_are_found() -> None:
    text = FREQUENCIES.format(intervals=6, hz=frequencies(1, 2, 3)).replace(
        "guess = 1.5", "guess = [[0.0, 1.0], [1.0, 1e-7]]"
    )
    found = identify_beam(load(text), [], BeamOptions(stages=3), SILENT)
    assert np.all(np.isfinite(found.curves["EI"].y)) and min(found.curves["EI"].y) > 0


def test_given_what_is_left_then_the_words_follow_its_size_and_colour() -> None:
    rng = np.random.default_rng(3)
    data, white = 10 * rng.standard_normal(2000), rng.standard_normal(2000)
    waves = np.convolve(rng.standard_normal(2100), np.ones(101), "valid") / 10.0

    def left(row: np.ndarray) -> Left:
        return Left("x", [data], [row], [row], 1.0, 0.02)

    assert judge_left([left(white)], True).verdict == "fits"
    close = judge_left([left(white + 0.8 * waves)], True)
    assert close.verdict == "close" and close.widening > 2
    assert judge_left([left(white + 4 * waves)], True).verdict == "misses"
    assert judge_left([left(white)], False).verdict == "cannot tell"
    assert judge_left([left(white)], True, ["It cannot be."]).verdict == "misses"


@pytest.mark.parametrize(
    ("ratio", "doubt", "large"), [(1.3, 0.0, False), (1.5, 0.0, True), (1.5, 0.2, False)]
)
def test_given_what_is_left_above_the_noise_then_its_own_error_is_counted(
    ratio: float, doubt: float, large: bool
) -> None:
    """200 numbers: a standard error of 1.25 / 20 = 0.0625 of the ratio; four of them below and above it."""
    row = ratio * ndtri((np.arange(200) + 0.5) / 200)  # of normal size, but for 1 %
    assert Left("x", [row], [row], [row], 1.0, doubt).too_large == large


@pytest.mark.parametrize(("noise", "noise_of_force", "seed"), [(0.01, 0.0, 0), (0.05, 0.05, 1)])
def test_given_a_motion_between_two_wells_then_its_spring_is_found(
    noise: float, noise_of_force: float, seed: int
) -> None:
    """The weak form's first law sends the motion into the other well within a few swings."""
    t = np.arange(2001) / 50.0
    x = solve_ivp(
        lambda s, z: [z[1], float(drive(s)) - 0.2 * z[1] + z[0] - z[0] ** 3],
        (0, t[-1]), (0.5, 0.0), t_eval=t, rtol=1e-9, atol=1e-9, max_step=0.02,
    ).y[0]  # fmt: skip
    rng = np.random.default_rng(seed)
    noisy = x + noise * x.std() * rng.standard_normal(len(t))
    f = drive(t) * 1.0
    f += noise_of_force * f.std() * rng.standard_normal(len(t))
    found = identify(DAMPED, [Record.from_arrays(50.0, {"x": noisy, "f": f})], Options(), SILENT)
    assert found.verdict == "fits", found.reasons
    curve = found.curves["H"]
    at, y = np.array(curve.x), np.array(curve.y)
    inside = (at > np.quantile(x, 0.005)) & (at < np.quantile(x, 0.995))
    truth = at**3 - at
    assert np.std(y[inside] - truth[inside]) < 0.03 * np.std(truth[inside])
