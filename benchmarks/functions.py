"""Unknown functions: speed and accuracy of the record-based curves and of the beam, in one run.

`python -m benchmarks functions`. Times are processor time of this process, after one warm-up run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.functions.beam import Options as BeamOptions
from analysis.estimate.functions.beam import identify as identify_beam
from analysis.estimate.functions.beam.examples import banks_beam, banks_error, banks_record
from analysis.estimate.functions.beam.observation import observe
from analysis.estimate.functions.beam.system import BeamSystem
from analysis.estimate.functions.beam.unknowns import layout
from analysis.estimate.functions.energetic import Options, identify
from analysis.model import Model
from benchmarks.measure import Measurement


def measure(quick: bool = False) -> list[Measurement]:
    """All rows: speed of both methods, then accuracy; ``quick`` leaves out what takes long."""
    return [*_curves_speed(), *_curves_accuracy(), *_beam_speed(), *([] if quick else _beam_accuracy())]


def _cpu(work: Callable[[], Any], repeats: int = 3) -> float:
    work()
    best = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return float(best)


def _spring(
    samples: int, rate: float = 50.0, damping: Callable[[float], float] = lambda t: 0.2
) -> tuple[Record, Any]:
    """A forced Duffing oscillator with 1 % noise on its displacement."""
    t = np.arange(samples) / rate
    motion = solve_ivp(
        lambda s, z: [z[1], 3 * np.cos(1.2 * s) - damping(s) * z[1] - z[0] - z[0] ** 3],
        (0, t[-1]), (1, 0), t_eval=t, method="DOP853", rtol=1e-10, atol=1e-10,
    ).y  # fmt: skip
    noise = 0.01 * np.std(motion[0]) * np.random.default_rng(0).standard_normal(samples)
    return Record.from_arrays(rate, {"x": motion[0] + noise, "f": 3 * np.cos(1.2 * t)}), motion


def _model(known: str) -> Model:
    return Model.from_equations({"x": "v", "v": f"f{known}"}, inputs={"f": "measured"}, name="oscillator")


def curve_seconds(samples: int, unknown: str = "H(x)") -> float:
    """Processor time to recover one function of the oscillator."""
    model = _model(" - 0.2*v" if unknown == "H(x)" else " - x - x**3")
    record, _ = _spring(samples)
    return _cpu(
        lambda: identify(model, [record], Options(unknown=unknown), SILENT), 3 if samples < 5000 else 1
    )


def beam_seconds(elements: int = 16) -> float:
    """Processor time to identify the published beam from its flat guess."""
    exact, options = banks_record(np.linspace(0.0, 1.0, 11)), BeamOptions(elements=elements, losses=0)

    def run() -> object:
        return identify_beam(banks_beam(), [exact], options, SILENT)

    if elements <= 16:
        return _cpu(run)
    begin = time.process_time()  # long enough to need no repeats
    run()
    return time.process_time() - begin


def _curves_speed() -> list[Measurement]:
    rows = [
        Measurement(f"H(x) from a record, N = {n}", "-", None, curve_seconds(n)) for n in (1000, 4000, 16000)
    ]
    return [*rows, Measurement("c(t) from a record, N = 1000", "-", None, curve_seconds(1000, "c(t)"))]


def _curves_accuracy() -> list[Measurement]:
    def changing(t: float) -> float:
        return 0.3 + 0.15 * float(np.sin(0.5 * t))

    plain, motion = _spring(2001, 100.0)
    begin = time.process_time()
    found = identify(_model(" - 0.2*v"), [plain], Options(), SILENT).curves["H"]
    rows = [_accurate("Duffing, 20 s, 1 %: H", begin, 100 * _force_error(found, motion[0]), 0.5)]
    both, motion = _spring(2001, 100.0, changing)
    begin = time.process_time()
    result = identify(_model(""), [both], Options(unknown="c(t)+H(x)"), SILENT)
    rows.append(
        _accurate("Duffing: H beside c(t)", begin, 100 * _force_error(result.curves["H"], motion[0]), 0.5)
    )
    c = result.curves["c"]
    truth = np.array([changing(t) for t in c.x])
    error = 100 * float(np.sqrt(np.mean((np.array(c.y) - truth) ** 2) / np.mean(truth**2)))
    return [*rows, _accurate("Duffing: c(t) beside H", begin, error, 2.5)]


def _accurate(work: str, begin: float, error: float, allowed: float, unit: str = " %") -> Measurement:
    """A row whose answer is compared with the truth."""
    seconds = time.process_time() - begin
    note = f"error {error:.2g}{unit}, at most {allowed:g}{unit}"
    return Measurement(work, "truth", None, seconds, error < allowed, note=note)


def _force_error(curve: Any, x: np.ndarray) -> float:
    """Relative rms over the central 99 % of the visited range."""
    low, high = np.quantile(x, [0.005, 0.995])
    at, y = np.array(curve.x), np.array(curve.y)
    inside = (at >= low) & (at <= high)
    truth = at[inside] + at[inside] ** 3
    return float(np.sqrt(np.mean((y[inside] - truth) ** 2) / np.mean(truth**2)))


def _beam_speed() -> list[Measurement]:
    ours, theirs = modal_against_integration()
    modes, differences = _both_ways()
    found, expected = modes(), differences()
    agrees = bool(np.abs(found - expected).max() < 1e-3 * np.abs(expected).max())
    work = "beam simulated with 9 sensitivities"
    return [
        Measurement("beam N = 16, M = 8 from a flat guess", "-", None, beam_seconds()),
        Measurement("beam of 200 elements, M = 8 from a flat guess", "-", None, beam_seconds(200)),
        Measurement(work, "SciPy solve_ivp and differences", theirs, ours, agrees, 50.0),
    ]


def modal_against_integration() -> tuple[float, float]:
    """Processor time of one simulation of the Galerkin system with all sensitivities, both ways."""
    modes, differences = _both_ways()
    return _cpu(modes, 20), _cpu(differences, 1)


def _both_ways() -> tuple[Callable[[], np.ndarray], Callable[[], np.ndarray]]:
    """Sensitivities [unknowns, sensors, times] by modes, and by solve_ivp with differences."""
    beam = banks_beam()
    unknowns = layout(beam)
    system = BeamSystem(beam, unknowns)
    record = banks_record(np.linspace(0.0, 1.0, 11))
    observation = observe(beam, record)
    theta = unknowns.start
    space = system.space
    rows = space.at(observation.places)
    load = 10.0 * (space.value.T @ space.weights)
    mass = space.mass(np.ones(len(space.points))).toarray()

    def integrated(unknown: np.ndarray) -> np.ndarray:
        stiffness = space.bending(unknowns.property_at("stiffness", unknown, space.points)).toarray()
        n = len(load)
        push, pull = np.linalg.solve(mass, load), np.linalg.solve(mass, stiffness)
        # explicit steps follow the highest mode; an implicit one does not, at the same tolerance
        solution = solve_ivp(
            lambda t, z: np.concatenate([z[n:], push - pull @ z[:n]]), (0, 1), np.zeros(2 * n),
            t_eval=record.times, method="LSODA", rtol=1e-6, atol=1e-9,
        )  # fmt: skip
        return rows @ solution.y[:n]

    def differences() -> np.ndarray:
        base, step = integrated(theta), 1e-3
        return np.array([(integrated(theta + step * row) - base) / step for row in np.eye(len(theta))])

    return lambda: observation.predict(system, system.state(theta), theta)[1], differences


def _beam_accuracy() -> list[Measurement]:
    begin = time.process_time()
    exact = identify_beam(
        banks_beam(), [banks_record(np.linspace(0.0, 1.0, 11))], BeamOptions(losses=0), SILENT
    )
    rows = [_accurate("beam, exact data: E(x)", begin, banks_error(exact), 5e-4, "")]
    times = np.linspace(0.0, 2.0, 401)
    begin = time.process_time()
    errors = [
        banks_error(
            identify_beam(banks_beam(), [banks_record(times, 0.01, s)], BeamOptions(losses=0), SILENT)
        )
        for s in range(10)
    ]
    median = float(np.median(errors))
    rows.append(_accurate("beam, 1 % noise, 400 times: E(x), median of 10", begin, median, 0.01, ""))
    far = banks_beam().with_profile("stiffness", shape=0.5)
    begin = time.process_time()
    result = identify_beam(far, [banks_record(times, 0.01, 0)], BeamOptions(losses=0), SILENT)
    work = "the same from a flat guess 3 times too stiff"
    return [*rows, _accurate(work, begin, banks_error(result), 0.02, "")]
