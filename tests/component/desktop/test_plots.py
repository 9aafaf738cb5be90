"""Every plot can be read and saved."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyqtgraph as pg
import pytest
from PyQt6.QtCore import QLocale, Qt
from PyQt6.QtGui import QFontMetrics
from PyQt6.QtWidgets import QApplication, QLabel, QTableWidget
from pytestqt.qtbot import QtBot

from analysis import Model, amplitude_spectrum, prepare_subject
from analysis.base.progress import SILENT
from analysis.base.record import Marker, Record
from analysis.validation.check import Panel, Trace
from analysis.validation.residuals import WHITE
from analysis.validation.response import check_response
from app.desktop.pages.acquire import AcquirePage
from app.desktop.plots.convergence import Convergence
from app.desktop.plots.cursors import difference
from app.desktop.plots.fitpicture import FitPlot, fit_text
from app.desktop.plots.panel import PanelPlot
from app.desktop.plots.plot import Axis, Plot
from app.desktop.tasks import fit_picture
from app.desktop.theme import Theme
from app.desktop.widgets.channelstrip import value_text
from app.desktop.widgets.tables import PADDED, fill_table, in_line
from app.desktop.window import MainWindow
from app.words import counted, plain, with_minus
from tests.waiting import GUARD_MS as GUARD

Make = Callable[..., MainWindow]


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


def test_given_a_plot_when_clicked_then_the_keys_are_its_own(plot: Plot, qtbot: QtBot) -> None:
    viewport = plot.view.viewport()
    assert viewport is not None
    plot.activateWindow()
    qtbot.mouseClick(viewport, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(plot.hasFocus, timeout=GUARD)
    qtbot.keyClick(plot, Qt.Key.Key_X)
    assert plot.cursors is not None and "B − A" in plot.readout.text()


def test_given_a_title_that_fills_the_card_then_buttons_with_keys_go_and_come_back(plot: Plot) -> None:
    card = Plot(plot.theme, "Correlation with the input and more")
    title = card.findChild(QLabel, "heading")
    assert title is not None
    for width, shown in ((700, True), (300, False), (700, True)):
        card.resize(width, 200)
        card.show()
        assert card.export_button.isVisible() == card.fit_button.isVisible() == shown
        QApplication.processEvents()
        assert title.width() >= title.sizeHint().width()


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


def test_given_silence_then_the_waterfall_is_dark_and_its_axis_ends_where_the_signal_does(
    window: MainWindow, qtbot: QtBot
) -> None:
    page = window.page
    assert isinstance(page, AcquirePage)
    fall = page.spectrogram
    page.views.choose(("waterfall",))
    fall._clear()
    assert fall._image.getLevels()[0] == fall._levels.min() < fall._image.getLevels()[1]  # dark, not yellow
    qtbot.waitUntil(lambda: fall._levels.max() > -1.0, timeout=GUARD)  # some of the drive is in it
    qtbot.waitUntil(lambda: fall._image.getLevels()[1] == pytest.approx(fall._levels.max()), timeout=GUARD)
    top = fall.item.getViewBox().viewRange()[1][1]
    assert top < 0.5 * window.bench.rig.rate / 2  # a signal below 60 Hz, sampled at 2 kHz
    assert fall._bar is not None and fall._bar.levels() == pytest.approx(tuple(fall._image.getLevels()))
    assert fall._bar.isVisible()
    fall.setFixedWidth(fall.theme.px(180))  # a narrow card: the picture has the room
    qtbot.waitUntil(lambda: not fall._bar.isVisible(), timeout=GUARD)


def test_given_noise_and_then_a_drive_then_the_waterfall_s_axis_shrinks_to_where_the_signal_is(
    window: MainWindow,
) -> None:
    page = window.page
    assert isinstance(page, AcquirePage)
    fall, half = page.spectrogram, window.bench.rig.rate / 2
    page.views.choose(("waterfall",))
    fall._clear()
    fall._levels[:] = -4.0 + 0.1 * np.random.default_rng(1).standard_normal(fall._levels.shape)
    fall._follow_band()
    assert fall.item.getViewBox().viewRange()[1][1] == pytest.approx(half)
    fall._levels[8, -1] = 0.0  # the first column with a drive in it
    fall._follow_band()
    assert fall.item.getViewBox().viewRange()[1][1] < 0.1 * half
    tone = np.sin(2 * np.pi * 10.3 * np.arange(fall._size) / (2 * half))  # no noise: side lobes are the floor
    fall._levels[:] = np.log10(np.maximum(amplitude_spectrum(tone, 2 * half)[1], 1e-12))[:, None]
    fall.fit()
    assert fall.item.getViewBox().viewRange()[1][1] < 0.1 * half


def test_given_another_rig_then_no_sample_of_the_old_one_is_left_in_the_pictures(
    window: MainWindow, qtbot: QtBot
) -> None:
    page = window.page
    assert isinstance(page, AcquirePage)
    qtbot.waitUntil(lambda: page.portrait._trail.getData()[0] is not None, timeout=GUARD)
    page._restart()
    assert len(page.portrait._trail.getData()[0]) == 0 and len(page.section._dots.getData()[0]) == 0


def test_given_a_channel_that_only_hisses_then_its_axis_shows_a_thousandth_of_the_range(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window(start_shaking=False)
    page = window.page
    assert isinstance(page, AcquirePage)
    scope = page.scope
    qtbot.waitUntil(
        lambda: scope._ranges and scope._ranges[-1] != (0.0, 0.0), timeout=GUARD
    )  # the drive: 0 V
    bottom, top = scope._ranges[-1]
    info = window.bench.rig.channels[scope.shown[-1]]
    assert top - bottom > 1e-3 * (info.upper - info.lower)


def test_given_markers_then_fit_and_check_are_drawn_with_them_at_their_samples(qtbot: QtBot) -> None:
    t = np.arange(400) / 100.0
    x, v = np.cos(2 * np.pi * t), -2 * np.pi * np.sin(2 * np.pi * t)
    text = 'name = "o"\n[states]\nx = "v"\nv = "-k*x + a*cos(t)"\n[parameters]\nk = 39.0\na = 0.0\n'
    marks = (Marker(25, "tap"), Marker(90, "hum"), Marker(399, "end"))
    record = Record.from_arrays(100.0, {"x": x, "v": v})
    record = replace(record, markers=marks, drive_time=7.0)  # times are those of the record all the same
    picture = fit_picture(text, record, {}, {"k": 39.0}, SILENT)
    theme = Theme("light")
    plot = FitPlot(theme)
    qtbot.addWidget(plot)
    plot.show_picture(picture)
    for line, mark in zip(plot.markers.lines, marks, strict=True):
        assert [row.value() for row in line] == pytest.approx([t[mark.index]] * 2)
        assert line[0].label.format == mark.text and not hasattr(line[1], "label")
    theme.choose("dark")
    assert plot.markers.lines[0][0].pen.color().name() == theme.colours.text.lower()
    plot.show_words("Drawing …")
    assert not plot.markers.lines and not [i for i in plot.item.items if isinstance(i, pg.InfiniteLine)]
    subject = prepare_subject(Model.from_toml(text), record, {"k": 39.0})
    check = check_response(subject, 0.0, SILENT)
    drawn = [PanelPlot(theme, panel) for panel in check.panels]
    for card in drawn:
        qtbot.addWidget(card)
    shown = [[lines[0].value() for lines in card.markers.lines] for card in drawn]
    ends = [panel.traces[0].x[-1] for panel in check.panels]
    told = [[t[m.index] for m in marks if t[m.index] <= end] for end in ends[:2]]
    assert told[0]
    assert shown == [pytest.approx(told[0]), pytest.approx(told[1]), []]  # not over time since a restart


def test_given_a_fit_then_model_and_measurement_are_drawn_with_the_rest_and_the_fit_in_per_cent(
    qtbot: QtBot,
) -> None:
    t = np.arange(400) / 100.0
    x = np.cos(2 * np.pi * t)
    v = -2 * np.pi * np.sin(2 * np.pi * t)
    text = 'name = "o"\n[states]\nx = "v"\nv = "-k*x"\n[parameters]\nk = { guess = 39.0 }\n'
    record = Record.from_arrays(100.0, {"a": x, "v": v}, {"a": "mm"})
    right = fit_picture(text, record, {"x": "a", "v": "v"}, {"k": 4 * np.pi**2}, SILENT)
    wrong = fit_picture(text, record, {"x": "a", "v": "v"}, {"k": 30.0}, SILENT)
    assert right.names == ("x", "v") and right.units == ("mm", "")
    assert min(right.fit) > 99.9 and max(wrong.fit) < 95.0
    rest = right.measured[0] - right.model[0]
    assert right.fit[0] == pytest.approx(100 * (1 - np.sqrt(np.nanmean(rest**2)) / np.std(x)), abs=1e-6)
    plot = FitPlot(Theme("light"))
    qtbot.addWidget(plot)
    plot.show_picture(wrong)
    assert np.array_equal(plot._model.getData()[1], wrong.model[0], equal_nan=True)
    assert f"fit {fit_text(wrong.fit[0])}" in plot.readout.text() and "anew" in plot.readout.text()
    hidden = fit_picture(text, Record.from_arrays(100.0, {"b": x}), {"x": "", "v": ""}, {"k": 39.0}, SILENT)
    plot.show_picture(hidden)
    assert hidden.problem and plot.readout.text() == hidden.problem and len(plot._model.getData()[0]) == 0


@pytest.mark.parametrize(
    ("value", "words"), [(9e-5, "0.000090"), (1180.0, "1200"), (0.0, "0"), (-0.25, "-0.25"), (99.6, "100")]
)
def test_given_any_size_then_a_number_is_written_without_a_power_of_ten(value: float, words: str) -> None:
    assert plain(value) == words


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [(7.61e-4, "", "0.000761"), (7.61e-4, "mm", "0.000761 mm"), (-7.6123e-4, "m/s²", "−761.2 µm/s²"),
     (2.5e-8, "V", "25 nV"), (0.0, "V", "0 V"), (234567.0, "Pa", "235000 Pa"), (float("nan"), "V", "– V")],
)  # fmt: skip
def test_given_a_small_signal_then_its_tile_says_it_without_a_power_of_ten(
    value: float, unit: str, words: str
) -> None:
    assert value_text(value, unit) == words


def test_given_counts_and_signs_then_words_and_minus_are_right() -> None:
    assert [counted(n, "step") for n in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]
    assert with_minus("-0.28 ± 0.01") == "−0.28 ± 0.01" and with_minus("1e-05") == "1e−05"
    assert with_minus("a-b x-1 sine-2026-11") == "a-b x-1 sine-2026-11"  # names keep their hyphens
    assert [fit_text(f) for f in (99.987, 85.2, 100.0, -3e5)] == [
        "99.987 %",
        "85 %",
        "100.0000 %",
        "−300000 %",
    ]


def test_given_two_cursors_then_they_stand_on_samples_and_tell_difference_ratio_and_frequency(
    plot: Plot, qtbot: QtBot
) -> None:
    qtbot.keyClick(plot, "x")
    assert plot.cursors is not None
    for line, place in zip(plot.cursors.lines, (0.2034, 0.7012), strict=True):
        line.setValue(place)
        line.sigPositionChangeFinished.emit(line)
    assert [line.value() for line in plot.cursors.lines] == pytest.approx([0.2, 0.7])
    drop, ratio = np.exp(-0.7) - np.exp(-0.2), np.exp(-0.5)
    words = f"B − A: 0.5 s (2 Hz); {drop:.4g} mm; ratio {ratio:.4g}".replace(" -", " −")
    assert plot.readout.text() == words
    qtbot.keyClick(plot, "x")
    assert plot.cursors is None and plot.readout.text() == ""


@pytest.mark.parametrize("width", [30, 60, 90, 140, 300])
@pytest.mark.parametrize("ends", [(0.0, 0.7), (-1.3e-4, 1.2e-4), (0.0, 1234.5), (1e6, 3e6), (-2e-9, 5e-9)])
def test_given_a_narrow_axis_then_its_numbers_do_not_run_into_each_other(
    qtbot: QtBot, width: int, ends: tuple[float, float]
) -> None:
    axis = Axis("bottom")
    axis.setStyle(tickFont=Theme("light", 1.0).font(11))
    metrics = QFontMetrics(axis.style["tickFont"])
    step = axis.tickSpacing(*ends, width)[0][0]
    ticks = np.arange(np.ceil(ends[0] / step), np.floor(ends[1] / step) + 1) * step
    pixel = width * (ticks - ends[0]) / (ends[1] - ends[0])
    wide = np.array([metrics.horizontalAdvance(text) for text in axis.tickStrings(list(ticks), 1.0, step)])
    assert np.all(np.diff(pixel) > (wide[1:] + wide[:-1]) / 2)
    assert len(ticks) >= 2 or width < 300


def test_given_a_line_named_as_its_axis_then_its_column_has_the_name_once(plot: Plot) -> None:
    plot.curve(name="x").setData([0.0, 1.0], [2.0, 3.0])
    plot.curve(name="amplitude of v [m/s]").setData([0.0, 1.0], [2.0, 3.0])
    assert next(iter(plot.table()))[1::2] == ["run x [mm]", "x [mm]", "amplitude of v [m/s]"]


def test_given_a_marker_in_a_low_row_then_its_word_is_inside(plot: Plot, qtbot: QtBot) -> None:
    plot.setMinimumHeight(0)
    plot.resize(300, 120)
    plot.markers.show([(0.5, "Tap")])
    plot.item.setXRange(0, 1)
    qtbot.wait(50)
    label = plot.markers.lines[0][0].label
    word = label.textItem.mapRectToScene(label.textItem.boundingRect())
    row = plot.item.getViewBox().sceneBoundingRect()
    assert row.height() < 40 and word.height() > 8 and row.adjusted(-1, -1, 1, 1).contains(word)


@pytest.mark.parametrize(
    ("word", "shown"),
    [("step {1}", "step {1}"), ("{value} }{", "{value} }{"), ("tap\nwith the hammer", "tap …")],
)
def test_given_any_word_of_a_marker_then_it_stands_at_its_line_in_one_line(
    plot: Plot, word: str, shown: str
) -> None:
    plot.markers.show([(0.5, word)])
    plot.markers.move([0.6])
    assert plot.markers.lines[0][0].label.textItem.toPlainText() == shown


def test_given_cursors_when_the_colours_change_then_they_and_their_letters_follow(plot: Plot) -> None:
    plot.toggle_cursors()
    plot.theme.choose("dark")
    assert plot.cursors is not None
    for line in plot.cursors.lines:
        accent, ground = (
            pg.mkColor(c).name() for c in (plot.theme.colours.accent, plot.theme.colours.surface)
        )
        assert line.pen.color().name() == line.label.color.name() == accent
        assert line.label.fill.color().name() == ground  # a dense signal behind does not hide it


def test_given_cursors_then_the_help_gives_the_values_that_they_stand_on(plot: Plot) -> None:
    plot.toggle_cursors()
    assert plot.cursors is not None
    plot.cursors._move(0, 0.25)
    plot.cursors._move(1, 0.5)
    plot.cursors.read()
    assert plot.readout.toolTip().endswith(f"A {np.exp(-0.25):.5g} mm, B {np.exp(-0.5):.5g} mm")
    assert difference((0.0, 1.0), (-2.0, 0.0), ("s", "V")).endswith("ratio 0")


def test_given_misfits_of_two_measures_then_no_line_joins_them(qtbot: QtBot) -> None:
    shown = Convergence(Theme("light", 1.0))
    qtbot.addWidget(shown)
    shown.show_history([{"cost": c} for c in (90.0, 4.0, 1200.0, 1100.0)])
    assert np.isnan(shown._curve.getData()[1]).tolist() == [False, False, True, False, False]
    shown.show_history([{"step": c} for c in (0.1, 0.2)])  # a step may be longer than the one before
    assert np.isfinite(shown._curve.getData()[1]).all()


def test_given_an_axis_then_its_finer_numbers_divide_the_coarser_ones(qtbot: QtBot) -> None:
    axis = Axis("bottom")
    axis.setStyle(tickFont=Theme("light", 1.0).font(11))
    for width in range(60, 900, 20):
        for end in (0.37, 1.0, 9.0, 1030.0, 4.7e4):
            coarsest, *finer = (step for step, _ in axis.tickSpacing(0.0, end, float(width)))
            # 500 and 200 side by side put 400, 500 and 600 on each other.
            assert all(coarsest / step == pytest.approx(round(coarsest / step)) for step in finer)


def test_given_a_plot_then_its_values_go_to_the_clipboard_and_its_ticks_have_true_minus_signs(
    plot: Plot, qtbot: QtBot
) -> None:
    plot.copy_values()
    rows = QApplication.clipboard().text().splitlines()
    assert rows[0] == "time [s]\trun x [mm]" and len(rows) == 102
    plot.copy_picture()
    assert not QApplication.clipboard().pixmap().isNull()
    assert plot.item.getAxis("left").tickStrings([-0.5, 0.5], 1.0, 0.5) == ["−0.5", "0.5"]
    assert plot.item.getAxis("left").tickStrings([-2e-5, 4e6], 1.0, 2e-5) == ["−2×10⁻⁵", "4×10⁶"]


def test_given_a_reader_of_decimal_commas_then_axes_readouts_tiles_and_tables_have_them(
    plot: Plot, qtbot: QtBot
) -> None:
    before = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language.German))
    try:
        assert plot.item.getAxis("left").tickStrings([-0.5], 1.0, 0.5) == ["−0,5"]
        plot.copy_values()  # a spreadsheet reads 0.99 by its locale, too
        rows = QApplication.clipboard().text().splitlines()
        assert rows[0] == "time [s]\trun x [mm]" and rows[2] == f"0,01\t{np.exp(-0.01):.9g}".replace(".", ",")
        plot.readout.setText("x -7.25 mm")
        assert plot.readout.text() == "x −7,25 mm"
        assert value_text(-0.5) == "−0,5" and value_text(7.61e-4, "V") == "761 µV"
        table = QTableWidget()
        qtbot.addWidget(table)
        fill_table(table, ["Name", "Value"], [["v1.2", "-1.5 ± 0.2"]], ["Value"])
        assert [table.item(0, c).text() for c in (0, 1)] == ["v1.2", "−1,5 ± 0,2"]  # type: ignore[union-attr]
    finally:
        QLocale.setDefault(before)


def test_given_numbers_of_different_length_then_decimal_marks_stand_in_line(qtbot: QtBot) -> None:
    column = ["0.0393129 ± 0.0000042", "−0.31 ± 0.11", "12 ± 1"]
    padded = in_line(column)
    assert [text.replace("\u2007", "").replace("\u2008", "") for text in padded] == column
    behind = [
        [len(part) - re.search(r"\d(?!\d)", part).end() for part in text.split(" ± ")] for text in padded
    ]  # type: ignore[union-attr]
    assert behind == [[8, 8]] * 3  # mark and seven places
    assert in_line(["5.0e-09 ± 1.0e-10", "1.25 ± 0.25"]) == ["5.0e-09 ± 1.0e-10", "1.25 ± 0.25"]
    assert in_line(["0.5 %", "12 %"]) == ["0.5 %", "12\u2008\u2007 %"]
    table = QTableWidget()
    qtbot.addWidget(table)
    fill_table(table, ["Name", "Value"], [["a", "1.25"], ["b", "-3"]], ["Value"])
    cells = [table.item(r, 1) for r in range(2)]
    assert [cell.text() for cell in cells if cell] == ["1.25", "−3"]  # what is copied and read aloud
    assert [cell.data(PADDED) for cell in cells if cell] == ["1.25", "−3\u2008\u2007\u2007"]


def test_given_dashed_bounds_then_the_card_says_what_they_mean(qtbot: QtBot) -> None:
    lags, height = np.arange(1.0, 41.0), np.full(2, 0.08)
    bounds = (Trace(WHITE, lags[[0, -1]], height, "limit"), Trace("", lags[[0, -1]], -height, "limit"))
    residuals = Trace("residuals", lags, 0.01 * np.sin(lags), "model")
    panel = Panel("Autocorrelation", "lag [s]", "correlation [–]", (residuals, *bounds))
    told, silent = (
        PanelPlot(Theme("light", 1.0), p) for p in (panel, Panel("Motion", "t [s]", "x", (residuals,)))
    )
    for card in (told, silent):
        qtbot.addWidget(card)
        card.show()
    assert "white noise stays inside at all lags, but for 1 record in 1000" in told.caption.text()
    assert told.caption.isVisible() and not silent.caption.isVisible()
    told.theme.choose("dark")
    assert told.theme.colours.data[4] in told.caption.text()  # in the colour that the lines have now


def test_given_long_names_then_rows_of_a_plot_keep_to_their_own_height(plot: Plot, qtbot: QtBot) -> None:
    name = "measurements.run 1.acceleration of the tip [m/s²]"
    rows = [plot.add_row("", name) for _ in range(3)]
    qtbot.waitUntil(lambda: rows[0].getAxis("left").size().height() < 120)
    for axis in (row.getAxis("left") for row in rows):
        assert "…" in axis.label.toPlainText() and axis.labelText == name
        assert axis.label.boundingRect().width() <= axis.size().height() + 12


def test_given_a_low_row_then_a_short_name_is_written_smaller_and_not_cut(plot: Plot, qtbot: QtBot) -> None:
    axis = plot.item.getAxis("left")
    qtbot.waitUntil(lambda: axis.size().height() > 100)
    plot.item.setLabel("left", "drive [V]")
    full = QFontMetrics(axis.label.font()).horizontalAdvance("drive")
    axis.resize(axis.width(), 0.85 * full)
    assert axis.label.toPlainText().strip() == "drive" and axis.labelText == "drive [V]"
    document = axis.label.document()
    assert axis.label.boundingRect().width() - 2 * document.documentMargin() <= 0.85 * full + 3
    axis.resize(axis.width(), 200)
    assert axis.label.toPlainText().strip() == "drive [V]" and "font-size" not in axis.labelString()


def test_given_a_label_that_comes_later_then_it_stands_in_the_middle_of_its_axis(
    plot: Plot, qtbot: QtBot
) -> None:
    axis = plot.item.getAxis("left")
    qtbot.waitUntil(lambda: axis.size().height() > 100)
    plot.item.setLabel("left", "displacement [mm]")
    middle = axis.label.pos().y() - axis.label.boundingRect().width() / 2  # it is written upwards
    assert middle == pytest.approx(axis.size().height() / 2, abs=2)


def test_given_long_numbers_then_all_rows_get_more_room_for_them_once(plot: Plot, qtbot: QtBot) -> None:
    rows = [plot.item, plot.add_row("", "force [N]")]
    rows[0].setLabel("left", "x [m]")
    axes = [row.getAxis("left") for row in rows]
    before = axes[0].width()
    for row in rows:
        row.setYRange(-1.0, 1.0)
    plot.view.grab()
    QApplication.processEvents()
    assert [axis.width() for axis in axes] == [before, before]
    rows[0].setYRange(-2e-4, 2e-4)  # "−0.00015"
    plot.view.grab()
    qtbot.waitUntil(lambda: axes[0].width() > before)
    assert axes[1].width() == axes[0].width()
    plot.view.grab()
    assert not plot._crowding.isActive()
