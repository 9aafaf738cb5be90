"""Planned drives against a low-crest multisine, and predicted against reached lengths, by real fits.

`python -m benchmarks.plan [--system NAME] [--seeds 8] [--seconds 30]`. Five virtual rigs with limits of drive
and displacement. A pilot record of 5 s is fitted, a drive is planned from the fit alone, and both it and a
low-crest multisine over the same band, as large as the same limits allow, are played on the rig with fresh
noise and fitted by themselves. Errors are those against the specimen's true parameters. "How much longer" is
predicted from the pilot and held against the lengths at which joint fits reach the target.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis import Identification, Model, Record, identify
from app.planning.bench import bench_of, usual_drive
from app.planning.plan import Plan, make_plan, needed_for
from drivers.base.clock import InstantClock
from drivers.base.waveform import Segments, Waveform
from drivers.rig.profile import RigProfile, open_rig, rig_from_text

Array = NDArray[np.float64]
PILOT = 5.0  # s
FRESH = 200  # draws of the pilot's uncertainty, other than those of the plan, for the limits
JOINT = 5  # joint fits at each length, of which the median counts
TARGETS = (0.8, 1.25)  # of the precision that the plan is predicted to reach
LENGTHS = (0.6, 1.0, 1.6)  # of the predicted length, at which it is looked


@dataclass(frozen=True)
class System:
    """A specimen: its equation, true values, noise of its sensor and how far it may move."""

    equation: str
    values: dict[str, float]
    noise: float  # m
    limit: float  # m
    states: str = 'x = "v"'


SYSTEMS = {
    "hardening": System("f - c*v - k*x - q*x**3", {"c": 1.2, "k": 900.0, "q": 2.0e7}, 2e-5, 0.012),
    "two wells": System("f - c*v + k*x - q*x**3", {"c": 2.0, "k": 400.0, "q": 1.0e7}, 5e-5, 0.02),
    "square damping": System("f - c*v - d*v*abs(v) - k*x", {"c": 0.8, "d": 8.0, "k": 1600.0}, 2e-5, 0.015),
    "friction": System("f - c*v - r*tanh(v/0.005) - k*x", {"c": 1.0, "r": 0.3, "k": 1200.0}, 2e-5, 0.015),
    "two masses": System(
        "f - c*v - k*x - q*x**3 + s*(y - x)",
        {"c": 1.5, "k": 900.0, "q": 1.0e7, "s": 500.0, "d": 2.0},
        2e-5,
        0.012,
        'x = "v"\ny = "w"\nw = "f - d*w - s*(y - x)"',
    ),
}
RIG = """
name = "{name}"
rate = 200.0
[drive]
kind = "multisine"
amplitude = 0.5
lowest = 1.0
highest = 15.0
spacing = 0.2
[limits]
amplitude = 1.0
lowest_frequency = 0.5
highest_frequency = 25.0
slew = 2000.0
[[channels]]
name = "x"
unit = "m"
sensitivity = 100.0
noise = {volts}
limit = {limit}
[[channels]]
name = "f"
sensitivity = 1.0
noise = 0.002
[instruments.source]
driver = "virtual"
bits = 24
wiring = {{ x = "x", f = "f" }}
steps_a_second = 2000
[instruments.source.shaker]
gain = 1.0
lag = 0.001
[instruments.source.specimen]
model = "{model}"
inputs = {{ f = "table" }}
[instruments.source.specimen.parameters]
{values}
[instruments.exciter]
driver = "virtual"
"""


def model_text(name: str, system: System) -> str:
    """The model to be fitted: guesses a quarter beside the truth."""
    order = system.states.splitlines()
    states = "\n".join([order[0], f'v = "{system.equation}"', *order[1:]])
    free = "\n".join(
        f"{n} = {{ guess = {v * (1.25 if i % 2 else 0.8)}, lower = 0, upper = {100 * v} }}"
        for i, (n, v) in enumerate(system.values.items())
    )
    first = np.sqrt(system.values["k"] / system.values["q"]) if name == "two wells" else 0.0
    names = [line.split(" ")[0] for line in states.splitlines()]
    rest = "\n".join(f"{n} = {{ guess = {first if n == 'x' else 0.0} }}" for n in names)
    return (
        f'name = "{name}"\n[states]\n{states}\n[inputs]\nf = "measured"\n[parameters]\n{free}\n'
        f'[outputs]\nx = "x"\n[initial]\n{rest}\n'
    )


def rig_of(name: str, system: System, folder: Path) -> tuple[Model, RigProfile]:
    file = folder / f"{name.replace(' ', '_')}.toml"
    file.write_text(model_text(name, system), encoding="utf-8")
    values = "\n".join(f"{n} = {v}" for n, v in system.values.items())
    text = RIG.format(
        name=name, volts=100 * system.noise, limit=system.limit, model=file.as_posix(), values=values
    )
    return Model.from_toml(file.read_text(encoding="utf-8")), rig_from_text(text, name)


def played(profile: RigProfile, drive: Waveform | None, seconds: float, seed: int) -> Record:
    """A record of the rig under the drive, from rest."""
    rig = open_rig(profile if drive is None else replace(profile, drive=drive), InstantClock(), seed)
    try:
        rig.source.start()
        rig.play()
        samples = np.empty((len(profile.channels), round(seconds * profile.rate)))
        rig.source.read(samples)
    finally:
        rig.close()
    return Record.from_arrays(
        profile.rate, {c.name: x for c, x in zip(profile.channels, samples, strict=True)}
    )


def fitted(model: Model, records: list[Record], start: Identification | None = None) -> Identification:
    if start is not None:
        model = model.with_values({n: start.parameters[n].value for n in model.free})
    return identify(model, records, "auto" if start is None else "path")


def compare(model: Model, profile: RigProfile, plan: Plan, default: Segments, fit: Identification,
            truth: Array, seeds: int, seconds: float) -> dict[str, object]:  # fmt: skip
    """Errors of fits under both drives, with the same seeds of the noise."""
    errors: dict[str, list[Array]] = {"planned": [], "multisine": []}
    bars: dict[str, list[Array]] = {"planned": [], "multisine": []}
    peak = 0.0
    for seed in range(seeds):
        for what, drive in (("planned", plan.drive), ("multisine", default)):
            record = played(profile, drive, seconds, 100 + seed)
            found = fitted(model, [record], fit)
            values = np.array([found.parameters[n].value for n in model.free])
            errors[what].append(values - truth)
            bars[what].append(np.array([found.parameters[n].stderr for n in model.free]))
            if what == "planned":
                peak = max(peak, float(np.abs(record["x"]).max()))
    rms = {what: np.sqrt(np.mean(np.square(rows), axis=0)) for what, rows in errors.items()}
    bar = {what: np.median(rows, axis=0) for what, rows in bars.items()}
    return {
        "ratio of errors": (rms["multisine"] / rms["planned"]).tolist(),
        "ratio of error bars": (bar["multisine"] / bar["planned"]).tolist(),
        "error bars over predicted": (bar["planned"] / plan.alone).tolist(),
        "peak": peak,
    }


def broken_share(plan: Plan, profile: RigProfile, seconds: float, seed: int) -> float:
    """Share of fresh draws of the pilot's uncertainty in which the plan breaks a limit."""
    rng = np.random.default_rng(seed)
    bench, _ = bench_of(plan.knowledge, profile, rng)
    inputs = bench.inputs(plan.drive, seconds)
    draws = plan.knowledge.draws(FRESH, rng)
    runs = (bench.prospect.broken(bench.prospect.motion(inputs, d), inputs) for d in draws)
    return sum(bound is not None for bound in runs) / FRESH


def default_drive(plan: Plan, profile: RigProfile, seconds: float) -> Segments:
    bench, _ = bench_of(plan.knowledge, profile, np.random.default_rng(0))
    found = usual_drive([bench], seconds)
    assert found is not None
    return found


def worst(found: Identification, model: Model) -> float:
    return max(found.parameters[n].stderr / abs(found.parameters[n].value) for n in model.free)


def how_long(
    model: Model, profile: RigProfile, fit: Identification, pilot: Record, plan: Plan
) -> list[float]:
    """Predicted over reached length for each target, from joint fits of pilot and plan."""
    bench, _ = bench_of(plan.knowledge, profile, np.random.default_rng(0))
    found = []
    for factor in TARGETS:
        target = factor * float(np.max(plan.predicted / np.abs(plan.knowledge.values)))
        predicted = needed_for(target, bench, plan.drive, plan.seconds)
        lengths = np.array([part * predicted for part in LENGTHS])
        reached = []
        for seconds in lengths:
            precisions = [
                worst(fitted(model, [pilot, played(profile, plan.drive, seconds, 500 + s)], fit), model)
                for s in range(JOINT)
            ]
            reached.append(float(np.median(precisions)))
        at = np.interp(-np.log(target), -np.log(reached), np.log(lengths))
        found.append(float(predicted / np.exp(at)))
    return found


def run(name: str, seeds: int, seconds: float) -> dict[str, object]:
    system, begin = SYSTEMS[name], time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        model, profile = rig_of(name, system, Path(folder))
        pilot = played(profile, None, PILOT, 1)
        fit = fitted(model, [pilot])
        before = time.process_time()
        plan = make_plan(model, fit, profile, seconds, seed=1)
        took = time.process_time() - before
        truth = np.array([system.values[n] for n in model.free])
        default = default_drive(plan, profile, seconds)
        row = compare(model, profile, plan, default, fit, truth, seeds, seconds)
        row |= {
            "system": name,
            "pilot": fit.verdict,
            "parts": [p.waveform.kind for p in plan.drive.parts],
            "predicted ratio": (plan.by_multisine / plan.alone).tolist(),
            "broken": broken_share(plan, profile, seconds, 77),
            "limit": system.limit,
            "predicted over reached": how_long(model, profile, fit, pilot, plan),
            "planning s": took,
            "all s": time.process_time() - begin,
        }
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", choices=SYSTEMS)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--json", help="write the rows to this file")
    args = parser.parse_args()
    rows = []
    for name in [args.system] if args.system else SYSTEMS:
        row = run(name, args.seeds, args.seconds)
        rows.append(row)
        print(json.dumps(row), flush=True)
    ratios = [float(np.median(row["ratio of error bars"])) for row in rows]  # type: ignore[call-overload]
    spread = [float(np.median(row["ratio of errors"])) for row in rows]  # type: ignore[call-overload]
    times = [x for row in rows for x in row["predicted over reached"]]  # type: ignore[attr-defined]
    near = sum(0.8 <= x <= 1.2 for x in times)
    print(f"error bars of a multisine over the plan's, by system: {', '.join(f'{r:.2f}' for r in ratios)}")
    print(f"the same of the errors against the truth: {', '.join(f'{r:.2f}' for r in spread)}")
    print(f"median {np.median(ratios):.2f}; limits broken in at most "
          f"{100 * max(float(row['broken']) for row in rows):.1f} % of {FRESH} draws")  # type: ignore[arg-type]  # fmt: skip
    print(f"predicted over reached length within 20 % in {near} of {len(times)}")
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
