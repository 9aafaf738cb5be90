"""`shakedown hold`: what cannot be held is refused in one sentence and nothing moves; STOP ends a loop."""

from __future__ import annotations

import time
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tomli_w

from analysis import Identification, Record
from analysis.base.identification import Estimate
from analysis.holding.dither import Dither, dither_sequence, response
from analysis.holding.dither_fit import read_dither
from analysis.holding.plant import ActuatorPath
from analysis.model import Model
from app.cli import main
from app.loop_rig import modulated
from drivers.acquisition.guarded import open_guarded
from drivers.base.clock import InstantClock
from drivers.base.limits import Limits
from drivers.base.protocols import ChannelInfo, InstrumentError
from drivers.base.waveform import Sine
from drivers.formats import read, write
from drivers.library import load_model
from drivers.rig.loop import LoopTiming
from drivers.rig.profile import Rig, load_rig, open_rig
from drivers.virtual.plant import Plant, Shaker, Specimen
from drivers.virtual.rig import VirtualRig, VirtualSensor
from tests.waiting import wait_until

RIG = "two_well_beam"
VALUES = {"c": 0.035, "k1": -0.28, "k2": 0.178, "k3": 0.336, "k4": -0.064}


def _fit(path: Path, verdict: str = "close", model: str = "beam_on_shaker", **values: float) -> None:
    estimates = {n: Estimate.normal(v, 1e-5) for n, v in {**VALUES, **values}.items()}
    text = load_model(model).to_toml()
    path.write_text(
        Identification("weak", "beam", True, estimates, verdict=verdict, model_text=text).to_json()
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of 12 s, fits, and rigs that differ from the one of the record."""
    path = tmp_path_factory.mktemp("hold")
    arguments = ["acquire", RIG, "--fast", "--seconds", "12", "--out", str(path / "beam.h5")]
    assert main([*arguments, "--json", str(path / "acquire.json")]) == 0
    _fit(path / "fit.json")
    _fit(path / "misses.json", "misses")
    _fit(path / "stranger.json", k1=-0.5, k3=0.6)
    _fit(path / "own_drive.json", model="beam_with_drive", p=0.25, q=0.0059)
    text = (load_rig(RIG).folder / f"{RIG}.toml").read_text()
    start, stop = text.index("[instruments.source.loop]"), text.index("[instruments.source.specimen]")
    for name, changed in {
        "no_loop": text[:start] + text[stop:],
        "weaker": text.replace("amplitude = 1.5 ", "amplitude = 1.2 "),
        "no_force": text.replace('name = "f"', 'name = "g"').replace('f = "f"', 'g = "f"'),
        "no_sensor": text.replace('name = "x"', 'name = "y"').replace('x = "x"', 'y = "x"'),
        "full": text.replace("amplitude = 4.0", "amplitude = 1.5"),
    }.items():
        (path / name).mkdir()
        (path / name / f"{RIG}.toml").write_text(changed)  # the same name: the same rig, changed since
    record = read(str(path / "beam.h5"))
    other: Record = replace(record, metadata={**record.metadata, "specimen": 7})
    write(other, path / "other.h5")
    return path


@pytest.mark.parametrize(
    ("rig", "record", "fit", "said"),
    [
        ("two_well_beam_modern", "beam.h5", "fit.json", "made on the rig 'two_well_beam'"),
        ("weaker", "beam.h5", "fit.json", "driven by 1.5 at 7.5 Hz, the rig's drive is 1.2"),
        ("no_force", "beam.h5", "fit.json", "has no channel 'f'"),
        ("no_sensor", "beam.h5", "fit.json", "measures none of x, v"),
        ("no_loop", "beam.h5", "fit.json", "has no control loop"),
        (RIG, "other.h5", "fit.json", "of specimen 7"),
        (RIG, "beam.h5", "misses.json", "does not describe its record"),
        (RIG, "beam.h5", "stranger.json", "does not follow the record"),
        (RIG, "beam.h5", "own_drive.json", "has no measured input"),
    ],
)
def test_when_record_model_and_rig_do_not_belong_together_then_one_sentence_and_no_motion(
    folder: Path, capsys: pytest.CaptureFixture[str], rig: str, record: str, fit: str, said: str
) -> None:
    given = folder / rig / f"{RIG}.toml"
    words = ["hold", str(given) if given.exists() else rig, "--record", str(folder / record), "--fit"]
    out = folder / "never.h5"
    assert main([*words, str(folder / fit), "--all", "--fast", "--out", str(out)]) == 1
    shown = capsys.readouterr()
    assert said in shown.err and "Traceback" not in shown.err and shown.err.strip().count("\n") == 0
    assert not shown.out and not list(folder.glob("never*"))


def test_when_the_drive_cannot_be_corrected_then_one_sentence(folder: Path) -> None:
    without = open_rig(load_rig(folder / "no_loop" / f"{RIG}.toml"), InstantClock())
    with pytest.raises(InstrumentError, match="has no control loop"):
        modulated(without)
    with pytest.raises(InstrumentError, match="cannot be corrected sample by sample"):
        modulated(Rig(without.profile, without.source, exciter=None))


def test_when_stop_comes_while_the_loop_of_the_rigs_process_is_closed_then_the_drive_ends() -> None:
    profile = load_rig(RIG)
    rig = open_guarded(profile, patience=20.0)
    try:
        rig.source.start()
        rig.play()
        exciter = modulated(rig)
        exciter.control(Dither(("x",), np.array([0.5, -0.5, 0.3])))
        wait_until(lambda: exciter.loop_status().ticks > 20)
        assert exciter.loop_status().state == "watching"
        begun = time.monotonic()
        rig.emergency_stop("STOP")
        wait_until(lambda: rig.link.output == 0.0 and rig.drive_status().latched)
        assert time.monotonic() - begun < 5  # the machine may be busy; the ramp itself is counted in samples
        wait_until(lambda: exciter.loop_status().state in ("open", "letting go"))  # seen at the next sample
        status = exciter.loop_status()
        assert status.delay == pytest.approx(0.0057, rel=0.2)
        with pytest.raises(Exception, match="latched"):
            exciter.control(Dither(("x",), np.array([0.1])))
    finally:
        rig.close()


@pytest.mark.parametrize(("mode", "friction"), [(False, 0.0), (True, 0.0), (False, 0.0008)])
def test_when_a_specimen_at_rest_is_dithered_then_path_and_spillover_are_found(
    mode: bool, friction: float
) -> None:
    """The truth is the virtual rig's own table; with a second resonance in what the sensor shows, or with
    dry friction, which triples the damping of small motions and is no second resonance."""

    model = load_model("beam_on_shaker").with_values(VALUES)
    tables = tomllib.loads(model.to_toml())
    tables["states"]["v"] += f" - w*{friction}*tanh(v/0.01)"
    tables["states"] |= {"q": "p", "p": "-4.8*p - 57600*q + f"}  # 38.2 Hz, 1 %
    tables["outputs"] = {"seen": "x + 2000*q" if mode else "x"}
    plant = Plant(
        Specimen(Model.from_toml(tomli_w.dumps(tables)), inputs={"f": "table"}),
        Shaker(0.16667, 0.002),
        400.0,
        10,
    )
    rig = VirtualRig(
        "test", plant, [ChannelInfo("x"), ChannelInfo("f")],
        [VirtualSensor("seen", noise=2e-4), VirtualSensor("f", noise=2e-4)],
        Limits(4.0, slew=4000.0), 1, InstantClock(), LoopTiming(0.007, 0.0002, 0.01, channels=True),
    )  # fmt: skip
    rig.start()
    rig.exciter.play(Sine(0.0, 7.5))
    sequence = dither_sequence(7.5, 400.0, 0.06)
    rig.read(np.empty((5, 1600)))
    rig.exciter.control(Dither(("x", "f"), sequence))
    rig.read(np.empty((5, 400 + len(sequence))))
    data = rig.read(np.empty((5, 6 * len(sequence)))).data
    status = rig.exciter.loop_status()
    found = response(data[:2], data[3], sequence, 400.0)
    start = ActuatorPath(0.16, 0.0, status.delay, status.jitter)
    result = read_dither(found, model, ("x",), np.array([0.72, 0.0]), 1 / 400, start, np.array([0.9, 0.5]))
    assert result.path.gain == pytest.approx(0.16667, rel=0.02)
    assert result.path.delay + result.path.lag == pytest.approx(0.0092, abs=1e-4)
    assert len(result.modes) == mode
    if mode:
        assert result.modes[0].frequency == pytest.approx(240, rel=0.01)
        assert result.modes[0].damping == pytest.approx(0.01, rel=0.05)
        assert result.modes[0].shows[0][0] == pytest.approx(2000, rel=0.02)
