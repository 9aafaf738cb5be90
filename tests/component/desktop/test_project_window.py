"""The window in a project: what is done lands in its folder, and another project is another window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from analysis.base.identification import Estimate, Identification
from analysis.base.record import Record
from app import project as projects
from app.desktop import projectmenu
from app.desktop.kept import Kept
from app.desktop.pages.identify import IdentifyPage
from app.desktop.projectmenu import ProjectDialog
from app.desktop.window import MainWindow
from drivers.formats import write
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]


@pytest.fixture
def project(tmp_path: Path) -> projects.Project:
    made = projects.create(tmp_path / "beam", title="Beam 7", specimen="beam 7", operator="Somebody")
    write(Record.from_arrays(100.0, {"x": np.sin(np.arange(400) / 7)}), made.recordings / "run1.h5")
    return made


DECAY = 'name = "Beam"\n[states]\nq = "-c*q"\n[parameters]\nc = { guess = 1.0 }\n'


def _fit() -> Identification:
    return Identification("path", "Beam", True, {"c": Estimate.normal(1.0, 0.1)}, 1, model_text=DECAY)


def test_given_a_project_then_fits_go_into_it_and_come_back_in_another_place(
    make_window: Make, project: projects.Project, tmp_path: Path, qtbot: QtBot
) -> None:
    window = make_window("recordings", begin=False, project=str(project.folder))
    bench = window.bench
    assert window.windowTitle() == "Beam 7 – Shakedown" and window.project_name.isVisible()
    assert bench.rig.operator == "Somebody" and bench.rig.test["specimen"] == "beam 7"
    assert bench.settings.library_folder == project.recordings
    qtbot.waitUntil(lambda: window.page.current() is not None, timeout=LONG)  # type: ignore[union-attr]
    bench.take_record(Record.from_arrays(100.0, {"x": np.zeros(50)}), "run1", project.recordings / "run1.h5")
    bench.take_result(_fit(), channels={"q": "x"})
    (fit,) = projects.fits(project)
    assert fit.name == "run1-Beam-path.json" and (project.folder / "models" / "Beam.toml").is_file()
    window.project_menu.change({"specimen": "beam 8", "temperature": 23.0})
    assert bench.rig.test["specimen"] == "beam 8" and projects.load(project.folder).temperature == 23.0
    packed = tmp_path / "beam.zip"
    window.project_menu.archive(packed)
    qtbot.waitUntil(lambda: packed.is_file() and not bench.workers.jobs, timeout=LONG)

    went: list[str] = []
    window.project_menu._turn = went.append
    window.project_menu.unpack(packed)
    qtbot.waitUntil(lambda: bool(went), timeout=LONG)
    copy = projects.load(went[0])
    assert copy.folder.parent == projectmenu.default_folder() and copy.specimen == "beam 8"
    second = make_window("identify", begin=False, project=went[0])
    second._bring_back(with_record=True)
    qtbot.waitUntil(lambda: second.bench.record is not None, timeout=LONG)
    assert second.bench.record is not None and second.bench.record.path == copy.recordings / "run1.h5"
    assert [r.model for r in second.bench.results] == ["Beam"]
    page = second.page
    assert isinstance(page, IdentifyPage)
    qtbot.waitUntil(lambda: second.bench.model is not None, timeout=LONG)
    assert page.mapping.values() == {"q": "x"} == second.bench.findings["mapping"]


def test_given_another_project_then_the_window_ends_for_it_and_the_work_stays_with_its_own(
    make_window: Make, project: projects.Project, tmp_path: Path
) -> None:
    window = make_window("report", begin=False)
    bench = window.bench
    bench.take_result(_fit())
    menu = window.project_menu
    menu.fill()
    menu.go(str(tmp_path / "nowhere"))
    assert "is no project" in window.notice._text.text() and window.next_project is None
    menu.go(str(project.folder))
    assert window.next_project == str(project.folder) == bench.settings.project and not window.isVisible()
    assert [r.model for r in Kept.load().results] == ["Beam"]
    assert not Kept.load(str(project.folder)).results  # work without a project is none of this one's


def test_given_a_project_that_is_gone_then_it_is_said_and_nothing_is_made_in_its_place(
    make_window: Make, project: projects.Project, tmp_path: Path, qtbot: QtBot
) -> None:
    window = make_window("report", begin=False, project=str(project.folder))
    project.folder.rename(tmp_path / "moved")
    with pytest.raises(projects.DataError, match="not there any more"):
        window.bench._library()
    assert window.bench.reload_project() is None and "no project" in window.notice._text.text()
    window.bench._keep(lambda p: projects.change(p.folder, notes="x"))
    assert not project.folder.exists()
    gone = make_window(
        "report", begin=False, project=str(project.folder), recent_projects=[str(project.folder)]
    )
    assert gone.bench.project is None and "works without a project" in gone.bench.project_problem
    assert gone.bench.settings.recent_projects == []


def test_given_the_dialog_then_a_title_is_needed_and_what_is_typed_comes_back(
    make_window: Make, project: projects.Project, qtbot: QtBot
) -> None:
    window = make_window("report", begin=False)
    new = ProjectDialog(window.theme, window, None, "Somebody")
    qtbot.addWidget(new)
    assert new.ok is not None and not new.ok.isEnabled()
    new.title.setText("Beam 7: first/day")
    assert new.ok.isEnabled() and new.folder() == projectmenu.default_folder() / "Beam-7-first-day"
    assert new.values()["temperature"] is None and new.values()["operator"] == "Somebody"
    new.temperature.setText("21,5")
    new.accept()
    assert new.values()["temperature"] == 21.5
    window.project_menu._turn = lambda folder: None
    window.project_menu.make(new.folder(), new.values())
    made = projects.load(new.folder())
    assert made.title == "Beam 7: first/day"
    again = ProjectDialog(window.theme, window, projects.change(made.folder, own={"torque": "4 N m"}))
    qtbot.addWidget(again)
    assert again.values()["own"] == {"torque": "4 N m"} and again.values()["temperature"] == 21.5
