"""Work that outlives the window: everything in hand is back at the next start."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QTextCursor
from pytestqt.qtbot import QtBot

from analysis.base.identification import Estimate, Identification
from analysis.base.record import Excitation, Record
from app.desktop.kept import Kept
from app.desktop.pages.identify import IdentifyPage
from app.desktop.pages.orbits import OrbitsPage
from app.desktop.pages.validate import ValidatePage
from app.desktop.window import MainWindow
from drivers.formats import write
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]
MODEL = """name = "my oscillator"
[states]
x = "v"
v = "-c*v - k*x + a*cos(2*pi*2.0*t)"
[parameters]
c = { guess = 0.5 }
k = { guess = 60.0 }
a = { guess = 4.0 }
"""


def _swing() -> Record:
    """A linear oscillator in its steady state at 2 Hz: closed form, with a little noise."""
    rng = np.random.default_rng(8)
    c, k, a, w = 0.6, 70.0, 5.0, 4 * np.pi
    t = np.arange(3000) / 200.0
    answer = a / (k - w**2 + 1j * c * w) * np.exp(1j * w * t)
    x, v = answer.real, (1j * w * answer).real
    noisy = {"x": x + 1e-4 * rng.standard_normal(3000), "v": v + 1e-3 * rng.standard_normal(3000)}
    return Record.from_arrays(200.0, noisy, excitation=Excitation(2.0, 1.0, 0.0, "sine"))


def _idle(window: MainWindow) -> bool:
    return not any(getattr(page, "job", None) for page in window.pages.values())


def test_given_work_in_hand_when_closed_and_started_again_then_all_of_it_is_back(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    path = folders / "swing.h5"
    write(_swing(), path)
    first = make_window("identify", begin=False)
    page, bench = first.page, first.bench
    assert isinstance(page, IdentifyPage)
    qtbot.waitUntil(lambda: bench.model is not None, timeout=LONG)
    bench.take_file(path)
    qtbot.waitUntil(lambda: bench.record is not None, timeout=LONG)
    page.model_card.tabs.setCurrentWidget(page.model_card.editor)
    page.model_card.editor.setFocus()
    page.model_card.editor.selectAll()
    for line in MODEL.splitlines():
        qtbot.keyClicks(page.model_card.editor, line)
        qtbot.keyClick(page.model_card.editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bench.model is not None and bench.model.name == "my oscillator", timeout=LONG)
    page.method.setCurrentIndex(page.method.findData("path"))
    qtbot.waitUntil(page.run_button.isEnabled, timeout=LONG)
    qtbot.mouseClick(page.run_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.job is None, timeout=LONG)
    assert bench.result is not None, page.state.text()
    first.show_page("validate")
    validate = first.page
    assert isinstance(validate, ValidatePage)
    qtbot.waitUntil(lambda: validate.validation is not None and _idle(first), timeout=LONG)
    first.show_page("orbits")
    orbits = first.page
    assert isinstance(orbits, OrbitsPage)
    orbits.run()
    qtbot.waitUntil(lambda: orbits.job is None, timeout=LONG)
    assert orbits.tiles
    tick = orbits.tiles[0].box().center()
    qtbot.mouseClick(orbits.tiles[0], Qt.MouseButton.LeftButton, pos=tick)  # left out
    kept_results, titles = bench.results, [c.title for c in validate.validation.checks]
    included = [tile.isChecked() for tile in orbits.tiles]
    first.show_page("identify")
    page.model_card.editor.moveCursor(QTextCursor.MoveOperation.End)
    qtbot.keyClicks(page.model_card.editor, "# mine")
    qtbot.waitUntil(lambda: not bench.model_problem, timeout=LONG)
    first.close()

    second = make_window("acquire", begin=False)
    said: list[str] = []
    second.bench.noticed.connect(lambda notice: said.append(notice.text))
    second.begin([])
    qtbot.waitUntil(lambda: second.bench.record is not None and second.bench.result is not None, timeout=LONG)
    qtbot.waitUntil(lambda: second.bench.model is not None, timeout=LONG)
    assert any("Your own model is back" in text for text in said)
    assert second.record_chip.accessibleName() == "swing"
    again = second.pages["identify"]
    assert isinstance(again, IdentifyPage)
    assert again.model_card.text() == MODEL + "# mine" == second.bench.model_text
    assert second.bench.results == kept_results
    assert again.result_view.table.rowCount() == 3
    assert again.banner.title.text().startswith("Of an earlier model")  # it was edited after the fit
    second.show_page("validate")
    shown = second.page
    assert isinstance(shown, ValidatePage)
    assert [shown.list.item(i).text()[3:] for i in range(shown.list.count())] == titles  # type: ignore[union-attr]
    assert shown.job is None  # nothing is worked out twice
    second.show_page("orbits")
    gallery = second.page
    assert isinstance(gallery, OrbitsPage)
    assert [tile.isChecked() for tile in gallery.tiles] == included


def test_given_kept_files_that_are_damaged_or_anybodys_then_the_work_begins_anew(folders: Path) -> None:
    work = folders / "config" / "shakedown" / "work"
    work.mkdir(parents=True)
    for damaged in ("", "[", "[]", '{"record": 3, "results": [{}]}', '{"results": 7}', "[" * 100_000):
        (work / "work.json").write_text(damaged)
        assert Kept.load() == Kept()
    (work / "work.json").write_text('{"model": "x"}')
    (work / "findings.pickle").write_bytes(b"not a pickle")
    assert Kept.load() == Kept(model="x")
    (work / "findings.pickle").write_bytes(pickle.dumps(("", "", {"mapping": {"x": "x"}})))
    (work / "findings.pickle").chmod(0o600)
    assert Kept.load().findings == {"mapping": {"x": "x"}}
    (work / "findings.pickle").chmod(0o666)  # anybody may have written it: it is not even opened
    assert Kept.load().findings == {}


def test_given_findings_of_an_earlier_record_or_fit_when_loaded_then_they_are_left_out(folders: Path) -> None:
    fits = [Identification("path", "m", True, {"k": Estimate.normal(k, 0.1)}) for k in (1.0, 2.0)]
    found = {"orbits": "of the record", "validation": "of the fit"}
    Kept("a.h5", results=fits[:1], findings=found).save()
    assert Kept.load().findings == found
    Kept("a.h5", results=fits).save(findings=False)  # a newer fit, its validation not on disk
    assert Kept.load().findings == {"orbits": "of the record"}
    Kept("b.h5", results=fits[:1]).save(findings=False)
    assert Kept.load().findings == {}


def test_given_a_window_that_is_lost_when_started_again_then_record_and_fit_are_back(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    path = folders / "swing.h5"
    write(_swing(), path)
    lost = make_window("identify", begin=False)
    lost.bench.take_file(path)
    qtbot.waitUntil(lambda: lost.bench.record is not None and lost.bench.model is not None, timeout=LONG)
    lost.bench.take_result(Identification("path", "m", True, {"k": Estimate.normal(4.0, 0.1)}))
    qtbot.waitUntil(lambda: bool(Kept.load().results), timeout=LONG)  # nobody closes it
    kept = Kept.load()
    assert (kept.record, kept.results_of) == (str(path), str(path))
    again = make_window("identify", begin=False)
    again.bench._bringing_back = True  # its record is still being read: what is on disk stays
    again.bench.keep_work()
    assert Kept.load() == kept
