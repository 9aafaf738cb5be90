"""`shakedown track` on the virtual hardening beam: the whole chain, and what is refused before it moves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.dynamics.imposed import ImposedMotions
from analysis.tracking.linear_test import LinearPlant
from analysis.tracking.tracker import Goal, Task, Tracker
from app.cli import main
from app.commands.track import _show
from drivers.base.clock import InstantClock
from drivers.base.protocols import Modulated
from drivers.base.waveform import Sine
from drivers.formats import read
from drivers.formats.curves import is_curve, read_curve
from drivers.library import load_model
from drivers.rig.profile import load_rig, open_rig

RIG = "hardening_beam"
TRUTH = {"m": 0.1, "c": 0.3142, "k1": 2467.4, "k2": 60000.0, "k3": 7.4e8}


def _slow_rig(folder: Path) -> Path:
    """The bundled rig with 40 samples a period: a third of the work."""
    text = (load_rig(RIG).folder / f"{RIG}.toml").read_text()
    path = folder / "beam.toml"
    path.write_text(text.replace("rate = 2500.0", "rate = 1000.0"))
    return path


def test_when_a_backbone_is_tracked_on_the_virtual_rig_then_it_is_the_specimens(tmp_path: Path) -> None:
    out = tmp_path / "b"
    words = ["track", str(_slow_rig(tmp_path)), "--backbone", "--from", "0.0004", "--to", "0.0012"]
    code = main([*words, "--points", "3", "--fast", "--seed", "2", "--out", str(out), "--table", f"{out}.csv",
                 "--json", f"{out}.json"])  # fmt: skip
    told = json.loads((tmp_path / "b.json").read_text())
    assert code == 0 and told["verdict"] == "tracked", told
    model = load_model(RIG).with_values(TRUTH)
    solver = ImposedMotions(model, "x")
    assert len(told["points"]) == 4 and told["ramp_check"]["compared"] == 1
    for p in told["points"]:
        found = solver.solve(model.values(), p["frequency"], p["amplitude"])
        assert found is not None
        off = np.angle(found.force) - np.pi / 2  # rad: a frequency off by 0.01 of it
        assert abs(0.01 * off) < 2e-4
        assert p["force"] == pytest.approx(abs(found.force), rel=0.02)
    assert is_curve(f"{out}.csv")
    curve = read_curve(f"{out}.csv", "x")
    assert np.allclose(curve.frequency, [p["frequency"] for p in told["points"]])
    record = read(f"{out}.h5")
    assert {"x", "f", "target", "correction", "loop"} <= set(record.channels)
    held = record["loop"] == 2
    assert held.any() and np.ptp(record["target"][held]) > 0.001


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["two_well_beam", "--backbone", "--to", "1", "--sensor", "nothing"], "has no channel 'nothing'"),
        ([RIG, "--backbone"], "--to A names the largest"),
        ([RIG, "--response", "--to", "0.001"], "needs either --at-frequency"),
        ([RIG, "--backbone", "--to", "0.001", "--at-force", "1"], "finds frequency and force itself"),
        ([RIG, "--backbone", "--to", "0.001", "--near", "500"], "outside the frequency limits"),
        ([RIG, "--backbone", "--to", "0.001", "--sensor", "f"], "response and force at once"),
        ([RIG, "--backbone", "--to", "0.001", "--model", "duffing"], "must have the output 'x' and the one"),
        (["miura_ori", "--backbone", "--to", "1", "--force-sensor", "f", "--near", "5"], "no channel 'f'"),
    ],
)
def test_when_it_cannot_be_tracked_then_one_sentence_and_no_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["track", *words, "--fast", "--out", str(tmp_path / "never.h5")]) == 1
    told = capsys.readouterr().err
    assert said in told and "Traceback" not in told and told.strip().count("\n") == 0
    assert not list(tmp_path.glob("never*"))


def test_when_no_point_is_reached_then_it_is_said_why(capsys: pytest.CaptureFixture[str]) -> None:
    told = {"points": [], "problem": "", "kind": "backbone", "verdict": "incomplete",
            "reason": "the response ran away on the way to 0.0001", "files": ["run.h5"]}  # fmt: skip
    _show(told)
    assert capsys.readouterr().out.splitlines() == [
        "backbone: incomplete: the response ran away on the way to 0.0001", "run.h5"
    ]  # fmt: skip


def test_when_stop_comes_while_the_loop_makes_the_drive_then_it_is_zero_within_100_ms() -> None:
    rig = open_rig(load_rig(RIG), InstantClock(), 1)
    rig.source.start()
    assert isinstance(rig.exciter, Modulated)
    rig.exciter.play(Sine(0.0, 25.0))
    samples = np.empty((len(rig.source.channels), 1500))
    rig.source.read(samples)
    plant = LinearPlant(2500.0, 25.0, 0.01, 1.0, 0, 2.1e-3, 0.0, 0.1)
    task = Task(True, False, 1e-3, 5.0, 80.0, 3.8)
    goal, rest = Goal(1e-3, plant.lag), Goal(0.0, plant.lag)
    rig.exciter.control(Tracker(plant, task, ("x", "f"), goal, rest, 20.0))
    rig.source.read(samples)
    rig.source.read(samples)
    rig.source.read(samples)
    player = rig.source._player  # type: ignore[attr-defined]
    assert 0.0 < abs(player.output) <= rig.profile.limits.peak
    rig.emergency_stop("STOP")
    rig.source.read(np.empty((len(rig.source.channels), 250)))
    assert player.output == 0.0 and not rig.exciter.state().playing
