"""The jobs of a study: one fit each, under a key of everything that its result depends on.

The program's own studies ask for something else than a fit: a draw of a Monte Carlo, a published table. Their
jobs are calls of a function by its name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from app.campaign.version import program_version

_json = json.JSONEncoder(sort_keys=True).encode

# What a job does with its recording.
WHOLE, SEGMENT, HELD_OUT, PARAMETRIC, BLOCK = "whole", "segment", "held out", "parametric", "block"


@dataclass(frozen=True)
class Job:
    """One identification. Plain data: it travels as JSON to whatever process does it."""

    recording: str  # absolute path
    sha256: str
    model: str  # text of the model, guesses and known values in place
    model_name: str  # as the study names it
    method: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    channels: Mapping[str, str] = field(default_factory=dict)  # channel of the file by name in the model
    rate: float | None = None  # Hz, of a file that does not say
    kind: str = WHOLE
    number: int = 0  # of the segment, of the held-out part, or of the draw
    count: int = 1  # segments or parts in all; the draws of a bootstrap do not depend on how many there are
    seed: int = 0  # of the draws
    varied: Mapping[str, float | str] = field(default_factory=dict)  # what the grid chose, for the table

    @cached_property
    def key(self) -> str:
        """SHA-256 of the recording's checksum, the model's text, the options and the program's version."""
        fit = _fit_digest(
            self.model, self.method, _listed(self.options), _listed(self.channels), repr(self.rate)
        )
        count = self.count if self.kind in (SEGMENT, HELD_OUT) else 1
        what = f"{fit} {self.sha256} {self.kind} {self.number} {count} {self.seed}"
        return hashlib.sha256(what.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def words(self) -> str:
        """What the job is, for a list."""
        part = "" if self.kind == WHOLE else f", {self.kind} {self.number + 1}"
        part += f" of {self.count}" if self.kind in (SEGMENT, HELD_OUT) else ""
        grid = "".join(f", {name} = {value}" for name, value in self.varied.items())
        return f"{self.recording}: {self.model_name} by {self.method}{part}{grid}"


@lru_cache(maxsize=1000)
def _fit_digest(model: str, method: str, options: str, channels: str, rate: str) -> str:
    """What the thousands of jobs of one fit have in common: every start asks all their keys."""
    what = (program_version(), model, method, options, channels, rate)
    return hashlib.sha256(_json(what).encode()).hexdigest()


def _listed(table: Mapping[str, Any]) -> str:
    return repr(sorted(table.items())) if table else ""


@dataclass(frozen=True)
class Call:
    """A function of ours with plain arguments; what it returns is plain data, too."""

    function: str  # module:name
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the function's name and its arguments; who keeps answers adds what they depend on."""
        return hashlib.sha256(_json((self.function, self.arguments)).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        return {"function": self.function, "arguments": dict(self.arguments)}


Task = Job | Call


def task(raw: Mapping[str, Any]) -> Task:
    """A job or a call from what :meth:`to_dict` made of it."""
    return Call(**raw) if "function" in raw else Job(**raw)
