"""Tables 11 to 13: a saturating spring (section 3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from analysis import Excitation, Identification, Model, Progress, Record, identify, simulate
from app.reproduce import Figure, Table
from app.reproduce.rows import AGREES, DIFFERS, Row, same
from app.reproduce.yuan1995.comparison import (
    comparison_rows,
    comparison_table,
    printed_values,
)
from app.reproduce.yuan1995.duffing import duffing_names
from app.reproduce.yuan1995.systems import (
    oscillator,
    powers,
)
from drivers.library import load_model


@lru_cache(maxsize=1)
def series_model() -> Model:
    """Eqs. (3.15) and (3.16): nine powers and tanh(x); the force is a measured channel."""
    names = ["m", "c", *(f"b{i}" for i in range(1, 10)), "g"]
    return oscillator(
        "Saturating spring, eq. (3.15)",
        f"f - c*v - ({powers('b', 9)}) - g*tanh(x)",
        names,
        {},
        "measured",
        {"m": 1.5, "c": 0.5},
    )


SERIES = {"m": 1.0, "c": 0.3, "b1": 1.0, "g": 0.5}
FORCES = {"a": 0.1, "b": 0.5, "c": 1.0, "d": 2.0}
TABLE_11 = {"a": 0.25, "b": 1.0, "c": 2.0, "d": 3.0}
TABLE_12 = {
    "ab": "1.0006 0.3000 1.0300 -0.0009 -0.0000 0.0000 0.0021 0.4700",
    "abc": "0.9999 0.3000 1.0008 -0.0000 -0.0002 0.0000 0.0000 0.5000",
    "abcd": "1.0000 0.3000 1.0000 .0000 .0000 0.0000 0.0000 0.5001",
}
TABLE_13 = {
    ("ab", 5): "1.01 .300 1.52 .000 -.155 -.000 .036",
    ("abcd", 5): ".951 .300 1.35 .000 -.062 -.000 .003",
    ("ab", 7): ".999 .300 1.50 -.000 -.166 .000 .060 -.000 -.014",
    ("abcd", 7): ".991 .300 1.46 -.000 -.103 .000 .013 -.000 -.001",
    ("ab", 9): "1.00 .300 1.50 .000 -.167 -.000 .067 .000 -.025 -.000 .005",
    ("abcd", 9): "1.01 .300 1.51 .000 -.139 -.000 .031 .000 -.003 -.000 .000",
}


@lru_cache(maxsize=4)
def steady_record(force: float) -> Record:
    """Five periods of the steady response of eq. (3.13), 100 samples each, with the force as a channel."""
    model, step = load_model("tanh_stiffness"), 2 * np.pi / 1.3 / 100
    times = np.asarray(step * np.arange(30_500), dtype=np.float64)
    states = simulate(model, times, values={"a": force}).states[:, 30_000:]
    channels = {"x": states[0], "v": states[1], "f": force * np.cos(1.3 * times[30_000:])}
    return Record.from_arrays(1 / step, channels, excitation=Excitation(1.3 / (2 * np.pi), force, 0.0))


def _steady(cases: str, free: Sequence[str], **options: Any) -> Identification:
    model = series_model().with_free(list(free))
    model = model.with_values({n: 0.0 for n in series_model().free if n not in free})
    records = [steady_record(FORCES[case]) for case in cases]
    return identify(model, records, "balance", orbits=(1,), starts=(200,), **options)


def table_11(progress: Progress) -> Table:
    """Largest response to each force."""
    rows: list[Row] = []
    portraits: dict[str, Any] = {}
    for case, printed in TABLE_11.items():
        record = steady_record(FORCES[case])
        ours = float(np.abs(record["x"]).max())
        rows.append(same(f"{case}, force {FORCES[case]:g}", "largest x", printed, ours, 0.1))
        portraits[f"force {FORCES[case]:g}"] = (record["x"][:101].tolist(), record["v"][:101].tolist())
    return comparison_table(
        "11",
        "Table 11: force and largest response of the saturating spring",
        rows,
        "Printed to one or two digits.",
        figures=(Figure("Steady responses of the saturating spring", "x", "dx/dt", portraits),),
    )


def table_12(progress: Progress) -> Table:
    """The exact function among five powers."""
    rows: list[Row] = []
    names = [*duffing_names(5), "g"]
    for cases, text in TABLE_12.items():
        plain, ours = _steady(cases, names, plain=True), _steady(cases, names, finish=False, harmonics=9)
        rows += comparison_rows(cases, SERIES, printed_values(" ".join(names), text), plain, ours, 1e-4)
    return comparison_table("12", "Table 12: saturating spring, the exact function in the model", rows)


def table_13(progress: Progress) -> Table:
    """Power series instead of tanh."""
    series = {"m": 1.0, "c": 0.3, "b1": 1.5, "b3": -1 / 6, "b5": 1 / 15, "b7": -17 / 630, "b9": 31 / 2835}
    rows: list[Row] = []
    for (cases, p), text in TABLE_13.items():
        names = duffing_names(p)
        plain = _steady(cases, names, plain=True)
        for name, number in printed_values(" ".join(names), text).items():
            found = plain.values()[name]
            rows.append(_series_row(f"{cases}, p = {p}", name, series.get(name, 0.0), number, found))
    return comparison_table(
        "13",
        "Table 13: saturating spring modelled by a power series (true: the Taylor series)",
        rows,
        "The series converges for |x| < pi/2 only. The last row's mass is printed 1.11; 1.01 is meant.",
        "A better method cannot help here: the model is wrong beyond the radius of convergence, and what "
        "comes out depends on the harmonics taken (here five).",
        "In the row a to d with five powers m and b1 differ from the print together. What the first harmonic "
        "balances, b1 - m w^2, agrees (-0.257 printed, -0.251 here); how the two share it is left "
        "to the higher harmonics, which this model misses: with three of them m = 0.887 and b1 = 1.260.",
    )


def _series_row(case: str, name: str, taylor: float, printed: float, plain: float) -> Row:
    """The plain method should come out as printed; there is no right answer to compare a better one with."""
    verdict = AGREES if abs(plain - printed) < 0.006 + 0.02 * abs(printed) else DIFFERS
    return Row(case, name, taylor, printed, plain, None, None, None, verdict)
