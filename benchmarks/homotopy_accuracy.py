"""How sure the homotopy is: random starts, the Cramer-Rao bound, a chaotic record, the engine mount in noise.

Monte Carlo on the systems of Manikantan et al. 2020. The time is that of one identification; "agrees" says
whether what the note counts is as good as it should be. The draws are done by the engine of campaigns, on all
processors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Identification
from analysis.base.record import Record
from analysis.estimate.evaluation import Point
from analysis.estimate.homotopy.coupled import Controller, segments_of
from analysis.estimate.homotopy.output_error import OutputError, SearchCoordinates
from analysis.estimate.homotopy.search import noise_levels, set_accuracy
from analysis.estimate.methods import identify
from analysis.experiment import Experiment
from analysis.model import Model
from analysis.simulation.simulate import sensitivities, simulate
from app.campaign.calls import draws
from app.output import terminal_progress
from app.reproduce.manikantan2020.common import at_bound
from app.reproduce.manikantan2020.mount import mount_record
from app.reproduce.manikantan2020.wells import WELLS, model_name, well_record
from benchmarks.coverage.homotopy import white_noise
from benchmarks.measure import Measurement
from drivers.library import load_model

Array = NDArray[np.float64]

STARTS = 100
SEEDS = 50
MOUNT_SEEDS = 5
CHAOTIC = "chaotic"


def measure() -> list[Measurement]:
    rows = [_random_starts(case) for case in WELLS]
    rows += [_bound(case, share) for case in WELLS for share in (0.01, 0.02, 0.05)]
    rows.append(_chaotic())
    rows += [_mount(0.01, 1.0), _mount(0.05, 3.0)]
    return rows


def random_start(model: Model, rng: np.random.Generator) -> Model:
    """Guesses anywhere in the bounds."""
    return model.with_values(
        {n: float(rng.uniform(model.parameters[n].lower, model.parameters[n].upper)) for n in model.free}
    )


def worst_error(model: Model, found: Mapping[str, float]) -> float:
    """Largest relative error of a parameter."""
    return max(abs(found[n] / model.parameters[n].value - 1) for n in model.free)


def single_shooting(model: Model, record: Record) -> dict[str, float]:
    """The same Levenberg-Marquardt on the model alone, without a controller."""
    segments, unknowns = segments_of(Experiment(model, record)), SearchCoordinates.of(model)
    problem = OutputError(model, segments, unknowns, noise_levels(segments))
    start, alone = Point(model.values(), tuple(s.initial for s in segments)), Controller.none(model)
    set_accuracy(problem, start, alone, 0.0)
    fit = problem.minimise(problem.evaluate(start, alone, 0.0), alone, 0.0)
    return {n: float(fit.point.values[model.index(n)]) for n in model.free}


def _drawn(function: str, each: list[dict[str, Any]]) -> list[Any]:
    return draws(f"benchmarks.homotopy_accuracy:{function}", each, terminal_progress())


def _mean(found: list[Any], name: str) -> float:
    return float(np.mean([one[name] for one in found]))


def _random_starts(case: str) -> Measurement:
    found = _drawn("started", [{"case": case, "number": number} for number in range(STARTS)])
    right, alone = (sum(one[how] < 1e-5 for one in found) for how in ("error", "alone"))
    note = f"{right} of {STARTS} find the truth to 1e-5; single shooting {alone}"
    work = f"{case.replace('_', ' ')}, random starts"
    peer, seconds = _mean(found, "alone seconds"), _mean(found, "seconds")
    return Measurement(work, "single shooting", peer, seconds, right == STARTS, None, note)


def started(case: str, number: int) -> dict[str, Any]:
    """In a process of the engine: the worst error from one random start, by both ways."""
    model, record, starts = _starts(case)
    return {
        **_worst("error", "seconds", model, lambda: identify(starts[number], record, "homotopy").values()),
        **_worst("alone", "alone seconds", model, lambda: single_shooting(starts[number], record)),
    }


def _worst(error: str, time_: str, model: Model, find: Callable[[], Mapping[str, float]]) -> dict[str, float]:
    begin = time.process_time()
    found = worst_error(model, find())
    return {error: found, time_: time.process_time() - begin}


@lru_cache(maxsize=1)
def _starts(case: str) -> tuple[Model, Record, list[Model]]:
    """Truth, record and random starts of a well, or of the chaotic record."""
    if case == CHAOTIC:
        model, record = chaotic_record()
        rng = np.random.default_rng(2)
    else:
        model, record = load_model(model_name(case)), well_record(case)
        rng = np.random.default_rng(1)
    return model, record, [random_start(model, rng) for _ in range(STARTS)]


def cramer_rao(model: Model, record: Record, sigma: float) -> Array:
    """Covariance that no unbiased estimate can beat, from the sensitivities at the truth."""
    times = np.arange(len(record)) / record.rate
    _, slopes = sensitivities(model, times, wrt=list(model.free), rtol=1e-9)
    x = slopes[model.states.index("x")]
    return np.linalg.inv(x @ x.T) * sigma**2


def _bound(case: str, share: float) -> Measurement:
    """Root-mean-square error over the bound, all parameters together (their errors are correlated)."""
    model, record = load_model(model_name(case)), well_record(case)
    sigma = share * float(np.sqrt(np.mean(record["x"] ** 2)))
    bound = cramer_rao(model, record, sigma)
    truth = np.array([model.parameters[n].value for n in model.free])
    found = _drawn("bounded", [{"case": case, "share": share, "seed": seed} for seed in range(SEEDS)])
    seconds = _mean(found, "seconds")
    off = np.array([one["values"] for one in found]) - truth
    whole = float(np.sqrt(np.mean(np.sum(off * np.linalg.solve(bound, off.T).T, axis=1)) / len(truth)))
    each = np.sqrt(np.mean(off**2, axis=0) / np.diag(bound))
    median = ", ".join(f"{m:.2g}" for m in np.median(np.abs(off), axis=0))
    note = f"rms error {whole:.2f} of the bound (each {', '.join(f'{r:.2f}' for r in each)}); median {median}"
    work = f"{case.replace('_', ' ')}, noise {share:.0%}, {SEEDS} seeds"
    return Measurement(work, "Cramer-Rao bound", None, seconds, bool(whole < 1.2), None, note)


def bounded(case: str, share: float, seed: int) -> dict[str, Any]:
    """In a process of the engine: one draw of the noise, from guesses at the upper bounds."""
    noisy = white_noise(well_record(case), share, np.random.default_rng(seed))
    begin = time.process_time()
    found = identify(at_bound(model_name(case), "upper"), noisy, "homotopy")
    return {"values": list(found.values().values()), "seconds": time.process_time() - begin}


def chaotic_record() -> tuple[Model, Record]:
    """100 forcing periods of the double well, driven hard enough to be chaotic, 20 Hz, 1 % noise."""
    model = load_model(model_name("double_well")).with_values({"g": 0.3, "w": 1.2})
    times = np.arange(round(100 * 2 * np.pi / 1.2 * 20)) / 20
    clean = Record.from_arrays(20.0, {"x": simulate(model, times, rtol=1e-12, atol=1e-14)["x"]})
    return model, white_noise(clean, 0.01, np.random.default_rng(5))


def _chaotic() -> Measurement:
    found = _drawn("started", [{"case": CHAOTIC, "number": number} for number in range(10)])
    others = _drawn("alone", [{"case": CHAOTIC, "number": number} for number in range(10, STARTS)])
    errors = [one["error"] for one in found]
    failed = sum(not one["alone"] < 0.005 for one in (*found, *others))
    seconds, peer = _mean(found, "seconds"), _mean([*found, *others], "alone seconds")
    good = max(errors) < 0.005 and failed >= 90
    note = f"worst of 10 starts {100 * max(errors):.2g} %; single shooting fails from {failed} of {STARTS}"
    return Measurement("chaotic double well, 100 periods", "single shooting", peer, seconds, good, None, note)


def alone(case: str, number: int) -> dict[str, Any]:
    """In a process of the engine: the worst error of single shooting from one random start."""
    model, record, starts = _starts(case)
    return _worst("alone", "alone seconds", model, lambda: single_shooting(starts[number], record))


def _mount(share: float, wanted: float) -> Measurement:
    """All four parameters within three standard errors, d_H2 within ``wanted`` per cent."""
    found = _drawn("mounted", [{"share": share, "seed": seed} for seed in range(MOUNT_SEEDS)])
    seconds = _mean(found, "seconds")
    off, hydraulic, runs = (max(one[what] for one in found) for what in ("off", "hydraulic", "runs"))
    note = f"worst of {MOUNT_SEEDS}: {off:.1f} std. errors, d_H2 {hydraulic:.2g} %, {runs} runs"
    work = f"engine mount, noise {share:.0%}"
    return Measurement(work, "truth", None, seconds, off < 3 and hydraulic < wanted, None, note)


def _in_errors(model: Model, found: Identification) -> float:
    pairs = [(found.parameters[n], model.parameters[n].value) for n in model.free]
    return max(abs(estimate.value - truth) / estimate.stderr for estimate, truth in pairs)


def mounted(share: float, seed: int) -> dict[str, Any]:
    """In a process of the engine: one draw of the noise, from guesses at the lower bounds."""
    noisy = white_noise(mount_record("engine_mount"), share, np.random.default_rng(seed))
    begin = time.process_time()
    found = identify(at_bound("engine_mount", "lower"), noisy, "homotopy")
    seconds = time.process_time() - begin
    return {
        "off": _in_errors(load_model("engine_mount"), found),
        "hydraulic": abs(100 * (found.values()["d_H2"] / 2e-9 - 1)),
        "runs": found.evaluations,
        "seconds": seconds,
    }
