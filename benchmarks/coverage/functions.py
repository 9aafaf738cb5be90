"""Recovered functions: the pointwise 95 % bands of restoring force, damping and stiffness."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.integrate import solve_ivp

from analysis.base.identification import Estimate, Identification
from analysis.base.record import Record
from analysis.estimate.functions.beam.description import Beam
from analysis.estimate.functions.beam.examples import banks_beam, banks_record, banks_stiffness
from analysis.model import Model
from benchmarks.coverage.core import Case, at

FORCES = (-1.2, -0.6, 0.0, 0.6, 1.2)  # places where the restoring force is compared
TIMES = (4.0, 8.0, 12.0, 16.0)  # and the damping
POINTS = (0.1, 0.3, 0.5, 0.7, 0.9)  # and the stiffness of the beam


def oscillator(unknown: str, known: str, damping: Callable[[float], float]) -> Case:
    """x'' + c(t) x' + x + x^3 = 3 cos 1.2 t, 20 s at 100 Hz, 1 % noise on the displacement alone."""
    times = np.arange(2001) / 100.0
    force = 3.0 * np.cos(1.2 * times)
    x = solve_ivp(
        lambda t, z: [z[1], 3 * np.cos(1.2 * t) - damping(t) * z[1] - z[0] - z[0] ** 3],
        (0, times[-1]), (1, 0), t_eval=times, method="DOP853", rtol=1e-11, atol=1e-11,
    ).y[0]  # fmt: skip
    model = Model.from_equations({"x": "v", "v": f"f{known}"}, inputs={"f": "measured"}, name="oscillator")
    truth = {f"H({place:g})": place + place**3 for place in FORCES}
    if "c(t)" in unknown:
        truth |= {f"c({t:g})": damping(t) for t in TIMES}

    def draw(seed: int) -> tuple[Model, Record]:
        noise = 0.01 * np.std(x) * np.random.default_rng(seed).standard_normal(len(x))
        return model, Record.from_arrays(100.0, {"x": x + noise, "f": force})

    def read(found: Identification) -> Mapping[str, Estimate]:
        curves = at(found.curves["H"], FORCES, "H")
        return curves | at(found.curves["c"], TIMES, "c") if "c(t)" in unknown else curves

    about = f"{unknown} of a forced Duffing oscillator, 20 s at 100 Hz, displacement with 1 % noise"
    return Case(draw, truth, "energetic", about, {"unknown": unknown}, read=read)


def beam(noise: float) -> Case:
    """The beam of Banks and Crowley, 400 times to t = 2, flat guess."""
    times = np.linspace(0.0, 2.0, 401)
    clean = banks_record(times)
    largest = max(np.abs(clean[name]).max() for name in clean.names)
    description = banks_beam()

    def draw(seed: int) -> tuple[Beam, Record]:
        rng = np.random.default_rng(seed)
        noisy = {n: clean[n] + noise * largest * rng.standard_normal(len(clean)) for n in clean.names}
        return description, Record.from_arrays(clean.rate, noisy)

    return Case(
        draw,
        {f"EI({x:g})": float(banks_stiffness(np.array(x))) for x in POINTS},
        "beam",
        f"E(x) of the pinned beam of Banks and Crowley, nine sensors, 400 times, {100 * noise:g} % noise",
        read=lambda found: at(found.curves["EI"], POINTS, "EI"),
    )


CASES: dict[str, Callable[[], Case]] = {
    "energetic-h": lambda: oscillator("H(x)", " - 0.2*v", lambda t: 0.2),
    "energetic-both": lambda: oscillator("c(t)+H(x)", "", lambda t: 0.3 + 0.15 * np.sin(0.5 * t)),
    "beam-0.1": lambda: beam(1e-3),
    "beam-1": lambda: beam(1e-2),
}
