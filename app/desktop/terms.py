"""Candidate terms of an equation that is to be found, and the search for those that a record supports."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from analysis import DataError, ModelError, Progress, Record

if TYPE_CHECKING:
    from analysis import Library, Selection

MOST = 20_000  # samples that are searched: more cost time and tell little new
TONE = "tone"  # a cosine and a sine of unknown size at the recorded frequency
KEPT = "v"  # viscous damping is in every specimen: it always stays
DRIVES = ("f", "force", "u", "drive", "input", "excitation")  # names of channels that drive


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
    drive: str = ""  # TONE, or empty; a channel that drives is `f` among the channels
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
        Candidate("x**5", "hardening, two more wells"),
        Candidate("v", "viscous damping: always stays"),
        Candidate("v*abs(v)", "drag of air or water"),
        Candidate(friction, "dry friction"),
        Candidate("x**2*v", "damping that follows the motion"),
        Candidate("v**3", "cubic damping", usual=False),
        Candidate("x*v", "lopsided damping", usual=False),
        Candidate("x*abs(x)", "lopsided hardening", usual=False),
        Candidate("abs(x)", "another stiffness on each side", usual=False),
        Candidate("x**4", "lopsided, fourth power", usual=False),
        Candidate("x**7", "seventh power", usual=False),
        Candidate("sin(x)", "pendulum, x in rad", usual=False),
    ]


def system_candidates(names: list[str]) -> list[Candidate]:
    """Products of powers of the states up to the third; those up to the second are ticked at first."""
    from analysis import monomials

    plain = set(monomials(names, 2))
    return [Candidate(term, "", term in plain) for term in monomials(names, 3)]


def likely_drive(record: Record) -> str:
    """The channel that looks like a force, the recorded tone, or nothing."""
    named = [name for name in record.names if name.lower() in DRIVES]
    if named:
        return named[0]
    drive = record.excitation
    return TONE if drive is not None and drive.waveform == "sine" and drive.frequency > 0 else ""


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
        names = [name for name in question.channels if name != "f"]
        inputs = {"f": "measured"} if "f" in question.channels else {}
        return system(dict.fromkeys(names, "?"), question.terms, inputs=inputs)
    known = {}
    drive = "f" if "f" in question.channels else question.drive or "0"
    if drive == TONE:
        if record.excitation is None or record.excitation.frequency <= 0:
            raise DataError("The recording does not tell the drive's frequency.")
        known = {"w": 2 * math.pi * record.excitation.frequency}
    return oscillator(question.terms, drive, known, (KEPT,))


def equation_name(channel: str) -> str:
    """A channel's name as the equations can have it."""
    plain = re.sub(r"\W", "_", channel, flags=re.ASCII)
    return plain if plain and not plain[0].isdigit() and plain != "t" else f"q_{plain}"


def _speed(record: Record, displacement: str, velocity: str) -> float:
    """Standard deviation of the velocity, from the displacement's differences where it was not measured."""
    if velocity:
        return float(np.nanstd(record[velocity]))
    return float(np.nanstd(np.diff(record[displacement])) * record.rate) if len(record) > 2 else 0.0
