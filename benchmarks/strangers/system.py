"""A stranger: a system the program has never seen, as its user would bring it. One TOML file each.

about       what is hard about it
rate, seconds, initial      of the record; initial state of the true motion, in the order of the states
scale       size of the states in their own units, for the truth's tolerance (default 1)
settle      seconds of motion before the record begins (default 0)
stiff       integrate the truth by an implicit scheme
max_step    longest step of that integration, for equations with kinks
dry         the state v whose dry friction stands in the equations as sign(v): the truth sticks and slips
sensors     outputs that are recorded (default all)
input_noise noise on the recorded inputs, in units of the noise level (default 0)
spikes, gap outliers on each output; seconds without outputs
undetermined    parameters that no fit can find from these sensors: to be named, not valued
[truth]     true values of the free parameters
[drive.u]   each measured input: kind = "multisine" (low, high, rms), "held" (rms, white, constant over a
            sample interval), "sine" (frequency, amplitude), "derivative" (of another input)
model       the model file, its guesses 30 to 100 % off
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "systems"


@dataclass(frozen=True)
class System:
    """See the module's text for the fields."""

    name: str
    about: str
    rate: float
    seconds: float
    initial: list[float]
    truth: dict[str, float]
    model: str
    drive: dict[str, dict[str, Any]] = field(default_factory=dict)
    sensors: list[str] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)
    settle: float = 0.0
    stiff: bool = False
    max_step: float = float("inf")
    dry: str = ""
    input_noise: float = 0.0
    spikes: int = 0
    gap: float = 0.0
    undetermined: list[str] = field(default_factory=list)

    @property
    def samples(self) -> int:
        return round(self.rate * self.seconds)


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> System:
    """The system of that name; a file with an unknown field is an error."""
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    return System(name=name, **tomllib.loads(text))
