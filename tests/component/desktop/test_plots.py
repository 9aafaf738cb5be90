"""Every plot can be read and saved."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.desktop.plots.plot import Plot
from app.desktop.theme import Theme


@pytest.fixture
def plot(qtbot: QtBot) -> Plot:
    theme = Theme("light", 1.0)
    theme.apply()
    card = Plot(theme, "Decay", "time [s]", "x [mm]")
    qtbot.addWidget(card)
    card.resize(400, 300)
    card.show()
    t = np.linspace(0, 1, 101)
    card.curve(name="run").setData(t, np.exp(-t))
    return card


def test_given_a_plot_when_exported_then_png_svg_and_csv_hold_it(plot: Plot, tmp_path: Path) -> None:
    for kind in ("png", "svg", "csv"):
        plot.export(tmp_path / f"plot.{kind}")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    drawing = (tmp_path / "plot.svg").read_text()
    assert "<svg" in drawing and "time [s]" in drawing and "poly" in drawing
    rows = list(csv.reader((tmp_path / "plot.csv").read_text().splitlines()))
    assert rows[0] == ["time [s]", "run x [mm]"]
    assert len(rows) == 102
    assert float(rows[-1][1]) == pytest.approx(np.exp(-1), rel=1e-8)


def test_given_a_crosshair_when_moved_then_it_reads_values_with_units(plot: Plot, qtbot: QtBot) -> None:
    plot.cross.setChecked(True)
    box = plot.item.getViewBox()
    plot._moved(box.mapViewToScene(box.viewRect().center()))
    words = plot.readout.text()
    assert words.startswith("time = 0.5") and " s " in words and words.endswith("mm")


def test_given_a_dark_theme_when_chosen_then_curves_and_ground_change(plot: Plot) -> None:
    before = plot.item.items[0].opts["pen"].color().name()
    plot.theme.choose("dark")
    after = plot.item.items[0].opts["pen"].color().name()
    assert (before, after) == (
        "#0072b2",
        "#5ab4f0",
    )
    assert plot.view.backgroundBrush().color().name() == plot.theme.colours.surface


def test_given_a_plot_then_only_its_left_and_lower_axes_show(plot: Plot) -> None:
    shown = [side for side in ("left", "bottom", "right", "top") if plot.item.getAxis(side).isVisible()]
    assert shown == ["left", "bottom"]


def test_given_another_range_then_the_axis_shows_its_numbers(plot: Plot, qtbot: QtBot) -> None:
    axis = plot.item.getAxis("left")
    plot.item.setYRange(0, 1)
    qtbot.wait(50)
    before = axis.picture
    plot.item.setYRange(500, 900)
    qtbot.wait(50)
    plot.view.grab()
    assert axis.picture is not before and axis.range[0] < 501 and axis.range[1] > 899
