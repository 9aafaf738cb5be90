"""The tables and figures of the published methods, the printed numbers beside ours.

Each table is made by a function of one argument, the progress to report to, that returns a :class:`Table` of
rows of the common kind (``rows.py``). It is registered here under the name that
``shakedown reproduce NAME`` takes and imported only when asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from analysis import SILENT, Progress, ShakedownError
from app.reproduce.rows import Row

# Name: module:function. The name begins with the document's first author and year.
TABLES: dict[str, str] = {
    "liu2018-chua": "app.reproduce.liu2018:chua_table",
    "liu2018-noise": "app.reproduce.liu2018:chua_noise",
    "liu2018-tank": "app.reproduce.liu2018:tank_table",
    "liu2018-miura": "app.reproduce.liu2018:miura_table",
    "liu2019-examples": "app.reproduce.liu2019:examples",
    "liu2019-table1": "app.reproduce.liu2019:table_1",
    "liu2019-record": "app.reproduce.liu2019:record",
    "banks1983-table": "app.reproduce.banks1983:table",
    "banks1983-noise": "app.reproduce.banks1983:noise",
    **{f"yuan1995-{n}": f"app.reproduce.yuan1995.duffing:table_{n}" for n in (1, 2, 3)},
    **{f"yuan1995-{n}": f"app.reproduce.yuan1995.coulomb:table_{n}" for n in (4, 5)},
    **{f"yuan1995-{n}": f"app.reproduce.yuan1995.parametric:table_{n}" for n in (6, 7)},
    **{f"yuan1995-{n}": f"app.reproduce.yuan1995.lorenz:table_{n}" for n in (8, 9, 10)},
    **{f"yuan1995-{n}": f"app.reproduce.yuan1995.spring:table_{n}" for n in (11, 12, 13)},
    **{f"yuan1995-{n}": f"app.reproduce.yuan1995.beam:table_{n}" for n in (14, 15)},
    "yuan1995-exponents": "app.reproduce.yuan1995.exponents:exponents",
    **{f"manikantan2020-{n}": f"app.reproduce.manikantan2020.wells:table_{n}" for n in (2, 3)},
    **{f"manikantan2020-{n}": f"app.reproduce.manikantan2020.mount:table_{n}" for n in (6, 7)},
    **{f"manikantan2020-{n}": f"app.reproduce.manikantan2020.damper:table_{n}" for n in (8, 9)},
    "real-silverbox": "app.reproduce.real.tables:silverbox",
    "real-emps": "app.reproduce.real.tables:emps",
    "real-pendulum": "app.reproduce.real.tables:pendulum",
    "real-cantilever": "app.reproduce.real.tables:cantilever",
    "real-friction": "app.reproduce.real.tables:friction_damper",
    "real-tanks": "app.reproduce.real.tables:tanks",
}
MEASURED = "real-"  # how the names of tables begin that need measurements which are no part of the program


@dataclass(frozen=True)
class Figure:
    """A figure of curves, drawn by whoever shows the table."""

    title: str
    x_label: str
    y_label: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]  # legend: (x, y)
    log_x: bool = False
    log_y: bool = False
    points: bool = False  # dots, as in a section or a bifurcation diagram


@dataclass(frozen=True)
class Table:
    """One published table with our figures beside the printed ones."""

    name: str
    title: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()  # what was assumed, which misprints were put right, where we differ and why
    figures: Sequence[Figure] = ()


def make_table(name: str, progress: Progress = SILENT) -> Table:
    """Compute a table by its name."""
    if name not in TABLES:
        raise ShakedownError(f"No table '{name}': choose one of {', '.join(TABLES)}.")
    module, function = TABLES[name].split(":")
    table: Table = getattr(import_module(module), function)(progress)
    return table
