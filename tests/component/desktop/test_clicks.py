"""How many presses it takes to come from the start, or from somebody else's file, to a report: real ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PyQt6.QtCore import QPoint, Qt, QTimer
from PyQt6.QtWidgets import QApplication, QComboBox, QFileDialog, QLineEdit, QTabWidget, QWidget
from pytestqt.qtbot import QtBot
from scipy.integrate import solve_ivp

from app.desktop.pages.acquire import AcquirePage
from app.desktop.pages.identify import IdentifyPage
from app.desktop.pages.recordings import RecordingsPage
from app.desktop.pages.report import ReportPage
from app.desktop.pages.validate import ValidatePage
from app.desktop.widgets.importing import ImportDialog
from app.desktop.window import MainWindow
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]
TRUTH = {"c": 0.8, "k": 150.0, "k3": 90.0}
MODEL = """[states]
x = "v"
v = "-c*v - k*x - k3*x**3 + F"
[inputs]
F = "measured"
[parameters]
c = { guess = 1.0 }
k = { guess = 100.0 }
k3 = { guess = 50.0 }
"""


class Mouse:
    """Presses what can be seen and pressed, and counts."""

    def __init__(self, window: MainWindow, qtbot: QtBot) -> None:
        self.window, self.qtbot, self.clicks = window, qtbot, 0

    def click(self, target: QWidget, at: QPoint | None = None) -> None:
        self.qtbot.waitUntil(lambda: target.isVisible() and target.isEnabled(), timeout=LONG)
        self.clicks += 1
        self.qtbot.mouseClick(target, Qt.MouseButton.LeftButton, pos=at or target.rect().center())

    def stage(self, key: str) -> object:
        self.click(self.window._buttons[key])
        return self.window.page

    def tab(self, tabs: QTabWidget, page: QWidget) -> None:
        bar = tabs.tabBar()
        assert bar is not None
        self.click(bar, bar.tabRect(tabs.indexOf(page)).center())

    def choose(self, box: QComboBox, text: str) -> None:
        self.click(box)
        view = box.view()
        assert view is not None
        self.qtbot.waitUntil(view.isVisible, timeout=LONG)
        model = box.model()
        assert model is not None
        viewport = view.viewport()
        assert viewport is not None
        place = view.visualRect(model.index(box.findText(text), 0)).center()
        self.qtbot.wait(QApplication.doubleClickInterval())  # a list that has just opened takes no press
        self.click(viewport, place)
        self.qtbot.waitUntil(lambda: box.currentText() == text, timeout=LONG)

    def fit_to_report(self) -> Path:
        """From the Identify page, with everything chosen, to the written report."""
        page = self.window.page
        assert isinstance(page, IdentifyPage)
        bench = self.window.bench
        self.click(page.run_button)
        self.qtbot.waitUntil(lambda: page.job is None, timeout=LONG)
        assert bench.result is not None, page.state.text()
        validate = self.stage("validate")
        assert isinstance(validate, ValidatePage)
        self.qtbot.waitUntil(lambda: validate.validation is not None, timeout=LONG)
        report = self.stage("report")
        assert isinstance(report, ReportPage)
        self.click(report.write_button)
        self.qtbot.waitUntil(lambda: report.job is None, timeout=LONG)
        assert report.paths is not None, report.state.text()
        return report.paths[0]


def _foreign_table(path: Path) -> Path:
    """A driven hardening oscillator as an instrument with a German code page writes it."""
    rng = np.random.default_rng(3)
    t = np.arange(2000) / 200.0

    def force(at: np.ndarray) -> np.ndarray:
        return np.asarray(20 * np.cos(2 * np.pi * 1.8 * at))

    def motion(at: float, y: np.ndarray) -> list[float]:
        pull = TRUTH["c"] * y[1] + TRUTH["k"] * y[0] + TRUTH["k3"] * y[0] ** 3
        return [y[1], float(force(np.float64(at)) - pull)]

    x, v = solve_ivp(motion, (0, t[-1]), [0.1, 0.0], t_eval=t, rtol=1e-10, atol=1e-12).y
    noise = rng.standard_normal((2, 2000))
    rows = zip(t, x + 2e-4 * noise[0], v + 2e-3 * noise[1], force(t), strict=True)
    lines = [";".join(f"{v:.7f}".replace(".", ",") for v in row) for row in rows]
    head = ["Messung;Träger groß", "Prüfer;Jäger", "", "Zeit [s];Weg [m];Schnelle [m/s];Kraft [N]"]
    path.write_bytes("\r\n".join([*head, *lines, ""]).encode("cp1252"))
    return path


def test_given_a_foreign_table_of_three_channels_and_a_model_of_ones_own_then_the_report_is_15_clicks_away(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    window = make_window("acquire", begin=False)
    bench, mouse = window.bench, Mouse(window, qtbot)
    path = _foreign_table(folders / "schwinger.csv")
    recordings = mouse.stage("recordings")
    assert isinstance(recordings, RecordingsPage)

    def answer() -> None:
        """The file by its path and Enter, then what the preview found as it is."""
        dialog = QApplication.activeModalWidget()
        if isinstance(dialog, ImportDialog) and dialog.take.isEnabled():
            mouse.click(dialog.take)
            return
        QTimer.singleShot(50, answer)
        if isinstance(dialog, QFileDialog):
            name = dialog.findChild(QLineEdit, "fileNameEdit")
            assert name is not None
            if not name.text():
                qtbot.keyClicks(name, str(path))
                qtbot.keyClick(name, Qt.Key.Key_Return)

    QTimer.singleShot(50, answer)
    mouse.click(recordings.import_button)
    qtbot.waitUntil(lambda: recordings.name.text() == "schwinger", timeout=LONG)
    qtbot.waitUntil(lambda: bench.record is not None, timeout=LONG)  # the first one is in hand by itself
    page = mouse.stage("identify")
    assert isinstance(page, IdentifyPage)
    card = page.model_card
    qtbot.waitUntil(lambda: bench.model is not None, timeout=LONG)
    mouse.tab(card.tabs, card.editor)
    qtbot.waitUntil(lambda: window.focusWidget() is card.editor, timeout=LONG)  # no press into it is needed
    qtbot.keyClick(card.editor, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    for line in MODEL.splitlines():
        qtbot.keyClicks(card.editor, line)
        qtbot.keyClick(card.editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not bench.model_problem and "F" in page.mapping.boxes, timeout=LONG)
    assert bench.model is not None and bench.model.name == "model"  # not that of the text before
    assert card.chooser.currentIndex() == -1 and "not saved" in card.chooser.placeholderText()
    mouse.choose(page.mapping.boxes["x"], "Weg")
    mouse.choose(page.mapping.boxes["v"], "Schnelle")
    mouse.choose(page.mapping.boxes["F"], "Kraft")
    text = mouse.fit_to_report().read_text(encoding="utf-8")
    assert mouse.clicks <= 15
    assert bench.result is not None and bench.result.verdict == "fits"
    for name, truth in TRUTH.items():
        found = bench.result.parameters[name]
        assert abs(found.value - truth) < 5 * found.stderr and name in text


def test_given_the_start_of_the_program_then_the_report_is_8_clicks_away(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window("acquire")  # the virtual beam shakes by itself
    bench, mouse = window.bench, Mouse(window, qtbot)
    acquire = window.page
    assert isinstance(acquire, AcquirePage)
    qtbot.waitUntil(lambda: bench.rig.drive().steady, timeout=LONG)
    panel = acquire.record_panel
    mouse.click(panel.button)
    qtbot.waitUntil(lambda: bench.rig.recording, timeout=LONG)
    qtbot.wait(6000)  # as long as a person lets it run
    mouse.click(panel.button)
    qtbot.waitUntil(lambda: bench.record is not None, timeout=LONG)  # it is in hand by itself
    page = mouse.stage("identify")
    assert isinstance(page, IdentifyPage)
    qtbot.waitUntil(lambda: page.run_button.isEnabled(), timeout=LONG)
    mouse.fit_to_report()
    assert mouse.clicks <= 8
    assert bench.result is not None and bench.result.verdict in ("fits", "close")
    truth = {"c": 0.035, "k1": -0.28, "k2": 0.178, "k3": 0.336, "k4": -0.064}
    for name, value in truth.items():
        assert abs(bench.result.parameters[name].value - value) < 0.01 * abs(value)
