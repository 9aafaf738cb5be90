"""How the cost of `auto` grows with states, samples, parameters and records.

    python -m benchmarks growth [--system states,samples,parameters,records]

Chains of masses with springs, a cubic spring at the wall and a measured force at the free end; guesses 20 to
50 % off, noise 2 % of each displacement. Processor seconds and the process's largest memory, compilation of
the model included; each row in a process of its own.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np

from analysis import Inputs, Model, Record, identify, simulate
from benchmarks.measure import Measurement

LIMIT = 300.0  # seconds of a row
MOST_SECONDS, MOST_MEGABYTES = 60.0, 2000.0  # of 20 states x 1e4 samples, and of 2 states x 1e6
WITHIN = 4.5  # stated standard errors of all parameters together: up to 60 of them in a row
_RATE = 20.0  # Hz
Size = tuple[int, int, int, int]  # states, samples in all, parameters, records

SIZES: dict[str, list[Size]] = {
    "states": [
        (2, 10_000, 3, 1),
        (4, 10_000, 4, 1),
        (10, 10_000, 7, 1),
        (20, 10_000, 12, 1),
        (40, 10_000, 22, 1),
    ],
    "samples": [(2, 1000, 3, 1), (2, 10_000, 3, 1), (2, 100_000, 3, 1), (2, 1_000_000, 3, 1)],
    "parameters": [(10, 4000, 5, 1), (10, 4000, 7, 1), (20, 4000, 12, 1)],
    "records": [(2, 1000, 3, 1), (2, 10_000, 3, 10), (2, 100_000, 3, 100)],
}


def measure(quick: bool = False, system: str = "") -> list[Measurement]:
    """One row for each size; quick: the smallest of each kind."""
    rows: dict[Size, Measurement] = {}
    for kind in system.split(",") if system else SIZES:
        for size in SIZES[kind][:1] if quick else SIZES[kind]:
            if size not in rows:
                rows[size] = _row(size)
                print(f"{rows[size].work}: {rows[size].our_seconds:.1f} s, {rows[size].note}", flush=True)
    return list(rows.values())


def _row(size: Size) -> Measurement:
    states, samples, parameters, records = size
    work = f"{states} states, {samples} samples, {parameters} parameters, {records} records"
    command = [sys.executable, "-m", "benchmarks.growth", json.dumps(size)]
    try:
        told = subprocess.run(
            command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return Measurement(work, "-", None, LIMIT, False, None, "not finished")
    if told.returncode:
        return Measurement(work, "-", None, math.nan, False, None, told.stderr.strip().splitlines()[-1])
    found = json.loads(told.stdout.splitlines()[-1])
    good = found["seconds"] <= MOST_SECONDS and found["megabytes"] <= MOST_MEGABYTES and found["z"] <= WITHIN
    note = f"{found['megabytes']:.0f} MB, {found['verdict']}, worst z {found['z']:.1f}"
    return Measurement(work, "-", None, found["seconds"], good, None, note)


def chain(states: int, parameters: int) -> tuple[str, dict[str, float]]:
    """Model file of a chain and its true values: springs, damping, cubic spring; the last springs known."""
    masses = states // 2
    free = min(parameters - 2, masses)
    truth = {"c": 0.02, "kn": 4.0} | {f"k{i}": 8.0 + 3.0 * ((i * 7) % 5) / 4 for i in range(1, free + 1)}
    lines = ["name = 'Chain'", "[states]"]
    for i in range(1, masses + 1):
        left = f"(x{i} - x{i - 1})" if i > 1 else "x1"
        slow = f"(v{i} - v{i - 1})" if i > 1 else "v1"
        force = f"-k{i}*{left} - c*k{i}*{slow}"
        if i < masses:
            force += f" + k{i + 1}*(x{i + 1} - x{i}) + c*k{i + 1}*(v{i + 1} - v{i})"
        force += " - kn*x1**3" if i == 1 else ""
        force += " + f" if i == masses else ""
        lines += [f"x{i} = 'v{i}'", f"v{i} = '{force}'"]
    lines += ["[inputs]", "f = 'measured'", "[parameters]"]
    for number, (name, value) in enumerate(truth.items()):
        lines.append(f"{name} = {{ guess = {value * (1.2, 0.7, 1.5)[number % 3]}, lower = 0 }}")
    lines += [f"k{i} = {{ value = 9.0 }}" for i in range(free + 1, masses + 1)]
    lines += ["[outputs]", *(f"x{i} = 'x{i}'" for i in range(1, masses + 1))]
    return "\n".join(lines), truth


def records_of(model: Model, truth: dict[str, float], samples: int, count: int) -> list[Record]:
    rng = np.random.default_rng(0)
    length = samples // count
    found = []
    for _ in range(count):
        times = np.arange(length) / _RATE
        w, phase = 2 * np.pi * rng.uniform(0.05, 1.0, 40), rng.uniform(0, 2 * np.pi, 40)
        force = np.zeros(length)
        for a, b in zip(w, phase, strict=True):
            force += 0.4 * np.cos(a * times + b)
        inputs = Inputs.from_samples(0.0, 1 / _RATE, [force])
        motion = simulate(model, times, np.zeros(len(model.states)), truth, inputs, rtol=1e-8).outputs
        noisy = motion + 0.02 * motion.std(axis=1, keepdims=True) * rng.standard_normal(motion.shape)
        found.append(Record.from_arrays(_RATE, {**dict(zip(model.outputs, noisy, strict=True)), "f": force}))
    return found


def main() -> None:
    """One row, as JSON on standard output."""
    import resource
    import time

    states, samples, parameters, count = json.loads(sys.argv[1])
    text, truth = chain(states, parameters)
    model = Model.from_toml(text)
    records = records_of(model, truth, samples, count)
    begin = time.process_time()
    result = identify(Model.from_toml(text), records)
    seconds = time.process_time() - begin
    far = [abs(result.parameters[n].value - v) / result.parameters[n].stderr for n, v in truth.items()]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "megabytes": memory, "verdict": result.verdict, "z": max(far)}))


if __name__ == "__main__":
    main()
