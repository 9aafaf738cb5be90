"""From the drive to the specimen's input, the drives a rig can play, and drives in files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drivers.base.limits import Limits
from drivers.base.waveform import EDGE, Part, Segments, Sine
from drivers.rig.drive_file import load_drive
from drivers.rig.profile import RigError, load_rig, rig_from_text
from drivers.rig.shaker_path import ShakerPath, shaker_path
from drivers.rig.shapes import check_plays, shapes, working_band


def test_given_a_lag_then_the_table_follows_as_the_solution_of_its_equation() -> None:
    rate, lag, w = 2000.0, 0.004, 2 * np.pi * 12.0
    t = np.arange(4000) / rate
    path = ShakerPath(0.5, lag, inputs={"f": "table", "g": "table velocity"}, scale={"f": 3.0})
    f, g = path.inputs_of(["f", "g"], np.cos(w * t), rate)
    exact = 0.5 * np.exp(1j * w * t) / (1 + 1j * w * lag)
    late = t > 10 * lag
    assert np.abs(f / 3 - exact.real)[late].max() < 1e-3 * 0.5
    assert np.abs(g - (1j * w * exact).real)[late].max() < 2e-3 * w * 0.5
    with pytest.raises(RigError, match="reaches the input 'h'"):
        path.inputs_of(["h"], t, rate)


def test_given_a_profile_then_its_shaker_is_the_virtual_one_or_the_one_it_states() -> None:
    profile = load_rig("two_well_beam")
    assert shaker_path(profile) == ShakerPath(0.16667, 0.0005, 2.0, {"f": "table"})
    text = (profile.folder / "two_well_beam.toml").read_text()
    stated = rig_from_text(f'{text}\n[shaker]\ngain = 0.3\ninputs = {{ f = "table" }}\n', "mine")
    assert shaker_path(stated) == ShakerPath(0.3, inputs={"f": "table"})
    real = replace(profile, instruments={**profile.instruments, "source": {"driver": "nidaqmx"}})
    with pytest.raises(RigError, match=r"give it a \[shaker\]"):
        shaker_path(real)
    with pytest.raises(RigError, match="not 'sideways'"):
        shaker_path(replace(stated, shaker={"gain": 1.0, "inputs": {"f": "sideways"}}))


@pytest.mark.parametrize(("driver", "words"), [("ds345", "plays sines only"), ("", "has no exciter")])
def test_given_a_rig_that_cannot_play_a_plan_then_one_sentence(driver: str, words: str) -> None:
    profile = load_rig("two_well_beam")
    others = {k: v for k, v in profile.instruments.items() if k != "exciter"}
    with pytest.raises(RigError, match=words):
        check_plays(
            replace(profile, instruments=others | ({"exciter": {"driver": driver}} if driver else {}))
        )
    check_plays(profile)


def test_given_limits_then_every_shape_keeps_them() -> None:
    limits = Limits(4.0, 0.5, 60.0, slew=250.0, displacement=1.0, travel=0.5)
    band = working_band(limits, 187.5, [11.0, 500.0])
    assert band == (2.75, pytest.approx(37.5))
    found = shapes(limits, band, [11.0], 5.0)
    assert {w.kind for w in found} == {"sine", "sweep", "multisine", "random"}
    for shape in found:
        whole = Segments(shape.amplitude, (Part(shape, 5.0),))
        limits.check_amplitude(whole.amplitude)
        limits.check_frequency(*whole.band)
        limits.check_slew(whole.slew())
    with pytest.raises(RigError, match="No frequency"):
        working_band(Limits(4.0, 30.0, 60.0), 100.0, [])


def test_given_a_drive_file_then_it_reads_back_or_says_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    text = 'rig = "beam"\nseconds = 12\n[drive]\nkind = "segments"\namplitude = 2.0\n[[drive.parts]]\n'
    file.write_text(text + 'kind = "sine"\namplitude = 2.0\nfrequency = 7.5\nseconds = 12.0\n')
    found = load_drive(file)
    assert found.waveform == Segments(2.0, (Part(Sine(2.0, 7.5), 12.0),)) and EDGE < 6
    assert (found.seconds, found.rig) == (12.0, "beam")
    for wrong, words in (
        ("seconds = 3", r"no \[drive\]"),
        ("seconds = -1\n[drive]\namplitude = 1.0\nfrequency = 2.0", "positive"),
        ('[drive]\nkind = "drum"', "drum"),
        ("[drive", "plan.toml"),
    ):
        file.write_text(wrong)
        with pytest.raises(RigError, match=words):
            load_drive(file)
