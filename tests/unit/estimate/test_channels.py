"""Delays and offsets of channels that a fit does not know of: found, measured, named with their option."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.base.identification import Identification
from analysis.base.record import Record
from analysis.estimate.methods import identify
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
    result = identify(MODEL, record(1, **{channel: samples}), "path", denoise=False)
    assert result.verdict in ("close", "misses"), result.reasons
    said = next(words for words in result.reasons if "seems to come" in words)
    assert said.startswith(f"{channel} seems to come") and "too late" in said
    assert float(said.split()[4]) == pytest.approx(samples, rel=0.15)
    assert "option delays=" in said
    assert max(off(result)) < 2.5
    ideal = [abs(e.value - TRUTH[n]) / e.stderr_ideal for n, e in result.parameters.items()]
    assert max(ideal) > 4  # what it would be without a word


def test_given_the_option_that_was_named_then_it_fits() -> None:
    result = identify(MODEL, record(1, f=0.5), "path", denoise=False, delays=("x", "a"))
    assert result.verdict == "fits", result.reasons
    assert max(off(result)) < 4
    for name in ("delay x", "delay a"):
        assert result.parameters[name].value == pytest.approx(-0.5 * DT, rel=0.1)


def test_given_a_held_force_then_that_is_offered() -> None:
    result = identify(MODEL, record(2, held=True), "path", denoise=False)
    assert any("inputs=hold" in words for words in result.reasons), result.reasons


def test_given_channels_in_time_then_none_is_late() -> None:
    for seed in range(3):
        result = identify(MODEL, record(seed), "path", denoise=False)
        assert result.verdict == "fits", result.reasons
        assert max(off(result)) < 4
