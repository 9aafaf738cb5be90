"""A rig's process that died: window and second guard set the output to zero, at the same moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivers.acquisition import guarded
from drivers.acquisition.guarded import RigLink
from drivers.base.drive_page import DrivePage
from drivers.base.protocols import InstrumentError
from drivers.base.zeroing import ZeroingFailed


@pytest.fixture
def link(tmp_path: Path) -> RigLink:
    """The window's end, with nothing of it but the page."""
    made = RigLink.__new__(RigLink)
    made.page = DrivePage.create(tmp_path / "a.drive", {"outputs": [{"kind": "line", "port": "/dev/tty"}]})
    return made


def test_given_a_guard_that_hears_the_answer_to_both_then_the_output_counts_as_reached(
    link: RigLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unheard(how: object) -> None:
        link.page.take_over("the rig's process has ended", zeroed=True)  # by the guard, at this moment
        raise ZeroingFailed("it does not answer")

    monkeypatch.setattr(guarded, "zero_output", unheard)
    link.make_safe()
    assert link.page.zeroed


def test_given_one_answer_that_somebody_else_took_then_it_is_asked_again(
    link: RigLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([ZeroingFailed("it does not answer"), None])

    def second_time(how: object) -> None:
        if error := next(answers):
            raise error

    monkeypatch.setattr(guarded, "zero_output", second_time)
    link.make_safe()
    assert link.page.zeroed


def test_given_an_output_that_nobody_reaches_then_it_is_said(
    link: RigLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(how: object) -> None:
        raise ZeroingFailed("it does not answer")

    monkeypatch.setattr(guarded, "zero_output", never)
    monkeypatch.setattr(guarded, "REACH_SECONDS", 0.01)
    with pytest.raises(InstrumentError, match=r"it does not answer.*switch off the amplifier by hand"):
        link.make_safe()
    assert not link.page.zeroed
