"""The commands rigs, devices, acquire, replay and stop, as a user calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.cli import main
from drivers.formats import open_lazily, read
from drivers.rig.profile import Rig
from tests.waiting import LONG, wait_until


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, object]:
    assert main([*argv, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_given_rigs_then_every_profile_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    listed = call(capsys, "rigs")
    assert {"two_well_beam", "two_well_beam_modern", "cantilever"} <= {r["rig"] for r in listed}  # type: ignore
    assert main(["rigs", "two_well_beam"]) == 0
    text = capsys.readouterr().out
    assert "strain gauge" in text and "187.5 Hz" in text


def test_given_devices_then_virtual_rigs_are_there_and_missing_drivers_are_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = call(capsys, "devices")
    kinds = {d["kind"] for d in found["devices"]}  # type: ignore[attr-defined]
    assert "virtual" in kinds
    assert "nidaqmx" in kinds or any("NI" in note for note in found["notes"])  # type: ignore[attr-defined]


def test_given_acquire_fast_then_the_recording_is_there_and_repeatable(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = [
        "acquire",
        "two_well_beam",
        "--seconds",
        "20",
        "--fast",
        "--seed",
        "4",
        "--set",
        "amplitude=1.4",
    ]
    result = call(capsys, *arguments, "--out", str(tmp_path / "run1"))
    call(capsys, *arguments, "--out", str(tmp_path / "run2"))
    assert result["samples"] == 3750 and result["gaps"] == 0 and result["problem"] is None
    first, second = read(tmp_path / "run1.h5"), read(tmp_path / "run2.h5")
    assert all(np.array_equal(first[n], second[n]) for n in first.names)
    told = call(capsys, "info", str(tmp_path / "run1.h5"))["channels"]
    for channel in told:  # type: ignore[attr-defined]
        said = result["channels"][channel["name"]]  # type: ignore[index]
        assert said["rms"] == pytest.approx(channel["rms"], rel=1e-9)  # the same word, the same number
    drive = first.excitation
    assert drive is not None and drive.phase is not None and drive.amplitude == 1.4
    expected = 1.4 * np.cos(2 * np.pi * 7.5 * first.times + drive.phase)
    assert np.abs(first["drive"] - expected).max() < 0.003
    assert first.metadata["rig"] == "two_well_beam" and first.metadata["drive"]["amplitude"] == 1.4


def test_given_acquire_to_csv_with_periods_then_a_table_of_whole_periods(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "run.csv"
    call(capsys, "acquire", "two_well_beam", "--periods", "40", "--fast", "--out", str(out))
    assert len(read(out)) == 1000 and [p.name for p in tmp_path.iterdir()] == ["run.csv"]


def test_given_a_trigger_then_the_crossing_is_where_it_should_be(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    result = call(
        capsys, "acquire", "two_well_beam", "--seconds", "1", "--fast", "--out", str(tmp_path / "t"),
        "--trigger", "x > 0.9", "--before", "0.2", "--captures", "2", "--hold-off", "2",
    )  # fmt: skip
    assert len(result["files"]) == 2  # type: ignore[arg-type]
    for file in result["files"]:  # type: ignore[attr-defined]
        record = read(file)
        at = record.metadata["trigger_index"]
        assert record["x"][at - 1] < 0.9 <= record["x"][at] and at in (37, 38) and len(record) == 188


def test_given_a_sequence_then_recordings_and_resuming(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text("amplitude = 1.0\nfrequencies = [6.0, 7.5]\nseconds = 2.0\nsettle = 0.5\n")
    arguments = ["acquire", "two_well_beam", "--fast", "--sequence", str(plan), "--out", str(tmp_path / "s")]
    first = call(capsys, *arguments)
    assert first["done"] == 2 and first["resumed_at"] == 0
    assert call(capsys, *arguments)["resumed_at"] == 2


def test_given_replay_then_the_copy_is_the_recording(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    call(capsys, "acquire", "cantilever", "--seconds", "3", "--fast", "--out", str(tmp_path / "run"))
    result = call(capsys, "replay", str(tmp_path / "run.h5"), "--fast", "--out", str(tmp_path / "copy"))
    assert result["samples"] == 6144
    before, after = read(tmp_path / "run.h5"), read(tmp_path / "copy.h5")
    assert all(before[n].tobytes() == after[n].tobytes() for n in before.names)
    assert before.metadata == after.metadata and before.start == after.start
    late = call(capsys, "replay", str(tmp_path / "run.h5"), "--fast", "--start", "2")
    assert late["samples"] == 2048


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["acquire", "two_wells", "--seconds", "1"], "two_well_beam"),
        (["acquire", "two_well_beam", "--fast"], "--seconds"),
        (["acquire", "two_well_beam", "--fast", "--seconds", "-3"], "positive"),
        (["acquire", "two_well_beam", "--fast", "--seconds", "1", "--set", "amplitude=9"], "amplitude limit"),
        (["acquire", "two_well_beam", "--fast", "--seconds", "1", "--set", "amplitude=x"], "NAME=NUMBER"),
        (["acquire", "two_well_beam", "--fast", "--seconds", "1", "--set", "k9=3"], "k9"),
        (["acquire", "two_well_beam", "--fast", "--seconds", "1", "--trigger", "x=1"], "x > 0.5"),
        (["acquire", "two_well_beam", "--fast", "--seconds", "1", "--trigger", "q>1"], "'q'"),
        (["acquire", "two_well_beam", "--fast", "--seconds", "1", "--trigger", ""], "x > 0.5"),
        (["acquire", "two_well_beam", "--fast", "--seconds", "1", "--captures", "0"], "--captures"),
        (["acquire", "two_well_beam", "--fast", "--seconds", "1", "--settle", "-3"], "--settle"),
    ],
)
def test_given_wrong_wishes_then_one_sentence_and_exit_code_1(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([*arguments, "--out", str(tmp_path / "run")]) == 1
    message = capsys.readouterr().err
    assert words in message and message.count("\n") == 1 and not list(tmp_path.iterdir())


def grown(journal: Path, size: int, process: subprocess.Popen[str]) -> None:
    """Wait until a recording has come so far; its process is ended if it never does."""
    try:
        wait_until(lambda: journal.exists() and journal.stat().st_size > size, seconds=LONG)
    except BaseException:
        process.kill()
        raise


def test_given_a_trigger_that_cannot_be_then_refused_before_the_shaker_moves(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rig, "play", lambda *_: pytest.fail("it moved"))
    for condition in ("q > 1", "nonsense"):
        words = ["acquire", "two_well_beam", "--fast", "--seconds", "1", "--trigger", condition]
        assert main([*words, "--out", str(tmp_path / "run.h5")]) == 1
        assert "trigger" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_given_a_device_or_a_pipe_as_plan_or_profile_then_one_sentence_and_no_wait(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    words = ["acquire", "two_well_beam", "--fast", "--out", str(tmp_path / "runs")]
    for rest in (["--sequence", "/dev/zero"], ["--sequence", str(pipe)]):
        assert main([*words, *rest]) == 1
        assert "not a file" in capsys.readouterr().err
    assert main(["acquire", str(pipe), *words[2:]]) == 1
    assert "a named pipe, not a file" in capsys.readouterr().err


def test_given_ctrl_c_in_real_time_then_what_was_recorded_is_saved(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app.cli", "acquire", "two_well_beam", "--settle", "0",
               "--out", str(tmp_path / "run"), "--json", "-"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        grown(tmp_path / "run.h5.journal", 10_000, process)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=LONG)
    result = json.loads(out)
    assert result["interrupted"] and result["problem"] is None and result["samples"] > 100
    assert len(read(tmp_path / "run.h5")) == result["samples"]


def start(folder: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """`shakedown acquire` of the beam in real time, in a process of its own."""
    command = [sys.executable, "-m", "app.cli", "acquire", "two_well_beam", "--settle", "0",
               "--out", str(folder / "run"), *arguments]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **pipes, **options)  # type: ignore[call-overload,no-any-return]


def test_given_the_program_is_killed_then_the_rig_process_finishes_the_recording(tmp_path: Path) -> None:
    with start(tmp_path) as process:
        journal = tmp_path / "run.h5.journal"
        grown(journal, 20_000, process)
        size = journal.stat().st_size
        process.kill()
        process.communicate()
    wait_until(lambda: not journal.exists())
    with open_lazily(tmp_path / "run.h5") as recording:
        record, events = recording.slice(0, len(recording)), recording.about.events
    assert len(record) > 187 and not record.channels["x"].gaps
    assert len(record) * 24 > size / 3  # nothing that was in the journal is missing
    assert any("the window is gone" in event.get("text", "") for event in events)
    assert record.excitation is not None and record.excitation.phase is not None
    expected = 1.5 * np.cos(2 * np.pi * 7.5 * record.times + record.excitation.phase)
    off = next(event["index"] for event in events if event.get("text", "").startswith("drive off"))
    before = slice(0, off - round(0.1 * record.rate))  # the ramp takes 40 ms
    assert np.abs(record["drive"] - expected)[before].max() < 0.003  # every sample in its place
    assert np.abs(record["drive"][off + 2 :]).max(initial=0.0) < 0.003  # recorded until the drive was silent


def test_given_the_disk_is_full_then_said_and_everything_before_is_kept(tmp_path: Path) -> None:
    import resource

    def small_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    before = ["acquire", "two_well_beam", "--fast", "--seconds", "1", "--out", str(tmp_path / "before")]
    assert main(before) == 0  # the compiler's own files must not meet the limit
    with start(tmp_path, "--fast", "--seconds", "60", "--json", "-", preexec_fn=small_disk) as process:
        out, err = process.communicate(timeout=LONG)
    assert process.returncode == 1 and "Traceback" not in err
    problem = json.loads(out)["problem"] if out else err
    assert "disk" in problem and "run.h5" in problem
    (kept,) = tmp_path.glob("*.journal")
    assert kept.stat().st_size > 40_000


def test_given_a_folder_that_cannot_be_written_then_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("/proc/run", "/no/such/folder/run"):
        assert main(["acquire", "two_well_beam", "--fast", "--seconds", "1", "--out", folder]) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and str(Path(folder).parent) in said


def test_given_a_recording_of_that_name_then_it_is_never_overwritten(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("run.h5", "run.csv"):
        (tmp_path / name).write_text("precious")
        assert (
            main(["acquire", "two_well_beam", "--fast", "--seconds", "1", "--out", str(tmp_path / name)]) == 1
        )
        assert "already there" in capsys.readouterr().err and (tmp_path / name).read_text() == "precious"
    again = ["acquire", "two_well_beam", "--fast", "--seconds", "1", "--force", "--out"]
    assert main([*again, str(tmp_path / "run.h5")]) == 1
    assert "not even with --force" in capsys.readouterr().err
    assert (tmp_path / "run.h5").read_text() == "precious"
    for command in ("acquire", "replay", "hold", "track"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert "what a rig records never replaces a file" in " ".join(capsys.readouterr().out.split())


def test_given_an_operator_remembered_by_the_window_then_recordings_from_a_shell_name_them_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shakedown"
    folder.mkdir()
    (folder / "settings.toml").write_text('operator = "A. Person"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    brief = ["acquire", "two_well_beam", "--fast", "--seconds", "0.1", "--settle", "0", "--no-drive", "--out"]
    for name, more, operator in (
        ("a", [], "A. Person"),
        ("b", ["--operator", "B"], "B"),
        ("c", ["--operator", ""], ""),
    ):
        assert main([*brief, str(tmp_path / name), *more]) == 0
        with open_lazily(tmp_path / f"{name}.h5") as recording:
            assert recording.about.metadata["operator"] == operator
