"""The rig page: profiles, their channels, the self-test; and a sequence on the Acquire page."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QLocale, Qt
from PyQt6.QtWidgets import QMessageBox, QTableWidgetItem
from pytestqt.qtbot import QtBot

from analysis import Estimate, Identification, Record
from app.desktop import rigdesk
from app.desktop.opening import OpenedRig, rig_paths
from app.desktop.pages.acquire import AcquirePage
from app.desktop.pages.rig import RigPage
from app.desktop.rigdesk import RigDesk
from app.desktop.widgets import channeltable
from app.desktop.widgets.channeltable import COLUMNS
from app.desktop.widgets.leaverig import may_leave_rig
from app.desktop.widgets.question import NameDialog
from app.desktop.window import MainWindow
from drivers.base.drive_page import DriveStatus
from drivers.base.protocols import ChannelInfo
from drivers.rig.profile import load_rig
from drivers.virtual.specimens import true_parameters, with_specimen
from tests.waiting import GUARD_MS as GUARD
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]


def _column(name: str) -> int:
    return next(i for i, (field, *_) in enumerate(COLUMNS) if field == name)


def test_given_a_changed_channel_when_saved_as_a_new_rig_then_it_is_listed_and_the_old_one_is_untouched(
    make_window: Make, folders: Path
) -> None:
    window = make_window("rig", begin=False, rig="two_well_beam")
    page = window.page
    assert isinstance(page, RigPage)
    before = load_rig("two_well_beam")
    page.channels.table.setItem(0, _column("sensitivity"), QTableWidgetItem("2.5"))
    page.channels.table.setItem(0, _column("name"), QTableWidgetItem("strain"))
    page.channels.write("my beam")
    path = folders / "config" / "shakedown" / "rigs" / "my_beam.toml"
    changed = load_rig(path)
    assert (changed.channels[0].name, changed.channels[0].sensitivity) == ("strain", 2.5)
    assert changed.channels[1] == before.channels[1]
    assert load_rig("two_well_beam") == before
    assert page.name() == "my_beam"
    asked = NameDialog(window.theme, page, "Save as a new rig", "Name:", "my beam", channeltable._taken)
    asked.accept()
    assert not asked.result() and "my_beam already" in asked.problem.text()
    asked.name.setText("another")
    asked.accept()
    assert asked.result() and channeltable.free_key("my_beam") == "my_beam_2"


def test_given_a_number_that_is_none_when_saved_then_the_cell_is_named_and_nothing_is_written(
    make_window: Make, folders: Path
) -> None:
    window = make_window("rig", begin=False)
    page, said = window.page, list[str]()
    assert isinstance(page, RigPage)
    window.bench.noticed.connect(lambda notice: said.append(notice.text))
    page.channels.table.setItem(1, _column("range"), QTableWidgetItem("five"))
    page.channels.write("broken")
    assert "row 2" in said[0] and "five" in said[0]
    assert not (folders / "config" / "shakedown" / "rigs" / "broken.toml").exists()


def test_given_the_virtual_rig_when_it_tests_itself_then_every_sensor_hears_the_tone(
    window: MainWindow, qtbot: QtBot
) -> None:
    window.show_page("rig")
    page = window.page
    assert isinstance(page, RigPage)
    page.self_test.run()
    qtbot.waitUntil(lambda: len(page.self_test.verdicts) == 4, timeout=LONG)
    assert all(text.startswith("good") for text in page.self_test.verdicts.values()), page.self_test.verdicts
    qtbot.waitUntil(lambda: not window.bench.rig.drive().playing, timeout=GUARD)


def test_given_a_drive_that_takes_its_time_to_begin_then_the_self_test_waits_for_it(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window("rig", start_shaking=False)
    page = window.page
    assert isinstance(page, RigPage)
    page.self_test.run()
    page.self_test._look()  # before the first sample of the tone
    assert not page.self_test.start.isEnabled()
    qtbot.waitUntil(lambda: window.bench.rig.drive().playing, timeout=GUARD)
    assert not page.self_test.start.isEnabled()
    window.stop()
    qtbot.waitUntil(lambda: "stopped" in page.self_test.words.text(), timeout=GUARD)
    assert page.self_test.start.isEnabled()


def test_given_a_short_plan_when_run_then_each_step_is_recorded_and_the_drive_is_off(
    window: MainWindow, qtbot: QtBot
) -> None:
    page = window.page
    assert isinstance(page, AcquirePage)
    panel = page.sequence_panel
    panel.low.setValue(5.0)
    panel.high.setValue(6.0)
    panel.points.setValue(2)
    panel.settle.setValue(0.2)
    panel.seconds.setValue(0.5)
    assert panel.plan.text().startswith("2 recordings")
    with qtbot.waitSignal(window.bench.rig.sequencer.done, timeout=LONG) as done:
        panel.toggle()
    assert [path.name for path in done.args[0]] == ["step-0001.h5", "step-0002.h5"]
    assert all(path.is_file() for path in done.args[0])
    qtbot.waitUntil(lambda: not window.bench.rig.drive().playing, timeout=GUARD)


def _told(page: RigPage) -> str:
    """The line of the specimen, with the blanks that no line is broken at as plain ones."""
    return page.specimen.words.text().replace("\u00a0", " ")


def test_given_a_new_specimen_when_revealed_then_its_parameters_are_told_and_another_one_can_be_clamped(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window("rig", new_specimens=True, rig="two_well_beam", start_shaking=False)
    page, rig = window.page, window.bench.rig
    assert isinstance(page, RigPage)
    number = rig.specimen
    assert page.specimen.isVisible() and f"Specimen {number}:" in _told(page)
    assert "k3 =" not in _told(page)  # not before it is asked for
    qtbot.mouseClick(page.specimen.reveal_button, Qt.MouseButton.LeftButton)
    truth = true_parameters(with_specimen(load_rig("two_well_beam"), number))
    assert f"k3 = {truth['k3']:.5g}" in _told(page)
    qtbot.mouseClick(page.specimen.new_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: f"Specimen {rig.specimen}:" in _told(page), timeout=LONG)
    assert rig.specimen != number and "k3 =" not in _told(page)
    # A fit of the specimen before is set beside that one's truth, not beside the new one's.
    about = {"rig": "two_well_beam", "specimen": number}
    _fit(window, truth["k3"], about)
    qtbot.mouseClick(page.specimen.reveal_button, Qt.MouseButton.LeftButton)
    words = _told(page)
    assert words.startswith(f"Specimen {number}, which the fit in hand is of: ")
    assert f"k3 = {truth['k3']:.4f} (found {truth['k3']:.4f} ± 0.0020)" in words
    for other in ({"rig": "two_well_beam_modern", "specimen": number}, {}):  # a fit of something else
        _fit(window, truth["k3"], other)
        page.specimen.reveal()
        words = _told(page)
        assert words.startswith(f"Specimen {rig.specimen}: ") and "found" not in words


def _fit(window: MainWindow, k3: float, about: dict[str, object]) -> None:
    record = Record.from_arrays(100.0, {"x": np.zeros(100)}, metadata=about)
    window.bench.take_record(record, "beam")
    window.bench.take_result(Identification("path", "beam", True, {"k3": Estimate.normal(k3, 0.002)}))


def test_given_the_published_specimen_then_there_is_nothing_to_reveal(window: MainWindow) -> None:
    window.show_page("rig")
    assert isinstance(window.page, RigPage) and not window.page.specimen.isVisible()


def test_given_a_rig_that_does_not_open_when_given_up_then_another_can_be_opened(
    make_window: Make, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(name: str, specimen: int, waiting: Callable[[str], object]) -> OpenedRig:
        while True:
            time.sleep(0.02)
            waiting("the source (driver 'never')")

    window = make_window("rig")
    rig, page, said = window.bench.rig, window.page, list[str]()
    assert isinstance(page, RigPage)
    window.bench.noticed.connect(lambda notice: said.append(notice.text))
    with monkeypatch.context() as patched:
        patched.setattr(rigdesk, "open_rig", hangs)
        rig.open(page.name())
        qtbot.waitUntil(lambda: any("Still waiting for the source" in text for text in said), timeout=GUARD)
        assert page.open_button.text() == "Cancel opening"
        qtbot.mouseClick(page.open_button, Qt.MouseButton.LeftButton)
    assert page.open_button.text() == "Open this rig" and not rig.name
    assert "given up" in said[-1]
    qtbot.mouseClick(page.open_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: rig.running, timeout=LONG)


def test_given_no_channel_of_the_drive_then_the_self_test_says_after_which_one_the_others_are_late(
    make_window: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = make_window("rig", begin=False).page
    assert isinstance(page, RigPage)
    rate, test = 2000.0, page.self_test
    monkeypatch.setattr(RigDesk, "channels", [ChannelInfo(n, "V", -5.0, 5.0) for n in ("x", "f")])
    monkeypatch.setattr(RigDesk, "rate", rate)
    turn = 2 * np.pi * test.frequency.value() * np.arange(4000) / rate
    noise = 1e-4 * np.random.default_rng(1).normal(size=4000)
    QLocale.setDefault(QLocale("fr_FR"))
    try:
        test._show(np.stack([np.cos(turn - 0.5) + noise - noise.mean(), np.cos(turn)]))
    finally:
        QLocale.setDefault(QLocale("C"))
    heads = [test.table.horizontalHeaderItem(i).text() for i in range(test.table.columnCount())]
    cells = {head: test.table.item(0, i).text() for i, head in enumerate(heads) if i}
    assert cells["Delay after f"] == "7,96 ms"  # 0.5 rad at 10 Hz
    assert cells["Offset"] == "0 V"


def test_given_another_rig_in_view_then_the_self_test_neither_shakes_the_open_one_nor_shows_what_it_heard(
    make_window: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = make_window("rig", start_shaking=False)
    page, rig = window.page, window.bench.rig
    assert isinstance(page, RigPage)
    played: list[object] = []
    monkeypatch.setattr(RigDesk, "play", lambda _, waveform: played.append(waveform))
    rigs = list(rig_paths())
    chosen = rigs.index(rig.name)
    page.tabs.setCurrentWidget(page.self_test)
    page.list.setCurrentRow((chosen + 1) % len(rigs))
    page.self_test.run()
    assert not played and rig.title in window.notice._text.text()
    page.list.setCurrentRow(chosen)
    page.self_test.run()
    assert len(played) == 1 and page.self_test.table.isVisible()
    page.list.setCurrentRow((chosen + 1) % len(rigs))
    assert not page.self_test.table.isVisible() and not page.self_test.words.isVisible()
    page.list.setCurrentRow(chosen)
    assert page.self_test.table.isVisible()


def test_given_a_decimal_comma_then_what_is_said_of_a_rig_has_it_too(
    make_window: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    monkeypatch.setattr(QMessageBox, "exec", lambda box: asked.append(box.text()))
    QLocale.setDefault(QLocale("de_DE"))
    try:
        window = make_window("rig", begin=False)
        page = window.page
        assert isinstance(page, RigPage)
        page.list.setCurrentRow(list(rig_paths()).index("two_well_beam"))
        told = DriveStatus("playing", "sine", 7.5, 1.5, 1.0, "V")
        monkeypatch.setattr(RigDesk, "drive_status", lambda _: told)
        may_leave_rig(window.bench.rig, window)
    finally:
        QLocale.setDefault(QLocale("C"))
    assert "187,5 samples per second" in page.facts.text()
    assert asked == ["The shaker plays SINE 7,5 Hz 1,50 V. Open another rig?"]
