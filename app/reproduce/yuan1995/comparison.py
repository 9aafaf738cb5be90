"""Printed, plain and our values side by side, with the verdict on ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis import SILENT, Experiment, Identification, Model, Record, identify
from analysis.estimate.balance.method import HarmonicBalance
from analysis.estimate.balance.orbits import choose, extract
from analysis.estimate.balance.setting import read_setting
from app.reproduce import Figure, Table
from app.reproduce.rows import Row, value

Printed = Mapping[str, float]

NOISE_NOTE = (
    "Noise is uniform within +- the given share of each channel's largest value. 'plain' has it added to the "
    "orbits after they were extracted, as in the thesis; 'ours' to the whole record before."
)


def comparison_rows(
    case: str, truth: Printed, printed: Printed, plain: Identification, ours: Identification, rounding: float
) -> list[Row]:
    """A row for each printed parameter, whose digits end at ``rounding``."""
    return [
        value(
            case, name, truth.get(name, 0.0), number, plain.values()[name],
            ours.parameters[name].value, ours.parameters[name].stderr, rounding,
        )
        for name, number in printed.items()
    ]  # fmt: skip


def printed_values(names: str, values: str) -> dict[str, float]:
    return dict(zip(names.split(), map(float, values.split()), strict=True))


def known_orbits(clean: Record, model: Model, periods: tuple[int, ...], count: int) -> dict[str, Any]:
    """Options that balance the orbits found in the clean record, whatever record they are applied to."""
    options = HarmonicBalance(plain=True, orbits=periods, most_orbits=count)
    chosen = choose(
        extract(read_setting(model, Experiment(model, clean).runs[0], options), options, SILENT), options
    )
    return {
        "orbits": tuple(int(o.multiple or 0) for o in chosen),
        "starts": tuple(int(o.start) for o in chosen),
    }


def both_methods(
    model: Model,
    free: Sequence[str],
    clean: Record,
    noisy: Record,
    periods: tuple[int, ...],
    count: int,
    **options: Any,
) -> tuple[Identification, Identification]:
    """The thesis' method on the orbits of the clean record, and ours on the record as it is."""
    chosen = model.with_free(list(free))
    fixed = {n: 0.0 for n in model.free if n not in free}
    chosen = chosen.with_values(fixed)
    known = known_orbits(clean, chosen, periods, count)
    plain = identify(chosen, noisy, "balance", plain=True, **known, **options)
    ours = identify(chosen, noisy, "balance", orbits=periods, most_orbits=count, unconfirmed=True, **options)
    return plain, ours


def comparison_table(
    name: str, title: str, rows: Sequence[Row], *notes: str, figures: Sequence[Figure] = ()
) -> Table:
    return Table(f"yuan1995-{name}", title, rows, notes, figures)
