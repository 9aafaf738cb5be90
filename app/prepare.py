"""Compile the numerical core ahead of its first use: `python -m app.prepare`, the last step of `make setup`.

The machine code that does not depend on a model is kept on disk beside its sources. Without this step the
very first identification on a machine waits for it, some 20 s. `python -m app.prepare all` compiles the rest,
too, two minutes of processor time: integrators, and what examines a chaotic record. Tests that run in several
processes would each compile it.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from numpy.typing import NDArray

from analysis import (
    Model,
    Record,
    ShakedownError,
    examine,
    identify,
    sensitivities,
    simulate,
    validate,
)

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


def prepare_integrators() -> None:
    """Every way to integrate a motion, with and without its derivatives."""
    model, times = _two_wells(), np.linspace(0.0, 50 * STEP, 51)
    for method in ("adaptive", "implicit", "rk4"):
        simulate(model, times, [0.1, 0.0], method=method)
        sensitivities(model, times, [0.1, 0.0], method=method)


def prepare_reconstruction() -> None:
    """Neighbours, exponents, dimensions and orbits of a chaotic record, and the checks of a model."""
    from scipy.integrate import solve_ivp

    def rate(t: float, z: NDArray[np.float64]) -> list[float]:
        return [z[1], -0.3 * z[1] + z[0] - z[0] ** 3 + 0.5 * np.cos(1.2 * t)]

    times = np.arange(20 * TURNS) * STEP
    x = solve_ivp(rate, (0.0, times[-1]), [0.1, 0.0], t_eval=times, rtol=1e-7, atol=1e-7).y[0]
    examine(x, STEP, period=20 * STEP)
    validate(_two_wells(), Record.from_arrays(1 / STEP, {"x": x}), {})


def _two_wells() -> Model:
    rates = {"x": "v", "v": "-0.3*v + x - k*x**3 + 0.5*cos(1.2*t)"}
    return Model.from_equations(rates, {"k": 1.0}, outputs={"x": "x"})


STEP, TURNS = 2 * np.pi / 1.2 / 20, 150  # a twentieth of the drive's turn; turns of the chaotic record
PARTS = {
    "identification": prepare,
    "integrators": prepare_integrators,
    "reconstruction": prepare_reconstruction,
}
LANES = (["integrators"], ["identification", "reconstruction"])  # beside each other


def main(words: list[str]) -> None:
    if words == ["all"]:
        lanes = [subprocess.Popen([sys.executable, "-m", "app.prepare", *lane]) for lane in LANES]
        for lane in lanes:
            lane.wait()
        return
    try:
        for name in words or ["identification"]:
            PARTS[name]()
    except ShakedownError as error:  # the program works without it, only later
        sys.stderr.write(f"The numerical core was not compiled ahead: {error}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
