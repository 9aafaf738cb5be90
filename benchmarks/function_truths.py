"""Ten laws whose curves are known: how many points of each lie inside the 95 % band of `energetic`.

``python -m benchmarks.function_truths [seeds]``: displacement and force both with white noise of 1 and of 5 %
of their spread, seeds 0, 1, ... Points outside of the visited range (0.5 and 99.5 % quantiles) are left out.
The draws are done by the engine of campaigns, on all processors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from analysis.base.identification import Identification
from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.functions.energetic import Options, identify
from analysis.model import Model
from app.campaign.calls import draws
from app.output import terminal_progress

Array = NDArray[np.float64]
LEVELS = (0.01, 0.05)


def force(t: Array) -> Array:
    """A multisine that visits all displacements: no motion along one closed curve."""
    return np.asarray(2.0 * np.cos(1.3 * t) + 1.5 * np.cos(2.9 * t) + 1.0 * np.cos(0.7 * t + 1.0))


@dataclass(frozen=True)
class Law:
    """x'' + c(t) x' + H(x) = f; which of the two is sought, the other one being known."""

    name: str
    spring: Callable[[Array], Array]
    damping: Callable[[Array], Array] = lambda t: 0.2 + 0.0 * t
    sought: str = "H(x)"

    def model(self) -> Model:
        known = "f - 0.2*v" if self.sought == "H(x)" else "f - x - x**3"
        return Model.from_equations({"x": "v", "v": known}, inputs={"f": "measured"}, name=self.name)

    def record(self, level: float, seed: int) -> tuple[Record, Array]:
        """40 s at 50 Hz, and the displacement without noise."""
        t = np.arange(2001) / 50.0

        def rate(s: float, z: Array) -> list[float]:
            return [z[1], float(force(s) - self.damping(s) * z[1] - self.spring(z[0]))]

        x = solve_ivp(rate, (0, t[-1]), (0.5, 0.0), t_eval=t, rtol=1e-9, atol=1e-9, max_step=0.02).y[0]
        rng = np.random.default_rng(seed)
        f = force(t)
        noisy = [row + level * np.std(row) * rng.standard_normal(len(t)) for row in (x, f)]
        return Record.from_arrays(50.0, {"x": noisy[0], "f": noisy[1]}), x

    def covered(self, found: Identification, x: Array) -> tuple[float, float]:
        """Share of the points inside the band, and the rms error over the rms of the truth."""
        curve = found.curves["H" if self.sought == "H(x)" else "c"]
        at = np.array(curve.x)
        low, high = np.quantile(x, [0.005, 0.995]) if self.sought == "H(x)" else (at[0], at[-1])
        inside = (at >= low) & (at <= high)
        truth = (self.spring if self.sought == "H(x)" else self.damping)(at[inside])
        lower, upper, y = (np.array(row)[inside] for row in (curve.lower, curve.upper, curve.y))
        error = np.sqrt(np.mean((y - truth) ** 2) / np.mean(truth**2))
        return float(np.mean((lower <= truth) & (truth <= upper))), float(error)


LAWS = (
    Law("cubic", lambda x: x + x**3),
    Law("two wells", lambda x: x**3 - x),
    Law("softening", lambda x: 3.0 * np.tanh(x)),
    Law("dead zone", lambda x: 10.0 * np.sign(x) * np.maximum(np.abs(x) - 0.3, 0.0)),
    Law("kink", lambda x: np.where(x > 0.4, 2.0 * x + 6.0 * (x - 0.4), 2.0 * x)),
    Law("asymmetric bilinear", lambda x: np.where(x > 0, 6.0 * x, 1.5 * x)),
    Law("stop on both sides", lambda x: x + 15.0 * np.sign(x) * np.maximum(np.abs(x) - 0.8, 0.0)),
    Law("c(t) step", lambda x: x + x**3, lambda t: 0.2 + 0.4 * (np.asarray(t) > 18.0), "c(t)"),
    Law(
        "c(t) pulse", lambda x: x + x**3,
        lambda t: 0.2 + 0.5 * ((np.asarray(t) > 12.0) & (np.asarray(t) < 20.0)), "c(t)",
    ),
    Law("c(t) wave", lambda x: x + x**3, lambda t: 0.4 + 0.2 * np.sin(0.4 * np.asarray(t)), "c(t)"),
)  # fmt: skip


def drawn(name: str, level: float, seed: int) -> dict[str, Any]:
    """In a process of the engine: one draw as plain data."""
    law = next(law for law in LAWS if law.name == name)
    record, x = law.record(level, seed)
    found = identify(law.model(), [record], Options(unknown=law.sought), SILENT)
    return {"covered": law.covered(found, x), "verdict": found.verdict}


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    for level in LEVELS:
        held = 0
        for law in LAWS:
            each = [{"name": law.name, "level": level, "seed": seed} for seed in range(seeds)]
            found = draws("benchmarks.function_truths:drawn", each, terminal_progress())
            rows = [one["covered"] for one in found]
            verdicts = [one["verdict"] for one in found]
            share, error = np.mean(rows, axis=0)
            held += share >= 0.9
            fits = verdicts.count("fits")
            print(
                f"{100 * level:g} %  {law.name:22s} inside {share:.2f} (least {min(rows)[0]:.2f})  "
                f"error {100 * error:.2g} %  fits {fits} of {seeds}",
                flush=True,
            )
        print(f"{100 * level:g} %: at least 90 % of the points in {held} of {len(LAWS)} laws", flush=True)


if __name__ == "__main__":
    main()
