"""Homotopy: few sensors, poor guesses (the oscillators of Manikantan et al. 2020, x alone is measured)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from analysis.base.record import Record
from analysis.model import Model
from app.reproduce.manikantan2020.common import at_bound
from app.reproduce.manikantan2020.wells import WELLS, model_name, well_record
from benchmarks.coverage.core import Case
from drivers.library import load_model


def white_noise(record: Record, share: float, rng: np.random.Generator) -> Record:
    """White noise of ``share`` times the rms of each channel."""
    channels = {
        name: record[name] + share * np.sqrt(np.mean(record[name] ** 2)) * rng.normal(size=len(record))
        for name in record.names
    }
    return record.with_channels(**channels)


def well(case: str, share: float) -> Case:
    """An oscillator from the upper bounds of its parameters."""
    model = load_model(model_name(case))

    def draw(seed: int) -> tuple[Model, Record]:
        rng = np.random.default_rng(seed)
        return at_bound(model_name(case), "upper"), white_noise(well_record(case), share, rng)

    about = f"van der Pol-Duffing, {case.replace('_', ' ')}, {WELLS[case]:g} s at 100 Hz, noise {share:.0%}"
    truth = {name: model.parameters[name].value for name in model.free}
    return Case(draw, truth, "homotopy", about)


CASES: dict[str, Callable[[], Case]] = {
    f"homotopy-{case.replace('_', '-')}": partial(well, case, 0.05) for case in WELLS
}
