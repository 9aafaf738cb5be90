"""A recording survives the death of its process, of the power, of the disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from analysis.base.errors import DataError
from drivers.formats import open_lazily
from drivers.recording import Recorder, RecordingStopped, find_unfinished, recover
from tests.soak.counter_recorder import counter, wrong_samples
from tests.soak.crashes import ROOT, cut_power, kill_once, take
from tests.waiting import GUARD

RATE, CHANNELS, BLOCK = 25_600.0, 4, 256
as_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="mounting a small disk needs root"
)


def test_given_kills_at_random_moments_then_nothing_appended_is_lost(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    outcomes = []
    for i in range(12):
        folder = tmp_path / str(i)
        folder.mkdir()
        outcomes.append(kill_once(folder, rng.uniform(0.0, 0.8), RATE, CHANNELS, BLOCK, seconds=0.5))
    begun = [o for o in outcomes if o is not None]
    assert len(begun) >= 8
    assert any(o.recovered for o in begun)
    assert [o.lost for o in begun] == [0] * len(begun)
    assert [o.wrong for o in begun] == [0] * len(begun)


def test_given_power_cuts_at_random_moments_then_at_most_a_second_is_lost_and_the_rest_is_right(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    taken = take(tmp_path, RATE, CHANNELS, BLOCK, seconds=2.5)
    outcomes = [cut_power(taken, tmp_path, rng) for _ in range(12)]
    assert max(o.lost for o in outcomes) > 0  # the model does take something away
    assert max(o.lost for o in outcomes) <= RATE * (1 + taken.delays)
    assert [o.wrong for o in outcomes] == [0] * len(outcomes)


def fill(recorder: Recorder, most: int) -> int:
    """Append blocks until the disk refuses; the samples it took."""
    for start in range(0, most, BLOCK):
        try:
            recorder.append(counter(start, start + BLOCK, CHANNELS), start)
        except RecordingStopped:
            return start
    raise AssertionError("the disk never refused")


def until_gone(recorder: Recorder, taken: int, channels: int) -> int:
    """Append blocks until the recorder says that its file has gone; the samples it took."""
    deadline = time.monotonic() + GUARD
    with pytest.raises(RecordingStopped, match="gone"):
        while time.monotonic() < deadline:
            recorder.append(counter(taken, taken + BLOCK, channels), taken)
            taken += BLOCK
            time.sleep(0.02)
    return taken


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 4 MB in a file, which outlives its mounting."""
    folder, image = tmp_path / "disk", tmp_path / "disk.img"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(4 << 20)
    made = subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], capture_output=True, check=False)
    if made.returncode or subprocess.run(["mount", "-o", "loop", image, folder], check=False).returncode:
        pytest.skip("no loop device here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=False, capture_output=True)


@as_root
def test_given_a_full_disk_then_the_recording_ends_with_everything_written_so_far(
    small_disk: Path, tmp_path: Path
) -> None:
    recorder = Recorder(small_disk / "run", RATE, [f"c{i}" for i in range(CHANNELS)])
    taken = fill(recorder, 1_000_000)
    assert taken * CHANNELS * 8 > 2_000_000
    with pytest.raises(RecordingStopped, match="No space left"):
        recorder.append(counter(taken, taken + BLOCK, CHANNELS), taken)
    finished = recorder.close()
    assert finished.problem is not None
    assert "No space left" in finished.problem
    assert (
        finished.path == recorder.journal_path
    )  # no room for the finished file: the journal is the recording
    with open_lazily(finished.path) as recording:
        assert len(recording) == taken
        assert wrong_samples(recording) == 0
    moved = tmp_path / recorder.journal_path.name
    shutil.move(recorder.journal_path, moved)
    with open_lazily(recover(moved).path) as recording:
        assert len(recording) == taken
        assert wrong_samples(recording) == 0
        assert recording.verify().ok is True


@as_root
def test_given_a_pulled_drive_then_the_recording_ends_and_the_drive_holds_it(
    small_disk: Path, tmp_path: Path
) -> None:
    recorder = Recorder(small_disk / "run", RATE, [f"c{i}" for i in range(CHANNELS)])
    for start in range(0, 20 * BLOCK, BLOCK):
        recorder.append(counter(start, start + BLOCK, CHANNELS), start)
    subprocess.run(["umount", "-l", small_disk], check=True)
    taken = until_gone(recorder, 20 * BLOCK, CHANNELS)
    assert "gone" in str(recorder.close().problem)
    again = tmp_path / "again"
    again.mkdir()
    subprocess.run(["mount", "-o", "loop", tmp_path / "disk.img", again], check=True)
    try:
        (left,) = find_unfinished(again)
        with open_lazily(recover(left).path) as recording:
            assert len(recording) == taken
            assert wrong_samples(recording) == 0
    finally:
        subprocess.run(["umount", "-l", again], check=True)


@as_root
def test_given_a_file_system_that_fails_and_turns_read_only_then_the_recording_ends_and_says_so(
    small_disk: Path, tmp_path: Path
) -> None:
    subprocess.run(["mount", "-o", "remount,errors=remount-ro", small_disk], check=True)
    recorder = Recorder(small_disk / "run", RATE, [f"c{i}" for i in range(CHANNELS)])
    taken = 40 * BLOCK
    for start in range(0, taken, BLOCK):
        recorder.append(counter(start, start + BLOCK, CHANNELS), start)
    os.sync()
    device = Path(f"/sys/dev/block/{_device_number(small_disk)}").resolve().name
    try:
        Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("a test\n")
    except OSError:
        recorder.close()
        pytest.skip("this kernel cannot be asked for a failing file system")
    with pytest.raises(RecordingStopped, match="The disk takes no more data"):
        for start in range(taken, 10**6, BLOCK):
            recorder.append(counter(start, start + BLOCK, CHANNELS), start)
            time.sleep(0.01)
    finished = recorder.close()
    assert "ended" in str(finished.problem)
    copy = tmp_path / finished.path.name
    shutil.copy(finished.path, copy)
    with open_lazily(copy) as recording:
        assert len(recording) >= taken
        assert wrong_samples(recording) == 0


def _device_number(folder: Path) -> str:
    device = folder.stat().st_dev
    return f"{os.major(device)}:{os.minor(device)}"


@as_root
def test_given_a_read_only_disk_then_refused_in_one_sentence_before_the_shaker_moves(
    small_disk: Path,
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(DataError, match=r"Cannot record to .*Read-only file system"):
        Recorder(small_disk / "run", RATE, ["c0"])
    command = [sys.executable, "-m", "app.cli", "acquire", "two_well_beam", "--seconds", "1"]
    done = subprocess.run(
        [*command, "--out", small_disk / "run.h5"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "Read-only file system" in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_given_the_machine_sleeps_while_recording_then_no_sample_is_lost_or_moved(
    tmp_path: Path,
) -> None:
    """The process is really stopped for a while, as a laptop with its lid closed does."""
    command = [
        sys.executable,
        "-m",
        "tests.soak.counter_recorder",
        str(tmp_path / "run"),
        "5000",
        "2",
        "100",
        "1.5",
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while process.stdout.readline().strip() != "1000":
        pass
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.2)
    process.send_signal(signal.SIGCONT)
    words = process.communicate(timeout=GUARD)[0].splitlines()[-1].split(maxsplit=1)
    assert words[0] == "closed"
    with open_lazily(Path(words[1])) as recording:
        assert len(recording) == 7500
        assert wrong_samples(recording) == 0


LIMITED = """
import resource, signal, sys
from tests.component.test_crash import *
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
recorder = Recorder(sys.argv[1], RATE, [f"c{i}" for i in range(CHANNELS)])
print(fill(recorder, 10**6), recorder.close().problem)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_given_a_file_that_may_not_grow_then_the_recording_ends_with_everything_written_so_far(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "run")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    taken, problem = done.stdout.split(maxsplit=1)
    assert "File too large" in problem
    (left,) = find_unfinished(tmp_path)
    with open_lazily(recover(left).path) as recording:
        assert len(recording) == int(taken)
        assert wrong_samples(recording) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")
def test_given_a_deleted_folder_then_the_recording_ends_and_is_rescued(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    recorder = Recorder(folder / "run", RATE, ["c0"])
    recorder.append(counter(0, BLOCK, 1), 0)
    shutil.rmtree(folder)
    taken = until_gone(recorder, BLOCK, 1)
    finished = recorder.close()
    assert "deleted while it was written" in str(finished.problem)
    assert finished.path.parent == tmp_path
    with open_lazily(finished.path) as recording:
        assert len(recording) == taken
        assert wrong_samples(recording) == 0


def test_given_a_crash_between_finishing_and_deleting_then_recovery_makes_no_second_copy(
    tmp_path: Path,
) -> None:
    recorder = Recorder(tmp_path / "run", RATE, ["c0"])
    recorder.append(counter(0, 1000, 1), 0)
    recorder._journal.close()
    ended = recorder.journal_path.read_bytes()
    finished = recorder.close()
    recorder.journal_path.write_bytes(ended)
    assert recover(recorder.journal_path).path == finished.path
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]
    other = Recorder(tmp_path / "other", RATE, ["c0"])
    other.append(counter(0, 500, 1), 0)
    other._journal.close()
    other.journal_path.rename(recorder.journal_path)  # another recording of the same name is kept beside it
    assert recover(recorder.journal_path).path == tmp_path / "run-2.h5"
    with open_lazily(tmp_path / "run.h5") as recording:
        assert len(recording) == 1000


def test_given_a_crash_before_the_first_sample_then_recovery_clears_it_away(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run", RATE, ["c0"])
    recorder._journal.close()
    (tmp_path / "empty.h5.journal").touch()
    for left in find_unfinished(tmp_path):
        assert recover(left).samples == 0
    assert list(tmp_path.iterdir()) == []


def test_given_a_journal_without_its_header_then_recovery_says_so_and_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "x.h5.journal"
    path.write_bytes(b"SHKJ" + bytes(500))
    assert find_unfinished(tmp_path) == [path]
    with pytest.raises(DataError, match="header is damaged"):
        recover(path)
    assert path.exists()
