"""STOP, latch and second guard with real processes, real pseudo-terminals and a real device server.

How long it takes is measured by ``python -m tests.soak.stops``; here it is what happens that counts.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from drivers.acquisition.capture import recording_to
from drivers.acquisition.engine import Engine
from drivers.acquisition.guarded import GuardedRig, open_guarded
from drivers.acquisition.messages import Arm, AskDriveState, UseInstrument
from drivers.base.drive_page import DrivePage, alive
from drivers.base.latch import DriveLatched
from drivers.base.protocols import DriveState, InstrumentError
from drivers.base.waveform import Sine
from drivers.formats import open_lazily
from drivers.instruments.nidaq import STILL_SECONDS
from drivers.rig.profile import load_rig, rig_from_text
from tests.soak.slow_parts import with_slow_parts
from tests.soak.stop_model import run as run_model
from tests.soak.stops import DRIVERS, Bench, freeze_once, kill_once, stop_once, terminal_once
from tests.waiting import GUARD, wait_until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pseudo-terminals")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[GuardedRig]:
    opened = open_guarded(with_slow_parts(load_rig("two_well_beam"), tmp_path / "stall"), patience=60)
    yield opened
    opened.close()


@pytest.mark.parametrize("driver", DRIVERS)
def test_given_any_driver_when_stopped_frozen_or_killed_then_its_output_is_zero_and_stays_there(
    driver: str, tmp_path: Path
) -> None:
    bench = Bench(driver, tmp_path)
    rng = random.Random(5)
    try:
        for state in ("changing", "source stalled"):
            stop = stop_once(bench, state, rng)
            assert stop.seconds < 5.0  # silent at all
        stop = freeze_once(bench)  # also checks that the drive does not come back when it wakes up
        assert stop.seconds < 5.0 and "second guard set the output to zero" in bench.page.guard_acted
        if driver != "nidaqmx":  # whose device was reset: its stream has to be started again
            assert bench.ask("play 1.0 50.0").startswith("no The drive is latched (the rig's process gave")
            wait_until(lambda: bench.ask("arm") == "ok")  # a generator must have said that it is silent
            assert kill_once(bench).seconds < 5.0
    finally:
        bench.close()
    if bench.instrument is not None:
        assert bench.instrument.peak == 0.0


def test_given_a_device_server_that_freezes_then_the_drive_is_given_up_and_stays_off_when_it_wakes(
    tmp_path: Path,
) -> None:
    """Its window beats, its rig's process lives, nobody presses STOP: only the device has stopped playing."""
    bench = Bench("nidaqmx", tmp_path)
    assert bench.server is not None
    try:
        bench.server.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        bench.server.send_signal(signal.SIGCONT)
        bench.playing()  # a silent drive is not given up
        began = time.monotonic()
        bench.server.send_signal(signal.SIGSTOP)
        bench.wait_for(lambda: bench.page.status.state == "tripped", "a trip")
        taken = time.monotonic() - began
        assert "the device has played nothing for 1." in bench.page.status.reason
        assert "Dev1/ao0 may still stand at a voltage" in bench.page.status.reason
        assert STILL_SECONDS < taken < 4.0  # 1.6 s; a busy machine freezes the watch as well
        assert bench.page.output > 0  # nobody says that it is silent
        bench.server.send_signal(signal.SIGCONT)
        bench.wait_for(lambda: bench.page.output == 0.0, "silence")
        again = bench.output()
        again.watch(time.monotonic() + 1.0)
        assert abs(again.values[-1]) == 0.0
        assert bench.ask("play 1.0 50.0").startswith("no ")
    finally:
        bench.server.send_signal(signal.SIGCONT)
        bench.close()


def test_given_stop_then_it_latches_until_a_person_arms_and_a_later_stop_wins(rig: GuardedRig) -> None:
    engine = Engine(rig.source, rig.exciter)
    engine.start()
    exciter = rig.exciter
    assert exciter is not None and rig.drive_status().state == "armed"
    exciter.play(Sine(1.0, 7.5))
    wait_until(lambda: rig.drive_status().state == "playing")
    assert rig.drive_status().text == "SINE 7.5 Hz 1.00 V"
    rig.emergency_stop("STOP was pressed")
    wait_until(lambda: rig.drive_status().state == "latched" and rig.link.output == 0.0)
    for call in (lambda: exciter.play(Sine(1.0, 7.5)), lambda: exciter.change(amplitude=0.5)):
        with pytest.raises(DriveLatched, match=r"latched \(STOP was pressed\): arm it"):
            call()
    seen = rig.drive_status().stops
    rig.emergency_stop()
    wait_until(lambda: rig.drive_status().stops > seen)
    with pytest.raises(DriveLatched, match="pressed again"):
        rig.arm(seen)
    rig.arm(rig.drive_status().stops)
    wait_until(lambda: rig.drive_status().state == "armed")
    exciter.play(Sine(1.0, 7.5))
    wait_until(lambda: rig.drive_status().state == "playing")
    exciter.stop("enough")  # an ordinary end latches nothing
    wait_until(lambda: rig.drive_status().state == "armed")
    engine.stop()


def test_given_an_answer_that_comes_late_then_it_is_dropped_and_never_taken_for_another(
    rig: GuardedRig,
) -> None:
    for number in range(6):
        with pytest.raises(InstrumentError, match="did not answer"):
            rig.link.call(UseInstrument("echo", "set", (f"late {number}", "0.05")), 0.001)
        assert rig.link.call(UseInstrument("echo", "set", (f"word {number}", "0.0"))) == f"word {number}"
        with suppress(InstrumentError):  # late, unless the rig's process was quicker than this one
            assert isinstance(rig.link.call(AskDriveState(), 0.0), DriveState)
        assert isinstance(rig.link.call(AskDriveState()), DriveState)
        assert rig.link.call(Arm(rig.link.page.stops)) is None


def test_given_a_busy_instrument_and_a_stalled_source_then_commands_and_stop_do_not_wait(
    rig: GuardedRig, tmp_path: Path
) -> None:
    engine = Engine(rig.source, rig.exciter)
    engine.start()
    assert rig.exciter is not None
    rig.exciter.play(Sine(1.0, 7.5))
    wait_until(lambda: rig.drive_status().state == "playing")
    with pytest.raises(InstrumentError, match="did not answer"):
        rig.link.call(UseInstrument("echo", "set", ("x", "3.0")), 0.0)  # goes on over there
    (tmp_path / "stall").touch()
    rig.exciter.change(amplitude=1.2)
    rig.emergency_stop()
    wait_until(lambda: rig.link.output == 0.0 and rig.drive_status().state == "latched")
    assert not rig.link.page.guard_acted  # the rig's process did it itself
    (tmp_path / "stall").unlink()
    engine.stop()


def test_given_the_guard_is_killed_or_frozen_then_it_is_started_again_and_it_is_small(
    rig: GuardedRig,
) -> None:
    first = rig.link.page.guard_pid
    status = Path(f"/proc/{first}/status").read_text()
    memory = int(status.split("VmRSS:")[1].split()[0])  # kB
    assert memory < 20_000
    assert "numpy" not in Path(f"/proc/{first}/maps").read_text()
    assert os.getsid(first) == first and os.getsid(rig.link.pid or 0) == rig.link.pid
    os.kill(first, signal.SIGTERM)  # asked to end while the rig is open: it stays
    assert alive(first)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: rig.link.page.guard_pid != first and alive(rig.link.page.guard_pid))
    second = rig.link.page.guard_pid
    os.kill(second, signal.SIGSTOP)  # it would see nothing
    wait_until(lambda: rig.link.page.guard_pid != second and alive(rig.link.page.guard_pid))
    assert not alive(second)
    guard = rig.link.page.guard_pid
    rig.close()
    wait_until(lambda: not alive(guard))


@pytest.mark.parametrize("action", ["closed terminal", "Ctrl-Z", "Ctrl-\\"])
def test_given_a_terminal_that_closes_or_suspends_then_the_drive_ends_and_the_recording_is_whole(
    action: str, tmp_path: Path
) -> None:
    ended = terminal_once(action, tmp_path)
    assert ended.stop.seconds < 5.0
    assert ended.recorded >= ended.wanted > 0 and ended.code == 1
    with open_lazily(tmp_path / "run.h5") as recording:
        notes = [event.get("text", "") for event in recording.about.events]
        stopped = recording.about.metadata.get("drive_stopped")
    assert stopped is None or (stopped["kind"] == "stop" and 0 < stopped["sample"] <= ended.recorded)
    words = {"closed terminal": "terminal was closed", "Ctrl-Z": "Ctrl-Z", "Ctrl-\\": "Ctrl-\\"}
    assert any(words[action] in note for note in notes)
    if action == "Ctrl-Z":
        assert "Ctrl-Z was pressed, and a drive cannot be suspended" in ended.said


def test_given_a_trip_while_recording_then_the_file_says_when_why_and_at_what_value(tmp_path: Path) -> None:
    profile = load_rig("two_well_beam")
    text = (
        (profile.folder / "two_well_beam.toml")
        .read_text(encoding="utf-8")
        .replace("limit = 2.8", "limit = 1.3")
    )
    (tmp_path / "tight.toml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "app.cli", "acquire", str(tmp_path / "tight.toml"), "--seconds", "30"]
    command += ["--settle", "0", "--out", str(tmp_path / "run"), "--operator", "A. Person", "--json", "-"]
    command += ["--set", "amplitude=1.0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if "before" in done.stderr or not (tmp_path / "run.h5").exists():
        pytest.skip("it tripped before the recording began")
    result = json.loads(done.stdout)
    assert done.returncode == 1
    with open_lazily(tmp_path / "run.h5") as recording:
        metadata = recording.about.metadata
        stopped = metadata["drive_stopped"]
        assert len(recording) < 30 * 187.5
    assert metadata["rig"] == "tight" and metadata["rig_title"] == profile.name
    assert metadata["operator"] == "A. Person"
    assert (
        stopped["kind"] == "trip" and stopped["values"]["x"] > 1.3 and stopped["drive"].startswith("SINE 7.5")
    )
    assert "limit of 1.3" in stopped["reason"] and stopped["reason"] in result["problem"]
    assert result["drive_stopped"]["sample"] == stopped["sample"]


def test_given_a_recording_asked_for_while_the_drive_is_stopped_then_the_file_says_so(
    rig: GuardedRig, tmp_path: Path
) -> None:
    """STOP came after the last look at the drive and before the first sample that is kept."""
    engine = Engine(rig.source, rig.exciter)
    engine.start()
    rig.play()
    wait_until(lambda: rig.drive_status().state == "playing")
    rig.emergency_stop("STOP")
    wait_until(lambda: rig.drive_status().latched)
    capture = engine.record(recording_to(tmp_path / "run.h5", rig.source, {}), 40)
    assert capture.wait(GUARD)
    with open_lazily(tmp_path / "run.h5") as recording:
        stopped = recording.about.metadata["drive_stopped"]
    assert stopped["kind"] == "stop" and stopped["drive"].startswith("SINE") and stopped["sample"] >= 0
    engine.stop()


def test_given_stop_before_the_rig_is_open_then_it_is_latched_when_it_opens(tmp_path: Path) -> None:
    profile = rig_from_text(
        (load_rig("two_well_beam").folder / "two_well_beam.toml").read_text(encoding="utf-8"), "beam"
    )
    import threading

    from drivers.base.control_folder import page_paths

    known = set(page_paths())

    def press() -> None:
        wait_until(lambda: set(page_paths()) - known)
        (path,) = set(page_paths()) - known
        DrivePage.open(path).request_stop("STOP, early")

    presser = threading.Thread(target=press)
    presser.start()
    opened = open_guarded(profile, patience=60)
    presser.join()
    try:
        wait_until(lambda: opened.drive_status().state == "latched")
        with pytest.raises(DriveLatched, match="STOP, early"):
            opened.play()
    finally:
        opened.close()


def test_given_any_order_of_commands_late_answers_and_kills_then_the_rig_is_what_the_model_says() -> None:
    run_model(examples=3, steps=30)
