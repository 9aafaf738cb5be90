"""Branches tracked on the virtual hardening beam, whole chain: `python -m benchmarks.track --seeds 1 2 3`.

16 bits, noise of 0.1 % of the motion, loop delay of 4 % of the period with jitter and missed deadlines. The
truth is harmonic balance (Fourier collocation, 16 harmonics) of the specimen's own equations. One line for
each seed and branch.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from analysis.dynamics.imposed import ImposedMotion, ImposedMotions
from app.cli import main as shakedown
from drivers.library import load_model
from drivers.rig.profile import load_rig

TRUTH = {"m": 0.1, "c": 0.3142, "k1": 2467.4, "k2": 60000.0, "k3": 7.4e8}
DAMPING = 0.01
BRANCHES = {
    "backbone": ("--backbone", "--to", "0.002", "--points", "10"),
    "force": ("--response", "--at-frequency", "28", "--to", "0.0012", "--points", "16"),
    "frequency": ("--response", "--at-force", "0.06", "--to", "0.0012", "--points", "15"),
}


def true_folds(solver: ImposedMotions, p: Any) -> list[float]:
    """Forces at which the specimen's own curve at 28 Hz turns."""
    motion: ImposedMotion | None = None
    forces = []
    for amplitude in np.linspace(6e-5, 1.2e-3, 3000):
        motion = solver.solve(p, 28.0, float(amplitude), motion)
        assert motion is not None
        forces.append(abs(motion.force))
    turns = np.flatnonzero(np.diff(np.sign(np.diff(forces)))) + 1
    return [forces[i] for i in turns]


def judged(name: str, told: dict[str, Any]) -> dict[str, Any]:
    """The branch beside the truth at the measured frequency and amplitude."""
    model = load_model("hardening_beam").with_values(TRUTH)
    solver, p = ImposedMotions(model, "x"), model.values()
    force, phase, z = [], [], []
    for point in told["points"]:
        found = solver.solve(p, point["frequency"], point["amplitude"])
        assert found is not None
        u = point["force"] * np.exp(-1j * point["phase"])
        force.append(point["force"] / abs(found.force) - 1)
        phase.append(float(np.angle(found.force / u)))
        own = np.hypot(abs(found.by_frequency) * point["frequency_stderr"],
                       abs(found.by_amplitude) * point["amplitude_stderr"])  # fmt: skip
        error = np.hypot(np.hypot(point["force_stderr"], point["force"] * point["phase_stderr"]), own)
        z.append(float(abs(u - found.force) / error))
    row = {
        "branch": name, "verdict": told["verdict"], "reason": told["reason"], "points": len(told["points"]),
        "periods": told["periods_a_point"], "force": float(np.max(np.abs(force))),
        "frequency": DAMPING * float(np.max(np.abs(phase))), "largest z": max(z),
        "stable": [point["stable"] for point in told["points"]], "folds": len(told["folds"]),
    }  # fmt: skip
    if name == "force" and len(told["folds"]) == 2:
        row["fold z"] = [
            (f["at"] - t) / f["stderr"] for f, t in zip(told["folds"], true_folds(solver, p), strict=True)
        ]
        row["fold off"] = [f["at"] / t - 1 for f, t in zip(told["folds"], true_folds(solver, p), strict=True)]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--rate", type=float, default=2500.0, help="samples a second: 100 a period at 2500")
    parser.add_argument("--points", type=int, default=0, help="on the way out; 0: as many as usual")
    parser.add_argument("--branch", choices=tuple(BRANCHES), nargs="*", default=list(BRANCHES))
    args = parser.parse_args()
    for seed in args.seeds:
        for name in args.branch:
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "branch"
                text = (load_rig("hardening_beam").folder / "hardening_beam.toml").read_text()
                rig = Path(folder) / "rig.toml"
                rig.write_text(text.replace("rate = 2500.0", f"rate = {args.rate}"))
                words = ["track", str(rig), *BRANCHES[name], "--fast", "--seed", str(seed)]
                words += ["--points", str(args.points)] if args.points else []
                shakedown([*words, "--out", str(out), "--json", f"{out}.json"])
                told = json.loads(Path(f"{out}.json").read_text())
            print(json.dumps({"seed": seed, **judged(name, told)}), flush=True)


if __name__ == "__main__":
    main()
