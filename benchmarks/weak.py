"""The weak form and the path: speed against pysindy's weak library and against the budgets set for the rig.

A budget stands in the place of a peer: a ratio of 1 keeps it. Errors are norm(found - true)/norm(true).
"""

from __future__ import annotations

import resource
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from analysis.base.identification import Identification
from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.estimate.weak.recursive import RecursiveWeak
from analysis.model import Model
from analysis.simulation.simulate import simulate
from app.reproduce.liu2018 import chua_case, overall_error
from benchmarks.measure import Measurement
from drivers.library import load_model

BUDGET = "budget"


def timed(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Median processor seconds after a first run that compiles, and the result."""
    work()
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        result = work()
        seconds.append(time.process_time() - started)
    return statistics.median(seconds), result


def chua() -> list[Measurement]:
    """Four coupled circuits, 12 states, 11 parameters, 30 dB, guesses 50 % off."""
    truth = load_model("chua")
    model, record = chua_case(30, 0)
    plain, fit = timed(lambda: identify(model, record, "weak", plain=True))
    note = f"error {100 * overall_error(fit, truth):.2f} %"
    rows = [Measurement("Chua, 7500 samples, published method", BUDGET, 0.2, plain, None, 1.0, note)]
    whole, fit = timed(lambda: identify(model, record, "path"), 1)
    error = overall_error(fit, truth)
    note = f"error {100 * error:.3f} %, {fit.iterations} iterations from 50 % off"
    rows.append(
        Measurement("Chua, 7500 samples, maximum likelihood", BUDGET, 5.0, whole, error < 5e-4, 1.0, note)
    )
    half, short = timed(lambda: identify(model, record.cut(0, 3750), "path"), 1)
    a_step, half_step = whole / fit.iterations, half / short.iterations
    rows.append(
        Measurement(
            "the same, an iteration", "twice 3750 samples", 2 * half_step, a_step, None, 0.8, "linear?"
        )
    )
    return rows


def oscillator() -> Model:
    return Model.from_equations(
        {"x": "v", "v": "-c*v - k1*x - k2*x**2 - k3*x**3 + b*cos(1.33*t) + a"},
        {n: {"guess": 1.0} for n in ("c", "k1", "k2", "k3", "b", "a")},
    )


TRUE = {"c": 0.2, "k1": 0.5, "k2": 0.1, "k3": 1.0, "b": 27.0, "a": 0.1}


def long_record() -> list[Measurement]:
    """A million samples of two states and six parameters, at once and as a stream."""
    model = oscillator()
    times = np.arange(1_000_000) * 0.02
    clean = simulate(model.with_values(TRUE), times, np.array([1.0, 0.0]), rtol=1e-7).states
    data = clean + 0.01 * np.random.default_rng(0).standard_normal(clean.shape)
    record = Record.from_arrays(50, {"x": data[0], "v": data[1]})
    rows = []
    for label, options in (("published method", {"plain": True}), ("rows weighted", {"finish": False})):
        seconds, fit = timed(lambda o=options: identify(model, record, "weak", **o), 1)  # type: ignore[misc]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        note = f"k3 = {fit.parameters['k3'].value:.5f}, peak {memory:.2f} GB of the whole process"
        rows.append(
            Measurement(f"1e6 samples, 2 states, {label}", BUDGET, 2.0, seconds, memory < 1.0, 1.0, note)
        )

    def stream() -> Identification:
        live = RecursiveWeak(model, 100_000, ["x", "v"])
        for block in np.array_split(data[:, :100_000], 50, axis=1):
            live.update(block)
        return live.estimate()

    seconds, fit = timed(stream)
    note = "100 000 samples in 50 blocks: 30 % of a core at 100 kS/s"
    rows.append(Measurement("recursive, 2 states, 6 parameters", BUDGET, 0.3, seconds, None, 1.0, note))
    return rows


def lorenz() -> list[Measurement]:
    """10 000 samples; pysindy with its own choice of the support, and with a good one."""
    model = load_model("lorenz")
    clean = simulate(model, np.arange(10_000) * 0.01, np.array([10.0, 1.0, 30.0])).states
    rows = []
    for level in (0.01, 0.05):
        rng = np.random.default_rng(0)
        data = clean + level * clean.std(axis=1, keepdims=True) * rng.standard_normal(clean.shape)
        record = Record.from_arrays(100, dict(zip(model.states, data, strict=True)))
        for label, support, wanted in (("its default support", None, 100.0), ("a good support", 0.2, None)):
            theirs, ours = [], []
            for _ in range(3):  # in turns, so that a busy machine slows both alike
                begin = time.process_time()
                found = sindy(data, support)
                theirs.append(time.process_time() - begin)
                seconds, fit = timed(lambda r=record: identify(model, r, "weak", finish=False), 5)  # type: ignore[misc]
                ours.append(seconds)
            error, their_error = overall_error(fit, model), _error(found, model)
            rows.append(
                Measurement(
                    f"Lorenz, 10 000 samples, {100 * level:g} % noise, rows weighted",
                    f"pysindy, 1000 test functions, {label}",
                    statistics.median(theirs),
                    statistics.median(ours),
                    error < their_error,
                    wanted,
                    f"error {100 * error:.3f} % (theirs {100 * their_error:.2g} %)",
                )
            )
    return rows


def sindy(data: np.ndarray, support: float | None) -> np.ndarray:
    """sigma, rho and beta by pysindy."""
    import pysindy

    t = np.arange(data.shape[1]) * 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pysindy.WeakPDELibrary(
            function_library=pysindy.PolynomialLibrary(degree=2),
            spatiotemporal_grid=t,
            K=1000,
            **({} if support is None else {"H_xt": [support]}),
        )
        fit = pysindy.SINDy(feature_library=library, optimizer=pysindy.STLSQ(threshold=0.1))
        fit.fit(data.T, t=t)
    found = dict(zip(fit.get_feature_names(), fit.coefficients().T, strict=True))
    return np.array([found["x1"][0], found["x0"][1], -found["x2"][2]])


def _error(found: np.ndarray, model: Model) -> float:
    truth = np.array([model.parameters[name].value for name in ("sigma", "rho", "beta")])
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def measure() -> list[Measurement]:
    """All rows; the long record first, while little else is in memory."""
    return [*long_record(), *chua(), *lorenz()]
