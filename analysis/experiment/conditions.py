"""What is known about the data beside the records themselves: said once, holds for every method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

InputKind = Literal["auto", "cubic", "linear", "hold", "bandlimited"]


@dataclass(frozen=True)
class Conditions:
    """How the records are to be read: sensors, noise, inputs, and which part is used."""

    per_record: tuple[str, ...] = ()  # parameters with a value of their own in each record
    offsets: tuple[str, ...] = ()  # outputs whose sensor has an unknown constant offset
    delays: tuple[str, ...] = ()  # outputs whose sensor lags by an unknown time
    drifts: tuple[str, ...] = ()  # outputs whose zero wanders at a constant rate, another in each record
    noise: Mapping[str, float] = field(default_factory=dict)  # known standard deviations; others estimated
    inputs: InputKind = "auto"  # measured inputs between samples; auto: as the samples suggest
    dispersion: float = 0.0  # s^3: all channels passed a filter of phase -dispersion*omega^3
    denoise: bool = True  # count the noise of measured inputs; off: they are exact
    part: tuple[int, ...] = ()  # first sample and the one after the last, of every record; none: all
