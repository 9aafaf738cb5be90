"""Speed and accuracy of the weak form and the path, beside pysindy's weak library (if it is installed).

python -m benchmarks.weak
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from analysis.methods import identify
from analysis.model import Model
from analysis.record import Record
from analysis.recursive import RecursiveWeak
from analysis.simulation import simulate
from app.output import table
from app.reproduce.liu2018 import chua_case, overall_error
from drivers.library import load_model


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of the second run (the first compiles), and the result."""
    work()
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def chua() -> list[tuple[str, float, str]]:
    truth = load_model("chua")
    model, record = chua_case(30, 0)
    plain, fit = timed(lambda: identify(model, record, "weak", plain=True))
    rows = [("Chua, 7500 samples, published method", plain, f"error {100 * overall_error(fit, truth):.3f} %")]
    path, fit = timed(lambda: identify(model, record, "path"))
    rows.append(
        ("Chua, 7500 samples, path from 50 % off", path, f"error {100 * overall_error(fit, truth):.3f} %")
    )
    both, fit = timed(lambda: identify(model, record, "weak"))
    rows.append(("Chua, 7500 samples, weak and path", both, f"error {100 * overall_error(fit, truth):.3f} %"))
    return rows


def oscillator() -> Model:
    return Model.from_equations(
        {"x": "v", "v": "-c*v - k1*x - k2*x**2 - k3*x**3 + b*cos(1.33*t) + a"},
        {n: {"guess": 1.0} for n in ("c", "k1", "k2", "k3", "b", "a")},
    )


TRUE = {"c": 0.2, "k1": 0.5, "k2": 0.1, "k3": 1.0, "b": 27.0, "a": 0.1}


def long_record() -> list[tuple[str, float, str]]:
    model = oscillator()
    clean = simulate(
        model.with_values(TRUE), np.arange(1_000_000) * 0.02, np.array([1.0, 0.0]), rtol=1e-7
    ).states
    data = clean + 0.01 * np.random.default_rng(0).standard_normal(clean.shape)
    record = Record.from_arrays(50, {"x": data[0], "v": data[1]})
    seconds, _ = timed(lambda: identify(model, record, "weak", plain=True))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rows = [
        ("1e6 samples, 2 states, 6 parameters, published method", seconds, f"peak {memory:.2f} GB in all")
    ]

    def stream() -> float:
        live = RecursiveWeak(model, 50, ["x", "v"])
        for block in np.array_split(data[:, :100_000], 50, axis=1):
            live.update(block)
        return float(live.estimate().parameters["k3"].value)

    seconds, k3 = timed(stream)
    rows.append(("100 000 samples in 50 blocks, recursive", seconds, f"k3 = {k3:.4f}"))
    return rows


def lorenz() -> list[tuple[str, float, str]]:
    model = load_model("lorenz")
    truth = model.values()
    clean = simulate(model, np.arange(10_000) * 0.01, np.array([10.0, 1.0, 30.0])).states
    rows = []
    for level in (0.01, 0.05):
        rng = np.random.default_rng(0)
        data = clean + level * clean.std(axis=1, keepdims=True) * rng.standard_normal(clean.shape)
        record = Record.from_arrays(100, dict(zip(model.states, data, strict=True)))
        for label, options in (("rows scaled", {"weighted": False}), ("rows weighted", {})):
            seconds, fit = timed(lambda r=record, o=options: identify(model, r, "weak", finish=False, **o))
            found = np.array([fit.parameters[n].value for n in model.parameters])
            error = 100 * np.linalg.norm(found - truth) / np.linalg.norm(truth)
            rows.append((f"Lorenz, {100 * level:g} % noise, {label}", seconds, f"error {error:.3f} %"))
        rows += sindy(data, level)
    return rows


def sindy(data: np.ndarray, level: float) -> list[tuple[str, float, str]]:
    try:
        import pysindy
    except ImportError:
        return [("pysindy is not installed (make bench installs it)", float("nan"), "")]
    t = np.arange(data.shape[1]) * 0.01
    library = pysindy.WeakPDELibrary(
        function_library=pysindy.PolynomialLibrary(degree=2), spatiotemporal_grid=t, K=1000
    )
    fit = pysindy.SINDy(feature_library=library, optimizer=pysindy.STLSQ(threshold=0.1))
    started = time.process_time()
    fit.fit(data.T, t=t)
    seconds = time.process_time() - started
    names = fit.get_feature_names()
    found = dict(zip(names, fit.coefficients().T, strict=True))
    sigma, rho, beta = found["x1"][0], found["x0"][1], -found["x2"][2]
    truth = np.array([16.0, 45.92, 4.0])
    error = 100 * np.linalg.norm(np.array([sigma, rho, beta]) - truth) / np.linalg.norm(truth)
    return [
        (f"Lorenz, {100 * level:g} % noise, pysindy, 1000 test functions", seconds, f"error {error:.1f} %")
    ]


def main() -> None:
    rows = [*chua(), *lorenz(), *long_record()]
    print(table(("what", "CPU s", "result"), rows))


if __name__ == "__main__":
    main()
