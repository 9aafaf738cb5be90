"""The live fit counts a model's t as the drive's time, from what the blocks tell of the drive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.model import Model
from analysis.simulation.simulate import simulate
from app.desktop.livefit import LiveEstimate, joined
from drivers.base.protocols import Block, DriveState

RATE, OMEGA, PHASE = 50.0, 1.33, 2.1  # the drive's phase at sample 0 of the stream
TRUE = {"c": 0.2, "k1": 0.5, "k3": 1.0, "b": 27.0}
TEXT = """
name = "driven"
[states]
x = "v"
v = "-c*v - k1*x - k3*x**3 + b*cos(1.33*t)"
[parameters]
c = { guess = 0.1 }
k1 = { guess = 0.1 }
k3 = { guess = 0.1 }
b = { guess = 1.0 }
"""


def stream(first: int = 700) -> list[Block]:
    """Blocks from a later sample of the stream on, each with the drive as the source tells it."""
    model = Model.from_toml(TEXT).with_values(TRUE)
    index = first + np.arange(6000)
    states = simulate(model, PHASE / OMEGA + index / RATE, np.array([1.0, 0.0])).states
    blocks = []
    for part in np.split(np.arange(6000), 30):
        at = int(index[part[0]])
        phase = (PHASE + OMEGA * at / RATE) % (2 * np.pi)
        drive = DriveState(at, True, "sine", OMEGA / (2 * np.pi), 27.0, 1.0, phase, steady=True)
        blocks.append(Block(at, states[:, part], drive=drive))
    return blocks


def fitted(blocks: list[Block]) -> LiveEstimate:
    fit = LiveEstimate(TEXT, RATE, ["x", "v"])
    fit.take(joined(blocks, RATE))
    assert fit.ready
    return fit


def test_given_a_first_sample_at_any_phase_of_the_drive_then_the_model_follows_the_drives_time() -> None:
    blocks = stream()
    assert len(joined(blocks, RATE)) == 1
    found = fitted(blocks).weak.estimate()
    for name, truth in TRUE.items():
        assert found.parameters[name].value == pytest.approx(truth, rel=2e-3)


def test_given_a_drive_whose_phase_is_not_known_then_it_is_said_in_words() -> None:
    with pytest.raises(DataError, match="which the stream does not tell"):
        fitted([replace(b, drive=None) for b in stream()])


@pytest.mark.parametrize("change", [{"phase": 0.5}, {"frequency": 0.3}, {"steady": False}])
def test_given_a_drive_that_changes_then_the_fit_does_not_go_on_in_silence(
    change: dict[str, float],
) -> None:
    blocks = stream()
    for i in range(20, 30):
        drive = blocks[i].drive
        assert drive is not None
        moved = {"phase": drive.phase + 0.5} if "phase" in change else change
        blocks[i] = replace(blocks[i], drive=replace(drive, **moved))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="The drive has changed"):
        fitted(blocks)
