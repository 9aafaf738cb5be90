"""The library's list: at once, from what is kept; opened are only files that are new or have changed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from analysis.base.progress import SILENT
from analysis.base.record import Excitation, Record
from app import library, library_index
from app.library import Entry, details, in_order, scan, write_notes
from drivers.formats import write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "recordings"
    folder.mkdir()
    return folder


def a_recording(path: Path, start: str = "2026-01-01T10:00:00+00:00") -> Path:
    x = np.sin(np.arange(500) / 9.0)
    write(
        Record.from_arrays(
            50.0,
            {"x": x, "v": x},
            start=start,
            excitation=Excitation(7.5, 1.0, 0.0),
            metadata={"rig": "beam"},
        ),
        path,
    )
    return path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were opened, in order."""
    seen: list[Path] = []
    real = library.look

    def look(path: Path) -> Entry:
        seen.append(path)
        return real(path)

    monkeypatch.setattr(library, "look", look)
    return seen


def test_given_a_second_start_then_nothing_is_opened_again(folder: Path, opened: list[Path]) -> None:
    a_recording(folder / "a.h5")
    (first,) = scan(folder, {}, SILENT)
    assert not first.pending
    assert opened == [folder / "a.h5"]
    (again,) = scan(folder, {}, SILENT)
    assert len(opened) == 1
    for name in (
        "rate",
        "samples",
        "channels",
        "start",
        "rig",
        "drive",
        "gaps",
        "size",
        "changed",
        "problem",
    ):
        assert getattr(again, name) == getattr(first, name), name
    assert again.channels == ("x", "v")
    assert again.drive == "sine 7.5 Hz"
    np.testing.assert_allclose(again.low, first.low, rtol=1e-6)
    np.testing.assert_allclose(again.high, first.high, rtol=1e-6)


@pytest.mark.parametrize("how", ["content", "time", "notes", "exchanged"])
def test_given_a_change_then_the_file_is_opened_again(folder: Path, opened: list[Path], how: str) -> None:
    path = a_recording(folder / "a.h5")
    scan(folder, {}, SILENT)
    if how == "content":
        path.unlink()
        write(Record.from_arrays(10.0, {"y": np.zeros(20)}), path)
    elif how == "time":
        os.utime(path, (1, 1))
    elif how == "notes":
        write_notes(path, "tight bolt", ["chaos"])
    else:
        status = path.stat()
        other = a_recording(folder / "b.h5")
        os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
        other.replace(path)
    (entry,) = scan(folder, {}, SILENT)
    assert len(opened) == 2
    assert entry.notes == ("tight bolt" if how == "notes" else "")
    assert entry.samples == (20 if how == "content" else 500)


def test_given_many_new_ones_then_names_come_first_and_details_after(
    folder: Path, opened: list[Path]
) -> None:
    good = a_recording(folder / "0.h5").read_bytes()
    for i in range(1, 40):
        (folder / f"{i}.h5").write_bytes(good)
    (folder / "torn.h5").write_bytes(good[:900])
    (folder / "folder.h5").mkdir()
    os.mkfifo(folder / "pipe.h5")
    entries = scan(folder, {}, SILENT)
    assert len(entries) == 41
    assert opened == []
    assert all(e.pending and e.size > 0 and e.changed for e in entries)
    found = details(folder, [folder / "3.h5", folder / "torn.h5"], SILENT)
    assert [e.pending for e in found] == [False, False]
    assert found[0].samples == 500
    assert "torn.h5" in found[1].problem
    again = {e.name: e for e in scan(folder, {e.path: e for e in entries}, SILENT)}
    assert sorted(n for n, e in again.items() if not e.pending) == ["3", "torn"]
    assert again["torn"].problem == found[1].problem


def test_given_a_damaged_index_then_it_is_made_anew(folder: Path, tmp_path: Path) -> None:
    a_recording(folder / "a.h5")
    scan(folder, {}, SILENT)
    base = tmp_path / "state" / "shakedown" / library_index.NAME
    for content in (b"nonsense" * 1000, base.read_bytes()[:700], b""):
        base.write_bytes(content)
        (entry,) = scan(folder, {}, SILENT)
        assert entry.samples == 500
        assert not entry.pending


def test_given_nowhere_to_keep_an_index_then_the_list_is_there_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/nowhere")
    a_recording(folder / "a.h5")
    (entry,) = scan(folder, {}, SILENT)
    assert entry.samples == 500
    assert scan(folder / "none", {}, SILENT) == []


def test_given_starts_and_times_of_change_then_the_newest_is_first(folder: Path) -> None:
    entries = [
        Entry(folder / "old.h5", "1", changed="2026-05-01T00:00:00+00:00", start="2020-01-01T00:00:00+00:00"),
        Entry(folder / "new.h5", "1", changed="2026-03-01T00:00:00+00:00", pending=True),
    ]
    assert [e.name for e in in_order(entries)] == ["new", "old"]
