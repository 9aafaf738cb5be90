"""Coverage with each assumption of the fit broken, guesses 30 % off, method `auto`.

`python -m benchmarks.coverage.broken [CASE ...] [--system driven|ring-down] [--runs 20] [--first 0]`

Two oscillators with a cubic spring, 2000 samples of the displacement at 20 Hz in 2 % noise: one driven by a
random force, one ringing down. Each seed draws force or release, noise, guesses and the fault anew. Counted:
how many parameters of the answers that may be used (`fits`, `close`) lie in their stated 95 % interval, their
distance in stated errors, the verdicts, and `silent`: answers that may be used with a parameter more than
four stated errors off. The draws are done by the engine of campaigns, on all processors.
"""

from __future__ import annotations

import argparse
import collections
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.signal import lfilter

from analysis.base.errors import ShakedownError
from analysis.base.identification import Identification
from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate
from app.campaign.calls import draws
from app.output import table, terminal_progress

Array = NDArray[np.float64]
Rng = np.random.Generator

SAMPLES, DT, SETTLE = 2000, 0.05, 200
NOISE = 0.02  # of the displacement's spread
FINE = 0.002  # the same where quantisation is to be the larger error
GUESSES = 0.3  # by which each guess is too high or too low
DRIVEN = {"c": 0.2, "k": 4.0, "k3": 3.0}
RINGING = {"c": 0.08, "k": 4.0, "k3": 1.0}
FREQUENCY = {"driven": 0.37, "ring-down": 0.33}  # of the motion [Hz], about which hum is drawn
EQUATION = "-c*v - k*x - k3*x**3"


@dataclass
class Draw:
    """A record in the making."""

    system: str
    rng: Rng
    x: Array  # displacement, without noise
    f: Array | None  # force; none of a ring-down
    noise: Array
    outputs: dict[str, str] = field(default_factory=lambda: {"x": "x"})
    further: dict[str, Array] = field(default_factory=dict)  # channels beside x and f

    def record(self) -> Record:
        channels = {"x": self.x + self.noise, **self.further}
        return Record.from_arrays(1 / DT, channels if self.f is None else {**channels, "f": self.f})


def random_force(rng: Rng) -> Array:
    t = np.arange(SAMPLES + SETTLE) * DT
    frequencies, phases = rng.uniform(0.05, 0.8, 40), rng.uniform(0, 2 * np.pi, 40)
    return np.asarray(0.45 * np.cos(2 * np.pi * frequencies[:, None] * t + phases[:, None]).sum(axis=0))


def driven(rng: Rng, held: bool = False) -> tuple[Array, Array]:
    """States [2, N] and force under a random force; ``held``: a broadband one that a converter holds."""
    f = 2.0 * rng.standard_normal(SAMPLES + SETTLE) if held else random_force(rng)
    inputs = Inputs.from_samples(0.0, DT, f[None], "hold" if held else "cubic")
    model = Model.from_equations({"x": "v", "v": f"f {EQUATION}"}, DRIVEN, inputs={"f": "measured"})
    t = np.arange(len(f)) * DT
    z = simulate(model, t, np.array([0.3, 0.0]), {}, inputs, rtol=1e-10, atol=1e-12).states
    return z[:, SETTLE:], f[SETTLE:]


def ringing(rng: Rng) -> Array:
    """States [2, N] after a release."""
    model = Model.from_equations({"x": "v", "v": EQUATION}, RINGING)
    first = np.array([rng.uniform(1.0, 2.0), rng.normal()])
    return simulate(model, np.arange(SAMPLES) * DT, first, {}, rtol=1e-10, atol=1e-12).states


def delayed(row: Array, samples: float) -> Array:
    places = np.arange(len(row))
    return np.asarray(CubicSpline(places, row)(places - samples))


def two_spikes(d: Draw) -> None:
    d.noise[d.rng.choice(SAMPLES, 2, replace=False)] += 5 * d.x.std() * d.rng.choice([-1, 1], 2)


def gap(d: Draw) -> None:
    first = int(d.rng.integers(200, SAMPLES - 400))
    d.noise[first : first + round(6 / DT)] = np.nan


def coloured(d: Draw) -> None:
    white = d.rng.standard_normal(SAMPLES + SETTLE)
    d.noise = NOISE * d.x.std() * lfilter([np.sqrt(1 - 0.81)], [1.0, -0.9], white)[SETTLE:]


def hum(d: Draw) -> None:
    away = d.rng.uniform(0.05, 0.2) * d.rng.choice([-1, 1])
    phase = 2 * np.pi * (FREQUENCY[d.system] * (1 + away) * DT * np.arange(SAMPLES) + d.rng.uniform())
    d.noise += 0.03 * np.sqrt(2) * d.x.std() * np.cos(phase)


def clipped(d: Draw) -> None:
    whole = d.x + d.noise
    limit = np.quantile(np.abs(whole), 0.98)
    d.noise = np.clip(whole, -limit, limit) - d.x


def skew(d: Draw) -> None:
    """The force, or the velocity beside the displacement of a ring-down, half a sample late."""
    if d.f is not None:
        d.f = delayed(d.f, 0.5)
        return
    v = np.asarray(CubicSpline(np.arange(SAMPLES) * DT, d.x)(np.arange(SAMPLES) * DT, 1))
    d.outputs["w"] = "v"
    d.further["w"] = delayed(v, 0.5) + NOISE * v.std() * d.rng.standard_normal(SAMPLES)


def quantised(d: Draw) -> None:
    whole = d.x + d.noise * FINE / NOISE
    step = 2.2 * np.abs(whole).max() / 256
    d.noise = step * np.round(whole / step) - d.x


def noisy_force(d: Draw) -> None:
    assert d.f is not None
    d.f = d.f + 0.02 * d.f.std() * d.rng.standard_normal(SAMPLES)


def jump(d: Draw) -> None:
    """5 to 50 samples that nobody knows to be lost."""
    first, count = int(d.rng.integers(300, SAMPLES - 400)), int(d.rng.integers(5, 51))
    kept = np.r_[0:first, first + count : SAMPLES]
    d.x, d.noise = d.x[kept], d.noise[kept]
    d.f = None if d.f is None else d.f[kept]


CASES: dict[str, Callable[[Draw], None]] = {
    "right": lambda d: None,
    "spikes": two_spikes,
    "gap": gap,
    "coloured": coloured,
    "hum": hum,
    "clipped": clipped,
    "skew": skew,
    "held": lambda d: None,
    "quantised": quantised,
    "noisy-force": noisy_force,
    "jump": jump,
}
OF_A_FORCE = ("held", "noisy-force")
SYSTEMS = {"driven": DRIVEN, "ring-down": RINGING}


def drawn(system: str, case: str, seed: int) -> tuple[Model, Record]:
    """Model with guesses that are off, and the record."""
    rng = np.random.default_rng(seed)
    values = SYSTEMS[system]
    z, f = driven(rng, case == "held") if system == "driven" else (ringing(rng), None)
    d = Draw(system, rng, z[0], f, NOISE * z[0].std() * rng.standard_normal(SAMPLES))
    CASES[case](d)
    guesses = {name: {"guess": v * (1 + GUESSES * rng.choice([-1, 1]))} for name, v in values.items()}
    if system == "driven":
        equations, inputs = {"x": "v", "v": f"f {EQUATION}"}, {"f": "measured"}
    else:
        equations, inputs = {"x": "v", "v": EQUATION}, {}
    return Model.from_equations(equations, guesses, inputs=inputs, outputs=d.outputs), d.record()


def z_values(found: Identification, truth: dict[str, float]) -> tuple[list[float], list[bool]]:
    """Distance of each parameter from the truth in stated errors, and whether its interval holds it."""
    pairs = [(found.parameters[name], value) for name, value in truth.items() if name in found.parameters]
    return [(e.value - v) / max(e.stderr, 1e-300) for e, v in pairs], [e.covers(v) for e, v in pairs]


def answer(system: str, case: str, seed: int) -> dict[str, Any]:
    """In a process of the engine: one draw as plain data."""
    model, record = drawn(system, case, seed)
    started = time.process_time()
    try:
        found = identify(model, record)
    except ShakedownError as error:
        found = Identification("auto", model.name, False, {}, verdict="refused", reasons=[str(error)])
    seconds = time.process_time() - started
    off, covered = z_values(found, SYSTEMS[system])
    truth = SYSTEMS[system].items() if found.usable else ()
    return {
        "verdict": found.verdict,
        "usable": found.usable,
        "z": off,
        "inside": covered,
        "errors": [found.parameters[n].stderr / v for n, v in truth],
        "seconds": seconds,
        "words": f"({found.extra.get('errors')} errors). {' '.join(found.reasons)}",
    }


def count(system: str, case: str, seeds: range, say: bool) -> tuple[object, ...]:
    """One row of the table."""
    each = [{"system": system, "case": case, "seed": seed} for seed in seeds]
    found = draws("benchmarks.coverage.broken:answer", each, terminal_progress())
    verdicts = collections.Counter(one["verdict"] for one in found)
    used = [one for one in found if one["usable"]]
    silent = sum(max(map(abs, one["z"])) > 4 for one in used)
    for seed, one in zip(seeds, found, strict=True) if say else ():
        far = " ".join(f"{value:.1f}" for value in one["z"])
        print(f"  {case} {seed}: {one['verdict']}, z {far} {one['words']}", flush=True)
    words = ", ".join(f"{v} {n}" for v, n in verdicts.most_common())
    rms = float(np.sqrt(np.mean(np.square([one["z"] for one in used])))) if used else np.nan
    share = 100 * float(np.mean([one["inside"] for one in used])) if used else np.nan
    middle = np.median([one["errors"] for one in used], axis=0) if used else ()
    size = " ".join(f"{100 * e:.2g}" for e in middle) or "-"
    seconds = sum(one["seconds"] for one in found) / len(seeds)
    return system, case, len(seeds), words, share, rms, silent, size, seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage.broken", description=__doc__)
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--system", choices=SYSTEMS)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--say", action="store_true", help="a line for each run")
    args = parser.parse_args()
    head = ("system", "case", "runs", "verdicts", "covered %", "rms z", "silent", "errors %", "CPU s")
    rows = []
    for case in args.cases or CASES:
        for system in [args.system] if args.system else SYSTEMS:
            if system == "driven" or case not in OF_A_FORCE:
                rows.append(count(system, case, range(args.first, args.first + args.runs), args.say))
                print(*rows[-1], flush=True)
    print(table(head, rows))


if __name__ == "__main__":
    main()
