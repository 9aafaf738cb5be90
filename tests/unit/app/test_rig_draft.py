"""A rig put together by hand, and the list of sensors it takes its calibrations from."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from analysis import DataError, ShakedownError
from app import sensors
from app.cli import main
from app.rig_draft import RigDraft, ShakerLimits
from app.sensors import Sensor
from drivers.base.limits import STOP_RAMP
from drivers.rig.profile import rig_from_text

ACCELEROMETER = Sensor("acc 1", "iepe", "m/s²", 0.0102, 5.0, date(2026, 3, 1), teds=True)
LIMITS = ShakerLimits(2.0, 5.0, 500.0, 1.0)


@pytest.fixture
def draft() -> RigDraft:
    return RigDraft("nidaqmx", "Dev1", 2048.0).with_channel()


def test_given_channels_when_added_duplicated_moved_and_removed_then_names_and_inputs_stay_apart(
    draft: RigDraft,
) -> None:
    draft = draft.changed(0, name="a", sensor=ACCELEROMETER).with_channel().duplicated(0)
    assert [(c.name, c.terminal) for c in draft.channels] == [
        ("a", "Dev1/ai0"), ("a2", "Dev1/ai2"), ("x", "Dev1/ai1")
    ]  # fmt: skip
    assert draft.channels[1].sensor == ACCELEROMETER
    assert [c.name for c in draft.moved(0, 1).channels] == ["a2", "a", "x"]
    assert draft.moved(0, -1) == draft.moved(2, 1) == draft
    assert [c.name for c in draft.without(1).channels] == ["a", "x"]
    full = draft
    while len(full.channels) < 32:
        full = full.with_channel()
    with pytest.raises(ShakedownError, match="in use"):
        full.with_channel()


def test_given_a_shaker_then_no_limit_may_be_left_empty(draft: RigDraft) -> None:
    assert RigDraft().problem() == "Choose the instrument." and draft.problem() == ""
    driven = replace(draft, output="Dev1/ao0")
    assert "amplitude, lowest frequency, highest frequency, ramp" in driven.problem()
    for name in ("amplitude", "lowest", "highest", "ramp"):
        for value in (float("nan"), 0.0, -1.0):
            assert "not whole" in replace(driven, limits=replace(LIMITS, **{name: value})).problem()
    assert "frequency" in replace(driven, limits=replace(LIMITS, lowest=600.0)).problem()
    whole = replace(driven, limits=LIMITS).changed(0, sensor=ACCELEROMETER, limit=50.0)
    assert whole.problem() == ""
    profile = rig_from_text(whole.text("Bench 2"), "bench_2")
    assert profile.limits.peak == 2.0 and profile.limits.slew >= 2.0 / STOP_RAMP
    assert profile.limits.lowest_frequency == 5.0 and profile.limits.ramp == 1.0
    (channel,) = profile.channels
    assert (channel.kind, channel.unit, channel.sensitivity, channel.teds) == ("iepe", "m/s²", 0.0102, True)
    assert (channel.limit, channel.calibrated) == (50.0, "2026-03-01")
    assert profile.instruments["exciter"] == {"driver": "nidaqmx", "output": "Dev1/ao0"}


def test_given_two_channels_on_one_input_or_of_one_name_then_it_is_said(draft: RigDraft) -> None:
    two = draft.with_channel()
    assert "connected to Dev1/ai0" in two.changed(1, terminal="Dev1/ai0").problem()
    assert "name of its own" in two.changed(1, name="x").problem()
    assert two.changed(1, name=" ").problem() == "Every channel needs a name."


def test_given_an_instrument_that_drives_nothing_then_the_rig_has_no_shaker() -> None:
    draft = RigDraft("opendaq", "daqref://device0", 1000.0).with_channel()
    assert draft.outputs() == [] and draft.problem() == ""
    profile = rig_from_text(draft.text("net"), "net")
    assert (
        profile.instruments["source"]["device"] == "daqref://device0" and "exciter" not in profile.instruments
    )


def test_given_sensors_then_they_are_merged_by_name_and_say_how_good_their_calibration_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert sensors.load() == []
    sensors.add([ACCELEROMETER, Sensor("gauge", unit="mm", sensitivity=2.0)])
    newer = replace(ACCELEROMETER, sensitivity=0.0101, calibrated=date(2026, 9, 1))
    assert [s.sensitivity for s in sensors.add([newer])] == [0.0101, 2.0]
    assert sensors.load()[0] == newer
    assert newer.words(date(2027, 8, 31)) == "good until 2027-09-01"
    assert newer.words(date(2027, 9, 2)) == "out of date since 2027-09-01"
    assert sensors.load()[1].words(date(2026, 1, 1)) == "never calibrated"
    given = tmp_path / "more.toml"
    given.write_text(
        '[[sensors]]\nname = "acc 2"\nkind = "iepe"\nunit = "g"\nsensitivity = 0.1\ndue = "2026-12-24"\n'
    )
    assert main(["sensors", "--add", str(given)]) == 0
    assert "acc 2" in capsys.readouterr().out and len(sensors.load()) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no list of sensors"),
        ("sensors = 3", "no list of sensors"),
        ("[[sensors]]\nunit = 'V'", "needs a name"),
        ("[[sensors]]\nname = 'a'\nsensitivity = 0", "must not be 0"),
        ("[[sensors]]\nname = 'a'\nsensitivity = nan", "is a number"),
        ("[[sensors]]\nname = 'a'\nsensitivity = '1'", "is a number"),
        ("[[sensors]]\nname = 'a'\nkind = 'magic'", "kind is one of"),
        ("[[sensors]]\nname = 'a'\nteds = true", "teds"),
        ("[[sensors]]\nname = 'a'\nspeed = 1", "'speed' is not known"),
        ("[[sensors]]\nname = 'a'\ndue = 'soon'", "is a day such as"),
        ("[[sensors]]\nname = 'a'\n[[sensors]]\nname = 'a'", "two sensors named 'a'"),
        ("[[sensors", "cannot be read"),
    ],
)
def test_given_a_list_of_sensors_with_a_mistake_then_one_sentence_says_it(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        sensors.load(path)
