"""Which live views are shown follows the drive, and a person's choice is kept by rig."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PyQt6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from app.desktop.pages.acquire import AcquirePage
from app.desktop.widgets.basics import IconButton
from app.desktop.widgets.views import SUGGESTED, Views, kind_of_drive
from app.desktop.window import MainWindow
from drivers.base.waveform import RandomNoise
from tests.waiting import GUARD_MS as GUARD

Make = Callable[..., MainWindow]


def _menu(views: Views, name: str) -> QMenu:
    """The menu of a view, filled as a click fills it."""
    plot = views._plots[name]
    menu = next(m for tool in plot.findChildren(IconButton) for m in tool.findChildren(QMenu)
                if "views" in tool.toolTip())  # fmt: skip
    menu.aboutToShow.emit()
    return menu


def _pick(menu: QMenu, words: str, after: str = "") -> None:
    texts = [action.text() for action in menu.actions()]
    start = texts.index(after) if after else 0
    menu.actions()[texts.index(words, start)].trigger()


@pytest.mark.parametrize(
    ("waveform", "kind"),
    [("sine", "sine"), ("stepped sine", "sine"), ("sweep", "broadband"), ("random", "broadband"),
     ("odd multisine", "broadband"), ("user", "broadband"), ("none", "undriven"), ("", "undriven")],
)  # fmt: skip
def test_given_a_waveform_then_it_is_a_sine_broadband_or_nothing(waveform: str, kind: str) -> None:
    assert kind_of_drive(waveform) == kind


def test_given_another_kind_of_drive_then_the_views_follow_and_a_choice_is_kept_for_its_kind(
    make_window: Make,
) -> None:
    window = make_window(begin=False, views={"beam sine": ["section", "nonsense", 3]})
    page, settings = window.page, window.bench.settings
    assert isinstance(page, AcquirePage)
    views = page.views
    views.follow("beam", "sine")
    assert views.shown == ("section",)  # as far as it is understood
    assert page.section.isVisible() and not page.portrait.isVisible()
    _pick(_menu(views, "section"), "As the drive suggests")
    assert views.shown == SUGGESTED["sine"] and not settings.views
    views.follow("beam", "random")
    assert views.shown == SUGGESTED["broadband"]
    _pick(_menu(views, "spectrum"), "Waterfall", "Show here instead")
    assert views.shown == ("response", "waterfall")
    _pick(_menu(views, "response"), "Portrait", "Show beside it")
    assert views.shown == ("response", "portrait", "waterfall")
    views.follow("beam", "stepped sine")
    assert views.shown == SUGGESTED["sine"]
    views.follow("plate", "sweep")  # what was chosen for one rig says nothing of another
    assert views.shown == SUGGESTED["broadband"]
    views.follow("beam", "odd multisine")
    assert views.shown == ("response", "portrait", "waterfall")
    assert [views.widget(i) for i in range(3)] == [page.response, page.portrait, page.spectrogram]
    _pick(_menu(views, "portrait"), "Close this view")
    assert settings.views == {"beam broadband": ["response", "waterfall"]}
    page.on_hide()
    assert len(settings.layout["beam broadband"]) == 2
    _pick(_menu(views, "waterfall"), "Close this view")
    assert "Close this view" not in [a.text() for a in _menu(views, "response").actions()]  # one is left


def test_given_a_rig_whose_drive_becomes_noise_then_its_response_is_shown_unless_the_picture_is_frozen(
    window: MainWindow, qtbot: QtBot
) -> None:
    page = window.page
    assert isinstance(page, AcquirePage)
    qtbot.waitUntil(lambda: page.views._rig == "two_well_beam_modern", timeout=GUARD)
    assert page.views.shown == SUGGESTED["sine"]  # what the profile would play
    page.freeze.setChecked(True)  # who looks closely keeps the picture
    window.bench.rig.play(RandomNoise(0.5, 2, 60))
    qtbot.waitUntil(lambda: page.feed.drive.waveform == "random", timeout=GUARD)
    page._follow_drive()
    assert page.views.shown == SUGGESTED["sine"]
    page.freeze.setChecked(False)
    qtbot.waitUntil(lambda: page.views.shown == SUGGESTED["broadband"], timeout=GUARD)
    assert page.response.isVisible() and not page.section.isVisible()


def test_given_a_problem_in_view_then_a_lesser_message_waits_but_not_one_that_can_be_taken_back(
    make_window: Callable[..., MainWindow],
) -> None:
    window = make_window("rig", begin=False)
    bench, shown = window.bench, window.notice
    bench.say("The disk is full.", "bad")
    bench.say("run1 is in the library.", "good")
    assert shown._text.text() == "The disk is full."
    bench.say("run1 is in the bin.", "info", undo=lambda: None)
    assert shown.undo.isVisible() and shown._text.text() == "run1 is in the bin."


def test_given_a_warning_that_has_just_come_then_what_went_well_is_told_after_it(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    window = make_window("rig", begin=False)
    bench, shown = window.bench, window.notice
    bench.say("Another window is open.", "warn")
    bench.say("The rig is open.", "good")
    assert shown._text.text() == "Another window is open."
    qtbot.waitUntil(lambda: shown._text.text() == "The rig is open.", timeout=GUARD)
    bench.say("Another window is open.", "warn")
    bench.say("The disk is full.", "bad")  # a problem waits for nothing
    assert shown._text.text() == "The disk is full."


def test_given_a_large_scale_then_the_window_cannot_be_made_too_small_for_its_pages(
    make_window: Callable[..., MainWindow],
) -> None:
    window = make_window("rig", begin=False, scale=1.25)
    screen = QApplication.primaryScreen()
    assert screen is not None
    room = screen.availableGeometry()
    smallest = window.minimumSize()
    assert smallest.width() == min(1280, room.width()) and smallest.height() == min(750, room.height())
