"""A driver that hangs while it is opened or started: what is waited for is told, and it can be given up."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import pytest

from analysis.base import plugins
from app.rig_access import open_for_command
from drivers.acquisition import guarded
from drivers.acquisition.guarded import open_guarded
from drivers.base.protocols import InstrumentError
from drivers.rig.profile import load_rig

RIG = """
name = "A rig whose box never answers"
rate = 1000.0
[[channels]]
name = "x"
unit = "V"
[instruments.source]
driver = "never"
wiring = { x = 0 }
"""
CODE = """
import time
class Box:
    name, rate, waits = "box", 1000.0, False
    def __init__(self, profile):
        self.channels = tuple(c.info() for c in profile.channels)
    def start(self):
        time.sleep(3600)
    def read(self, into): ...
    def stop(self): ...
    def close(self): ...
def open_source(profile, clock, seed):
    if profile.instruments["source"].get("hangs") != "start":
        time.sleep(3600)
    return Box(profile)
"""


SENTENCE = "Still waiting for the source (driver 'never') to open."


class GivenUp(Exception):
    """The person does not want to wait any longer."""


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rig with a driver of another package, which the rig's process imports and which hangs."""
    about = tmp_path / "never_box-1.dist-info"
    about.mkdir()
    (tmp_path / "never_box.py").write_text(CODE)
    (about / "METADATA").write_text("Name: never-box\n")
    (about / "entry_points.txt").write_text("[shakedown.sources]\nnever = never_box:open_source\n")
    (tmp_path / "stuck.toml").write_text(RIG)
    monkeypatch.syspath_prepend(str(tmp_path))  # a spawned process takes it over
    found = plugins._found.__wrapped__()
    monkeypatch.setattr(plugins, "_found", lambda: found)
    monkeypatch.setattr(guarded, "SLOW_SECONDS", 0.5)
    return tmp_path / "stuck.toml"


def test_given_a_driver_that_hangs_when_somebody_waits_then_it_is_named_and_can_be_given_up(
    stuck: Path,
) -> None:
    begin, heard = time.monotonic(), []

    def waiting(what: str) -> None:
        heard.append(what)
        if "source" in what:  # before that the process itself is on its way
            raise GivenUp

    with pytest.raises(GivenUp):
        open_guarded(load_rig(stuck), waiting=waiting)
    assert heard[-1] == "the source (driver 'never') to open"
    assert time.monotonic() - begin < guarded.OPENING_SECONDS / 2
    assert not [child for child in multiprocessing.active_children() if child.name == "rig"]


def test_given_a_driver_that_hangs_when_a_command_waits_then_one_sentence_says_so(
    stuck: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guarded, "OPENING_SECONDS", 8.0)
    with pytest.raises(InstrumentError, match="in vain for the source"):
        open_for_command(load_rig(stuck), False, 0)
    assert capsys.readouterr().err.count(f"shakedown: {SENTENCE} Ctrl-C gives it up.\n") == 1


def test_given_a_source_that_hangs_when_it_is_started_then_it_is_named_and_can_be_given_up(
    stuck: Path,
) -> None:
    begin, heard = time.monotonic(), []

    def waiting(what: str) -> None:
        heard.append(what)
        if what.endswith("to start"):
            raise GivenUp

    stuck.write_text(f'{RIG}hangs = "start"\n')
    rig = open_guarded(load_rig(stuck), waiting=waiting)
    try:
        with pytest.raises(GivenUp):
            rig.source.start()
    finally:
        rig.close()
    assert heard[-1] == "the source (driver 'never') to start"
    assert time.monotonic() - begin < guarded.OPENING_SECONDS / 2
