"""How often the band of an unknown function covers the truth: cubic, dead zone and bilinear springs.

`python -m benchmarks.unknown_functions [--seeds 10] [--noise 0.01] [--knots 12]`. Records are integrated by
SciPy, displacement alone is measured, the damping is unknown, too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from analysis import Model, Record, identify

Array = NDArray[np.float64]
TRUTHS: dict[str, Callable[[Array], Array]] = {
    "cubic": lambda x: 9 * x + 6 * x**3,
    "dead zone": lambda x: 3 * x + 30 * (np.maximum(x - 0.5, 0) + np.minimum(x + 0.5, 0)),
    "bilinear": lambda x: np.where(x > 0, 16 * x, 6 * x),
}
RATE, SAMPLES, DAMPING = 50.0, 3000, 0.5
TEXT = """
name = "unknown spring"
[states]
x = "v"
v = "f - c*v - H"
[inputs]
f = "measured"
[parameters]
c = {{ guess = 0.3, lower = 0, upper = 10 }}
[definitions]
H = {{ function = "x", knots = {knots} }}
[outputs]
x = "x"
"""


def record(truth: Callable[[Array], Array], noise: float, seed: int) -> Record:
    """Under a multisine from 0.1 to 1.15 Hz; noise in parts of the displacement's spread."""
    rng, t = np.random.default_rng(seed), np.arange(SAMPLES) / RATE
    lines = np.arange(0.1, 1.2, 0.05)
    turns = 2 * np.pi * np.outer(t, lines) + rng.uniform(0, 2 * np.pi, len(lines))
    force = CubicSpline(t, 1.2 * np.cos(turns).sum(axis=1))

    def rate(at: float, z: Array) -> list[float]:
        return [z[1], float(force(at)) - DAMPING * z[1] - float(truth(z[0]))]

    x = solve_ivp(rate, (0, t[-1]), [0.1, 0.0], "DOP853", t, rtol=1e-9, atol=1e-9).y[0]
    return Record.from_arrays(RATE, {"x": x + noise * x.std() * rng.normal(size=SAMPLES), "f": force(t)})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--knots", type=int, default=12)
    args = parser.parse_args()
    model = Model.from_toml(TEXT.format(knots=args.knots))
    for name, truth in TRUTHS.items():
        covered, wrong, damping, verdicts, begin = [], [], 0, [], time.process_time()
        for seed in range(args.seeds):
            result = identify(model, record(truth, args.noise, seed), "path")
            curve = result.curves["H"]
            x, y, low, high = (np.array(row) for row in (curve.x, curve.y, curve.lower, curve.upper))
            there = truth(x)
            covered.append(np.mean((low <= there) & (there <= high)))
            wrong.append(np.sqrt(np.mean((y - there) ** 2)) / there.std())
            damping += result.parameters["c"].covers(DAMPING)
            verdicts.append(result.verdict)
        counted = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        print(
            f"{name}: {100 * np.mean(covered):.0f} % of the points in the band, curve to "
            f"{100 * np.median(wrong):.2g} % of its spread, damping covered {damping} of {args.seeds}; "
            f"{counted}; {(time.process_time() - begin) / args.seeds:.1f} s of processor each",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
