"""A project is one folder; its archive can be opened without fear."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from analysis import SILENT, DataError, Record
from app import project as projects
from app import project_archive
from app.cli import main
from app.project_archive import archive, unpack
from drivers.formats import open_lazily, write


@pytest.fixture
def project(tmp_path: Path) -> projects.Project:
    made = projects.create(tmp_path / "beam", specimen="beam 7", temperature=21.5, own={"torque": "4 N m"})
    write(Record.from_arrays(100.0, {"x": np.sin(np.arange(400) / 7)}), made.recordings / "run1.h5")
    return made


def test_given_a_new_project_then_it_reads_back_equal_and_lists_its_folders(
    project: projects.Project,
) -> None:
    assert projects.load(project.folder) == projects.load(project.folder / "project.toml") == project
    assert all((project.folder / name).is_dir() for name in projects.FOLDERS)
    assert project.metadata() == {
        "torque": "4 N m", "project": "beam", "specimen": "beam 7", "temperature": 21.5
    }  # fmt: skip
    with pytest.raises(DataError, match="is a project already"):
        projects.create(project.folder)


def test_given_two_programs_then_each_changes_only_its_own_entries(project: projects.Project) -> None:
    projects.change(project.folder, operator="A")  # by one program
    projects.change(project.folder, notes="gauge renewed")  # by another, which read the file earlier
    now = projects.load(project.folder)
    assert (now.operator, now.notes, now.specimen, now.own) == (
        "A", "gauge renewed", "beam 7", {"torque": "4 N m"}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 3", "The title of a project is a text"),
        ("temperature = 'warm'", "a number of °C"),
        ("temperature = -300", "a number of °C"),
        ("temperature = nan", "a number of °C"),
        ("fields = 3", "names with texts"),
        ("humidity = 40", r"put it in \[fields\]"),
        ("title = ", "cannot be read"),
    ],
)
def test_given_a_project_file_with_a_mistake_then_one_sentence_says_it(
    project: projects.Project, text: str, words: str
) -> None:
    (project.folder / projects.NAME).write_text(text)
    with pytest.raises(DataError, match=words):
        projects.load(project.folder)
    with pytest.raises(DataError, match=words):  # and nothing is written over it
        projects.change(project.folder, notes="x")
    assert (project.folder / projects.NAME).read_text() == text


def test_given_a_project_that_is_gone_then_one_sentence_says_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is no project"):
        projects.load(tmp_path / "gone")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be made in"):
        projects.create(tmp_path / "file" / "below")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_given_a_read_only_project_then_one_sentence_says_it(project: projects.Project) -> None:
    project.folder.chmod(0o500)
    with pytest.raises(DataError, match="cannot be written"):
        projects.change(project.folder, notes="x")
    project.folder.chmod(0o700)


def test_given_a_rig_that_changes_then_the_earlier_profile_stays(project: projects.Project) -> None:
    projects.keep_rig(project, "beam", "name = 'one'\n")
    projects.keep_rig(projects.load(project.folder), "beam", "name = 'two'\n")
    projects.keep_rig(projects.load(project.folder), "beam", "name = 'two'\n")
    assert projects.load(project.folder).rig == "beam"
    assert projects.load(project.folder).rig_path.read_text() == "name = 'two'\n"
    assert (project.folder / "rigs" / "beam-earlier.toml").read_text() == "name = 'one'\n"
    assert len(list((project.folder / "rigs").iterdir())) == 2


def test_given_an_archive_then_it_unpacks_to_the_same_project(
    project: projects.Project, tmp_path: Path
) -> None:
    (project.recordings / "run2.h5.journal").write_bytes(b"under way")
    (project.folder / "outside").symlink_to(tmp_path)
    packed = project.folder / "beam.zip"  # inside the project itself
    left_out = archive(project, packed, SILENT)
    assert {p.name for p in left_out} == {"run2.h5.journal", "outside"}
    copy = unpack(packed, tmp_path / "copy", SILENT)
    assert (copy.specimen, copy.own, copy.temperature) == ("beam 7", {"torque": "4 N m"}, 21.5)
    before, after = project.recordings / "run1.h5", copy.recordings / "run1.h5"
    assert before.read_bytes() == after.read_bytes()
    assert not (copy.folder / "beam.zip").exists()
    with pytest.raises(DataError, match="there already"):
        unpack(packed, tmp_path / "copy", SILENT)


def _entry(name: str, mode: int = stat.S_IFREG | 0o600) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


@pytest.mark.parametrize(
    "bad",
    [
        "../evil", "/etc/evil", "a/../../evil", "C:/evil", "a\\..\\..\\evil", "a//b", "./a", "x\x01y", "end.",
        "PROJECT.toml",
    ],
)  # fmt: skip
def test_given_an_entry_that_leads_elsewhere_then_nothing_is_unpacked(tmp_path: Path, bad: str) -> None:
    source = tmp_path / "in" / "evil.zip"
    source.parent.mkdir()
    with zipfile.ZipFile(source, "w") as out:
        out.writestr(_entry("project.toml"), "title = 'x'")
        out.writestr(_entry(bad), "evil")
    with pytest.raises(DataError, match="no file of a project"):
        unpack(source, tmp_path / "in" / "new", SILENT)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["evil.zip", "in"]


def test_given_a_link_in_an_archive_then_nothing_is_unpacked(tmp_path: Path) -> None:
    source = tmp_path / "link.zip"
    with zipfile.ZipFile(source, "w") as out:
        out.writestr(_entry("project.toml"), "title = 'x'")
        out.writestr(_entry("recordings", stat.S_IFLNK | 0o777), "/")
    with pytest.raises(DataError, match="no file of a project"):
        unpack(source, tmp_path / "new", SILENT)


def test_given_an_archive_that_would_fill_the_disk_then_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "bomb.zip"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("project.toml", "title = 'x'")
        out.writestr("recordings/zeros.h5", bytes(3_000_000))
    monkeypatch.setattr(project_archive, "SMALL", 1_000_000)
    with pytest.raises(DataError, match="claims to hold"):
        unpack(source, tmp_path / "new", SILENT)
    monkeypatch.undo()
    monkeypatch.setattr(project_archive, "KEPT_FREE", 1 << 62)
    with pytest.raises(DataError, match="GB are free"):
        unpack(source, tmp_path / "new", SILENT)


def test_given_an_archive_that_lies_about_a_size_or_is_damaged_then_nothing_is_left(tmp_path: Path) -> None:
    source = tmp_path / "liar.zip"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("project.toml", "title = 'x'")
        out.writestr("zeros", bytes(100_000))
    whole = source.read_bytes()
    source.write_bytes(whole.replace(struct.pack("<L", 100_000), struct.pack("<L", 10)))
    with pytest.raises(DataError, match="damaged"):
        unpack(source, tmp_path / "new", SILENT)
    nameless = bytearray(whole)
    at = whole.rindex(b"zeros") - 46  # its entry in the table at the end
    nameless[at + 28] = 0  # length of the name
    nameless[at + 46 : at + 51] = b""
    for content in (b"", b"PK", whole[:200], b"no archive at all", bytes(nameless)):
        source.write_bytes(content)
        with pytest.raises(DataError, match="damaged or not an archive"):
            unpack(source, tmp_path / "new", SILENT)
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(source, "w", method) as out:
            out.writestr("project.toml", "title = 'x'")
        broken = bytearray(source.read_bytes())
        at = broken.index(b"project.toml") + len("project.toml")
        broken[at : at + 12] = b"\xff" * 12  # where the compressed data begin
        source.write_bytes(broken)
        with pytest.raises(DataError, match=r"damaged or not an archive|cannot be unpacked"):
            unpack(source, tmp_path / "new", SILENT)
    assert [p.name for p in tmp_path.iterdir()] == ["liar.zip"]


def test_given_the_command_line_in_a_project_then_it_finds_rig_place_and_what_is_known_of_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "test"
    new = [
        "project",
        "new",
        str(folder),
        "--specimen",
        "beam 7",
        "--temperature",
        "21.5",
        "--field",
        "batch=B4",
    ]
    assert main([*new, "--operator", "Somebody"]) == 0
    monkeypatch.chdir(folder / "fits")  # anywhere in it
    assert main(["acquire", "--fast", "--seconds", "0.5"]) == 1
    assert "names no rig yet" in capsys.readouterr().err
    assert main(["project", "set", "--rig", "two_well_beam"]) == 0
    assert main(["acquire", "--fast", "--seconds", "0.5", "--settle", "0"]) == 0
    (made,) = (folder / "recordings").glob("*.h5")
    with open_lazily(made) as recording:
        about = recording.about.metadata
        assert about["operator"] == "Somebody"
        assert about["test"] == {"project": "test", "specimen": "beam 7", "temperature": 21.5, "batch": "B4"}
    assert main(["project", "set", "--field", "batch=", "--temperature", "-400"]) == 1
    assert main(["project", "set", "--field", "batch="]) == 0
    capsys.readouterr()
    assert main(["project", "info"]) == 0
    shown = capsys.readouterr().out
    assert "beam 7" in shown and "21.5 °C" in shown and "B4" not in shown
    assert main(["project", "archive"]) == 0
    assert main(["project", "archive"]) == 1  # the file is there
    assert main(["project", "unpack", str(tmp_path / "test.zip"), "--out", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "recordings" / made.name).read_bytes() == made.read_bytes()
    monkeypatch.chdir(tmp_path)
    assert main(["project", "info"]) == 1
    assert "in no project" in capsys.readouterr().err
