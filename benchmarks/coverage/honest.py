"""Error bars and verdict when an assumption is broken, counted.

`python -m benchmarks.coverage.honest [CASE ...] [--runs 60] [--noise 0.02] [--share 0.02]`

A Duffing oscillator under a random force, 2000 samples of the displacement. Cases: everything right; noise of
an autoregressive process (0.9); hum near resonance; noise on the measured force; two spikes; a gap of 6 s;
tops cut off at 1.5 deviations; a force held between samples, recorded on the same clock; a force recorded
half a sample late; a missing term of a share of the force (x^5, x|x|, v|v|, dry friction). Counted: verdicts,
coverage of the parameters by the ideal and by the reported intervals (of the best-approximating parameters
where a term is missing: the mean over noise-free records), and the terms that were named.
"""

from __future__ import annotations

import argparse
import collections
import time
from typing import Any

import numpy as np

from analysis.base.identification import Identification
from analysis.base.record import Record
from analysis.estimate.finish import finish
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate
from app.campaign.calls import draws
from app.output import table, terminal_progress

SAMPLES, DT, SETTLE = 2000, 0.05, 200
VALUES = {"c": 0.2, "k": 4.0, "k3": 3.0}
TRUTH = Model.from_equations(
    {"x": "v", "v": "f - c*v - k*x - k3*x**3 - x5*x**5 - xx*x*abs(x) - vv*v*abs(v) - dry*tanh(v/0.01)"},
    {**VALUES, "x5": 0.0, "xx": 0.0, "vv": 0.0, "dry": 0.0},
    inputs={"f": "measured"},
)
MODEL = Model.from_equations(
    {"x": "v", "v": "f - c*v - k*x - k3*x**3"},
    {name: {"guess": value} for name, value in VALUES.items()},
    inputs={"f": "measured"},
    outputs={"x": "x"},
)
MISSING = {
    "x5": lambda x, v: x**5,
    "xx": lambda x, v: x * np.abs(x),
    "vv": lambda x, v: v * np.abs(v),
    "dry": lambda x, v: np.sign(v),
}
BROKEN = ("spikes", "gap", "clipped", "held", "late")
CASES = ("right", "coloured", "hum", "noisy-force", *BROKEN, *MISSING)
LATE = 0.5  # samples by which the force of the case "late" was recorded late


def motion(case: str, seed: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Force [N] and states [2, N]; a missing term is scaled to its share of the restoring force."""
    rng = np.random.default_rng(seed)
    t = np.arange(SAMPLES + SETTLE) * DT
    frequencies, phases = rng.uniform(0.05, 0.8, 40), rng.uniform(0, 2 * np.pi, 40)
    f = 0.45 * np.cos(2 * np.pi * frequencies[:, None] * t + phases[:, None]).sum(axis=0)
    inputs = Inputs.from_samples(0.0, DT, f[None], "hold" if case == "held" else "cubic")
    extra: dict[str, float] = {}
    for _ in range(4 if case in MISSING else 1):
        z = simulate(TRUTH, t, np.array([0.3, 0.0]), extra, inputs, rtol=1e-10, atol=1e-12).states[:, SETTLE:]
        if case in MISSING:
            force = np.std(VALUES["k"] * z[0] + VALUES["k3"] * z[0] ** 3)
            extra = {case: float(share * force / np.std(MISSING[case](*z)))}
    return f[SETTLE:], z


def noise_of(case: str, rng: np.random.Generator) -> np.ndarray:
    """Noise of unit variance."""
    from scipy.signal import lfilter

    white = rng.standard_normal(SAMPLES + SETTLE)
    if case == "coloured":
        return np.asarray(lfilter([np.sqrt(1 - 0.81)], [1.0, -0.9], white)[SETTLE:])
    if case == "hum":
        tone = np.cos(2 * np.pi * 0.37 * DT * np.arange(SAMPLES) + rng.uniform(0, 2 * np.pi))
        return np.asarray((white[SETTLE:] + np.sqrt(2) * tone) / np.sqrt(2))
    return np.asarray(white[SETTLE:])


def disturbed(case: str, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The displacement as a sensor with a fault gives it: two spikes, 6 s lost, its tops cut off."""
    x = x.copy()
    if case == "spikes":
        x[rng.choice(SAMPLES, 2, replace=False)] += 5 * x.std() * rng.choice([-1, 1], 2)
    if case == "gap":
        first = int(rng.integers(200, SAMPLES - 400))
        x[first : first + round(6 / DT)] = np.nan
    return np.clip(x, -1.5 * x.std(), 1.5 * x.std()) if case == "clipped" else x


def recorded(case: str, f: np.ndarray) -> np.ndarray:
    """The force as recorded: half a sample late, or as it is."""
    from scipy.interpolate import CubicSpline

    if case != "late":
        return f
    t = np.arange(len(f))
    return np.asarray(CubicSpline(t, f)(t - LATE))


def identified(
    case: str, f: np.ndarray, z: np.ndarray, noise: np.ndarray, rng: np.random.Generator
) -> Identification:
    if case == "noisy-force":
        f = f + 0.01 * np.std(f) * rng.standard_normal(len(f))
    record = Record.from_arrays(1 / DT, {"x": disturbed(case, z[0] + noise, rng), "f": recorded(case, f)})
    experiment = Experiment(MODEL, record, Conditions(denoise=case == "noisy-force"))
    return finish(experiment, Start("truth", experiment.guesses(), [z]))


def values_of(found: Identification) -> np.ndarray:
    return np.array([found.parameters[name].value for name in VALUES])


def best_answer(case: str, seed: int, share: float) -> np.ndarray:
    """In a process of the engine: the estimates from a record without noise."""
    f, z = motion(case, seed, share)
    return values_of(identified(case, f, z, np.zeros(SAMPLES), np.random.default_rng(0)))


def best_parameters(case: str, runs: int, share: float) -> np.ndarray:
    """What the fit tends to without noise."""
    if case not in MISSING:
        return np.array(list(VALUES.values()))
    seeds = [{"case": case, "seed": seed, "share": share} for seed in range(runs)]
    found = draws("benchmarks.coverage.honest:best_answer", seeds, terminal_progress())
    return np.asarray(np.mean(found, axis=0))


def answer(case: str, seed: int, noise: float, share: float) -> dict[str, Any]:
    """In a process of the engine: one draw, fitted and judged, as plain data."""
    f, z = motion(case, seed, share)
    rng = np.random.default_rng(10_000 + seed)
    started = time.process_time()
    found = identified(case, f, z, noise * np.std(z[0]) * noise_of(case, rng), rng)
    terms = found.extra["missing terms"]
    estimates = [found.parameters[name] for name in VALUES]
    return {
        "seconds": time.process_time() - started,
        "verdict": found.verdict,
        "named": terms[0]["term"] if any("A term" in words for words in found.reasons) else "–",
        "values": values_of(found),
        "ideal": np.array([e.stderr_ideal for e in estimates]),
        "reported": np.array([e.stderr for e in estimates]),
        "lower": np.array([e.lower for e in estimates]),
        "upper": np.array([e.upper for e in estimates]),
    }


def count(case: str, runs: int, noise: float, share: float) -> tuple[object, ...]:
    """One row of the table."""
    best = best_parameters(case, min(runs, 40), share)
    seeds = [{"case": case, "seed": seed, "noise": noise, "share": share} for seed in range(runs)]
    found = draws("benchmarks.coverage.honest:answer", seeds, terminal_progress())
    verdicts = collections.Counter(one["verdict"] for one in found)
    named = collections.Counter(one["named"] for one in found)
    ideal = [(np.array(one["values"]) - best) / one["ideal"] for one in found]
    reported = [(np.array(one["values"]) - best) / one["reported"] for one in found]
    covered = [(one["lower"] <= best) & (best <= one["upper"]) for one in found]
    words = ", ".join(f"{v} {n}" for v, n in verdicts.most_common())
    terms_named = ", ".join(f"{t} {n}" for t, n in named.most_common(3))
    rms = [float(np.sqrt(np.mean(np.square(z)))) for z in (ideal, reported)]
    inside = float(np.mean(np.abs(ideal) < 1.96))
    seconds = sum(one["seconds"] for one in found)
    return case, words, rms[0], inside, rms[1], float(np.mean(covered)), terms_named, seconds / runs


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage.honest", description=__doc__)
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--noise", type=float, default=0.02, help="of the displacement's spread")
    parser.add_argument("--share", type=float, default=0.02, help="of the force that is missing")
    args = parser.parse_args()
    head = ("case", "verdicts", "ideal rms z", "covered", "reported rms z", "covered", "named", "CPU s")
    rows = [count(case, args.runs, args.noise, args.share) for case in args.cases or CASES]
    print(f"{args.runs} runs, noise {args.noise:g}, missing {args.share:g}")
    print(table(head, rows))


if __name__ == "__main__":
    main()
