"""Packages of others that fail: a sentence, and the program goes on without them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from analysis.base import plugins
from app import fitness
from app.cli import main
from drivers import formats as formats_room
from drivers.instruments import discovery
from drivers.rig import registry
from drivers.rig.profile import RigError, load_rig, rig_files

PACKAGE = """
def no_arguments(): ...
def gives_none(profile, clock, seed): return None
"""


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package whose entry points are all wrong, found as an installed one is."""
    folder = tmp_path / "strangers_bad"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "exits.py").write_text("raise SystemExit(3)")
    (folder / "broken_rig.toml").write_text("name = 3")
    monkeypatch.syspath_prepend(str(tmp_path))
    places = {
        "sources": [("absent", "no_such_module:open"), ("exits", "strangers_bad.exits:open"),
                    ("wrong", "strangers_bad:no_arguments"), ("none", "strangers_bad:gives_none"),
                    ("wrong", "strangers_bad:gives_none"), ("virtual", "strangers_bad:no_arguments")],
        "formats": [("bad", "strangers_bad:no_arguments"), ("absent", "no_such_module:Format"),
                    ("csv", "strangers_bad:no_arguments")],
        "methods": [("weak", "strangers_bad:no_arguments")],
        "rigs": [("bad", "strangers_bad"), ("absent", "no_such_module"), ("odd", "strangers_bad.exits")],
    }  # fmt: skip
    found = {
        group: tuple(EntryPoint(n, v, f"shakedown.{group}") for n, v in places.get(group, []))
        for group in plugins.GROUPS
    }
    monkeypatch.setattr(plugins, "_found", lambda: found)
    formats_room.formats.cache_clear()
    yield
    formats_room.formats.cache_clear()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent", "cannot be loaded"),
        ("exits", "cannot be loaded"),
        ("wrong", "takes 0 positional arguments"),  # of two of one name the first
        ("none", "gives no source: it has no name, rate"),
    ],
)
@pytest.mark.usefixtures("stranger")
def test_given_a_driver_that_fails_then_one_sentence(name: str, words: str) -> None:
    with pytest.raises(plugins.PluginError, match=words) as error:
        registry.driver("sources", name)(None, None, 0)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("stranger")
def test_given_bad_formats_rigs_and_taken_names_then_the_rest_is_there() -> None:
    assert formats_room.formats() == formats_room.FORMATS
    assert "two_well_beam" in rig_files() and "broken_rig" not in rig_files()
    assert registry.names("sources").count("wrong") == 1 and load_rig("two_well_beam").virtual
    assert registry.names("sources").count("virtual") == 1


RIG = """
name = "{name}"
rate = 1000
channels = [{{ name = "x" }}]
[instruments.source]
driver = "{driver}"
wiring = {{ x = 0 }}
"""


def installed(folder: Path, name: str, code: str, **rigs: str) -> None:
    """A package with a source and rigs, as pip leaves it."""
    package, about = folder / name, folder / f"{name}-1.dist-info"
    package.mkdir()
    about.mkdir()
    (package / "__init__.py").write_text(code)
    for rig, text in rigs.items():
        (package / f"{rig}.toml").write_text(text)
    (about / "METADATA").write_text(f"Name: {name}\n")
    groups = [f"[shakedown.sources]\nbox = {name}:open", f"[shakedown.rigs]\n{name} = {name}"]
    (about / "entry_points.txt").write_text("\n".join(groups))


@pytest.fixture
def two_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both with a source 'box' and a rig 'lab_box'; the first cannot be imported."""
    good = RIG.format(name="A box", driver="box")
    installed(tmp_path, "a_syntax", "def open(:", lab_box=good, broken="name = 3", cantilever=good)
    installed(tmp_path, "b_second", "", lab_box=good)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = plugins._found.__wrapped__()
    order = {group: tuple(sorted(e, key=plugins.package_of)) for group, e in found.items()}
    monkeypatch.setattr(plugins, "_found", lambda: order)


@pytest.mark.usefixtures("two_packages")
def test_given_a_package_that_cannot_be_imported_then_its_rig_is_listed_and_opening_it_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["rigs"]) == 0
    assert "lab_box" in capsys.readouterr().out
    assert main(["rigs", "lab_box", "--check"]) == 1
    said = capsys.readouterr().err
    assert "'box' of the package a_syntax cannot be loaded (SyntaxError" in said
    assert main(["rigs", "lab_box"]) == 0
    assert "no shaker is driven" in capsys.readouterr().out


@pytest.mark.usefixtures("two_packages")
def test_given_a_rig_with_a_mistake_or_a_taken_name_then_the_reason_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(
        RigError, match=r"The rig 'broken' of the package a_syntax is not used: broken.toml: "
    ):
        load_rig("broken")
    taken = [
        "The rig 'cantilever' of the package a_syntax is not used: Shakedown has one of that name.",
        "The rig 'lab_box' of the package b_second is not used: the package a_syntax has one of that name.",
        "'box' (sources) of the package b_second is not used: the package a_syntax has that name already.",
    ]
    assert main(["rigs"]) == 0
    listed = capsys.readouterr().err
    notes = " ".join(discovery.find_devices()[1])  # of `devices` and `doctor`
    assert all(words in listed and words in notes for words in taken)


@pytest.mark.usefixtures("stranger")
def test_given_packages_of_others_then_the_doctor_names_what_they_add_and_what_is_not_used() -> None:
    found = fitness.other_packages()
    assert ("sources exits", "a package (strangers_bad.exits:open)") in {(f.what, f.words) for f in found}
    unused = [f.words for f in found if f.state == "note"]
    assert len(unused) == 2 and "'weak' (methods) of a package is not used: Shakedown has" in unused[1]


def test_given_a_folder_that_cannot_be_made_then_the_doctor_tells_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file" / "data"))
    found = {f.what: f for f in fitness.folders()}
    assert found["recordings"].state == "bad" and "cannot be written" in found["recordings"].words
    assert {"free disk", "control of drives", "compiled core"} <= set(found)


def test_given_a_package_whose_list_or_description_is_damaged_then_the_others_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, entries, about in (
        ("damaged", b"[shakedown.sources]\n\xff = x", b"Name: damaged\n"),
        ("nameless", b"[shakedown.sources]\nnameless_box = x:y\n", b"Name: \xff\n"),
    ):
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        (folder / "entry_points.txt").write_bytes(entries)
        (folder / "METADATA").write_bytes(about)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = plugins._found.__wrapped__()
    (entry,) = [e for e in found["sources"] if e.name == "nameless_box"]
    assert plugins.package_of(entry) == "a package" and plugins.summary_of(entry) == ""


def test_given_finders_that_end_print_or_tell_oddities_then_the_answer_is_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    def prints() -> tuple[list[tuple[str, str]], str]:
        print("initialising ...")  # noqa: T201
        return [("a\nb", "two\nlines")], "a note\nin two lines"

    finders = {"interrupted": interrupted, "prints": prints, "odd": lambda: ([(1, None)], 42)}
    monkeypatch.setattr(registry, "names", lambda group: list(finders))
    monkeypatch.setattr(registry, "driver", lambda group, name: finders[name])
    assert main(["devices", "--json", "-"]) == 0
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert [(d["address"], d["description"]) for d in answer["devices"]] == [
        ("a b", "two lines"),
        ("1", "None"),
    ]
    assert answer["notes"][:3] == [
        "interrupted could not look for devices (KeyboardInterrupt).", "a note in two lines", "42",
    ]  # fmt: skip
    assert "initialising" in said.err


def test_given_a_driver_that_hangs_when_devices_are_looked_for_then_the_others_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never = threading.Event()
    finders = {
        "hangs": lambda: (never.wait(), ""),
        "raises": lambda: 1 / 0,
        "finds": lambda: ([("here", "a box"), ("here", "the same box")], "one box"),
    }
    monkeypatch.setattr(registry, "names", lambda group: list(finders))
    monkeypatch.setattr(registry, "driver", lambda group, name: finders[name])
    monkeypatch.setattr(discovery, "PATIENCE", 0.2)
    devices, notes = discovery.find_devices()
    never.set()
    assert devices == [discovery.Device("finds", "here", "a box")]
    assert [words.split()[0] for words in notes] == ["hangs", "raises", "one"]
    assert "did not answer within 0.2 s" in notes[0] and "ZeroDivisionError" in notes[1]
