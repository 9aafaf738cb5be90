"""The project of the window: made, described, opened, archived. Another project is another window.

Opening one ends this window as closing it does (work kept, shaker ramped down) and starts the next one in the
folder of the other project.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from PyQt6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QHeaderView,
    QMenu,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from analysis import Progress, ShakedownError
from app import project as projects
from app.desktop.theme import Theme
from app.desktop.widgets.basics import IconButton, add_row, dialog_buttons, entry, form, label, menu_heading
from app.desktop.widgets.leaverig import may_leave_rig
from app.desktop.widgets.notes import Notes
from app.desktop.widgets.number import Number
from app.desktop.workbench import Workbench
from app.project import Project
from app.settings import data_folder

ARCHIVES = "Archives (*.zip)"
FIRST = 5  # rows for fields of one's own


class ProjectMenu(QMenu):
    """What can be done with projects. ``turn``: ends this window and opens the project of a folder."""

    def __init__(self, bench: Workbench, parent: QWidget, turn: Callable[[str], object]) -> None:
        super().__init__(parent)
        self.bench, self._turn = bench, turn
        self.aboutToShow.connect(self.fill)

    def fill(self) -> None:
        """The entries as they are now."""
        self.clear()
        project = self.bench.project
        if project is not None:
            menu_heading(self, project.name)
            self.addAction("About this test …", self.describe)
            self.addAction("Archive as one file …", self.ask_archive)
            self.addAction("Close the project", partial(self.go, ""))
            menu_heading(self, "Another project")
        self.addAction("New project …", self.ask_new)
        self.addAction("Open a project …", self.ask_open)
        self.addAction("Open an archive …", self.ask_unpack)
        recent = [
            p for p in self.bench.settings.recent_projects if project is None or p != str(project.folder)
        ]
        if recent:
            menu_heading(self, "Recent")
            for path in recent:
                action = self.addAction(Path(path).name, partial(self.go, path))
                assert action is not None
                action.setToolTip(path)

    # -- this project

    def describe(self) -> None:
        """Show what is known of the test, and change it."""
        project = self.bench.reload_project()
        if project is None:
            return
        dialog = ProjectDialog(self.bench.theme, self._window(), project)
        if dialog.exec():
            self.change(dialog.values())

    def change(self, values: dict[str, Any]) -> None:
        """Keep what is known of the test, for this and the next recordings."""
        project = self.bench.project
        if project is not None:
            try:
                projects.change(project.folder, **values)
            except ShakedownError as error:
                self.bench.say(str(error), "bad")
            self.bench.reload_project()

    def ask_archive(self) -> None:
        project = self.bench.project
        if project is None:
            return
        start = str(project.folder.parent / f"{project.folder.name}.zip")
        name, _ = QFileDialog.getSaveFileName(self._window(), "Archive the project", start, ARCHIVES)
        if name:
            self.archive(Path(name if name.lower().endswith(".zip") else f"{name}.zip"))

    def archive(self, target: Path) -> None:
        """Pack the project, elsewhere."""
        project = self.bench.project
        if project is not None:
            job = self.bench.workers.run(f"Archiving {project.name}", pack, project, target)
            job.done.connect(lambda left_out: self._archived(target, left_out))
            job.failed.connect(lambda text: self.bench.say(text, "bad"))

    def _archived(self, target: Path, left_out: list[Path]) -> None:
        if left_out:
            names = ", ".join(path.name for path in left_out[:5])
            self.bench.say(
                f"{target.name} is written, without what is still being written or a link: {names}.", "warn"
            )
        else:
            self.bench.say(f"{target.name} is written: the whole project in one file.", "good")

    # -- another one

    def ask_new(self) -> None:
        dialog = ProjectDialog(self.bench.theme, self._window(), None, self.bench.settings.operator)
        if dialog.exec():
            self.make(dialog.folder(), dialog.values())

    def make(self, folder: Path, values: dict[str, Any]) -> None:
        """Make a project and go there."""
        try:
            made = projects.create(folder, **values)
        except ShakedownError as error:
            self.bench.say(str(error), "bad")
            return
        self.go(str(made.folder))

    def ask_open(self) -> None:
        start = str(default_folder())
        if chosen := QFileDialog.getExistingDirectory(self._window(), "Open a project", start):
            self.go(chosen)

    def ask_unpack(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self._window(), "Open an archive", str(Path.home()), ARCHIVES)
        if name:
            self.unpack(Path(name))

    def unpack(self, source: Path) -> None:
        """Unpack an archive into a new folder beside the other projects, elsewhere, and go there."""
        folder, number = default_folder() / source.stem, 2
        while folder.exists():
            folder, number = default_folder() / f"{source.stem}-{number}", number + 1
        job = self.bench.workers.run(f"Unpacking {source.name}", unpack, source, folder)
        job.done.connect(lambda folder: self.go(str(folder)))
        job.failed.connect(lambda text: self.bench.say(text, "bad"))

    def go(self, folder: str) -> None:
        """Open the project of a folder; empty: work without one."""
        if folder:
            try:
                folder = str(projects.load(folder).folder)
            except ShakedownError as error:
                self.bench.settings.forget_project(folder)
                self.bench.say(str(error), "bad")
                return
        if may_leave_rig(self.bench.rig, self._window(), "Change the project?"):
            self._turn(folder)

    def _window(self) -> QWidget:
        parent = self.parentWidget()
        assert parent is not None
        return parent


def default_folder() -> Path:
    """Where projects lie unless somebody chooses another place."""
    return data_folder() / "projects"


def pack(project: Project, target: Path, progress: Progress) -> list[Path]:
    """Runs in a worker."""
    from app.project_archive import archive

    return archive(project, target, progress)


def unpack(source: Path, folder: Path, progress: Progress) -> Path:
    """Runs in a worker."""
    from app.project_archive import unpack

    folder.parent.mkdir(parents=True, exist_ok=True)
    return unpack(source, folder, progress).folder


class ProjectDialog(QDialog):
    """What is known of a test; for a new project also its folder."""

    def __init__(self, theme: Theme, parent: QWidget, project: Project | None, operator: str = "") -> None:
        super().__init__(parent)
        self.setWindowTitle("New project" if project is None else "About this test")
        self.setMinimumWidth(theme.px(480))
        self._new = project is None
        known = Project(Path(), operator=operator) if project is None else project
        self.title = entry(known.title, "Beam 7, first day", "What the test is called")
        self.place = entry(str(default_folder()), "", "The folder that the new project's folder is made in")
        self.specimen = entry(known.specimen, "what is tested", "What is tested: its name or number")
        self.operator = entry(known.operator, "who tests", "Who tests; kept in each recording")
        lowest = projects.LEAST_TEMPERATURE
        degrees = lowest if known.temperature is None else known.temperature
        self.temperature = Number(degrees, lowest, 3000.0, "°C", 1, empty="not measured")
        self.notes = Notes(theme, "anything worth knowing later")
        self.notes.setText(known.notes)
        rows = form(theme)
        add_row(theme, rows, "Title", self.title)
        if self._new:
            add_row(theme, rows, "In", self._browsed(theme))
        add_row(theme, rows, "Specimen", self.specimen)
        add_row(theme, rows, "Operator", self.operator)
        add_row(theme, rows, "Temperature", self.temperature)
        add_row(theme, rows, "Notes", self.notes)
        self.own = self._own_fields(theme, known)
        buttons = dialog_buttons(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        self.ok = buttons.button(QDialogButtonBox.StandardButton.Ok)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        box = QVBoxLayout(self)
        box.setContentsMargins(*(theme.px(18),) * 4)
        box.setSpacing(theme.px(10))
        box.addLayout(rows)
        box.addWidget(label("Fields of your own", "small"))
        box.addWidget(self.own)
        box.addWidget(buttons)
        self.title.textChanged.connect(self._follow)
        self._follow()

    def _browsed(self, theme: Theme) -> QWidget:
        whole = QWidget()
        row = QHBoxLayout(whole)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.place, 1)
        browse = IconButton(theme, "folder", "Choose another place for the project")
        browse.clicked.connect(self._browse)
        self.place.setAccessibleName("Folder that the project is made in")
        row.addWidget(browse)
        return whole

    def _browse(self) -> None:
        if chosen := QFileDialog.getExistingDirectory(self, "Make the project in", self.place.text()):
            self.place.setText(chosen)

    def _own_fields(self, theme: Theme, known: Project) -> QTableWidget:
        own = list(known.own.items())
        table = QTableWidget(len(own) + FIRST, 2)
        table.setAccessibleName("Fields of your own")
        table.setHorizontalHeaderLabels(["name", "text"])
        heading, side = table.horizontalHeader(), table.verticalHeader()
        assert heading is not None and side is not None
        heading.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        side.hide()
        table.setFixedHeight(theme.px(132))
        for row, pair in enumerate(own):
            for column, text in enumerate(pair):
                table.setItem(row, column, QTableWidgetItem(text))
        return table

    def _follow(self) -> None:
        if self.ok is not None:
            self.ok.setEnabled(bool(self.title.text().strip()))

    def folder(self) -> Path:
        """The folder of a new project: named like its title, with what every system allows."""
        return Path(self.place.text().strip() or default_folder()).expanduser() / projects.stem(
            self.title.text()
        )

    def values(self) -> dict[str, Any]:
        """What was filled in."""
        rows = [[self._cell(row, column) for column in (0, 1)] for row in range(self.own.rowCount())]
        degrees = self.temperature.value()
        return {
            "title": self.title.text().strip(),
            "specimen": self.specimen.text().strip(),
            "operator": self.operator.text().strip(),
            "temperature": None if degrees <= projects.LEAST_TEMPERATURE else float(degrees),
            "notes": self.notes.text().strip(),
            "own": {name: text for name, text in rows if name and text},
        }

    def _cell(self, row: int, column: int) -> str:
        item = self.own.item(row, column)
        return item.text().strip() if item is not None else ""

    def accept(self) -> None:
        """Only with a temperature that is understood: its field says what is wrong."""
        if self.temperature.apply():
            super().accept()
