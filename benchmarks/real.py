"""`auto` on measurements made by others: the verdict, what is left, and whether validation agrees.

    python -m benchmarks real [--system NAME,...]

The records are not part of the program. Their folder is named by the environment variable SHAKEDOWN_DATA, or
lies beside the program as ``shared/data``; sources and licences in tests/data/README.md. Guesses are poor on
purpose: what a user knows before the first fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analysis import Identification, Inputs, Model, Record, ShakedownError, identify, sensitivities, validate
from app.reproduce.real import records
from benchmarks.measure import Measurement
from drivers.library import load_model

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A model with poor guesses, the record it is fitted to, and the one it has to foretell."""

    model: Model
    record: Record
    output: str
    test: Record | None = None
    most: float = 1.0  # residual that must be reached, in ``unit``
    unit: str = ""  # empty: in the output's standard deviation
    options: Mapping[str, object] = field(default_factory=dict)


def silverbox() -> Case:
    """Electronic Duffing circuit under a multisine (Wigren and Schoukens 2013)."""
    train, tests = records.silverbox()
    guess = {"m": 8e-6, "d": 1e-4, "k1": 1.5, "k2": 0.0, "k3": 2.0, "c": 0.0}
    model = load_model("silverbox").with_values(guess)
    return Case(model, train.cut(350, 8350), "y", tests["multisine"].cut(0, 8000), 0.4e-3, "V")


def emps() -> Case:
    """Carriage on a ball screw (Janot, Gautier, Brunot 2019)."""
    model = load_model("emps").with_values({"M": 60.0, "Fv": 100.0, "Fc": 10.0, "offset": 0.0})
    return Case(model, records.emps(), "q", None, 0.05, options={"inputs": "hold"})


def pendulum() -> Case:
    """Release of an arm with an encoder (MultiArm-Pendulum, dynamicslab)."""
    first, second = records.pendulum()[:2]
    return Case(
        load_model("pendulum").with_values({"w2": 50.0, "c": 0.1, "mu": 0.1}), first, "angle", second, 0.02
    )


def friction_damper(name: str, most: float) -> Case:
    """Banded rotary friction device (ARTS-Laboratory); Bouc-Wen law."""
    return Case(load_model("friction_damper"), records.friction_damper(name), "F", None, most)


def tanks() -> Case:
    """Two tanks with overflow (Schoukens, Mattsson, Wigren, Noël 2016); the pump's voltage is held.

    The library's model, one of eleven variants that were tried with the test record in sight: its test error
    is no blind figure.
    """
    fitted, test = records.tanks()
    model = load_model("cascaded_tanks")
    return Case(model, fitted, "h2", test, 0.25, "V", {"inputs": "hold"})


CASES: dict[str, Callable[[], Case]] = {
    "silverbox": silverbox,
    "emps": emps,
    "pendulum": pendulum,
    "friction_damper_0.5Hz": lambda: friction_damper("sine-0.5Hz-1in.csv", 0.16),
    "friction_damper_0.25Hz": lambda: friction_damper("sine-0.25Hz-1.5in.csv", 0.16),
    "tanks": tanks,
}


def measure(quick: bool = False, system: str = "") -> list[Measurement]:
    """One row for each record; quick: the two cheapest."""
    chosen = system.split(",") if system else list(CASES)
    rows = []
    for name in chosen[:2] if quick else chosen:
        rows.append(row_of(name, CASES[name]()))
        print(f"{name}: {rows[-1].our_seconds:.1f} s, {rows[-1].note}", flush=True)
    return rows


def row_of(name: str, case: Case) -> Measurement:
    """Identify by `auto`, foretell the test record, validate."""
    begin = time.process_time()
    try:
        result = identify(case.model, case.record, "auto", **case.options)  # type: ignore[arg-type]
    except ShakedownError as error:
        return Measurement(name, "-", None, time.process_time() - begin, False, None, str(error))
    seconds = time.process_time() - begin
    spread = 1.0 if case.unit else float(np.std(case.record[case.output]))
    left = result.residual.rms[case.output] / spread
    missed = left if case.test is None else _missed(case, result) / spread
    checked = validate(case.model, case.test or case.record, _values(case, result), stated=result.stated_miss)
    agrees = result.verdict in ("fits", "close") and checked.passed and missed <= case.most
    of = case.unit or "of the spread"
    told = "no other record" if case.test is None else f"test {missed:.3g} {of}"
    note = f"{result.verdict}, residual {left:.3g} {of}, {told}; {checked.verdict}"
    print(result, flush=True)
    return Measurement(name, "-", None, seconds, agrees, None, note)


def _values(case: Case, result: Identification) -> dict[str, float]:
    return {name: result.parameters[name].value for name in case.model.free if name in result.parameters}


def _missed(case: Case, result: Identification) -> float:
    """RMS error of the simulated test record, its initial state fitted over the whole."""
    from scipy.optimize import least_squares

    test, model = case.test, case.model.with_values(_values(case, result))
    assert test is not None
    inputs = Inputs.from_record(test, model.inputs, str(case.options.get("inputs", "cubic")))
    measured, place = test[case.output], model.states.index(case.output)
    times = test.dt * np.arange(len(test))

    def run(initial: Array) -> tuple[Array, Array]:
        states, slopes = sensitivities(model, times, initial, None, inputs, (), model.states, rtol=1e-7)
        return states[place] - measured, slopes[place].T

    start = np.array([model.initial[s].value if s in model.initial else 0.0 for s in model.states])
    start[place] = measured[0]
    fitted = least_squares(lambda x: run(x)[0], start, lambda x: run(x)[1], x_scale="jac")
    return float(np.sqrt(np.mean(fitted.fun**2)))
