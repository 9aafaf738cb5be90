"""Delays and offsets of channels that a fit does not know of: found, measured, named with their option."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.base.identification import Identification
from analysis.base.record import Record
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.judge import judge
from analysis.estimate.identifiability import covariance_of
from analysis.estimate.methods import identify
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment
from analysis.model import Model

DT, N = 0.05, 800
TRUTH = {"c": 0.3, "k": 9.0, "b": 2.0}
MODEL = Model.from_equations(
    {"x": "v", "v": "b*f - c*v - k*x"},
    {name: {"guess": 1.2 * value} for name, value in TRUTH.items()},
    inputs={"f": "measured"},
    outputs={"x": "x", "a": "b*f - c*v - k*x"},
)


def record(seed: int, held: bool = False, **late: float) -> Record:
    """Steady motion under twelve sines in closed form, channels ``late`` by so many samples, 2 % noise.

    ``held``: the force is held between its samples, which in the band of the motion delays it by half of one.
    """
    rng = np.random.default_rng(seed)
    w = rng.uniform(0.3, 6.0, 12)
    force = rng.uniform(0.5, 1.0, 12) * np.exp(1j * rng.uniform(0, 2 * np.pi, 12))
    acting = force * (np.sinc(w * DT / 2 / np.pi) * np.exp(-0.5j * w * DT) if held else 1.0)
    x = TRUTH["b"] * acting / (TRUTH["k"] - w**2 + 1j * TRUTH["c"] * w)

    def samples(name: str, amplitude: np.ndarray, noise: float) -> np.ndarray:
        t = (np.arange(N) - late.get(name, 0.0)) * DT
        row = np.real(amplitude @ np.exp(1j * np.outer(w, t)))
        return np.asarray(row + noise * row.std() * rng.standard_normal(N))

    channels = {
        "x": samples("x", x, 0.02),
        "a": samples("a", -(w**2) * x, 0.02),
        "f": samples("f", force, 0.0),
    }
    return Record.from_arrays(1 / DT, channels)


def off(result: Identification) -> list[float]:
    return [abs(e.value - TRUTH[n]) / e.stderr for n, e in result.parameters.items() if n in TRUTH]


@pytest.mark.parametrize(("channel", "samples"), [("f", 0.5), ("x", 0.3), ("a", 0.3)])
def test_given_a_late_channel_then_it_is_named_with_its_delay_and_the_errors_hold_what_it_does(
    channel: str, samples: float
) -> None:
    experiment = Experiment(MODEL, record(1, **{channel: samples}), Conditions(denoise=False))
    start = Start("path", experiment.guesses(), experiment.start_states())
    judgement = judge(fit(experiment, start))
    assert judgement.verdict in ("close", "misses"), judgement.reasons
    said = next(words for words in judgement.reasons if "seems to come" in words)
    assert said.startswith(f"{channel} seems to come") and "too late" in said
    assert float(said.split()[4]) == pytest.approx(samples, rel=0.15)
    assert "option delays=" in said
    away = np.abs(judgement.estimate - list(TRUTH.values()))
    assert np.all(away < 2.5 * np.sqrt(np.diag(judgement.covariance)))
    ideal = np.sqrt(np.diag(covariance_of(fit(experiment, start).information)))
    assert np.any(away > 4 * ideal)  # what it would be without a word


@pytest.mark.parametrize(("channel", "samples"), [("f", 0.7), ("x", 0.3), ("a", -0.3)])
def test_given_a_late_channel_then_its_delay_is_fitted_along(channel: str, samples: float) -> None:
    found = identify(MODEL, record(1, **{channel: samples}), "path", denoise=False)
    assert found.verdict == "fits", found.reasons
    assert found.reasons[0].startswith(f"{channel} does not keep time with the other channels")
    assert max(off(found)) < 4
    right = identify(MODEL, record(1), "path", denoise=False)
    for name in TRUTH:  # a delay more to find costs little
        ratio = found.parameters[name].stderr / right.parameters[name].stderr
        assert 0.95 < ratio < 2
    seen = {"x": -samples, "a": -samples} if channel == "f" else {channel: samples}
    assert {name for name in found.parameters if name.startswith("delay")} == {f"delay {n}" for n in seen}
    for name, expected in seen.items():
        delay = found.parameters[f"delay {name}"]
        assert abs(delay.value - expected * DT) < 4 * delay.stderr < 0.1 * DT


def test_given_an_offset_then_it_is_fitted_along() -> None:
    there = record(4)
    moved = Record.from_arrays(1 / DT, {n: there[n] + (n == "x") * 0.02 for n in "xaf"})
    found = identify(MODEL, moved, "path", denoise=False)
    assert found.verdict == "fits" and "The sensor of x has an offset of 0.02" in found.reasons[0]
    assert found.parameters["offset x"].value == pytest.approx(
        0.02, abs=4 * found.parameters["offset x"].stderr
    )
    assert max(off(found)) < 4


def test_given_a_zero_that_drifts_then_it_is_fitted_along() -> None:
    there = record(1)
    row = there["x"]
    rate = 0.3 * row.std() / (N * DT)
    drifting = Record.from_arrays(
        1 / DT, {"x": row + rate * DT * np.arange(N), "a": there["a"], "f": there["f"]}
    )
    result = identify(MODEL, drifting)
    assert result.verdict == "fits" and "zero of x drifts by" in result.reasons[0]
    found = result.parameters["drift x"]
    assert abs(found.value - rate) < 4 * found.stderr < 0.1 * rate
    assert max(off(result)) < 4


def test_given_a_late_channel_and_a_missing_term_then_the_delay_does_not_make_it_fit() -> None:
    stiff = Model.from_equations(
        {"x": "v", "v": "b*f - c*v"},
        {"c": {"guess": 0.3}, "b": {"guess": 2.0}},
        inputs={"f": "measured"},
        outputs={"x": "x", "a": "b*f - c*v"},
    )
    assert identify(stiff, record(1, f=0.5), "path", denoise=False).verdict != "fits"


def test_given_noise_on_a_force_that_was_said_to_be_exact_then_no_small_delay_explains_it_away() -> None:
    there, rng = record(3, x=0.4), np.random.default_rng(0)
    noise = 0.02 * there["f"].std() * rng.standard_normal(N)
    noisy = Record.from_arrays(1 / DT, {"x": there["x"] + 0.03, "a": there["a"], "f": there["f"] + noise})
    said = identify(MODEL, noisy, "path", denoise=False)
    assert said.verdict != "fits"
    counted = identify(MODEL, noisy, "path")
    assert counted.verdict == "fits" and max(off(counted)) < 4
    assert {"delay x", "offset x"} < set(counted.parameters)  # both are found


def test_given_the_option_that_was_named_then_it_fits() -> None:
    result = identify(MODEL, record(1, f=0.5), "path", denoise=False, delays=("x", "a"))
    assert result.verdict == "fits", result.reasons
    assert max(off(result)) < 4
    for name in ("delay x", "delay a"):
        assert result.parameters[name].value == pytest.approx(-0.5 * DT, rel=0.1)


def test_given_a_held_force_then_that_is_found() -> None:
    """Of the displacement alone: an accelerometer would also see the steps themselves."""
    only = Model.from_equations(
        {"x": "v", "v": "b*f - c*v - k*x"},
        {name: {"guess": 1.2 * value} for name, value in TRUTH.items()},
        inputs={"f": "measured"},
        outputs={"x": "x"},
    )
    result = identify(only, record(2, held=True), "path", denoise=False)
    assert result.verdict == "fits" and "held between its samples" in result.reasons[0], result.reasons
    assert max(off(result)) < 4 and not any(n.startswith("delay") for n in result.parameters)


def test_given_channels_in_time_then_none_is_late() -> None:
    for seed in range(3):
        result = identify(MODEL, record(seed), "path", denoise=False)
        assert result.verdict == "fits", result.reasons
        assert max(off(result)) < 4


def test_given_lost_samples_of_a_late_channel_then_its_delay_is_found_all_the_same() -> None:
    """Of a sensor that sees the motion from afar: a lost sample must not look like a jump to zero."""
    far = Model.from_equations(
        {"x": "v", "v": "b*f - c*v - k*x"},
        {name: {"guess": 1.2 * value} for name, value in TRUTH.items()},
        inputs={"f": "measured"},
        outputs={"x": "x + 5", "a": "b*f - c*v - k*x"},
    )
    given = record(1, x=0.5)
    x = given["x"] + 5.0
    x[17::40] = np.nan
    result = identify(far, given.with_channels(x=x), "path", denoise=False)
    assert result.verdict == "fits", result.reasons
    assert result.parameters["delay x"].value == pytest.approx(0.5 * DT, rel=0.1)
