"""Files that are damaged, hostile or not what they claim: one clear sentence, exit code 1, nothing else."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.base.errors import DataError
from analysis.base.record import Record
from app.cli import main
from drivers.formats import FORMATS, open_lazily, read, write
from drivers.recording import Recorder

SUFFIXES = sorted({s for form in FORMATS for s in form.suffixes})
MAGICS = [
    b"", b"SHKJ", b"\x89HDF\r\n\x1a\n\x03", b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM",
    b"TDSm\x0e\x00\x00\x00", b"RIFF\xff\xff\x00\x00WAVEfmt ", b"LabVIEW Measurement\t\n",
    b"    -1\n    58\n", b"    -1\n    58b     1     2\n",
    b"t,x\n", b"\xef\xbb\xbft;x\n", b"\xff\xfet\x00", b"    -1\n   151\n",
]  # fmt: skip
quick = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def attempt(path: Path) -> str | None:
    """Read everything, as a user would: the sentence if it was refused, None if it was read."""
    begun = time.thread_time()
    try:
        record = read(path)
        assert all(len(c.data) == len(record) for c in record.channels.values())
        return None
    except DataError as error:
        sentence = str(error)
    assert sentence.strip().endswith((".", ")"))
    assert "\n" not in sentence
    assert len(sentence) < 500
    assert time.thread_time() - begun < 30
    return sentence


@cache
def valid(suffix: str) -> bytes:
    """A small good file of each kind."""
    rng = np.random.default_rng(1)
    record = Record.from_arrays(
        100.0, {"x": rng.standard_normal(300), "y": np.arange(300.0)}, units={"x": "mm"}, metadata={"a": 1}
    )
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / f"good{suffix}"
        if suffix == ".journal":
            recorder = Recorder(Path(name) / "good", 100.0, ["x", "y"])
            for start in range(0, 300, 50):
                recorder.append([record["x"][start : start + 50], record["y"][start : start + 50]], start)
            recorder.note("half way")
            recorder._journal.close()
            return recorder.journal_path.read_bytes()
        write(record, path)
        return path.read_bytes()


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """No file may make us take gigabytes, whatever it claims."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with Path("/proc/self/statm").open() as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 30), limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("quarter", [0, 1, 2, 3])
def test_given_a_file_cut_at_a_quarter_then_it_is_refused_or_what_is_there_is_read(
    tmp_path: Path, suffix: str, quarter: int
) -> None:
    content = valid(suffix)
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(content[: len(content) * quarter // 4])
    sentence = attempt(path)
    if quarter == 0:
        assert sentence is not None
        assert "empty" in sentence
    elif suffix in (".h5", ".hdf5", ".mat", ".wav"):  # these know how long they should be
        assert sentence is not None


@pytest.mark.parametrize(
    "suffix", sorted({f.suffixes[0] for f in FORMATS if f.name != "hdf5"} | {".ufa", ".journal"})
)
def test_given_flipped_bytes_then_the_file_is_read_or_refused(tmp_path: Path, suffix: str) -> None:
    content = valid(suffix)

    @quick
    @given(
        st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6)
    )
    def flip(changes: list[tuple[float, int]]) -> None:
        changed = bytearray(content)
        for where, value in changes:
            changed[int(where**2 * len(changed))] = (
                value  # more often near the beginning, where the tables are
            )
        path = tmp_path / f"flipped{suffix}"
        path.write_bytes(changed)
        attempt(path)

    flip()


@pytest.mark.parametrize("magic", range(len(MAGICS)))
def test_given_random_bytes_behind_any_beginning_then_they_are_refused(tmp_path: Path, magic: int) -> None:
    @quick
    @given(st.binary(max_size=400), st.sampled_from(SUFFIXES))
    def random_bytes(content: bytes, suffix: str) -> None:
        path = tmp_path / f"random{suffix}"
        path.write_bytes(MAGICS[magic] + content)
        attempt(path)

    random_bytes()


@quick
@given(st.text(alphabet='0123456789.,;-+eEnaif \t\n"[]tx#%', max_size=300))
def test_given_any_text_of_a_tables_characters_then_it_is_read_or_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text(text, encoding="utf-8")
        attempt(path)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".lvm", ".uff", ".mat", ".h5", ".tdms", ".wav"])
@pytest.mark.parametrize("unit", [b"1,", b"a", b"(", b"\x00", b"1 "])
def test_given_ten_megabytes_in_one_line_then_they_are_refused_at_once(
    tmp_path: Path, suffix: str, unit: bytes
) -> None:
    path = tmp_path / f"line{suffix}"
    path.write_bytes(unit * (10_000_000 // len(unit)))
    begun = time.thread_time()
    assert attempt(path) is not None
    assert time.thread_time() - begun < 5


def test_given_a_long_line_after_good_ones_then_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_bytes(b"t,x\n0,1\n1,2\n" + b"7," * 5_000_000)
    assert attempt(path) is not None
    path = tmp_path / "late.lvm"
    path.write_bytes(valid(".lvm") + b"7\t" * 5_000_000)
    assert attempt(path) is not None


@pytest.mark.parametrize(
    "content", ["__import__('os').system('touch hacked'),x\n1,2\n2,3\n", "t,x\n0,=cmd()\n1,2\n"]
)
def test_given_code_in_a_table_then_nothing_is_executed(
    tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(content, encoding="utf-8")
    attempt(tmp_path / "a.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_given_a_pickle_inside_then_it_stays_closed(tmp_path: Path) -> None:
    import pickle

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (tmp_path / "hacked",)  # type: ignore[return-value]

    np.save(tmp_path / "a.mat", np.array([Trap()], dtype=object), allow_pickle=True)
    (tmp_path / "a.mat.npy").rename(tmp_path / "a.mat")
    (tmp_path / "b.dat").write_bytes(pickle.dumps(Trap()))
    with h5py.File(tmp_path / "c.hdf5", "w") as file:
        file["x"] = np.void(pickle.dumps(Trap()))
        file["link"] = h5py.ExternalLink("d.hdf5", "/secret")
    with h5py.File(tmp_path / "d.hdf5", "w") as file:
        file["secret"] = np.arange(10.0)
    for name in ("a.mat", "b.dat", "c.hdf5"):
        assert attempt(tmp_path / name) is not None
    assert not (tmp_path / "hacked").exists()


def test_given_claims_of_gigantic_sizes_then_no_memory_is_taken(tmp_path: Path) -> None:
    for name, shape, chunks in (("parts", (1 << 50,), (1 << 16,)), ("whole", (1 << 40,), None)):
        path = tmp_path / f"{name}.hdf5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", shape=shape, chunks=chunks, dtype="f8")
            file.attrs["fs"] = 1000.0
        with pytest.raises(DataError, match=f"declares {shape[0]} numbers, but"):
            open_lazily(path)
    bomb = tmp_path / "bomb.mat"
    import zlib

    packed = zlib.compress(bytes(100_000_000))
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    bomb.write_bytes(head + (15).to_bytes(4, "little") + len(packed).to_bytes(4, "little") + packed)
    assert attempt(bomb) is not None


@pytest.mark.parametrize(
    "content", [b"t,x\n0,1\n0.1,2\n0.35,3\n", b"t,x\n0,1\n1,word\n", b"", b"\x00\x01\x02", b"t,x\n"]
)
@pytest.mark.parametrize("command", [["info"], ["convert"]])
def test_given_a_bad_file_then_the_command_says_one_sentence_and_ends_with_1(
    tmp_path: Path, content: bytes, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    arguments = [*command, str(path)] + ([str(tmp_path / "b.h5")] if command == ["convert"] else [])
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("shakedown: ")
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "b.h5").exists()


def test_given_a_missing_file_or_a_folder_then_the_program_says_so(tmp_path: Path) -> None:
    for target, word in ((tmp_path / "none.csv", "No such file"), (tmp_path, "directory")):
        command = [sys.executable, "-m", "app.cli", "info", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert word in done.stderr
        assert "Traceback" not in done.stderr


# -- files that are none, or that point to others


def native(path: Path, channel: str = "x") -> Path:
    write(Record.from_arrays(100.0, {channel: np.arange(50.0)}), path)
    return path


def test_given_a_pipe_a_device_or_a_socket_then_it_is_refused_without_waiting(tmp_path: Path) -> None:
    import os
    import socket

    os.mkfifo(tmp_path / "pipe.h5")
    (tmp_path / "link.csv").symlink_to(tmp_path / "pipe.h5")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "s.wav"))
        for path in (tmp_path / "pipe.h5", tmp_path / "link.csv", tmp_path / "s.wav", Path("/dev/zero")):
            with pytest.raises(DataError, match="not a file"):
                open_lazily(path)
    for name in ("loop.csv", "x" * 300, "a\0b"):
        assert attempt(tmp_path / name) is not None


@pytest.mark.parametrize("suffix", [".h5", ".csv", ".wav", ".mat", ".journal", ".uff", ".tdms", ".lvm"])
def test_given_a_terabyte_of_nothing_then_it_is_refused_before_it_is_read(
    tmp_path: Path, suffix: str
) -> None:
    import os

    path = tmp_path / f"sparse{suffix}"
    path.write_bytes(valid(suffix))
    os.truncate(path, 1 << 40)
    assert "on the disk" in str(attempt(path))


def foreign_parts(path: Path, secret: Path, pipe: Path) -> dict[str, Callable[[], None]]:
    """Ways in which an HDF5 file may point to another file, applied to the channel of a recording of ours."""
    space = ((50,), "f8")

    def change(make: Callable[[h5py.Group], None]) -> Callable[[], None]:
        def changed() -> None:
            with h5py.File(path, "r+") as file:
                del file["channels/x"]
                make(file["channels"])

        return changed

    def virtual(group: h5py.Group) -> None:
        layout = h5py.VirtualLayout(*space)
        layout[:] = h5py.VirtualSource(str(secret), "channels/x", (50,))
        group.create_virtual_dataset("x", layout)

    def soft(group: h5py.Group) -> None:
        group.file["other"] = h5py.ExternalLink(str(secret), "/channels")
        group["x"] = h5py.SoftLink("/other/x")

    return {
        "external link": change(lambda g: g.__setitem__("x", h5py.ExternalLink(str(secret), "/channels/x"))),
        "soft link": change(soft),
        "external storage": change(lambda g: g.create_dataset("x", *space, external=[(str(secret), 0, 400)])),
        "external pipe": change(lambda g: g.create_dataset("x", *space, external=[(str(pipe), 0, 400)])),
        "link to a pipe": change(lambda g: g.__setitem__("x", h5py.ExternalLink(str(pipe), "/x"))),
        "virtual": change(virtual),
    }


@pytest.mark.parametrize("way", list(foreign_parts(Path(), Path(), Path())))
def test_given_a_recording_that_points_to_another_file_then_that_is_not_read(
    tmp_path: Path, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import os

    path, secret = native(tmp_path / "a.h5"), native(tmp_path / "secret.h5")
    os.mkfifo(tmp_path / "pipe")
    foreign_parts(path, secret, tmp_path / "pipe")[way]()
    assert main(["info", str(path)]) == 1
    said = capsys.readouterr()
    assert "not followed" in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    with h5py.File(path, "r+") as file:  # the same as a file of another program
        del file.attrs["format"]
        file["channels/mine"] = np.arange(60.0)
        file.attrs["fs"] = 10.0
    with open_lazily(path) as recording:
        assert len(recording) == 60
        assert all("secret" not in str(name) for name in recording.names)
        assert "not followed" in str(recording.about.metadata["not read"])


def test_given_names_in_the_description_that_lead_elsewhere_then_they_are_refused(tmp_path: Path) -> None:
    import json
    import zlib

    path = native(tmp_path / "a.h5")
    native(tmp_path / "secret.h5")
    with h5py.File(path, "r+") as file:
        file["way"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/")
        about = json.loads(bytes(file["about"][()]))
        about["keys"] = ["../way/channels/x"]
        text = json.dumps(about).encode()
        del file["about"]
        data = file.create_dataset("about", data=np.bytes_(text))
        data.attrs["crc32"] = zlib.crc32(text)
    assert attempt(path) is not None


@pytest.mark.parametrize(("start", "count"), [(2172, 8), (2124, 32), (2196, 64)])
def test_given_damage_that_keeps_hdf5_busy_then_it_is_given_up(
    tmp_path: Path, start: int, count: int
) -> None:
    content = bytearray(valid(".h5"))
    content[start : start + count] = bytes(count)
    path = tmp_path / "knot.h5"
    path.write_bytes(content)
    assert attempt(path) is not None
    assert attempt(native(tmp_path / "good.h5")) is None  # the next one is read


def test_given_a_journal_that_lies_about_its_length_then_it_is_refused(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run", 100.0, ["x"])
    recorder.append([np.arange(50.0)], 0)
    recorder.append([np.arange(50.0)], 1 << 50)
    recorder._journal.close()
    assert "claims" in str(attempt(recorder.journal_path))


def test_given_frames_that_overlap_then_the_first_counts_once(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run", 100.0, ["x"])
    recorder.append([np.arange(50.0)], 0)
    for _ in range(20):
        recorder._journal.samples(10, [np.full(50, 7.0)])
    recorder._journal.close()
    assert read(recorder.journal_path)["x"].tolist() == np.arange(50.0).tolist()


def test_given_values_whose_powers_are_no_numbers_then_one_sentence_and_info_still_shows_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "big.csv"
    path.write_text("t,x\n" + "".join(f"{k / 100},{(-1) ** k * 1e200}\n" for k in range(300)))
    assert main(["info", str(path)]) == 0
    capsys.readouterr()
    for words in (["embed", str(path), "--channel", "x"], ["select", str(path)]):
        assert main(words) == 1
        said = capsys.readouterr().err
        assert "channel 'x' holds values up to 1e+200" in said and said.count("\n") == 1
