"""Sequences: plans from TOML, recordings per step, pause, and going on after a restart."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.base.errors import Cancelled
from analysis.base.progress import Progress, Step
from drivers.acquisition.engine import Engine
from drivers.acquisition.sequence import SequenceError, SequenceRun, sequence_from_text
from drivers.base.clock import InstantClock
from drivers.base.limits import LimitError
from drivers.formats import read
from drivers.rig.profile import Rig, load_rig, open_rig

PLAN = """
name = "resonance"
amplitude = 0.6
from = 5.0
to = 8.0
step = 1.0
directions = "up and down"
settle = 1.0
periods = 20
tap = 0.2
"""


def started() -> tuple[Rig, Engine]:
    rig = open_rig(load_rig("two_well_beam"), InstantClock(), 3)
    engine = Engine(rig.source, rig.exciter, 0.25)
    engine.start(held=True)
    return rig, engine


def closed(rig: Rig, engine: Engine) -> None:
    engine.stop()
    rig.close()


def test_given_a_sweep_up_and_down_then_steps_in_that_order() -> None:
    plan = sequence_from_text(PLAN)
    assert [s.frequency for s in plan.steps] == [5, 6, 7, 8, 8, 7, 6, 5]
    assert plan.steps[0].seconds == 4.0 and plan.steps[3].seconds == 2.5
    assert plan.duration == pytest.approx(8 + 2 * 20 * (1 / 5 + 1 / 6 + 1 / 7 + 1 / 8))


def test_given_a_logarithmic_sweep_and_lists_then_frequencies_follow() -> None:
    text = (
        'amplitude = 1\nseconds = 1\nfrom = 1\nto = 100\npoints = 3\nlogarithmic = true\ndirections = "down"'
    )
    assert [s.frequency for s in sequence_from_text(text).steps] == pytest.approx([100, 10, 1])
    text = (
        "amplitude = 1\nseconds = 2\n[[sweeps]]\nfrequencies = [3, 2]\n"
        "[[sweeps]]\nfrequencies = [5.0]\namplitude = 2"
    )
    assert [(s.frequency, s.amplitude) for s in sequence_from_text(text).steps] == [(2, 1), (3, 1), (5, 2)]
    text = "amplitude = 1\nseconds = 2\n[[steps]]\nfrequency = 4\n[[steps]]\nfrequency = 6\ntap = -1"
    assert [(s.frequency, s.tap) for s in sequence_from_text(text).steps] == [(4, 0), (6, -1)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("amplitude = 1\nseconds = 1\nfrom = 1\nto = 2", "'step' is missing"),
        ("amplitude = 0\nseconds = 1\nfrequencies = [1]", "amplitude must be a positive"),
        ("amplitude = 1\nfrequencies = [1]", "'seconds' is missing"),
        ("amplitude = 1\nseconds = 1\nfrequencies = [1]\ncolour = 2", "no 'colour'"),
        ("amplitude = 1\nseconds = 1\nfrequencies = []", "no step"),
        ('amplitude = 1\nseconds = 1\nfrequencies = [1]\ndirections = "left"', "directions is one of"),
        ("amplitude = 1\nseconds = 1\nfrom = 1\nto = 9\nstep = 1e-9", "not a sensible plan"),
        ("amplitude = ", "Invalid value"),
    ],
)
def test_given_a_plan_without_sense_then_one_sentence(text: str, words: str) -> None:
    with pytest.raises(SequenceError, match=words):
        sequence_from_text(text, "plan.toml")


def test_given_a_plan_when_run_then_each_step_is_recorded_with_its_drive(tmp_path: Path) -> None:
    rig, engine = started()
    steps: list[Step] = []
    run = SequenceRun(sequence_from_text(PLAN), tmp_path / "sweep", {"rig": "two_well_beam"})
    files = run.run(rig, engine, Progress(steps.append))
    closed(rig, engine)
    assert len(files) == 8 and run.seconds_left == 0
    assert steps[0].fraction < 0.1 and all(
        b.fraction >= a.fraction - 1e-9 for a, b in itertools.pairwise(steps)
    )
    assert steps[0].values["seconds_left"] > steps[-1].values["seconds_left"]
    for file, step in zip(files, run.sequence.steps, strict=True):
        record = read(file)
        assert len(record) == round(step.seconds * 187.5)
        assert record.metadata["frequency"] == step.frequency
        drive = record.excitation
        assert drive is not None and drive.phase is not None
        assert drive.frequency == step.frequency and drive.amplitude == pytest.approx(0.6)
        expected = 0.6 * np.cos(2 * np.pi * step.frequency * record.times + drive.phase)
        assert np.abs(record["drive"] - expected).max() < 0.003  # one count of the converter


def test_given_a_run_cut_off_when_started_again_then_only_the_rest_is_done(tmp_path: Path) -> None:
    rig, engine = started()
    plan = sequence_from_text(PLAN)
    run = SequenceRun(plan, tmp_path)
    with pytest.raises(Cancelled):
        run.run(rig, engine, Progress(cancelled=lambda: run.next_step == 3))
    assert not rig.exciter.state().playing or rig.exciter.state().reason  # type: ignore[union-attr]
    closed(rig, engine)
    (tmp_path / "step-0004.h5.journal").write_bytes(b"cut off by a crash")

    again = SequenceRun(plan, tmp_path)
    assert again.next_step == 3 and again.seconds_left < plan.duration
    before = [p.stat().st_mtime_ns for p in again.done]
    rig, engine = started()
    files = again.run(rig, engine)
    closed(rig, engine)
    assert len(files) == 8 and [p.stat().st_mtime_ns for p in files[:3]] == before
    assert (tmp_path / "unfinished-1-step-0004.h5.journal").exists()
    with pytest.raises(SequenceError, match="another plan"):
        SequenceRun(sequence_from_text(PLAN.replace("0.6", "0.7")), tmp_path)


def test_given_pause_then_the_drive_is_off_until_resumed(tmp_path: Path) -> None:
    rig, engine = started()
    run = SequenceRun(sequence_from_text(PLAN), tmp_path)
    run.pause()
    seen: list[str] = []

    def watch(step: Step) -> None:
        seen.append(step.message)
        if "paused" in step.message:
            assert not rig.exciter.state().playing  # type: ignore[union-attr]

    threading.Timer(0.3, run.resume).start()
    run.run(rig, engine, Progress(watch))
    closed(rig, engine)
    assert "paused" in seen[0] and run.next_step == 8


def test_given_a_plan_beyond_the_limits_then_nothing_moves(tmp_path: Path) -> None:
    rig, engine = started()
    plan = sequence_from_text(PLAN.replace("to = 8.0", "to = 80.0").replace("step = 1.0", "step = 25.0"))
    with pytest.raises(LimitError, match="80"):
        SequenceRun(plan, tmp_path / "x").run(rig, engine)
    assert not (tmp_path / "x").exists() and engine.status.samples == 0
    closed(rig, engine)


def test_given_a_slow_ramp_of_the_profile_then_a_step_is_recorded_at_its_full_amplitude(
    tmp_path: Path,
) -> None:
    """From 0.3 to 1.5 V at 0.4 V/s takes three seconds, with nothing left to settle."""
    profile = load_rig("two_well_beam")
    slow = replace(profile, limits=replace(profile.limits, ramp=0.4))
    rig = open_rig(slow, InstantClock(), 3)
    engine = Engine(rig.source, rig.exciter, 0.05)
    engine.start(held=True)
    steps = "".join(
        f"[[steps]]\nfrequency = 7.5\namplitude = {a}\nsettle = 0\nseconds = 1\n" for a in (0.3, 1.5, 0.5)
    )
    done = SequenceRun(sequence_from_text(steps), tmp_path).run(rig, engine)
    for path, amplitude in zip(done, (0.3, 1.5, 0.5), strict=True):
        drive = read(path)["drive"]
        period = round(rig.source.rate / 7.5)
        assert np.abs(drive[:period]).max() == pytest.approx(amplitude, rel=0.03)
        assert np.abs(drive).max() == pytest.approx(amplitude, rel=0.03)
    closed(rig, engine)
