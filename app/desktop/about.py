"""About the program: versions, licences, where its log is, and the doctor's page for a bug report."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, metadata

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QApplication, QDialog, QDialogButtonBox, QTableWidget, QVBoxLayout, QWidget

from analysis import Progress, __version__
from app.desktop.widgets.basics import dialog_buttons, label
from app.desktop.widgets.tables import fill_table
from app.desktop.workbench import Workbench
from app.fitness import EXTRA_PACKAGES, LIBRARIES
from drivers.base.logs import log_path

SHOWN_WITH = ("PyQt6", "PyQt6-Qt6", "pyqtgraph")  # what the window itself is made of
LONGEST_LICENCE = 60  # characters: beyond that a package has put the whole text in the place of the name
LICENCE = (
    "The sources of Shakedown are under the MIT licence. Together with PyQt6, as installed here, the whole "
    "is under the GNU General Public License, version 3."
)


def parts() -> list[tuple[str, str, str]]:
    """Name, version and licence of every package that the program uses and that is installed."""
    names = dict.fromkeys((*SHOWN_WITH, *LIBRARIES, *EXTRA_PACKAGES.values()))
    found = [("Python", platform.python_version(), "PSF-2.0")]
    for name in names:
        try:
            facts = dict(metadata(name).json)
        except PackageNotFoundError:
            continue
        found.append((name, str(facts["version"]), _licence(facts)))
    return found


def _licence(facts: dict[str, str | list[str]]) -> str:
    """As the package states it: by its expression, by a short name, or by its classifiers."""
    named = str(facts.get("license_expression") or facts.get("license") or "").strip()
    if named and "\n" not in named and len(named) <= LONGEST_LICENCE:
        return named
    kinds = [k.rsplit(" :: ", 1)[-1] for k in facts.get("classifier", []) if k.startswith("License ::")]
    return ", ".join(kinds) or "see the package"


def doctor_page(progress: Progress) -> str:
    """The page of `shakedown doctor`, made in a worker: looking for devices takes a moment."""
    from app.fitness import as_text, examine

    progress.report(0.1, "Looking at this machine")
    return as_text(examine())


class About(QDialog):
    """Versions, licences, log, and one button that puts all a bug report needs on the clipboard."""

    def __init__(self, bench: Workbench, parent: QWidget) -> None:
        super().__init__(parent)
        self._bench = bench
        px = bench.theme.px
        self.setWindowTitle("About Shakedown")
        self.setMinimumWidth(px(520))
        box = QVBoxLayout(self)
        box.setContentsMargins(*(px(18),) * 4)
        box.setSpacing(px(10))
        self.version = label(f"Shakedown {__version__}", "title")
        box.addWidget(self.version)
        box.addWidget(label("From a shaking specimen to a validated equation of motion, with error bars."))
        for text in (LICENCE, f"Log: {log_path()}"):
            line = label(text, "small", wrap=True)
            line.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            box.addWidget(line)
        box.addWidget(self._parts())
        buttons = dialog_buttons(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton("Copy for a bug report", QDialogButtonBox.ButtonRole.ActionRole)
        assert copy is not None
        copy.clicked.connect(self.copy_report)
        buttons.rejected.connect(self.reject)
        box.addWidget(buttons)

    def _parts(self) -> QTableWidget:
        table = QTableWidget()
        table.setAccessibleName("Packages in use, their versions and licences")
        table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        table.setMinimumHeight(self._bench.theme.px(190))
        fill_table(table, ("package", "version", "licence"), parts(), ())
        if (numbers := table.verticalHeader()) is not None:
            numbers.hide()
        return table

    def copy_report(self) -> None:
        """Have this machine examined, then put the page on the clipboard."""
        bench = self._bench
        job = bench.workers.run("Looking at this machine", doctor_page)
        job.failed.connect(lambda text: bench.say(text, "bad"))
        job.done.connect(lambda page: _copied(bench, page))


def _copied(bench: Workbench, page: str) -> None:
    clipboard = QApplication.clipboard()
    assert clipboard is not None
    clipboard.setText(page)
    bench.say("The page about this machine is on the clipboard.", "good")
