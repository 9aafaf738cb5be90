"""The whole journey in the real window: from a record of the virtual rig to the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imsave
from PyQt6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from analysis.base.record import Excitation, Record
from analysis.estimate.methods import identify
from analysis.model import Model
from app.desktop.pages.acquire import AcquirePage
from app.desktop.pages.embed import EmbedPage
from app.desktop.pages.identify import IdentifyPage
from app.desktop.pages.orbits import OrbitsPage
from app.desktop.pages.recordings import RecordingsPage
from app.desktop.pages.report import ReportPage
from app.desktop.pages.validate import ValidatePage
from app.desktop.window import MainWindow
from app.words import with_minus
from drivers.acquisition.capture import recording_to
from drivers.acquisition.engine import Engine
from drivers.base.clock import InstantClock
from drivers.rig.profile import load_rig, open_rig
from tests.waiting import GUARD
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]
TRUTH = {"c": 0.035, "k1": -0.28, "k2": 0.178, "k3": 0.336, "k4": -0.064}


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty seconds of the two-well beam, faster than real time."""
    profile = load_rig("two_well_beam_modern")
    rig = open_rig(profile, InstantClock())
    engine = Engine(rig.source, rig.exciter)
    rig.play()
    engine.start()
    engine.advance(profile.settle)
    path = tmp_path_factory.mktemp("runs") / "chaos"
    metadata = {"rig": profile.name, "model": profile.model}
    capture = engine.record(recording_to(path, engine.source, metadata), round(20 * profile.rate))
    engine.advance(20.0)
    assert capture.wait(GUARD)
    engine.stop()
    rig.close()
    return Path(capture.finished[0].path)


def _finished(qtbot: QtBot, page: object) -> None:
    qtbot.waitUntil(lambda: page.job is None, timeout=LONG)  # type: ignore[attr-defined]


def test_given_the_rig_when_recorded_and_taken_through_every_stage_then_the_report_holds_the_truth(
    make_window: Make, qtbot: QtBot, folders: Path
) -> None:
    window = make_window("acquire")  # the beam shakes by itself
    bench = window.bench
    acquire = window.page
    assert isinstance(acquire, AcquirePage)
    qtbot.waitUntil(lambda: bench.rig.drive().steady and bench.feed.section.shape[1] > 20, timeout=LONG)
    panel = acquire.record_panel
    panel.name.setText("my first run")
    panel.length.setCurrentIndex(1)  # so many seconds
    panel.amount.setValue(15)
    with qtbot.waitSignal(bench.rig.recorded, timeout=LONG) as saved:
        qtbot.mouseClick(panel.button, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: bench.rig.recording, timeout=LONG)
    assert saved.args[0].name == "my-first-run.h5"

    window.show_page("recordings")
    recordings = window.page
    assert isinstance(recordings, RecordingsPage)
    qtbot.waitUntil(lambda: recordings.recording is not None, timeout=LONG)
    recordings.use()
    qtbot.waitUntil(lambda: bench.record is not None, timeout=LONG)
    assert bench.record is not None and len(bench.record.record) == 30_000
    assert window.record_chip.accessibleName() == "my-first-run"

    window.show_page("embed")
    embed = window.page
    assert isinstance(embed, EmbedPage)
    _finished(qtbot, embed)
    qtbot.waitUntil(lambda: "embedding" in bench.findings, timeout=LONG)
    assert embed.verdict.text().startswith("Motion: <b>chaotic</b>")
    suggested = embed.delay
    embed.delay_line.setValue(embed.delay_line.value() * 0.5)  # dragged by hand
    assert embed.delay < suggested
    assert bench.findings["embedding"].delay == embed.delay

    window.show_page("orbits")
    orbits = window.page
    assert isinstance(orbits, OrbitsPage)
    orbits.run()
    _finished(qtbot, orbits)
    assert orbits.tiles  # up to period 10: some come in any 15 s
    chosen = len(orbits.chosen())  # those that were confirmed: in 15 s it may be any number of them
    orbits.tiles[0].click()
    assert abs(len(orbits.chosen()) - chosen) == 1

    window.show_page("identify")
    fitting = window.page
    assert isinstance(fitting, IdentifyPage)
    qtbot.waitUntil(lambda: bench.model is not None, timeout=LONG)
    assert fitting.mapping.values() == {"x": "x", "v": "v", "f": "f"}
    assert fitting.method.currentData() == "auto"  # nothing has to be chosen
    fitting.run()
    _finished(qtbot, fitting)
    result = bench.result
    assert result is not None and result.converged
    for name, truth in TRUTH.items():
        found = result.parameters[name]
        assert abs(found.value - truth) < 1e-3 * abs(truth)
        assert abs(found.value - truth) < 5 * found.stderr  # the error bars hold
    assert fitting.result_view.table.rowCount() == len(TRUTH)

    window.show_page("validate")
    validate = window.page
    assert isinstance(validate, ValidatePage)
    _finished(qtbot, validate)
    found = validate.validation
    assert found is not None
    assert found["residuals"].status == "passed"
    assert found["response"].status == "passed"
    assert found.verdict == validate.verdict.text()
    for row in range(validate.list.count()):  # every check can be looked at
        validate.list.setCurrentRow(row)
        assert len(validate.plots) == len(found.checks[row].panels)
        assert validate.sentence.text() == with_minus(found.checks[row].sentence)

    window.show_page("report")
    report = window.page
    assert isinstance(report, ReportPage)
    report.title.setText("A beam & its <model>")
    logo = folders / "logo.png"
    imsave(logo, np.ones((40, 120, 3)))
    report.use_logo(str(folders / "none.png"))
    report.run()
    _finished(qtbot, report)
    assert report.state.text().startswith("none.png cannot be used as a logo")
    report.use_logo(str(logo))
    qtbot.mouseClick(report.ticks["again"], Qt.MouseButton.LeftButton, pos=QPoint(8, 12))
    report.run()
    _finished(qtbot, report)
    assert report.paths is not None
    page, pdf = report.paths
    text = page.read_text(encoding="utf-8")
    assert "A beam &amp; its &lt;model&gt;" in text
    assert all(name in text for name in TRUTH)
    assert "http://" not in text.replace("http://www.w3.org", "")  # self-contained
    assert text.count("data:image/png;base64") >= 5 and 'alt="logo"' in text
    assert "Left out of this report: what it takes to run it again." in text and "SHA-256" not in text
    assert pdf.read_bytes().startswith(b"%PDF")


def test_given_a_bad_model_when_typed_then_the_place_is_named_and_the_good_one_stays_in_hand(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window("identify", begin=False)
    page = window.page
    assert isinstance(page, IdentifyPage)
    qtbot.waitUntil(lambda: window.bench.model is not None, timeout=LONG)
    good = window.bench.model
    page.model_card.editor.setPlainText('name = "x"\n[states]\nx = "v +* 2"\n')
    qtbot.waitUntil(lambda: page.model_card.verdict.objectName() == "bad", timeout=LONG)
    assert "3" in page.model_card.verdict.text()  # the line
    assert window.bench.model is good


def test_given_a_record_without_recurrence_when_searched_then_the_page_says_what_to_do(
    make_window: Make, qtbot: QtBot
) -> None:
    t = np.arange(4000) / 500.0
    drift = {"x": t, "v": 2 * t}  # never comes back
    window = make_window("orbits", begin=False)
    window.bench.take_record(Record.from_arrays(500.0, drift, excitation=Excitation(2.0)), "drift")
    page = window.page
    assert isinstance(page, OrbitsPage)
    page.run()
    _finished(qtbot, page)
    assert not page.tiles
    assert page.state.text()


def test_given_a_fit_that_did_not_converge_when_shown_then_the_page_warns_and_says_what_to_try(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window("identify", begin=False)
    page = window.page
    assert isinstance(page, IdentifyPage)
    t = np.arange(400) / 100.0
    noise = 0.01 * np.random.default_rng(4).standard_normal(400)
    record = Record.from_arrays(100.0, {"x": np.exp(-t) + noise})
    model = Model.from_toml('name = "decay"\n[states]\nx = "-a*x"\n[parameters]\na = { guess = 9.0 }\n')
    found = identify(model, [record], "path", max_iterations=2)  # two steps do not lead from 9 to 1
    assert not found.converged
    page._done(found)
    assert page.state.objectName() == "bad" and "do not trust" in page.state.text()
    assert "did not converge" in page.result_view.notes.text()


def test_given_a_method_that_cannot_be_used_when_run_then_one_sentence_says_why(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window("identify", begin=False)
    page = window.page
    assert isinstance(page, IdentifyPage)
    qtbot.waitUntil(lambda: window.bench.model is not None, timeout=LONG)
    rng = np.random.default_rng(1)
    noise = {name: rng.standard_normal(50) for name in ("x", "v", "f")}
    window.bench.take_record(Record.from_arrays(500.0, noise), "noise")
    page.method.setCurrentIndex(page.method.findData("balance"))  # there is no orbit in it
    page.run()
    _finished(qtbot, page)
    assert page.state.objectName() == "bad"
    assert page.state.text().endswith(".") and "Traceback" not in page.state.text()
    assert "should not happen" not in page.state.text()
    assert window.bench.result is None and page.run_button.isEnabled()


def test_given_a_running_fit_when_cancelled_then_nothing_is_lost(
    make_window: Make, qtbot: QtBot, chaos: Path
) -> None:
    window = make_window("identify", begin=False)
    page = window.page
    assert isinstance(page, IdentifyPage)
    window.bench.take_file(chaos)
    qtbot.waitUntil(lambda: window.bench.record is not None, timeout=LONG)
    qtbot.waitUntil(lambda: window.bench.model is not None, timeout=LONG)
    page.run()
    qtbot.waitUntil(lambda: page.job is None or bool(page.job.message), timeout=LONG)  # it is at work
    page.cancel()
    _finished(qtbot, page)
    assert window.bench.result is None
    assert "nothing is lost" in page.state.text()
    assert page.run_button.isEnabled()
