"""False alarms of the verdict: everything right, several systems, white noise; how often is it not `fits`?

`python -m benchmarks.coverage.verdicts [SYSTEM ...] [--runs 30] [--noise 0.02]`
"""

from __future__ import annotations

import argparse
import collections
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.base.record import Record
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.judge import judge
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate
from app.campaign.calls import draws
from app.output import table, terminal_progress


@dataclass(frozen=True)
class System:
    """Equations with true values; the initial state is drawn with the spread given."""

    equations: dict[str, str]
    values: dict[str, float]
    outputs: dict[str, str]
    dt: float
    initial: tuple[float, ...]
    spread: float
    samples: int = 1000
    settle: int = 0
    driven: bool = False

    def model(self) -> Model:
        return Model.from_equations(
            self.equations,
            {name: {"guess": value} for name, value in self.values.items()},
            inputs={"f": "measured"} if self.driven else {},
            outputs=self.outputs,
        )


SYSTEMS = {
    "ring-down": System(
        {"x": "v", "v": "-c*v - k*x"}, {"c": 0.2, "k": 4.0}, {"x": "x"}, 0.05, (1.0, 0.0), 0.5
    ),
    "lorenz": System(
        {"x": "s*(y - x)", "y": "x*(r - z) - y", "z": "x*y - b*z"}, {"s": 10.0, "r": 28.0, "b": 8 / 3},
        {"x": "x", "y": "y", "z": "z"}, 0.02, (1.0, 1.0, 25.0), 1.0, settle=500,
    ),
    "van der pol": System(
        {"x": "v", "v": "m*(1 - x**2)*v - w*x"}, {"m": 1.0, "w": 2.0}, {"x": "x"}, 0.05, (1.0, 0.0), 0.5
    ),
    "chain": System(
        {"x": "v", "y": "w", "v": "f - c*v - k*x - q*(x - y)", "w": "-d*w - q*(y - x)"},
        {"c": 0.2, "k": 6.0, "q": 3.0, "d": 0.1}, {"x": "x"}, 0.05, (0.0, 0.0, 0.0, 0.0), 0.3, driven=True,
    ),
    "sine and transient": System(
        {"x": "v", "v": "-c*v - k*x + a*cos(2.5*t + p)"}, {"c": 0.2, "k": 4.0, "a": 1.0, "p": 0.4},
        {"x": "x"}, 0.05, (1.0, 0.0), 0.5,
    ),
    "duffing": System(
        {"x": "v", "v": "f - c*v - k*x - k3*x**3"}, {"c": 0.2, "k": 4.0, "k3": 3.0}, {"x": "x"}, 0.05,
        (0.3, 0.0), 0.3, driven=True,
    ),
}  # fmt: skip


def verdict(system: System, seed: int, noise: float) -> tuple[str, list[str], np.ndarray]:
    """Verdict and reasons of one draw, and the estimates in standard errors from the truth."""
    rng = np.random.default_rng(seed)
    model = system.model()
    t = np.arange(system.samples + system.settle) * system.dt
    force = np.zeros(len(t))
    if system.driven:
        lines, phases = rng.uniform(0.05, 0.8, 40), rng.uniform(0, 2 * np.pi, 40)
        force = 0.45 * np.cos(2 * np.pi * lines[:, None] * t + phases[:, None]).sum(axis=0)
    inputs = Inputs.from_samples(0.0, system.dt, force[None]) if system.driven else None
    first = np.array(system.initial) + system.spread * rng.standard_normal(len(system.initial))
    z = simulate(model, t, first, {}, inputs, rtol=1e-10, atol=1e-12).states[:, system.settle :]
    channels = {
        name: z[model.states.index(name)]
        + noise * z[model.states.index(name)].std() * rng.standard_normal(z.shape[1])
        for name in system.outputs
    }
    if system.driven:
        channels["f"] = force[system.settle :]
    experiment = Experiment(model, Record.from_arrays(1 / system.dt, channels), Conditions(denoise=False))
    judged = judge(fit(experiment, Start("truth", experiment.guesses(), [z])))
    count = len(system.values)
    off = (judged.estimate[:count] - np.array(list(system.values.values()))) / np.sqrt(
        np.diag(judged.covariance)[:count]
    )
    return judged.verdict, judged.reasons, off


def answer(system: str, seed: int, noise: float) -> dict[str, Any]:
    """In a process of the engine: one draw as plain data."""
    begun = time.process_time()
    found, reasons, off = verdict(SYSTEMS[system], seed, noise)
    return {"verdict": found, "reasons": reasons, "off": off, "seconds": time.process_time() - begun}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage.verdicts", description=__doc__)
    parser.add_argument("systems", nargs="*", help=", ".join(SYSTEMS))
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--noise", type=float, default=0.02, help="of each output's spread")
    args = parser.parse_args()
    rows, alarms = [], list[str]()
    for name in args.systems or SYSTEMS:
        seeds = [{"system": name, "seed": seed, "noise": args.noise} for seed in range(args.runs)]
        found = draws("benchmarks.coverage.verdicts:answer", seeds, terminal_progress())
        verdicts = collections.Counter(one["verdict"] for one in found)
        alarms += [
            f"{name} {seed}: {one['verdict']}. {' '.join(one['reasons'])}"
            for seed, one in enumerate(found)
            if one["verdict"] != "fits"
        ]
        words = ", ".join(f"{v} {n}" for v, n in verdicts.most_common())
        distances = np.array([one["off"] for one in found])
        rms = float(np.sqrt(np.mean(np.square(distances[np.isfinite(distances).all(axis=1)]))))
        rows.append((name, words, rms, sum(one["seconds"] for one in found) / args.runs))
    print(table(("system", "verdicts", "rms z", "CPU s"), rows), *alarms, sep="\n")


if __name__ == "__main__":
    main()
