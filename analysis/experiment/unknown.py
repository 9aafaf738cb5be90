"""One unknown of a fit: what it is called, what it is, and where it stands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal["parameter", "initial", "offset", "delay", "drift", "phase"]


@dataclass(frozen=True)
class Unknown:
    """An unknown of an experiment.

    ``index`` counts the model's k parameters, then q offsets, q delays and q drifts of the outputs; for an
    initial value it is the state. ``record`` is the one in which it holds, -1 when it is shared by all.
    """

    name: str
    kind: Kind
    index: int
    record: int = -1
    unit: str = ""
    lower: float = -math.inf
    upper: float = math.inf
