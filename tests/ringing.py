"""Recordings of ringing specimens and a study of them; `make setup` has compiled their equations."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from analysis import Record
from drivers.formats import write

RATE, SAMPLES = 20.0, 300
MODEL = """name = "Ringing specimen"
[states]
x = "v"
v = "f - c*v - k*x"
[inputs]
f = "measured"
[parameters]
c = { guess = 0.3, unit = "1/s" }
k = { guess = 3.0, unit = "1/s^2" }
[outputs]
x = "x"
"""
STUDY = """title = "Ringing"
models = ["ring.toml"]
methods = ["weak"]
[recordings]
files = ["runs/*.h5"]
[options]
finish = false
"""


def record(k: float, rng: np.random.Generator, **fields: object) -> Record:
    """A specimen of unit mass and stiffness k, struck once, in closed form."""
    t = np.arange(SAMPLES) / RATE
    w, decay = np.sqrt(k - 0.01), np.exp(-0.1 * t)
    x = decay * np.cos(w * t)
    v = -decay * (0.1 * np.cos(w * t) + w * np.sin(w * t))
    noise = 0.002 * rng.standard_normal((2, SAMPLES))
    return Record.from_arrays(
        RATE, {"x": x + noise[0], "v": v + noise[1], "f": np.zeros(SAMPLES)}, {"x": "mm"}, **fields
    )


def make(folder: Path, count: int, study: str = STUDY) -> Path:
    """A folder of recordings with the study beside it; the study's path."""
    rng = np.random.default_rng(3)
    (folder / "runs").mkdir(parents=True)
    for i in range(count):
        made = record(
            4.0 * (1 + 0.02 * rng.standard_normal()),
            rng,
            start=f"2026-03-01T{i % 24:02d}:00:00+00:00",
            metadata={"temperature": 20.0 + i},
        )
        write(made, folder / "runs" / f"run{i:03d}.h5")
    (folder / "ring.toml").write_text(MODEL)
    (folder / "study.toml").write_text(study)
    return folder / "study.toml"
