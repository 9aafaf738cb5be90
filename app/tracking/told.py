"""A tracked branch as it is told and written: the result's file, the table, the model beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.tracking.request import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis import Model
    from analysis.tracking.measure import BranchValue
    from analysis.tracking.tracking import TrackedBranch, TrackedPoint
    from app.tracking.request import TrackChannels
    from app.tracking.work import TrackWork
    from drivers.rig.profile import RigProfile

STABILITY = {True: "stable", False: "unstable", None: ""}


def told_branch(
    work: TrackWork, profile: RigProfile, channels: TrackChannels, model: Model | None, files: Sequence[str],
    problem: str,
) -> dict[str, Any]:  # fmt: skip
    """What is written to the result's file; ``problem``: why it ended early, in words."""
    branch = work.branch
    told: dict[str, Any] = {
        "rig": profile.key,
        "channels": {"response": channels.response.name, "force": channels.force.name},
        "units": channels.units,
        "files": list(files),
        "loop": None if work.loop is None else dict(vars(work.loop)),
        "verdict": None,
        "reason": "",
        "points": [],
        "folds": [],
        "problem": problem or None,
    }
    if branch is None:
        return told
    beside = _beside(branch, channels, model)
    plant, ramp = branch.plant, branch.ramp
    return told | {
        "kind": KINDS[branch.plan.kind],
        "linear": {
            "frequency": plant.frequency, "damping": plant.damping, "delay": plant.delay, "skew": plant.skew,
            "skew_error": plant.skew_error, "force_gain": plant.force_gain, "misfit": plant.misfit,
        },
        "verdict": branch.verdict,
        "reason": branch.reason,
        "periods_a_point": branch.periods,
        "ramp_check": None if ramp is None else dict(vars(ramp)),
        "points": [
            told_point(p) | {"stable": branch.stable(p), **(beside[i] if beside else {})}
            for i, p in enumerate(branch.in_order())
        ],
        "folds": [
            {
                "over": "force" if branch.plan.kind == "force" else "frequency",
                "at": fold.parameter.value, "stderr": fold.parameter.error,
                "amplitude" if branch.plan.kind == "force" else "phase": fold.goal.value,
                "place_stderr": fold.goal.error,
            }
            for fold in branch.folds
        ],
    }  # fmt: skip


def told_point(tracked: TrackedPoint) -> dict[str, Any]:
    """One point with its standard errors."""
    p = tracked.point
    values: dict[str, BranchValue] = {n: getattr(p, n) for n in ("frequency", "amplitude", "phase", "force")}
    numbers = {n: v.value for n, v in values.items()} | {f"{n}_stderr": v.error for n, v in values.items()}
    return numbers | {
        "goal": tracked.goal, "pass": tracked.passed, "ramp_periods": tracked.ramp,
        "averaged_periods": p.periods, "drifting": p.drifting, "force_distortion": p.force_distortion,
    }  # fmt: skip


def _beside(branch: TrackedBranch, channels: TrackChannels, model: Model | None) -> list[dict[str, Any]]:
    """The force and phase that the model needs for each measured motion."""
    if model is None:
        return []
    import numpy as np

    from analysis import ImposedMotions

    solver, motion, rows = ImposedMotions(model, channels.response.name), None, []
    for p in branch.in_order():
        found = solver.solve(model.values(), p.point.frequency.value, p.point.amplitude.value, motion)
        motion = found or motion
        force = None if found is None else abs(found.force)
        phase = None if found is None else -float(np.angle(found.force))
        rows.append({"model_force": force, "model_phase": phase})
    return rows


def write_table(branch: TrackedBranch, channels: TrackChannels, path: str) -> None:
    """The branch as a table, data for identification and validation."""
    from drivers.formats.curves import write_curve

    order = branch.in_order()
    more: dict[str, list[str]] = {
        "stability": [STABILITY[branch.stable(p)] for p in order],
        "pass": [p.passed for p in order],
    }
    write_curve(branch.curve(channels.response.name), path, channels.units, more)
