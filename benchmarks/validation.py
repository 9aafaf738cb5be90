"""How often ``validate`` rejects right models, and how often it notices wrong ones.

Right: the equation behind the record with identified values. Wrong: damping 5 % or cubic stiffness 2 % off
or a dry friction of 2 % of the elastic force in the record that the model lacks. Motions: periodic, chaotic
and a decay, in metres and micrometres, from any phase, noise of 1 % on x and v. Noticed: not "validated".

    python -m benchmarks.validation --seeds 20 [--out FILE]

The records are worked on by the engine of campaigns, on all processors.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis import Inputs, Model, identify, validate
from analysis.base.record import Excitation, Record
from analysis.simulation.simulate import simulate
from app.campaign.calls import draws
from app.output import terminal_progress

EQUATION = """
[states]
x = "v"
v = "-c*v - k*x - k3*x**3{friction} + f"
[outputs]
x = "x"
v = "v"
[inputs]
f = "measured"
"""
VARIANTS = ("right", "damping + 5 %", "cubic + 2 %", "friction missing")


@dataclass(frozen=True)
class Motion:
    """An oscillator and its sinusoidal drive, in units of order 1."""

    name: str
    c: float
    k: float
    k3: float
    force: float
    frequency: float  # rad per unit of time
    start: tuple[float, float]
    periods: int

    def record(self, seed: int, friction: float, length: float) -> tuple[Record, dict[str, float]]:
        """A record in units of ``length`` and the parameters in these units."""
        rng = np.random.default_rng(seed)
        truth = {"c": self.c, "k": self.k, "k3": self.k3 / length**2}
        lost = f" - {friction * length}*tanh(v/{0.01 * length})" if friction else ""
        model = model_of(truth, lost)
        base = self.frequency if self.force else np.sqrt(abs(self.k))
        dt = 2 * np.pi / base / 40
        settle = int(rng.integers(0, 40 * 30)) + 40 * 30 if self.force else 0
        times = dt * np.arange(settle + 40 * self.periods)
        drive = length * self.force * np.cos(self.frequency * times + rng.uniform(0, 2 * np.pi))
        inputs = Inputs.from_samples(0.0, dt, [list(drive)])
        run = simulate(model, times, length * np.array(self.start), None, inputs, rtol=1e-10)
        rows = {}
        for name, row in zip("xv", run.states[:, settle:], strict=True):
            rows[name] = row + 0.01 * row.std() * rng.normal(size=row.size)
        if not self.force:
            return Record.from_arrays(1 / dt, rows), truth
        rows["f"] = drive[settle:]
        excitation = Excitation(self.frequency / (2 * np.pi), length * self.force, 0.0)
        return Record.from_arrays(1 / dt, rows, excitation=excitation), truth


MOTIONS = (
    Motion("periodic", 0.1, 1.0, 0.5, 0.6, 1.4, (0.5, 0.0), 100),
    Motion("chaotic", 0.25, -1.0, 1.0, 0.3, 1.0, (1.0, 0.0), 200),
    Motion("decay", 0.02, 1.0, 0.3, 0.0, 1.0, (1.5, 0.0), 40),
)


def model_of(values: dict[str, float], friction: str = "") -> Model:
    equations = EQUATION.format(friction=friction)
    guesses = "\n".join(f"{name} = {{ value = {float(value)!r} }}" for name, value in values.items())
    return Model.from_toml(f'name = "oscillator"\n{equations}\n[parameters]\n{guesses}\n')


def free_model(values: dict[str, float], driven: bool) -> Model:
    equations = EQUATION.format(friction="")
    if not driven:
        equations = equations.replace(" + f", "").split("[inputs]")[0]
    guesses = "\n".join(f"{n} = {{ guess = {1.2 * float(v)!r} }}" for n, v in values.items())
    return Model.from_toml(f'name = "oscillator"\n{equations}\n[parameters]\n{guesses}\n')


def tried(name: str, variant: str, seed: int) -> dict[str, object]:
    """In a process of the engine: one record, fitted and validated."""
    motion = next(m for m in MOTIONS if m.name == name)
    friction = 0.02 * abs(motion.k) if variant == "friction missing" else 0.0
    length = 1.0 if seed % 2 else 1e6
    record, truth = motion.record(seed, friction, length)
    model = free_model(truth, bool(motion.force))
    fitted = identify(model, record)
    values = {name: p.value for name, p in fitted.parameters.items()}
    stated = fitted.stated_miss
    if variant == "damping + 5 %":
        values["c"], stated = 1.05 * values["c"], None
    if variant == "cubic + 2 %":
        values["k3"], stated = 1.02 * values["k3"], None
    began = time.process_time()
    found = validate(model, record, values, stated=stated)
    spent = time.process_time() - began
    return {
        "motion": motion.name, "variant": variant, "seed": seed, "passed": found.passed, "stated": stated,
        "verdict": found.verdict, "identified": fitted.verdict, "seconds": spent,
        "checks": {c.name: c.status for c in found.checks if c.status != "not possible"},
        "residuals": dict(found["residuals"].numbers),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--motion", default="")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = []
    for motion in MOTIONS:
        if args.motion and motion.name != args.motion:
            continue
        for variant in VARIANTS:
            seeds = range(args.first, args.first + args.seeds)
            each = [{"name": motion.name, "variant": variant, "seed": seed} for seed in seeds]
            mine = draws("benchmarks.validation:tried", each, terminal_progress())
            rows += mine
            said = Counter(str(r["verdict"]).split(":")[0].split(",")[0] for r in mine)
            spent = np.mean([float(str(r["seconds"])) for r in mine])
            print(f"{motion.name:9} {variant:17} {dict(said)}, {spent:.1f} s each", flush=True)
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1, default=str) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
