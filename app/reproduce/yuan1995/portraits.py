"""The figures of chapter 3: phase portraits of the systems, and the orbits that were extracted from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis import Record, simulate
from app.reproduce import Figure
from drivers.library import load_model

# system: seconds skipped, seconds drawn, samples a second, the two states
PORTRAITS: dict[str, tuple[float, float, float, str, str]] = {
    "duffing": (100.0, 150.0, 40.0, "x", "v"),
    "coulomb": (100.0, 300.0, 40.0, "x", "v"),
    "parametric": (500.0, 900.0, 8.0, "x", "v"),
    "lorenz": (20.0, 25.0, 200.0, "x", "z"),
}


def line(x: Any, y: Any) -> tuple[list[float], list[float]]:
    """Two arrays as a curve of a figure."""
    return np.asarray(x, dtype=float).tolist(), np.asarray(y, dtype=float).tolist()


def portrait(name: str) -> Figure:
    """Phase portrait of a library model at its own values."""
    skipped, drawn, rate, across, up = PORTRAITS[name]
    motion = simulate(load_model(name), np.arange(round((skipped + drawn) * rate)) / rate)
    first = round(skipped * rate)
    curve = line(motion[across][first:], motion[up][first:])
    return Figure(f"Phase portrait: {name}", across, up, {"": curve}, points=True)


def extracted(record: Record, known: dict[str, Any], period: int, title: str) -> Figure:
    """Segments of the record that nearly close; ``period`` of the drive in samples."""
    starts: Sequence[int] = known["starts"]
    curves = {}
    for start, multiple in zip(starts, known["orbits"], strict=True):
        part = slice(start, start + multiple * period + 1)
        curves[f"period {multiple}"] = line(record["x"][part], record["v"][part])
    return Figure(title, "x", "v", curves)
