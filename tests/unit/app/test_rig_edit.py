"""Channels of a rig that is there: the rest of the profile and its comments stay."""

from __future__ import annotations

import tomllib

import pytest

from app.rig_edit import EditedRig
from app.sensors import Sensor
from drivers.rig.profile import load_rig, rig_files, rig_from_text
from tests.sound_card import PROFILE

BEAM = rig_files()["two_well_beam"].read_text(encoding="utf-8")
RACK = (
    """
name = "Rack"
rate = 2048
description = """
    + "'''"
    + """
[[channels]] are below
"""
    + "'''"
    + """

# the one at the tip
[[channels]]   # laser
name = "x"   # mm
unit = "mm"
sensitivity = 0.5  # V/mm, sheet of 2024
# at the clamp
[[channels]]
name = "strain"
kind = "bridge"
limit = 900   # the gauge comes off

[instruments.source]
driver = "nidaqmx"
wiring = { x = "cDAQ1Mod1/ai0", strain = "cDAQ1Mod2/ai3" } # rack
"""
)


def test_given_channels_in_another_order_then_each_takes_its_lines_and_comments_along() -> None:
    text = EditedRig.of(RACK).moved(0, 1).text("")
    assert [c.name for c in rig_from_text(text, "k").channels] == ["strain", "x"]
    assert (
        text.index("# at the clamp")
        < text.index("# the gauge comes off")
        < text.index("# the one at the tip")
    )
    for words in ("# laser", "# mm", "sheet of 2024", "[[channels]] are below", "# rack"):
        assert words in text


def test_given_nothing_that_is_changed_then_the_profile_says_the_same() -> None:
    for text in (BEAM, RACK, PROFILE):
        assert tomllib.loads(EditedRig.of(text).text("")) == tomllib.loads(text)
    kept = EditedRig.of(BEAM).text("").splitlines()
    assert [line for line in BEAM.splitlines() if "#" in line] == [line for line in kept if "#" in line]


def test_given_a_copy_then_it_has_all_that_its_original_has_and_another_input() -> None:
    text = EditedRig.of(BEAM).duplicated(0).text("")
    raw = tomllib.loads(text)
    first, second = raw["channels"][:2]
    assert second == {**first, "name": "x2"} and "440 counts" in text.split('"x2"')[1]
    assert raw["instruments"]["source"]["wiring"]["x2"] not in ("x", "f", "drive")
    rig_from_text(text, "beam")


def test_given_inputs_of_several_modules_then_free_ones_of_each_are_offered() -> None:
    draft = EditedRig.of(RACK)
    assert {"cDAQ1Mod1/ai1", "cDAQ1Mod2/ai0"} <= set(draft.terminals())
    added = draft.with_channel()
    assert added.channels[-1].terminal not in ("cDAQ1Mod1/ai0", "cDAQ1Mod2/ai3")
    assert rig_from_text(added.text(""), "k").channels[-1].unit == "V"


def test_given_another_sensor_then_nothing_of_the_old_one_stays() -> None:
    laser = Sensor(name="laser 2", unit="m/s", sensitivity=2.0)
    channel = rig_from_text(EditedRig.of(RACK).changed(1, sensor=laser).text(""), "k").channels[1]
    assert (channel.kind, channel.unit, channel.sensitivity, channel.limit) == ("voltage", "m/s", 2.0, 900)


def test_given_a_channel_that_stops_the_drive_then_its_loss_is_told() -> None:
    draft = EditedRig.of(RACK)
    assert not draft.lost_stops()
    assert draft.without(1).lost_stops() == draft.changed(1, limit=None).lost_stops() == ["strain"]
    assert "limit" not in draft.changed(1, limit=None).text("")


@pytest.mark.parametrize("change", [{"name": "out"}, None])
def test_given_a_channel_that_an_instrument_needs_then_it_stays(change: dict[str, str] | None) -> None:
    draft = EditedRig.of(PROFILE)
    changed = draft.without(1) if change is None else draft.changed(1, **change)
    assert "needs channel drive" in changed.problem() and not draft.problem()


def test_given_inputs_that_are_numbers_then_they_stay_numbers() -> None:
    draft = EditedRig.of(PROFILE).with_channel()
    assert tomllib.loads(draft.text(""))["instruments"]["source"]["wiring"] == {"x": 0, "drive": 1, "x2": 2}
    assert draft.changed(0, terminal="left").problem() == "The inputs of this instrument are numbers."


def test_given_a_wiring_over_many_lines_then_all_but_the_comments_is_kept() -> None:
    table = '[instruments.source.wiring]\nx = "a/ai0"\nstrain = "a/ai1"'
    text = RACK.replace(RACK[RACK.index("wiring =") :], "") + table + "\n"
    edited = EditedRig.of(text).duplicated(0).text("")
    wiring = rig_from_text(edited, "k").instruments["source"]["wiring"]
    assert wiring == {"x": "a/ai0", "x2": "a/ai2", "strain": "a/ai1"}


def test_given_every_shipped_rig_then_its_channels_can_be_edited() -> None:
    for name, path in rig_files().items():
        draft = EditedRig.of(path.read_text(encoding="utf-8"))
        assert not draft.problem(), name
        assert rig_from_text(draft.moved(0, 1).text(""), name).limits == load_rig(name).limits
