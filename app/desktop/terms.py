"""Candidate terms of an equation that is to be found, and the search for those that a record supports."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from analysis import FUNCTIONS, DataError, ModelError, Progress, Record

if TYPE_CHECKING:
    from analysis import Library, Selection

MOST = 20_000  # samples that are searched: more cost time and tell little new
FEWEST = 64  # samples that tell whether one channel is the rate of another
TONE = "tone"  # a cosine and a sine of unknown size at the recorded frequency
GAIN = "gain"  # of a measured drive: one over the mass for a force, any factor for a voltage
KEPT = "v"  # viscous damping is in every specimen: it always stays
RESERVED = {"t", "pi", "measured", *FUNCTIONS}  # names that mean something in a model
DRIVES = ("f", "force", "u", "drive", "input", "excitation")  # names of channels that drive
FORCES = ("N", "kN", "mN", "lbf")  # units that tell what a channel is, in whatever language its name is
LENGTHS = ("m", "cm", "mm", "um", "µm", "μm", "nm", "in", "ft")
SPEEDS = tuple(f"{length}/s" for length in LENGTHS)
SPELT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})


@dataclass(frozen=True)
class Candidate:
    """A term that may be part of the equation, with words for it; ``usual``: ticked at first."""

    term: str
    words: str
    usual: bool = True


@dataclass(frozen=True)
class Question:
    """What is asked: which of the terms make the equation of motion of these channels."""

    terms: tuple[str, ...]
    channels: Mapping[str, str] = field(default_factory=dict)  # channel by name in the equations
    drive: str = ""  # TONE, the name in the equations of the channel that drives, or empty
    oscillator: bool = True  # x'' = drive - ?; else every channel is a state with a rate of its own


def oscillator_candidates(record: Record, displacement: str, velocity: str) -> list[Candidate]:
    """Terms of restoring force and damping that specimens have, with dry friction to the record's scale."""
    speed = _speed(record, displacement, velocity)
    steep = f"{20 / speed:.0e}" if speed > 0 else "20"
    friction = f"tanh({float(steep):g}*v)"
    return [
        Candidate("1", "constant force"),
        Candidate("x", "linear stiffness"),
        Candidate("x**2", "lopsided stiffness"),
        Candidate("x**3", "hardening or softening"),
        Candidate("x**4", "lopsided, fourth power"),
        Candidate("x**5", "hardening, two more wells"),
        Candidate("v", "viscous damping: always stays"),
        Candidate("v*abs(v)", "drag of air or water"),
        Candidate(friction, "dry friction"),
        Candidate("x**2*v", "damping that follows the motion"),
        Candidate("v**3", "cubic damping", usual=False),
        Candidate("x*v", "lopsided damping", usual=False),
        Candidate("x*abs(x)", "lopsided hardening", usual=False),
        Candidate("abs(x)", "another stiffness on each side", usual=False),
        Candidate("x**7", "seventh power", usual=False),
        Candidate("sin(x)", "pendulum, x in rad", usual=False),
        Candidate("max(x-g,0)", "contact beyond a gap g that is to be found", usual=False),
        Candidate("tanh(v/s)", "dry friction, its smoothness s to be found", usual=False),
    ]


def system_candidates(states: list[str], drive: str = "") -> list[Candidate]:
    """Products of powers of the states, those up to the second power ticked; the drive by itself."""
    from analysis import monomials

    plain = set(monomials(states, 2))
    driving = [Candidate(drive, "what drives")] if drive else []
    return [*driving, *(Candidate(term, "", term in plain) for term in monomials(states, 3))]


def likely_drive(record: Record) -> str:
    """The channel that looks like a force, the recorded tone, or nothing."""
    named = [name for name in record.names if name.lower() in DRIVES]
    if found := named or _measured_in(record, FORCES):
        return found[0]
    drive = record.excitation
    return TONE if drive is not None and drive.waveform == "sine" and drive.frequency > 0 else ""


def likely_displacement(record: Record) -> str:
    """The channel x, or the only one that is measured in a unit of length; or nothing."""
    if "x" in record.names:
        return "x"
    measured = _measured_in(record, LENGTHS)
    return measured[0] if len(measured) == 1 else ""


def likely_velocity(record: Record, displacement: str) -> str:
    """The channel v, or the only one in a unit of velocity, where it shows the rate of change of the
    displacement, in that unit; or nothing."""
    from analysis import is_rate

    measured = _measured_in(record, SPEEDS)
    velocity = "v" if "v" in record.names else measured[0] if len(measured) == 1 else ""
    if not velocity or displacement in ("", velocity):
        return ""
    seen = record.cut(0, min(MOST, len(record)))
    if any(seen.channels[name].gaps for name in (displacement, velocity)) or len(seen) < FEWEST:
        return velocity  # the search itself looks more closely
    return velocity if is_rate(seen[displacement], seen[velocity], 1 / seen.rate) else ""


def _measured_in(record: Record, units: Collection[str]) -> list[str]:
    """The channels that have one of these units."""
    return [name for name in record.names if record.channels[name].unit in units]


def find_terms(record: Record, question: Question, progress: Progress) -> Selection:
    """The equation of the terms that the record supports, judged; runs in a worker."""
    from analysis import select_terms

    progress.report(0.0, "Compiling the equations")
    own = {name: record.channels[channel] for name, channel in question.channels.items()}
    record = replace(record, channels=own)
    library = _library(question, record)
    return select_terms(library, record.cut(0, min(MOST, len(record))), progress)


def _library(question: Question, record: Record) -> Library:
    from analysis import oscillator, system

    if not question.terms:
        raise ModelError("Tick at least one term.")
    if not question.oscillator:
        if question.drive == TONE:
            raise ModelError("Only an oscillator can be driven by a tone: choose the channel that drives.")
        names = [name for name in question.channels if name != question.drive]
        inputs = {question.drive: "measured"} if question.drive else {}
        shapes = _shapes(question.terms, question.channels)
        return system(dict.fromkeys(names, "?"), question.terms, inputs=inputs, shapes=shapes)
    known = {}
    drive = question.drive or "0"
    if drive == TONE:
        if record.excitation is None or record.excitation.frequency <= 0:
            raise DataError("The recording does not tell the drive's frequency.")
        known = {"w": 2 * math.pi * record.excitation.frequency}
    gain = GAIN if drive.isidentifier() and drive != TONE else ""
    shapes = _shapes(question.terms, {"x", "v", drive})
    return oscillator(question.terms, drive, known, (KEPT,), shapes, gain=gain)


def _shapes(terms: Sequence[str], known: Collection[str]) -> list[str]:
    """Names in terms that mean nothing else: numbers to be found inside them."""
    words = [word for term in terms for word in re.findall(r"(?<![\w.])[A-Za-z_]\w*", term)]
    return list(dict.fromkeys(word for word in words if word not in known and word not in RESERVED))


def equation_names(channels: Sequence[str]) -> dict[str, str]:
    """Each channel by a name that the equations can have, no two the same."""
    found: dict[str, str] = {}
    for channel in channels:
        plain = re.sub(r"\W", "_", channel.translate(SPELT), flags=re.ASCII)
        name = plain if plain and plain[0].isalpha() and plain not in RESERVED else f"q_{plain}"
        while name in found:
            name += "_"
        found[name] = channel
    return found


def _speed(record: Record, displacement: str, velocity: str) -> float:
    """Standard deviation of the velocity, from the displacement's differences where it was not measured."""
    if velocity:
        return float(np.nanstd(record[velocity]))
    return float(np.nanstd(np.diff(record[displacement])) * record.rate) if len(record) > 2 else 0.0
