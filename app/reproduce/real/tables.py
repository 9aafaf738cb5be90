"""One table for each public set: errors on its test data and physical parameters with error bars.

Terms, inputs and filters are chosen on training data; the test data are opened in the last line of a table.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from analysis import (
    Completion,
    Conditions,
    Identification,
    Model,
    Progress,
    Record,
    complete,
    foretold,
    identify,
)
from app.reproduce import Table
from app.reproduce.real import records
from app.reproduce.rows import NOT_PRINTED, Row, least, same
from drivers.library import load_model

Array = NDArray[np.float64]

# RMSE in mV of the best black box that could be run beside ours: a state-space model with nonlinear feedback
# (freq-statespace), official split.
SILVERBOX = {"multisine": 0.289, "arrow": 0.335, "arrow without extrapolation": 0.257}
SILVERBOX_USED = (
    24_000  # samples of the training record, the first: more change the last digit and cost minutes
)
EMPS = {"M": 95.11, "Fv": 203.5, "Fc": 20.39, "offset": -3.17}  # Janot, Gautier, Brunot 2019
STATED = "[6.60, 41.45, 117.93, 230.0, 380.3]"  # resonances in the description of the steel cantilever
STEEL = 200e9  # Pa
TANKS = 0.24  # V, Bernoulli's law with overflow (Schoukens et al. 2016 name 0.19 to 0.34 V)


def silverbox(progress: Progress) -> Table:
    """An electronic Duffing circuit; damping and filter found from the training data."""
    guess = {"m": 8e-6, "d": 1e-4, "k1": 1.5, "k2": 0.0, "k3": 2.0, "c": 0.0}
    model = load_model("silverbox").with_values(guess)
    train, tests = records.silverbox()
    begin = time.process_time()
    said = Conditions(inputs="bandlimited", denoise=False)
    found = complete(model, train.cut(0, SILVERBOX_USED), "shooting", said, progress)
    seconds = time.process_time() - begin
    rows = _steps(found, "y", 1e3, "mV") + _parameters(found.result, {})
    for name, test in tests.items():
        off = 1e3 * _error(found.model, test, "y", records.WINDOW, found.conditions)
        rows.append(least("test", f"rms error, {name} [mV]", SILVERBOX[name], None, off))
    return Table(
        "real-silverbox",
        "Silverbox (Wigren and Schoukens 2013): the circuit's equation, completed from the training data",
        rows,
        notes=(
            "published: a black box (state space with nonlinear feedback) run beside ours. Inputs are said "
            "to be band-limited; what was added stands in the rows of the training, in its order. Of the "
            f"training record the first {SILVERBOX_USED} samples are used.",
            *_told(found.result, seconds),
        ),
    )


def emps(progress: Progress) -> Table:
    """A carriage on a ball screw: from inertia and viscous friction to dry friction, by the training data."""
    record = records.emps()
    edge = round(0.8 * len(record))
    model = Model.from_equations(
        {"q": "v", "v": "(force - Fv*v - offset)/M"},
        {
            "M": {"guess": 60.0, "lower": 1.0, "upper": 1000.0, "unit": "kg"},
            "Fv": {"guess": 100.0, "lower": 0.0, "upper": 5000.0, "unit": "N s/m"},
            "offset": {"guess": 0.0, "unit": "N"},
        },
        name="Carriage on a ball screw",
        inputs={"force": "measured"},
        outputs={"q": "q"},
        units={"q": "m", "v": "m/s", "force": "N"},
    )
    begin = time.process_time()
    found = complete(
        model, record.cut(0, edge), "shooting", Conditions(inputs="hold", denoise=False), progress
    )
    seconds = time.process_time() - begin
    rows = _steps(found, "q", 1e3, "mm") + _parameters(found.result, EMPS | {"a1": EMPS["Fc"]})
    test = record.cut(edge, len(record))
    off = 1e3 * _error(found.model, test, "q", records.WINDOW, found.conditions)
    rows.append(least("last fifth", "rms error [mm]", None, None, off))
    return Table(
        "real-emps",
        "Electro-mechanical positioning system (Janot, Gautier, Brunot 2019): friction by the score test",
        rows,
        notes=(
            "a1 is the dry friction that was added, s1 the velocity within which it turns.",
            *_told(found.result, seconds),
        ),
    )


def pendulum(progress: Progress) -> Table:
    """An arm that swings out: the first release fitted, the second foretold."""
    first, second = records.pendulum()[:2]
    model = load_model("pendulum").with_values({"w2": 50.0, "c": 0.1, "mu": 0.1})
    result, seconds = _identified(model, first, progress, {})
    rows = _parameters(result, {"w2": 64.1})
    off = _error(_with(model, result), second, "angle", records.WINDOW, Conditions())
    rows.append(least("second release", "rms error [rad]", None, None, off))
    return Table(
        "real-pendulum",
        "Single pendulum (MultiArm-Pendulum, dynamicslab)",
        rows,
        notes=("published: the frequency that its small swings show, squared.", *_told(result, seconds)),
    )


def cantilever(progress: Progress) -> Table:
    """A uniform beam fitted to the three lowest resonances, the next two of bending foretold."""
    from analysis.estimate.functions.beam import Options, load
    from analysis.estimate.functions.beam import identify as identify_beam

    peaks = records.cantilever()
    begin = time.process_time()
    text = (files("resources") / "beams" / "steel-cantilever.toml").read_text("utf-8")
    result = identify_beam(load(text.replace(STATED, str(peaks[:3].tolist()))), [], Options(), progress)
    seconds = time.process_time() - begin
    rows = [row for row in _parameters(result, {"E": STEEL}) if row.quantity.startswith("E")]
    for number, told in enumerate(result.extra["frequencies_hz"][3:5], start=4):
        nearest = float(peaks[np.argmin(np.abs(peaks - told))])
        rows.append(same("test", f"resonance {number} [Hz]", nearest, told, 0.015))
    return Table(
        "real-cantilever",
        "Steel cantilever (ARTS-Laboratory): Young's modulus from three resonances",
        rows,
        notes=(
            "published: steel's handbook value, and the peaks that were measured.",
            *_told(result, seconds),
        ),
    )


def friction_damper(progress: Progress) -> Table:
    """A Bouc-Wen law fitted to a slow and large, and to a fast and small motion."""
    rows: list[Row] = []
    notes: list[str] = []
    model = load_model("friction_damper")
    for name, plain in (("sine-0.5Hz-1in.csv", 0.160), ("sine-0.25Hz-1.5in.csv", None)):
        record = records.friction_damper(name)
        result, seconds = _identified(model, record, progress, {})
        case = name.removesuffix(".csv")
        rows += [row._replace(case=case) for row in _parameters(result, {})]
        share = result.residual.rms["F"] / float(np.std(record["F"]))
        rows.append(least(case, "residual over spread of F", None, plain, share))
        notes += [f"{case}: {words}" for words in _told(result, seconds)]
    return Table(
        "real-friction",
        "Friction damper (ARTS-Laboratory): Bouc-Wen law",
        rows,
        notes=("plain: single shooting by SciPy.", *notes),
    )


def tanks(progress: Progress) -> Table:
    """Two tanks with overflow; the pump's voltage is held between the samples."""
    fitted, test = records.tanks()
    model = load_model("cascaded_tanks")
    model = model.with_values({"gain": 1.0}).with_free([name for name in model.free if name != "gain"])
    result, seconds = _identified(model, fitted, progress, {"inputs": "hold"})
    rows = _parameters(result, {})
    conditions = Conditions(inputs="hold")
    off = _error(_with(model, result), test, "h2", records.WINDOW, conditions)
    rows.append(least("test", "rms error [V]", TANKS, None, off))
    return Table(
        "real-tanks",
        "Cascaded tanks (Schoukens, Mattsson, Wigren, Noël 2016)",
        rows,
        notes=(
            "The variant without the gain was once chosen with the test record in sight: its error is no "
            "blind figure.",
            *_told(result, seconds),
        ),
    )


def _identified(
    model: Model, record: Record, progress: Progress, options: Mapping[str, str]
) -> tuple[Identification, float]:
    begin = time.process_time()
    result = identify(model, record, "auto", progress, **options)
    return result, time.process_time() - begin


def _with(model: Model, result: Identification) -> Model:
    values = {n: v for n, v in result.values().items() if n in model.parameters}
    return model.with_values(values)


def _error(model: Model, record: Record, output: str, window: int, conditions: Conditions) -> float:
    """Rms of what was foretold beside what was measured, behind the first samples."""
    told = foretold(model, record, window, replace(conditions, part=()))
    return float(np.sqrt(np.mean((told[output] - record[output][window:]) ** 2)))


def _steps(found: Completion, output: str, factor: float, unit: str) -> list[Row]:
    """The error in the part of the training data that was set aside, addition by addition."""
    return [
        Row(
            "training",
            f"rms error set aside [{unit}], {f'with {step.added}' if step.added else 'as given'}",
            *(None, None, None),
            factor * step.predicted[output],
            *(None, None),
            NOT_PRINTED,
        )
        for step in found.steps
    ]


def _parameters(result: Identification, published: Mapping[str, float]) -> list[Row]:
    rows = []
    for name, e in result.parameters.items():
        row = same("parameter", f"{name} [{e.unit}]" if e.unit else name, published.get(name), e.value, 0.05)
        rows.append(row._replace(stderr=e.stderr))
    return rows


def _told(result: Identification, seconds: float) -> tuple[str, ...]:
    return f"{seconds:.0f} s of processor time.", f"The model {result.headline}."
