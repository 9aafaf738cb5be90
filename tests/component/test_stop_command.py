"""`shakedown stop` as it is called from a shell: what it reaches, what it names, what it costs to start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from drivers.acquisition.engine import Engine
from drivers.acquisition.guarded import GuardedRig, open_guarded
from drivers.acquisition.second_guard import MARK
from drivers.acquisition.stopping import stop_all
from drivers.base import control_folder as control_folder_module
from drivers.base.control_folder import SUFFIX, control_folder, is_private, page_paths
from drivers.base.drive_page import PAGE_BYTES, DrivePage, is_ending, process_state
from drivers.rig.profile import load_rig
from drivers.virtual.nidaq_server import device_of, serve
from drivers.virtual.simulated_device import DigitalInput
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and users of this kind")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="becoming another user needs root"
)


def stop(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app.cli", "stop", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def driving() -> Iterator[GuardedRig]:
    rig = open_guarded(load_rig("two_well_beam"), patience=60)
    engine = Engine(rig.source, rig.exciter)
    engine.start()
    rig.play()
    wait_until(lambda: rig.drive_status().state == "playing")
    yield rig
    engine.stop()
    rig.close()


def test_given_nothing_runs_then_said_with_a_code_of_its_own() -> None:
    done = stop()
    assert done.returncode == 4 and done.stdout.startswith("No drive") and done.stderr == ""


def test_given_a_drive_then_stopped_latched_and_named_whatever_tmpdir_is(driving: GuardedRig) -> None:
    done = stop("--json", "-", TMPDIR="/nowhere", HOME="/nowhere")
    result = json.loads(done.stdout)
    assert done.returncode == 0 and result["stopped"] == 1
    assert result["drives"][0]["rig"] == "two_well_beam" and result["drives"][0]["pid"] == driving.link.pid
    assert driving.link.output == 0.0 and driving.drive_status().state == "latched"
    assert "shakedown stop" in driving.drive_status().reason


def test_given_a_frozen_rig_then_stop_has_the_second_guard_zero_it(driving: GuardedRig) -> None:
    os.kill(driving.link.pid or 0, signal.SIGSTOP)
    try:
        done = stop()
        assert done.returncode == 0 and "Stopped: two_well_beam" in done.stdout
        assert driving.link.output == 0.0 and driving.link.page.guard_acted
    finally:
        os.kill(driving.link.pid or 0, signal.SIGCONT)
    wait_until(lambda: driving.drive_status().state == "tripped")


def test_given_stop_then_nothing_heavy_is_loaded() -> None:
    code = (
        "import os, sys; from app.cli import main; sys.argv = ['shakedown', 'stop']; main(); "
        "print(os.getpriority(0, 0), *sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    priority, *names = done.stdout.splitlines()[-1].split()
    assert os.getuid() != 0 or priority == "-10"  # before others, where that is allowed
    loaded = set(names)
    assert not loaded & {"numpy", "scipy", "numba", "PyQt6", "h5py", "multiprocessing", "serial", "nidaqmx"}
    assert not loaded & {"argparse", "analysis", "app.output", "subprocess"}  # bound to a key on the desk


def test_given_the_foot_switch_of_the_manual_then_it_stops_again_and_again_and_outlives_a_reset(
    driving: GuardedRig, tmp_path: Path
) -> None:
    """The manual's program, word for word but for where device and command are."""
    page = (ROOT / "docs" / "how-to" / "stop-from-anywhere.md").read_text(encoding="utf-8")
    switch, done = tmp_path / "pressed", tmp_path / "calls"
    device = device_of(load_rig("two_well_beam"), switch=switch)
    server, port, calls = serve(device)
    program = (
        page.split("```py\n")[1]
        .split("```")[0]
        .replace("nidaqmx.Task()", f"nidaqmx.Task(grpc_options=connect({{'server': '127.0.0.1:{port}'}}))")
        .replace(
            '["/opt/shakedown/.venv/bin/shakedown", "stop"]', f"{[sys.executable, '-m', 'app.cli', 'stop']!r}"
        )
    )
    program = "from drivers.instruments.nidaq import connect\n" + program

    def reading() -> bool:  # a reset says nothing to a task that has no channel yet
        return any(isinstance(task, DigitalInput) for task in list(calls._tasks.values()))

    with (
        done.open("w") as out,
        subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=out) as foot,
    ):
        try:
            wait_until(reading)
            switch.touch()
            wait_until(lambda: driving.drive_status().state == "latched" and driving.link.output == 0.0)
            assert "shakedown stop" in driving.drive_status().reason
            switch.unlink()
            wait_until(lambda: "Stopped" in done.read_text() and reading())
            with device.lock:
                calls.do_ResetDevice(SimpleNamespace(device_name="Dev1"))
            wait_until(lambda: done.read_text().count("Stopped") >= 2)
            assert foot.poll() is None
        finally:
            foot.kill()
            server.stop(0)
            device.close()


AS_ANOTHER = """
import argparse, os, pwd, sys  # all that is needed, while this user may still read it
from app.commands.stop import run
import drivers.acquisition.stopping
del os.environ["SHAKEDOWN_CONTROL_FOLDER"]
os.environ.pop("XDG_RUNTIME_DIR", None)
os.setgid(12345); os.setuid(12345)
sys.exit(run(argparse.Namespace(json=None)))
"""


@as_root
def test_given_the_drive_of_another_user_then_it_is_named_with_how_to_stop_it(tmp_path: Path) -> None:
    """A stand-in for somebody else's second guard, seen by a user who may not touch it."""
    page = tmp_path / "1.drive"
    guard = ["/bin/sh", "-c", "sleep 60; :", str(page), MARK]
    with subprocess.Popen(guard, user=65534, group=65534) as theirs:
        try:
            done = subprocess.run(
                [sys.executable, "-c", AS_ANOTHER], cwd=ROOT, capture_output=True, text=True, check=False
            )
        finally:
            theirs.kill()
    named = [line for line in done.stderr.splitlines() if f"process {theirs.pid} " in line]
    assert done.returncode == 1 and "No drive" not in done.stdout
    assert "A drive still runs" in named[0] and "sudo shakedown stop" in named[0]


def test_given_pages_and_folders_that_are_not_ours_then_nothing_is_followed_or_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "private"
    secret.write_bytes(b"x" * PAGE_BYTES)
    folder = control_folder()
    assert is_private(folder)
    (folder / f"1{SUFFIX}").symlink_to(secret)
    (folder / f"2{SUFFIX}").write_bytes(b"nonsense")
    (folder / f"3{SUFFIX}").mkdir()
    os.mkfifo(folder / f"4{SUFFIX}")
    try:
        done = stop()
        assert done.returncode == 4 and done.stderr == ""
        assert secret.read_bytes() == b"x" * PAGE_BYTES
        with pytest.raises(OSError):
            DrivePage.open(folder / f"1{SUFFIX}")
        with pytest.raises(OSError):
            DrivePage.create(folder / f"1{SUFFIX}", {})
    finally:
        for path in page_paths():
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o777)
    open_to_all.chmod(0o777)
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert not is_private(open_to_all) and not is_private(link)
    monkeypatch.delenv("SHAKEDOWN_CONTROL_FOLDER")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(open_to_all))  # others can write to it: not used
    assert open_to_all not in control_folder().parents


def test_given_no_runtime_folder_then_pages_are_in_shared_memory_and_never_in_a_folder_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, runtime = tmp_path / "memory", tmp_path / "runtime"
    memory.mkdir()
    memory.chmod(0o1777)
    monkeypatch.delenv("SHAKEDOWN_CONTROL_FOLDER")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))  # it is not there
    monkeypatch.setattr(control_folder_module, "MEMORY", memory)
    wanted = [p for p in control_folder_module.candidates() if "run/user" not in str(p)]
    assert [p.parent for p in wanted[:2]] == [runtime, memory]  # before the home directory
    monkeypatch.setattr(control_folder_module, "candidates", lambda: wanted)
    folder = control_folder()
    assert folder.parent == memory and is_private(folder)
    folder.rmdir()
    folder.symlink_to(tmp_path)  # put there by somebody before us
    assert control_folder() == wanted[2]


def test_given_pages_of_ours_with_nonsense_in_them_then_stop_goes_past_them(driving: GuardedRig) -> None:
    """A disk that was full, a crash in writing: the drive beside them is stopped all the same."""
    folder, rng = control_folder(), np.random.default_rng(7)
    about = [{"window": "x", "outputs": 3}, {"outputs": [1, "a", {}]}, {"outputs": {"kind": "line"}}, [1]]
    paths = []
    for number in range(12):
        page = DrivePage.create(folder / f"{number}{SUFFIX}", about[number % 4])  # type: ignore[arg-type]
        page.served = number % 3 > 0
        page.claim(int(rng.integers(2**62, 2**63 - 1)) if number % 2 else 0)
        page.close()
        content = bytearray((folder / f"{number}{SUFFIX}").read_bytes())
        if number >= 8:
            content[8:4096] = rng.integers(0, 256, 4088, dtype=np.uint8).tobytes()
        (folder / f"{number}{SUFFIX}").write_bytes(content)
        paths.append(folder / f"{number}{SUFFIX}")
    try:
        drives = [d for d in stop_all() if d.pid == driving.link.pid]
        assert drives[0].stopped and driving.link.output == 0.0
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def test_given_options_that_make_no_sense_then_stopped_all_the_same_and_said(driving: GuardedRig) -> None:
    done = stop("--json", "/nowhere/at/all.json")
    assert done.returncode == 1 and "no folder" in done.stderr and "Stopped: two_well_beam" in done.stdout
    assert driving.link.output == 0.0 and driving.drive_status().state == "latched"
    driving.arm()
    driving.play()
    wait_until(lambda: driving.link.output > 0)
    done = stop("--now!")
    assert done.returncode == 2 and "--now!" in done.stderr and "Stopped: two_well_beam" in done.stdout
    assert driving.link.output == 0.0 and driving.drive_status().state == "latched"
    assert stop("--help").returncode == 0


def test_given_a_killed_process_then_its_end_is_seen_before_anybody_has_asked_for_its_code() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert not is_ending(child.pid) and not is_ending(os.getpid())
        child.kill()
        wait_until(lambda: process_state(child.pid) == "Z")
        assert is_ending(child.pid)
    assert not is_ending(child.pid)  # nobody has this number now
