"""TOML has NaN, whole numbers of any length and tables anywhere: a sentence, and nothing moves."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import ShakedownError
from drivers.acquisition.sequence import sequence_from_text
from drivers.base.limits import LimitError, Limits
from drivers.base.waveform import (
    BurstRandom,
    Multisine,
    Part,
    RandomNoise,
    Segments,
    Sine,
    SteppedSine,
    Sweep,
    Waveform,
    WaveformError,
    waveform_from,
)
from drivers.rig.player import Player
from drivers.rig.profile import rig_from_text

HUGE = "1" + 400 * "0"


def test_given_whole_numbers_beyond_all_floats_then_a_sentence() -> None:
    with pytest.raises(ShakedownError, match="settle must be"):
        sequence_from_text(f"amplitude = 1\nfrequencies = [5]\nseconds = 2\nsettle = {HUGE}")
    with pytest.raises(ShakedownError, match="phase of a sine"):
        Sine(1.0, 5.0, int(HUGE))


def test_given_a_table_for_the_name_of_a_channel_then_a_sentence() -> None:
    text = 'name = "x"\nrate = 100\n[[channels]]\nname = {a = 1}\n[instruments.source]\ndriver = "virtual"\n'
    with pytest.raises(ShakedownError, match="every channel needs a name"):
        rig_from_text(text, "x")


NAN = float("nan")
PLAIN = {"kind": "sine", "amplitude": 0.1, "frequency": 5.0, "seconds": 3.0}


@pytest.mark.parametrize(
    "drive",
    [
        {"kind": "stepped sine", "amplitude": 1.0, "frequencies": [5.0, NAN, 6.0], "dwell": 1.0},
        {"kind": "stepped sine", "amplitude": 1.0, "frequencies": [5.0, 6.0], "dwell": NAN},
        {"kind": "stepped sine", "amplitude": 1.0, "frequencies": 5.0, "dwell": 1.0},
        {"kind": "stepped sine", "amplitude": 1.0, "frequencies": ["a", 5.0], "dwell": 1.0},
        {"kind": "sweep", "amplitude": 1.0, "start": 5.0, "stop": NAN, "seconds": 3.0},
        {"kind": "sweep", "amplitude": 1.0, "start": 5.0, "stop": 6.0, "seconds": float("inf")},
        {"kind": "sweep", "amplitude": 1.0, "start": 5.0, "stop": 6.0, "seconds": 1.0, "logarithmic": "no"},
        {"kind": "sine", "amplitude": "1", "frequency": 5.0},
        {"kind": "sine", "amplitude": True, "frequency": 5.0},
        {"kind": "sine", "amplitude": 1.0, "frequency": int(HUGE)},
        {"kind": "multisine", "amplitude": 1.0, "lowest": 1.0, "highest": 5.0, "spacing": 1.0, "seed": -1},
        {"kind": "multisine", "amplitude": 1.0, "lowest": 1.0, "highest": 100.0, "spacing": 1e-9},
        {"kind": "random", "amplitude": 1.0, "lowest": 1.0, "highest": 5.0, "seed": 1.5},
        {"kind": "burst random", "amplitude": 1.0, "lowest": 1.0, "highest": 5.0, "period": NAN},
        {"kind": "user", "amplitude": 1.0, "samples": ["a", 1, 0], "sample_rate": 10.0},
        {"kind": "user", "amplitude": 1.0, "samples": [[0, 1], [1, 2]], "sample_rate": 10.0},
        {"kind": "user", "amplitude": 1.0, "samples": [0, 1, 0], "sample_rate": float("inf")},
        {"kind": "segments", "amplitude": 0.1, "parts": [{**PLAIN, "amplitude": -5.0}]},
        {"kind": "segments", "amplitude": 0.1, "parts": [PLAIN, {**PLAIN, "frequency": NAN}]},
    ],
    ids=lambda drive: f"{drive['kind']}-{len(str(drive))}",
)
def test_given_a_drive_of_what_is_no_number_then_a_sentence(drive: dict[str, object]) -> None:
    with pytest.raises(WaveformError):
        waveform_from(drive)


@pytest.mark.parametrize(
    "drive",
    [
        SteppedSine(1.0, (5.0, NAN, 6.0), 1.0),  # its band is that of the others: min and max pass NaN over
        Sweep(1.0, 5.0, NAN, 3.0),
        Segments(1.0, (Part(Sine(1.0, 5.0), 2.0), Part(Sine(1.0, NAN), 2.0))),
        RandomNoise(1.0, 5.0, 5.0 + 1e-7),
        BurstRandom(1.0, 1.0, 5.0, 1e9),
        Multisine(1.0, 1.0, 400.0, np.pi / 10),  # 1271 lines, to be summed for every sample
        Sine(1.0, 501.0),  # of 1000 samples a second: 499 Hz would go out
        Multisine(1.0, 400.0, 600.0, 10.0),
    ],
    ids=lambda drive: drive.kind,
)
def test_given_a_drive_that_cannot_be_played_as_it_says_then_refused_and_silent(drive: Waveform) -> None:
    player = Player(Limits(1.0), 1000.0)
    with pytest.raises(ShakedownError):
        player.play(drive)
    assert not player.take(500).any() and not player.state().playing


def test_given_a_change_beyond_half_the_rate_then_refused() -> None:
    player = Player(Limits(1.0), 1000.0)
    player.play(Sine(1.0, 500.0))
    with pytest.raises(LimitError, match="half of the 1000 samples"):
        player.change(frequency=501.0)
    assert player.state().frequency == 500.0


@pytest.mark.parametrize(
    "limits",
    [
        {"amplitude": float("inf")},
        {"amplitude": NAN},
        {"amplitude": 1.0, "displacement": 0.1, "travel": NAN},  # the limit of displacement would not hold
        {"amplitude": 1.0, "travel": float("inf")},
        {"amplitude": 1.0, "ask_above": NAN},  # nobody would be asked
        {"amplitude": 1.0, "highest_frequency": NAN},
        {"amplitude": 1.0, "slew": NAN},
        {"amplitude": 1.0, "ramp": NAN},
    ],
)
def test_given_limits_that_would_not_hold_then_a_sentence(limits: dict[str, float]) -> None:
    with pytest.raises(LimitError):
        Limits(**limits)


RIG = """name = "x"
rate = 100
{top}
[limits]
amplitude = {amplitude}
[[channels]]
name = "x"
{channel}
[instruments.source]
driver = "virtual"
wiring = {{ x = "x" }}
"""


@pytest.mark.parametrize(
    ("place", "text", "word"),
    [
        ("amplitude", "nan", "amplitude must be a number"),
        ("amplitude", HUGE, "amplitude limit must be a number"),
        ("amplitude", '"1"', "amplitude must be a number"),
        ("top", "settle = nan", "settle must be"),
        ("top", 'settle = "long"', "settle must be"),
        ("channel", "limit = nan", "limit must be a number"),
        ("channel", "limit = -1.0", "limit must be positive"),
        ("channel", "limit = 0.0", "limit must be positive"),
        ("channel", "sensitivity = nan", "sensitivity must be a number"),
        ("channel", "sensitivity = inf", "sensitivity must not be"),
        ("channel", "range = inf", "range must be positive"),
        ("channel", "zero = nan", "zero must be a number"),
    ],
)
def test_given_a_profile_with_what_is_no_number_then_a_sentence(place: str, text: str, word: str) -> None:
    values = {"top": "", "amplitude": "1.0", "channel": ""}
    rig_from_text(RIG.format(**values), "x")
    with pytest.raises(ShakedownError, match=word):
        rig_from_text(RIG.format(**{**values, place: text}), "x")
