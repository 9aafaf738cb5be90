"""About the program: version, licence, where its log is, and the doctor's page for a bug report."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QApplication, QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from analysis import Progress, __version__
from app.desktop.widgets.basics import dialog_buttons, label
from app.desktop.workbench import Workbench
from drivers.base.logs import log_path

LICENCE = (
    "The sources of Shakedown are under the MIT licence. Together with PyQt6, as installed here, the whole "
    "is under the GNU General Public License, version 3."
)


def doctor_page(progress: Progress) -> str:
    """The page of `shakedown doctor`, made in a worker: looking for devices takes a moment."""
    from app.fitness import as_text, examine

    progress.report(0.1, "Looking at this machine")
    return as_text(examine())


class About(QDialog):
    """Version, licence, log, and one button that puts all a bug report needs on the clipboard."""

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
        buttons = dialog_buttons(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton("Copy for a bug report", QDialogButtonBox.ButtonRole.ActionRole)
        assert copy is not None
        copy.clicked.connect(self.copy_report)
        buttons.rejected.connect(self.reject)
        box.addWidget(buttons)

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
