"""Orbits held on an imperfect virtual rig, whole chain: `python -m benchmarks.hold --case CASE --seeds 1 2`.

The beam of Yuan 1995, chapter 4, with dry friction and a fifth power that the model does not have, 16 bits,
noise of 0.25 % of the motion, loop delay of 4 % of the period with jitter, one deadline in 200 missed. Each
seed records a minute or two, identifies the model from that record (weak form), and holds every orbit that
is offered. From v alone the model, which lacks terms, cannot be identified: the fit is then that of a
record with both sensors, and only the holding sees v alone. The truth (orbit and multipliers of the
specimen) comes from shooting on its own equations. One line of JSON for each orbit goes to ``--keep FILE``;
``--show FILE`` makes the table from kept lines.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from analysis import Model
from analysis.dynamics.shooting import periodic_orbit
from analysis.holding.holder import OrbitHolder
from analysis.holding.linearise import linearise
from analysis.holding.plant import ActuatorPath, LoopPlant
from analysis.holding.regulator import regulate
from analysis.holding.target import Target
from analysis.simulation.simulate import simulate
from app.cli import main as shakedown
from app.output import table
from drivers.library import load_model
from drivers.rig.loop import ControlLoop

FREQUENCY, VOLTS, GAIN, LAG = 7.5, 1.5, 0.16667, 0.0005
NOISE = 0.0024  # V
SPECIMEN = """
name = "Two-well beam with friction"
[states]
x = "w*v"
v = "w*(-c*v - mu*tanh(v/0.01) - k1*x - k2*x**2 - k3*x**3 - k4*x**4 - k5*x**5 + f)"
MODE[inputs]
f = "DRIVE"
[parameters]
w = 47.12388980384690
c = 0.035
mu = 0.0008
k1 = -0.28
k2 = 0.178
k3 = 0.336
k4 = -0.064
k5 = 0.003
[outputs]
OUTPUTS
[initial]
x = START
v = 0.0
"""
MODE = 'q = "p"\np = "-4*p - 40000*q + f"\n'  # 31.8 Hz, damping 1 %
RIG = """
name = "Imperfect beam"
rate = 187.5
model = "beam_on_shaker"
settle = 4.0
[drive]
kind = "sine"
amplitude = 1.5
frequency = 7.5
[limits]
amplitude = 4.0
lowest_frequency = 0.5
highest_frequency = 60.0
slew = 2000.0
CHANNELS
[[channels]]
name = "f"
sensitivity = 5.0
range = 5.0
noise = 0.0024
[instruments.source]
driver = "virtual"
bits = 16
wiring = { WIRING f = "f" }
steps_a_second = 6000
[instruments.source.shaker]
gain = 0.16667
lag = 0.0005
travel = 2.0
[instruments.source.loop]
delay = DELAY
jitter = 0.0005
missed = 0.005
bits = 16
[instruments.source.specimen]
model = "SPECIMEN"
inputs = { f = "table" }
[instruments.exciter]
driver = "virtual"
"""
CHANNEL = '[[channels]]\nname = "{0}"\nsensitivity = {1}\nrange = 5.0\nnoise = 0.0024\n'
KEPT = (
    "number", "periods", "verdict", "reason", "wait", "corrections", "losses", "mean_control", "floor",
    "control", "expected_wait",
)  # fmt: skip
CASES = {"xv": "xv", "x": "x", "v": "v", "mode": "xv"}  # channels of each


def specimen(case: str, drive: str, seed: int = 0) -> str:
    """The specimen's own equations; each seed begins elsewhere, so that its record is another one."""
    mode = case == "mode"
    shown = ("x + 4800*q", "v + 101.9*p") if mode else ("x", "v")
    outputs = f'xs = "{shown[0]}"\nvs = "{shown[1]}"\n'
    text = SPECIMEN.replace("MODE", MODE if mode else "").replace("OUTPUTS", outputs)
    start = 0.72 + 0.2 * float(np.random.default_rng(seed).random()) if seed else 0.72
    return text.replace("DRIVE", drive).replace("START", repr(start))


def prepare(folder: Path, case: str, seed: int, seconds: float, delay: float) -> None:
    """Rig, record and fit in a folder."""
    if case == "v":
        prepare(folder, "xv", seed, seconds, delay)
    (folder / "specimen.toml").write_text(specimen(case, "measured", seed))
    names = CASES[case]
    sensitivity = {"x": 1.0742, "v": 2.0}
    rig = RIG.replace("CHANNELS", "".join(CHANNEL.format(n, sensitivity[n]) for n in names))
    rig = rig.replace("WIRING", "".join(f'{n} = "{n}s", ' for n in names))
    rig = rig.replace("SPECIMEN", str(folder / "specimen.toml")).replace("DELAY", str(delay / FREQUENCY))
    (folder / "rig.toml").write_text(rig)
    if case == "v":
        return  # record and fit are those of both sensors
    _call("acquire", folder / "rig.toml", "--fast", "--seconds", seconds, "--seed", seed, "--force",
          "--out", folder / "beam.h5", "--json", folder / "acquire.json")  # fmt: skip
    _call("identify", folder / "beam.h5", "beam_on_shaker", "--method", "weak", "--no-finish", "--json",
          folder / "fit.json")  # fmt: skip


def _call(*words: object) -> int:
    return shakedown([str(w) for w in words])


def judge(result: dict[str, Any], case: str, seed: int) -> list[dict[str, Any]]:
    """Each orbit beside the specimen's own."""
    angle = float(np.arctan(2 * np.pi * FREQUENCY * LAG))
    size = float(GAIN * VOLTS * np.cos(angle))
    truth = Model.from_toml(specimen("xv", f"{size!r}*cos(2*pi*7.5*t - {angle!r})"))
    rows = []
    for o in result["orbits"]:
        row: dict[str, Any] = {name: o.get(name) for name in KEPT}
        row |= {"case": case, "seed": seed, "multiplier": abs(complex(*o["model_multipliers"][0]))}
        if o["verdict"] == "held":
            row |= _beside(truth, o, case)
        rows.append(row)
    return rows


def _beside(truth: Model, o: dict[str, Any], case: str) -> dict[str, Any]:
    """Distance of the averaged x (or v) from the specimen's orbit over the noise, multipliers, their z."""
    k, states = o["periods"], np.array([o["states"]["x"], o["states"]["v"]])
    nodes = states.shape[1]
    pieces = 4 * k
    along = np.array([np.interp(np.arange(pieces) * nodes / pieces, np.arange(nodes), s) for s in states])
    orbit = periodic_orbit(truth, along[:, 0], k / FREQUENCY, segments=pieces, along=along)
    if not orbit.converged:
        return {"true": False}
    times = np.arange(nodes) * k / FREQUENCY / nodes
    run = simulate(truth, times, orbit.state, rtol=1e-11).states
    name = CASES[case][0]
    row, sensitivity = {"x": (run[0], 1.0742), "v": (run[1], 2.0)}[name]
    # where the channels show a mode, too, the orbit is that of the states
    seen = np.array(o["states"]["x"] if case == "mode" else o["orbit"][name]["mean"])
    noise = NOISE / sensitivity
    exact, found = orbit.multipliers[0].real, o["multipliers"][0][0]
    far = float(np.sqrt(np.mean((run - states) ** 2))) > 0.05
    return {
        "true": not far,
        "distance": float(np.sqrt(np.mean((seen - row) ** 2)) / noise),
        "band": float(np.sqrt(np.mean(np.array(o["orbit"][name]["stderr"]) ** 2)) / noise),
        "multiplier_error": float(found / exact - 1),
        "multiplier_z": float((found - exact) / o["multiplier_errors"][0]),
        "model_error": float(o["model_multipliers"][0][0] / exact - 1),
    }


def shown(rows: list[dict[str, Any]]) -> str:
    """The table of the kept rows, a line for each case."""
    lines = []
    for case in dict.fromkeys(r["case"] for r in rows):
        own = [r for r in rows if r["case"] == case]
        held = [r for r in own if r["verdict"] == "held"]
        waits = [r["wait"] for r in own if r["wait"] is not None]

        def some(name: str, part: float = 50, held: list[dict[str, Any]] = held) -> str:
            values = [abs(r[name]) for r in held if r.get(name) is not None]
            return f"{np.percentile(values, part):.3g}" if values else ""

        over = [r["mean_control"] / r["floor"] for r in held]
        lines.append([
            case, len({r["seed"] for r in own}), f"{len(held)} of {len(own)}",
            f"{np.median(waits):.0f}, {np.percentile(waits, 90):.0f}" if waits else "",
            f"{100 * float(some('mean_control') or 'nan'):.2g}", f"{np.median(over):.2f}" if over else "",
            some("distance"), f"{100 * float(some('multiplier_error') or 'nan'):.2g}",
            f"{100 * np.mean([abs(r['multiplier_z']) < 2 for r in held if 'multiplier_z' in r]):.0f}",
            sum(not r.get("true", False) for r in held),
        ])  # fmt: skip
    columns = ["case", "seeds", "held", "wait 50, 90 %", "mean control %", "floors", "distance / noise",
               "multiplier %", "|z| < 2, %", "held, not of the specimen"]  # fmt: skip
    return table(columns, lines)


def cost(ticks: int = 20_000, repeats: int = 7) -> float:
    """Share of a core that the closed loop takes at 100 samples a period and 50 Hz: the least of some."""
    values = {"c": 0.035, "k1": -0.28, "k2": 0.178, "k3": 0.336, "k4": -0.064}
    rate = 100 * FREQUENCY
    plant = LoopPlant(
        load_model("beam_on_shaker").with_values(values), ("x", "v"), np.full(2, NOISE), FREQUENCY, rate,
        VOLTS,
        np.array([0.0, GAIN * VOLTS, 0.0]), ActuatorPath(GAIN, LAG, 0.04 / FREQUENCY), np.full(2, 10.0),
    )  # fmt: skip
    states = np.zeros((2, plant.nodes))
    states[0] = 0.72
    holder = OrbitHolder(plant, Target(1, states, np.full(2, 0.5 + 0j)), regulate(linearise(plant, states)))
    loop = ControlLoop(rate, ["x", "v", "f"])
    loop.close(holder)
    rng = np.random.default_rng(0)
    data = np.array([0.72, 0.0, 0.0])[:, None] + NOISE * rng.standard_normal((3, ticks))
    took = []
    for _ in range(repeats):
        began = time.process_time()
        for i in range(ticks):
            correction = loop.step(data[:, i], 2 * np.pi * (i % 100) / 100, 2.0, True)
            loop.went_out(correction, 0.005)
            _ = loop.shown
        took.append((time.process_time() - began) / ticks)
    return min(took) * 100 * 50.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=tuple(CASES), default="xv")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--seconds", type=float, default=120.0, help="of the record")
    parser.add_argument("--periods", type=int, default=200)
    parser.add_argument("--delay", type=float, default=0.04, help="of the loop, in periods")
    parser.add_argument("--most", type=int, default=0, help="orbits of each seed, evenly chosen; 0: all")
    parser.add_argument("--keep", type=Path, help="file of JSON lines to append to")
    parser.add_argument("--show", type=Path, help="only make the table of kept lines")
    parser.add_argument("--cost", action="store_true", help="only measure the loop's share of a core")
    args = parser.parse_args()
    if args.cost:
        print(f"{100 * cost():.1f} % of a core at 100 samples a period, 50 Hz")
        return
    if args.show:
        print(shown([json.loads(line) for line in args.show.read_text().splitlines()]))
        return
    rows: list[dict[str, Any]] = []
    for seed in args.seeds:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prepare(folder, args.case, seed, args.seconds, args.delay)
            common = (
                "hold",
                folder / "rig.toml",
                "--record",
                folder / "beam.h5",
                "--fit",
                folder / "fit.json",
            )
            _call(*common, "--list", "--json", folder / "list.json")
            count = len(json.loads((folder / "list.json").read_text())["orbits"])
            picked = np.unique(np.linspace(1, count, min(args.most or count, count)).round().astype(int))
            words = [w for number in picked for w in ("--orbit", number)]
            _call(*common, *words, "--fast", "--seed", 100 + seed, "--periods", args.periods, "--out",
                  folder / "held.h5", "--json", folder / "held.json")  # fmt: skip
            result = json.loads((folder / "held.json").read_text())
            if result["problem"]:
                print(result["problem"], file=sys.stderr)
            new = judge(result, args.case, seed)
        rows += new
        if args.keep:
            with args.keep.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in new)
        print(shown(rows), flush=True)


if __name__ == "__main__":
    main()
