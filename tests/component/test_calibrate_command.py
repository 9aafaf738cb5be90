"""`shakedown calibrate` on a sound card that is wired back to itself, with a voltmeter and a calibrator."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.commands import calibrate
from drivers.instruments import sound
from drivers.rig.profile import RigProfile, load_rig, open_rig
from drivers.virtual.sound_host import LoopbackHost
from tests.sound_card import PROFILE

OUTPUT, INPUT = 1.4, 2.8  # V that are 1.0 in the card's numbers, in truth
TEXT = PROFILE.replace('name = "card"', 'name = "card"                  # as it was before').replace(
    "full_scale = 4.0", "full_scale = 4.0               # a guess"
)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LoopbackHost:
    """The card, a profile that guesses its volts, and the rig opened in this process."""
    host = LoopbackHost(137, OUTPUT / INPUT, (8000.0,))
    monkeypatch.setattr(sound, "_portaudio", lambda: host)

    def here(profile: RigProfile, *_: Any) -> Any:
        return open_rig(profile)

    monkeypatch.setattr(calibrate, "open_for_command", here)
    monkeypatch.chdir(tmp_path)
    Path("card.toml").write_text(TEXT, encoding="utf-8")
    return host


def run(*words: str) -> int:
    return main(["calibrate", "card.toml", "--seconds", "0.5", *words])


def test_given_a_voltmeter_and_a_calibrator_then_the_profile_has_volts_and_the_sensors_unit(
    card: LoopbackHost, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    meter = 0.1 * OUTPUT / math.sqrt(2)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{meter:.9f}\n"))
    assert run("--out", "one.toml", "--json", "-") == 0
    spoken = capsys.readouterr()
    found = json.loads(spoken.out)
    assert "Volts (rms) at the output" in spoken.err
    assert found["output_full_scale"] == pytest.approx(OUTPUT, rel=1e-6)
    assert found["input_full_scale"] == pytest.approx(INPUT, rel=1e-4)
    assert card.output == 0.0
    text = Path("one.toml").read_text(encoding="utf-8")
    assert "# as it was before" in text and "# a guess" in text  # comments stay
    card.tone = (159.155, 0.3)  # 0.84 V of amplitude at the input, from 10 mm
    known = f"{10 / math.sqrt(2):.9f}"
    command = [
        "calibrate",
        "one.toml",
        "--only-sensor",
        "--sensor",
        "x",
        "--known",
        known,
        "--seconds",
        "0.5",
    ]
    assert main([*command, "--out", "two.toml"]) == 0
    assert "V per mm" in capsys.readouterr().out
    made = load_rig("two.toml")
    assert made.channels[0].sensitivity == pytest.approx(0.3 * INPUT / 10, rel=1e-4)
    assert made.channels[0].calibrated and made.instruments["exciter"]["full_scale"] == pytest.approx(OUTPUT)


def test_given_both_at_once_then_the_sensor_is_scaled_by_the_volts_just_found(card: LoopbackHost) -> None:
    meter = 0.1 * OUTPUT / math.sqrt(2)
    card.tone = (159.155, 0.02)
    words = ["--volts", f"{meter:.9f}", "--sensor", "x", "--known", "1", "--at", "159.155"]
    assert run("--level", "0.1", *words, "--out", "both.toml", "--frequency", "1000") == 0
    made = load_rig("both.toml").channels[0]
    assert made.sensitivity == pytest.approx(0.02 * INPUT / math.sqrt(2), rel=1e-3)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--volts", "-1"], "positive number of volts"),
        (["--volts", "0.1", "--sensor", "y"], "has no channel 'y': it has x, drive"),
        (["--only-sensor"], "needs --sensor"),
        (["--volts", "0.1", "--level", "3"], "--level is from 0 to 1"),
        (["--volts", "0.1", "--frequency", "10"], "below the corner"),
        (["--only-sensor", "--sensor", "x", "--known", "1"], "No clear tone"),
        (["--only-sensor", "--sensor", "x", "--values", "0", "1"], "does not see a value that stands still"),
        (["--volts", "0.1", "--values", "0", "1"], "--values needs --sensor"),
        (["--volts", "0.1", "--out", "card.toml"], "it would be lost"),
    ],
)
def test_given_what_cannot_be_then_one_sentence_and_nothing_is_written(
    card: LoopbackHost, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert run(*words) == 1
    said = capsys.readouterr().err
    assert sentence in said and said.strip().count("\n") == 0
    assert [p.name for p in Path().glob("*.toml")] == ["card.toml"] and card.output == 0.0


def test_given_a_card_that_is_not_wired_back_or_overdriven_then_said(
    card: LoopbackHost, capsys: pytest.CaptureFixture[str]
) -> None:
    card.gain = 0.0
    assert run("--volts", "0.1") == 1
    assert "is it connected" in capsys.readouterr().err
    card.gain, card.bend = 0.5, 150.0
    assert run("--volts", "0.1") == 1
    assert "distorted" in capsys.readouterr().err
    assert main(["calibrate", "two_well_beam", "--volts", "1"]) == 1
    assert "no sound card" in capsys.readouterr().err
