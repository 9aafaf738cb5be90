"""Plans on a virtual rig: never less known than by a low-crest multisine, and the motion that is played."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis import SILENT, Identification, knowledge_of
from app.planning.bench import Bench, bench_of, played, usual_drive
from app.planning.plan import best_drive, make_plan, usual_of
from benchmarks.plan import SYSTEMS, fitted, rig_of
from benchmarks.plan import played as recorded
from drivers.rig.profile import RigProfile

SECONDS = 2.5


@pytest.fixture
def pilot(tmp_path: Path) -> tuple[Identification, RigProfile, Bench]:
    """A first record of two wells, fitted, and its rig."""
    model, profile = rig_of("two wells", SYSTEMS["two wells"], tmp_path)
    fit = fitted(model, [recorded(profile, None, 5.0, 1)])
    bench, _ = bench_of(knowledge_of(model, fit), profile, np.random.default_rng(1))
    return fit, profile, bench


def test_given_two_wells_then_no_parameter_is_less_known_than_by_a_multisine(
    pilot: tuple[Identification, RigProfile, Bench],
) -> None:
    fit, profile, bench = pilot
    plan = make_plan(bench.prospect.knowledge.model, fit, profile, SECONDS, seed=1)
    assert (plan.alone <= plan.by_multisine).all()
    assert np.median(plan.by_multisine / plan.alone) > 1.1
    motion = bench.inputs(plan.drive, SECONDS)[0]  # at the rate of the sensors
    there = recorded(profile, plan.drive, SECONDS, 5)["f"]  # as the converter plays it
    late = round(1.0 * profile.rate)  # after the soft start
    assert np.std((there - motion)[late:]) < 0.05 * np.std(motion[late:])


def test_given_only_weaker_drives_then_the_multisine_is_the_plan(
    pilot: tuple[Identification, RigProfile, Bench],
) -> None:
    _, _, bench = pilot
    rng = np.random.default_rng(2)
    plain = usual_of(bench, SECONDS, rng, SILENT)
    assert plain is not None and plain.broken <= 0.02
    usual = usual_drive([bench], SECONDS)
    assert usual is not None
    shape = usual.parts[0].waveform
    weaker = played(replace(shape, amplitude=0.3 * shape.amplitude), SECONDS)
    drive, _, told = best_drive([weaker], bench, SECONDS, "D", plain, rng, SILENT)
    assert drive is plain.drive and told is plain.told
    drive, _, _ = best_drive([weaker], bench, SECONDS, "D", None, rng, SILENT)
    assert drive == weaker  # where there is nothing to hold it against
