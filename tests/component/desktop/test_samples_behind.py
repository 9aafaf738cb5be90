"""Where a plot draws an envelope, cursors, crosshair and tables give the samples themselves."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from PyQt6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from analysis.base.record import Channel, Record
from app.desktop.feed import Ring
from app.desktop.plots.live import Spectrum
from app.desktop.plots.plot import Plot
from app.desktop.plots.recordview import RecordView
from app.desktop.plots.scope import Scope
from app.desktop.theme import Theme
from drivers.base.protocols import Block
from drivers.recording.lazy import MemoryRecording

RATE = 10_000.0
COUNT = 2_000_000


def moved(t: np.ndarray) -> np.ndarray:
    """A motion that swings many times within a pixel."""
    return np.cos(2 * np.pi * 47.0 * t + 1.4845)


def recording(count: int = COUNT, lost: tuple[int, int] | None = None) -> MemoryRecording:
    t = np.arange(count) / RATE
    x = moved(t)
    gaps = () if lost is None else (lost,)
    if lost is not None:
        x[slice(*lost)] = np.nan
    channels = {"x": Channel(x, "mm", gaps=gaps), "v": Channel(3.0 * t, "m/s")}
    return MemoryRecording(Record(RATE, channels))


@pytest.fixture
def view(qtbot: QtBot) -> RecordView:
    theme = Theme("light", 1.0)
    theme.apply()
    card = RecordView(theme)
    qtbot.addWidget(card)
    card.resize(600, 400)
    card.show()
    card.show_recording(recording())
    return card


def drag(plot: Plot, places: tuple[float, float], row: int = 0) -> str:
    """Cursors put down at two places, as by the mouse in one of the rows."""
    assert plot.cursors is not None
    for line, place in zip(plot.cursors._rows[row], places, strict=True):
        line.setValue(place)
        line.sigDragged.emit(line)
        line.sigPositionChangeFinished.emit(line)
    return plot.readout.text()


def test_given_more_samples_than_pixels_then_cursors_stand_on_samples(view: RecordView) -> None:
    assert len(view._curves[0].getData()[0]) < 3000 < COUNT  # an envelope is drawn
    view.toggle_cursors()
    a, b = 50.00004, 150.01239
    words = drag(view, (a, b))
    assert view.cursors is not None
    assert [line.value() for line in view.cursors.lines] == pytest.approx([50.0, 150.0124], abs=1e-9)
    low, high = moved(np.array([50.0, 150.0124]))
    assert words == f"B − A: 100 s (0.009999 Hz); {high - low:.4g} mm; ratio {high / low:.4g}".replace(
        "-", "−"
    )
    assert (
        "x: B − A" in view.readout.toolTip()
        and "v: B − A: 100 s (0.009999 Hz); 300 m/s" in view.readout.toolTip()
    )
    assert "300 m/s; ratio 3" in drag(view, (a, b), row=1)  # the row that was dragged is told


def test_given_a_crosshair_on_an_envelope_then_every_lane_tells_its_sample(view: RecordView) -> None:
    assert view.read(view.items[0], 123.45678, 0.0) == (
        f"t = 123.457 s   x {moved(np.array(123.4568)):.4g} mm   v {3 * 123.4568:.4g} m/s"
    )


def test_given_a_stretch_in_view_then_the_table_holds_its_samples(view: RecordView) -> None:
    view.items[0].setXRange(10.0, 60.0, padding=0)
    view.refine()
    assert len(view._curves[0].getData()[0]) < 3000  # still an envelope
    head, *rows = view.table()
    assert head == ["time [s]", "x [mm]", "time [s]", "v [m/s]"] and len(rows) == 500_001
    values = np.array([[float(cell) for cell in row] for row in rows[::1000]])
    np.testing.assert_allclose(values[:, 0], 10.0 + 0.1 * np.arange(501), rtol=1e-9)
    np.testing.assert_allclose(values[:, 1], moved(values[:, 0]), atol=1e-6)
    np.testing.assert_allclose(values[:, 3], 3 * values[:, 0], rtol=1e-8)


def test_given_too_many_samples_in_view_then_no_table_is_made_and_why_is_said(view: RecordView) -> None:
    board = QApplication.clipboard()
    assert board is not None
    board.setText("before")
    view.copy_values()
    assert board.text() == "before" and "zoom in first" in view.readout.text()


def test_given_another_recording_beside_and_lost_samples_then_both_give_their_own(view: RecordView) -> None:
    view.show_recording(recording(200_000, lost=(50_000, 60_000)))
    other = Record.from_arrays(0.5 * RATE, {"x": np.arange(60_000.0)}, {"x": "mm"})
    view.show_beside(MemoryRecording(other))
    view.items[0].setXRange(2.0, 3.0, padding=0)
    view.refine()
    head, *rows = view.table()
    assert len(rows) == 10_001 and len(head) == 6
    assert float(rows[0][3]) == 10_000.0 and float(rows[5000][3]) == 15_000.0 and rows[5001][3] == ""
    view.items[0].setXRange(0.0, 20.0, padding=0)
    view.toggle_cursors()
    assert drag(view, (2.0, 5.5)) == "no sample there"
    assert "x lost" in view.read(view.items[0], 5.5, 0.0)


def test_given_more_channels_than_rows_then_each_can_be_drawn_and_the_stretch_in_view_stays(
    view: RecordView,
) -> None:
    assert view.chooser.isHidden()  # two channels, two rows
    names = [f"a{i}" for i in range(1, 10)]
    t = np.arange(5000) / 100.0
    many = {name: i + np.sin(t) for i, name in enumerate(names)}
    view.show_recording(MemoryRecording(Record.from_arrays(100.0, many)))
    assert view.chooser.isVisible()
    assert [word.split()[0] for word in view.read(view.items[0], 0.0, 0.0).split("   ")[1:]] == names[:4]
    view.items[0].setXRange(10.0, 20.0, padding=0)
    view.select(True)
    assert view.region is not None
    view.region.setRegion((12.0, 13.0))
    view.show_beside(MemoryRecording(Record.from_arrays(100.0, {"a9": np.cos(t)})))
    view.items[0].setXRange(10.0, 20.0, padding=0)
    view.chooser.click()
    menu = QApplication.activePopupWidget()
    assert menu is not None
    ticked = {action.text(): action.isChecked() for action in menu.actions()}
    assert list(ticked) == names and [n for n, on in ticked.items() if on] == names[:4]
    menu.actions()[8].trigger()
    menu.close()
    shown = view.read(view.items[0], 15.0, 0.0)
    assert [word.split()[0] for word in shown.split("   ")[1:]] == ["a2", "a3", "a4", "a9"]
    assert f"a9 {8 + np.sin(15.0):.4g}" in shown
    assert view.items[0].getViewBox().viewRange()[0] == pytest.approx([10.0, 20.0])
    assert view.selected() == (1200, 1300)
    assert view.beside is not None and [behind is not None for behind in view._behind] == [False] * 3 + [True]
    view.draw_channel("a2", False)
    assert len(view.items) == 3
    for name in ("a3", "a4", "a9"):
        view.draw_channel(name, False)
    assert len(view.items) == 1  # never none


def live_feed() -> SimpleNamespace:
    """Twelve seconds of one channel as the window's feed holds them."""
    ring = Ring(1, int(20 * RATE))
    ring.append(0, moved(np.arange(int(12 * RATE)) / RATE)[None])
    channel = SimpleNamespace(name="x", unit="mm", lower=-10.0, upper=10.0)
    silent = SimpleNamespace(connect=lambda slot: None)  # no markers, no other stream
    rig = SimpleNamespace(rate=RATE, channels=[channel], marked=silent)
    return SimpleNamespace(ring=ring, rig=rig, restarted=silent)


def test_given_the_live_signals_then_cursors_and_table_give_samples_running_and_frozen(qtbot: QtBot) -> None:
    theme = Theme("light", 1.0)
    feed = live_feed()
    scope = Scope(theme, feed, 10.0)  # type: ignore[arg-type]
    qtbot.addWidget(scope)
    scope.resize(500, 300)
    scope.show()
    scope.show_channels([0])
    newest = (12 * RATE - 1) / RATE
    for frozen in (False, True):
        if frozen:
            scope.freeze(True)
            feed.ring.append(int(12 * RATE), np.zeros((1, 500)))  # does not move a frozen picture
        assert len(scope._curves[0].getData()[0]) < 3000
        value = moved(np.array(newest - 4.5))
        assert scope.read(scope.items[0], -4.50003, 0.0) == f"t = -4.5 s   x {value:.4g} mm"
        _, *rows = scope.table()
        got = np.array([[float(cell) for cell in row] for row in rows])
        assert len(got) == 10 * RATE + 1
        np.testing.assert_allclose(got[:, 1], moved(newest + got[:, 0]), atol=1e-5)
    fresh = Block(int(12 * RATE) + 500, np.zeros((1, 10)))
    scope.advance([fresh])  # a frozen picture takes nothing in


def test_given_the_live_spectrum_then_a_cursor_stands_on_a_line_of_it(qtbot: QtBot) -> None:
    spectrum = Spectrum(Theme("light", 1.0), live_feed())  # type: ignore[arg-type]
    qtbot.addWidget(spectrum)
    spectrum.resize(300, 300)
    spectrum.show()
    spectrum.show_channels([0])
    spectrum.draw()
    drawn = spectrum._curves[0]
    step = RATE / 16384
    assert len(drawn.getData()[0]) < 600
    spectrum.toggle_cursors()
    drag(spectrum, (47.1, 94.0))
    assert spectrum.cursors is not None
    at = [line.value() for line in spectrum.cursors.lines]
    assert at == pytest.approx([round(47.1 / step) * step, round(94.0 / step) * step])
    f, y = drawn.behind.between(0.0, RATE / 2)
    assert len(f) == 8193 and abs(f[np.argmax(y)] - 47.0) <= 0.5 * step
