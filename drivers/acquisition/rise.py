"""Waiting until a drive has risen to what was asked for: what is recorded before is no steady motion."""

from __future__ import annotations

from collections.abc import Callable

from drivers.acquisition.engine import Engine
from drivers.base.protocols import DriveState
from drivers.rig.player import SOFT_START
from drivers.rig.profile import Rig

LOOK_SECONDS = 0.1  # between two questions
LONGEST_SECONDS = 60.0  # a ramp of the profile that is slower is its own affair


def is_rising(state: DriveState) -> bool:
    """Whether a soft start or a change to another frequency or amplitude is under way."""
    return state.playing and (state.level < 1 or (state.waveform == "sine" and not state.steady))


def advance_until_risen(rig: Rig, engine: Engine, watch: Callable[[float], None]) -> None:
    """Let the soft start or the change pass, on the stream's own time; ``watch`` is called meanwhile.

    A generator on a line takes longer than an analogue output, and so does a slow ramp of the profile.
    """
    engine.advance(SOFT_START, watch)
    waited = SOFT_START
    while rig.exciter is not None and is_rising(rig.exciter.state()) and waited < LONGEST_SECONDS:
        engine.advance(LOOK_SECONDS, watch)
        waited += LOOK_SECONDS
