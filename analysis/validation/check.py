"""The result of one check: how it ended, a sentence, the numbers behind it, and what to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Status = Literal["passed", "doubtful", "failed", "not possible"]
Role = Literal["measured", "model", "limit"]
MEASURED: Role = "measured"
MODEL: Role = "model"


@dataclass(frozen=True, eq=False)
class Trace:
    """A line, or points, of a panel."""

    label: str
    x: Array
    y: Array
    role: Role
    points: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """One plot; labels with units."""

    title: str
    x_label: str
    y_label: str
    traces: tuple[Trace, ...]
    log_x: bool = False
    log_y: bool = False
    x_range: tuple[float, float] | None = None  # None: whatever the traces need
    y_range: tuple[float, float] | None = None
    markers: tuple[tuple[float, str], ...] = ()  # moments that somebody marked: x, and the word


@dataclass(frozen=True, eq=False)
class Check:
    """What one check found. ``rows`` is its table, one mapping for each line, all with the same keys."""

    name: str
    title: str
    status: Status
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    rows: Sequence[Mapping[str, Any]] = ()
    panels: tuple[Panel, ...] = ()


def graded(value: float, passed: float, doubtful: float) -> Status:
    """Status of a number that should be small: up to ``passed``, up to ``doubtful``, or beyond."""
    if not np.isfinite(value):
        return "failed"
    return "passed" if value <= passed else "doubtful" if value <= doubtful else "failed"


def impossible(name: str, title: str, reason: str) -> Check:
    """A check that could not be made, and why."""
    return Check(name, title, "not possible", reason)
