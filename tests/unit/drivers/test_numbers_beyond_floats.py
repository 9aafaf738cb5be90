"""TOML has whole numbers of any length and tables anywhere: a sentence, not an error of a library."""

from __future__ import annotations

import pytest

from analysis import ShakedownError
from drivers.acquisition.sequence import sequence_from_text
from drivers.base.waveform import Sine
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
