"""Balance on the periodic orbits of chaotic records: Duffing's equation, and the beam of Yuan's chapter 4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from analysis.base.record import Record
from analysis.model import Model
from app.reproduce.yuan1995.beam import RIG_GUESS, rig_record
from app.reproduce.yuan1995.duffing import DUFFING, PERIODS, duffing_model, duffing_names
from app.reproduce.yuan1995.systems import forced_record
from benchmarks.coverage.core import Case
from drivers.library import load_model

POWERS = 5


def duffing(noise: float, finish: bool = True) -> Case:
    """Seven unknowns from four orbits of 500 drive periods, all states measured."""
    names = duffing_names(POWERS)
    others = {name: 0.0 for name in duffing_model().free if name not in names}
    model = duffing_model().with_values(others).with_free(names)
    clean = forced_record("duffing", 1.33)

    def draw(seed: int) -> tuple[Model, Record]:
        rng = np.random.default_rng(seed)
        noisy = {n: clean[n] + noise * clean[n].std() * rng.normal(size=len(clean)) for n in clean.names}
        return model, Record.from_arrays(clean.rate, noisy, excitation=clean.excitation)

    about = f"Duffing, orbits of period 3 to 6 in 500 drive periods, {100 * noise:g} % noise on the record"
    return Case(
        draw,
        {name: DUFFING.get(name, 0.0) for name in names},
        "balance",
        about if finish else f"{about}, not finished",
        {"orbits": PERIODS, "most_orbits": len(PERIODS), "finish": finish},
    )


def rig(clock_ppm: float = 0.0, offset_counts: float = 0.0) -> Case:
    """Strain only, unknown force and drive phase, ten orbits of 7000 periods, 12 bits, 2 counts of noise."""
    truth = load_model("two_well_beam")
    model = truth.with_values(RIG_GUESS).with_free(list(RIG_GUESS))

    def draw(seed: int) -> tuple[Model, Record]:
        return model, rig_record(seed, clock_ppm=clock_ppm, offset_counts=offset_counts)

    about = (
        "two-well beam, strain only, drive unknown, ten orbits of 7000 periods, 12 bits, 2 counts of noise"
    )
    if clock_ppm or offset_counts:
        about += f", clock {clock_ppm:g} ppm off, offset {offset_counts:g} counts"
    return Case(
        draw,
        {name: truth.parameters[name].value for name in RIG_GUESS},
        "balance",
        about,
        {"most_orbits": 10, "offset": offset_counts != 0.0},
    )


CASES: dict[str, Callable[[], Case]] = {
    "orbits-duffing-1": lambda: duffing(0.01),
    "orbits-duffing-5": lambda: duffing(0.05),
    "orbits-duffing-1-plain": lambda: duffing(0.01, finish=False),
    "rig": rig,
    "rig-clock-offset": lambda: rig(100.0, 20.0),
}
