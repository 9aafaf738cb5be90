"""How accurate the weak form and its finish are: the systems of Liu et al. 2018 over many draws of noise.

The time is that of one identification by default; "agrees" says whether the error is within what is asked.
The draws are done by the engine of campaigns, on all processors.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from analysis.base.identification import Identification
from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.model import Model
from app.campaign.calls import draws
from app.output import terminal_progress
from app.reproduce.liu2018 import chua_case, miura_case, overall_error, tank_case
from benchmarks.measure import Measurement
from drivers.library import load_model

CHUA_SEEDS, TANK_SEEDS, MIURA_SEEDS = 10, 20, 3
CHUA_WANTED = {30: 0.05, 20: 0.2, 10: 0.8}  # per cent
TANK_WANTED = {"tau": 0.05, "kappa": 0.05, "a": 0.1}
MIURA_WANTED = {30: 0.5, 20: 1.0}


def measure() -> list[Measurement]:
    rows = [_chua(level) for level in CHUA_WANTED]
    rows += [_tank(), _tank_without_noise()]
    return rows + [_miura(level) for level in MIURA_WANTED]


def _drawn(function: str, decibels: float, seeds: int) -> tuple[list[list[float]], float]:
    """Errors in per cent, seed by seed, and the median of the processor's time for an identification."""
    each = [{"decibels": decibels, "seed": seed} for seed in range(seeds)]
    found = draws(f"benchmarks.weak_accuracy:{function}", each, terminal_progress())
    return [one["errors"] for one in found], statistics.median(one["seconds"] for one in found)


def _timed(model: Model, record: Record) -> tuple[Identification, float]:
    begin = time.process_time()
    found = identify(model, record, "weak")
    return found, time.process_time() - begin


def _chua(decibels: int) -> Measurement:
    """Overall error, median of the seeds: by default, by the weighted weak form alone, as published."""
    errors, seconds = _drawn("chua_draw", decibels, CHUA_SEEDS)
    ours, weak, plain = np.median(errors, axis=0)
    note = f"median error {ours:.3f} % (weak form alone {weak:.2f} %, as published {plain:.2g} %)"
    work = f"Chua circuits, {decibels} dB, {CHUA_SEEDS} seeds"
    return Measurement(work, "-", None, seconds, bool(ours <= CHUA_WANTED[decibels]), None, note)


def chua_draw(decibels: float, seed: int) -> dict[str, Any]:
    """In a process of the engine: one draw, by three ways."""
    model, record = chua_case(decibels, seed)
    ours, seconds = _timed(model, record)
    others = [identify(model, record, "weak", finish=False), identify(model, record, "weak", plain=True)]
    truth = load_model("chua")
    return {"errors": [100 * overall_error(f, truth) for f in (ours, *others)], "seconds": seconds}


def _tank() -> Measurement:
    errors, seconds = _drawn("tank_draw", 40.0, TANK_SEEDS)
    free = load_model("tank_reactor").free
    rms = dict(zip(free, np.sqrt(np.mean(np.square(errors), axis=0)), strict=True))
    note = "rms error " + ", ".join(f"{name} {error:.3f} %" for name, error in rms.items())
    good = all(rms[name] <= most for name, most in TANK_WANTED.items())
    return Measurement(f"tank reactor, 40 dB, {TANK_SEEDS} seeds", "-", None, seconds, good, None, note)


def tank_draw(decibels: float, seed: int) -> dict[str, Any]:
    """In a process of the engine: one draw."""
    found, seconds = _timed(*tank_case(decibels, seed))
    return {"errors": _off(found, load_model("tank_reactor")), "seconds": seconds}


def _off(found: Identification, truth: Model) -> list[float]:
    """Relative errors of the parameters in per cent."""
    return [100 * (found.parameters[n].value / truth.parameters[n].value - 1) for n in truth.free]


def _tank_without_noise() -> Measurement:
    """What the steps of the inputs alone leave as an error of the weak form."""
    model, record = tank_case(300.0, 0)
    begin = time.process_time()
    found = identify(model, record, "weak", finish=False)
    seconds = time.process_time() - begin
    worst = max(map(abs, _off(found, load_model("tank_reactor")))) / 100
    return Measurement(
        "tank reactor without noise, weak form", "-", None, seconds, worst < 2e-4, None, f"error {worst:.1e}"
    )


def _miura(decibels: int) -> Measurement:
    """From the paper's initial guess, 10 s at 1 kHz: the worst parameter of the worst seed."""
    errors, seconds = _drawn("miura_draw", decibels, MIURA_SEEDS)
    worst = float(np.abs(errors).max())
    note = f"worst error {worst:.3f} %"
    work = f"Miura-ori, {decibels} dB, {MIURA_SEEDS} seeds"
    return Measurement(work, "-", None, seconds, worst <= MIURA_WANTED[decibels], None, note)


def miura_draw(decibels: float, seed: int) -> dict[str, Any]:
    """In a process of the engine: one draw."""
    found, seconds = _timed(*miura_case(decibels, seed))
    return {"errors": _off(found, load_model("miura_ori_measured")), "seconds": seconds}
