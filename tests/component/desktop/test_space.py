"""The motion in three dimensions: read, turned, saved and copied as every other plot."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QColor, QPixmap
from PyQt6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from app.desktop.plots.space import SpaceCard
from app.desktop.theme import Theme
from tests.waiting import GUARD_MS as GUARD

LABELS = ("x(t) [mm]", "x(t + 5 ms) [mm]", "x(t + 10 ms) [mm]")
ANGLE = np.linspace(0, 2 * np.pi, 400, endpoint=False)
CIRCLE = np.stack([3 * np.cos(ANGLE), 3 * np.sin(ANGLE), 0 * ANGLE])


@pytest.fixture
def card(qtbot: QtBot) -> SpaceCard:
    theme = Theme("light", 1.0)
    theme.apply()
    made = SpaceCard(theme, "Motion in three dimensions")
    qtbot.addWidget(made)
    made.resize(500, 400)
    with qtbot.waitExposed(made, timeout=GUARD):  # its size is the window system's before that
        made.show()
    made.view.show_points(CIRCLE, LABELS)
    return made


def _place(card: SpaceCard, number: int) -> QPoint:
    """Where a point stands on the view: a turn about the vertical, then a tilt, by hand."""
    view = card.view
    x, y = CIRCLE[0, number] / 3, CIRCLE[1, number] / 3
    right, deep = np.cos(0.6) * x - np.sin(0.6) * y, np.sin(0.6) * x + np.cos(0.6) * y
    size = 0.28 * min(view.width(), view.height() * 1.2)
    return QPoint(
        round(view.width() / 2 + size * right), round(view.height() / 2 + size * np.sin(0.5) * deep)
    )


def test_given_the_crosshair_then_the_values_of_the_point_under_the_pointer_are_told(
    card: SpaceCard, qtbot: QtBot
) -> None:
    qtbot.keyClick(card.view, Qt.Key.Key_C)
    qtbot.mouseMove(card.view, QPoint(2, 2))
    qtbot.mouseMove(card.view, _place(card, 100))  # a quarter of the circle: x = 0, y = 3
    qtbot.waitUntil(lambda: bool(card.readout.text()), timeout=GUARD)  # the pointer goes by the window system
    words = card.readout.text()
    values = [float(part.partition(" = ")[2].split()[0].replace("−", "-")) for part in words.split("   ")]
    assert words.startswith("x(t) = ") and words.endswith(" mm")
    # A pixel is 0.03 mm here, and the pointer stands on whole ones.
    assert values == pytest.approx([0.0, 3.0, 0.0], abs=0.1)
    qtbot.mouseMove(card.view, QPoint(2, 2))
    qtbot.waitUntil(lambda: not card.readout.text(), timeout=GUARD)


def test_given_depth_then_near_is_strong_and_far_is_pale(card: SpaceCard) -> None:
    ground, full = QColor(card.view._theme.colours.surface), QColor(card.view._theme.colours.data[0])
    far, near = card.view._shade(0.0), card.view._shade(1.0)
    assert near.name() == full.name()
    assert 0.15 < (ground.lightnessF() - far.lightnessF()) / (ground.lightnessF() - full.lightnessF()) < 0.3


def test_given_a_turned_view_when_f_is_pressed_then_it_is_the_first_one_again(
    card: SpaceCard, qtbot: QtBot
) -> None:
    before = card.view.picture().toImage()
    qtbot.keyClick(card.view, Qt.Key.Key_Left)
    qtbot.keyClick(card.view, Qt.Key.Key_Plus)
    assert card.view.picture().toImage() != before
    qtbot.keyClick(card.view, Qt.Key.Key_F)
    assert card.view.picture().toImage() == before


def test_given_the_view_when_saved_and_copied_then_picture_and_values_are_there(
    card: SpaceCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("png", "svg", "csv"):
        path = tmp_path / f"motion.{kind}"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, path=path: (str(path), ""))
        next(a for a in card.menu().actions() if kind.upper() in a.text()).trigger()
        assert card.readout.text() == f"Saved as motion.{kind}."
    assert QPixmap(str(tmp_path / "motion.png")).size() == card.view.size() * 2
    assert "polyline" in (tmp_path / "motion.svg").read_text()
    head, *rows = csv.reader((tmp_path / "motion.csv").read_text().splitlines())
    assert tuple(head) == LABELS
    assert np.allclose(np.asarray(rows, dtype=float).T, CIRCLE, atol=1e-8)
    next(a for a in card.menu().actions() if a.text() == "Copy the values").trigger()
    board = QApplication.clipboard()
    assert board is not None and len(board.text().splitlines()) == 401


def test_given_a_folder_that_is_not_there_then_nothing_claims_to_be_saved(
    card: SpaceCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("png", "svg", "csv"):
        path = tmp_path / "gone" / f"motion.{kind}"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, path=path: (str(path), ""))
        next(a for a in card.menu().actions() if kind.upper() in a.text()).trigger()
        assert card.readout.text() == "Not saved: No such file or directory."


def test_given_the_menu_of_the_right_button_then_the_view_does_not_turn_with_the_pointer(
    card: SpaceCard, qtbot: QtBot
) -> None:
    before = card.view.picture().toImage()
    qtbot.mousePress(card.view, Qt.MouseButton.RightButton, pos=QPoint(100, 100))
    QApplication.processEvents()  # no release comes to the view: the menu that opens takes it
    qtbot.mouseMove(card.view, QPoint(300, 250))
    assert card.view.picture().toImage() == before
