"""Compile the numerical core ahead of its first use: `python -m app.prepare`, the last step of `make setup`.

The machine code that does not depend on a model is kept on disk beside its sources. Without this step the
very first identification on a machine waits for it, some 20 s.
"""

from __future__ import annotations

import sys

import numpy as np

from analysis import Model, Record, ShakedownError, identify

RATE = 20.0  # samples per unit of time
SAMPLES = 300
METHODS = ("auto", "path", "shooting")


def prepare() -> None:
    """Identify a linear oscillator, in closed form, by the methods that the others rest on."""
    t = np.arange(SAMPLES) / RATE
    rng = np.random.default_rng(0)
    ringing = np.exp(-0.1 * t) * np.cos(2.0 * t)
    x = ringing + 0.01 * rng.standard_normal(SAMPLES)
    f = np.zeros(SAMPLES)
    model = Model.from_equations(
        {"x": "v", "v": "f - c*v - k*x"},
        {"c": {"guess": 0.3}, "k": {"guess": 3.0}},
        inputs={"f": "measured"},
        outputs={"x": "x"},
    )
    record = Record.from_arrays(RATE, {"x": x, "f": f})
    for method in METHODS:
        identify(model, record, method)


if __name__ == "__main__":
    try:
        prepare()
    except ShakedownError as error:  # the program works without it, only later
        sys.stderr.write(f"The numerical core was not compiled ahead: {error}\n")
