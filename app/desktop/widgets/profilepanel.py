"""How far one parameter can go while all others follow, and what it is confused with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QComboBox, QHBoxLayout, QVBoxLayout, QWidget

from analysis import Identification, Step
from app.desktop import tasks
from app.desktop.plots.profile import ProfilePlot
from app.desktop.widgets.basics import button, label, progress_bar, scrolled, sentence, set_role
from app.desktop.workbench import Workbench
from app.desktop.worker import Job
from app.words import with_minus

if TYPE_CHECKING:
    from analysis import Record


class ProfilePanel(QWidget):
    """Curve to the left; parameter, button and words to the right."""

    traced = pyqtSignal(object)  # Identification: the result with the profile

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.bench, theme = bench, bench.theme
        self.job: Job | None = None
        self.result: Identification | None = None
        self._record: Record | None = None
        self._mapping: dict[str, str] = {}
        self._refused = "Identify first."
        self.plot = ProfilePlot(theme)
        self.plot.setMinimumHeight(theme.px(90))
        self.chooser = QComboBox()
        self.chooser.setAccessibleName("Parameter whose profile is shown")
        self.chooser.setToolTip("Which parameter is held while all others follow")
        self.chooser.currentTextChanged.connect(lambda _: self._show())
        self.trace_button = button(
            "Trace", self.trace, "Hold the parameter at other values; all others follow"
        )
        self.cancel_button = button("Cancel", self.cancel, "End the tracing; nothing is lost")
        self.cancel_button.hide()
        self.bar = progress_bar(1000)
        self.bar.setAccessibleName("Progress of the profile")
        self.bar.hide()
        self.state = label("", "small", wrap=True)
        self.words = label("", "", wrap=True)
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.words.setAlignment(Qt.AlignmentFlag.AlignTop)
        row = QHBoxLayout()
        row.addWidget(self.chooser, 1)
        row.addWidget(self.trace_button)
        row.addWidget(self.cancel_button)
        told = QWidget()
        column = QVBoxLayout(told)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.px(6))
        column.addLayout(row)
        column.addWidget(self.bar)
        shown = QWidget()
        sentences = QVBoxLayout(shown)
        sentences.setContentsMargins(0, 0, 0, 0)
        sentences.addWidget(self.state)
        sentences.addWidget(self.words)
        sentences.addStretch(1)
        column.addWidget(scrolled(shown), 1)
        across = QHBoxLayout(self)
        across.setContentsMargins(0, theme.px(4), 0, 0)
        across.setSpacing(theme.px(8))
        across.addWidget(self.plot, 3)
        across.addWidget(told, 2)
        self._show()

    # -- what is shown

    def show_result(
        self, result: Identification, record: Record | None, mapping: dict[str, str], refused: str
    ) -> None:
        """The fit whose parameters are traced; ``refused``: why none can be, in words."""
        from analysis import can_be_profiled

        if result is not self.result:
            self.cancel()
        self.result, self._record, self._mapping = result, record, mapping
        self._refused = refused or can_be_profiled(result)
        before = self.chooser.currentText()
        self.chooser.blockSignals(True)
        self.chooser.clear()
        self.chooser.addItems(list(result.parameters))
        if before in result.parameters:
            self.chooser.setCurrentText(before)
        self.chooser.blockSignals(False)
        self._show()

    def choose(self, name: str) -> None:
        """Show a parameter, and trace it unless that was done."""
        self.chooser.setCurrentText(name)
        if self.job is None and self._curve() is None and self.trace_button.isEnabled():
            self.trace()

    def _curve(self) -> object:
        name = self.chooser.currentText()
        return self.result.curves.get(f"profile of {name}") if self.result is not None else None

    def _show(self) -> None:
        from analysis import confusion_words

        result, name = self.result, self.chooser.currentText()
        self.trace_button.setEnabled(not self._refused and bool(name) and self.job is None)
        if result is None or name not in result.parameters:
            self._say(self._refused, "small")
            return
        if self.job is not None and self.job.title == _title(name):
            return  # its points are coming
        self.words.setText(sentence("\n\n".join(confusion_words(result, name))))
        curve, told = result.curves.get(f"profile of {name}"), result.profiles.get(name)
        if curve is None or told is None:
            self.plot.begin(name, result.parameters[name])
            self._say(self._refused or "Not traced yet.", "small")
            return
        self.plot.show_profile(curve.x, curve.y, result.parameters[name], name)
        self._say(with_minus(told.words), "")

    # -- tracing

    def trace(self) -> None:
        """Have the profile traced elsewhere; its points are drawn as they come."""
        result, record, name = self.result, self._record, self.chooser.currentText()
        if result is None or record is None or self._refused or self.job is not None:
            return
        self.plot.begin(name, result.parameters[name])
        job = self.bench.workers.run(
            _title(name), tasks.profile_parameter, result, record, self._mapping, name
        )
        self.job = job
        job.stepped.connect(lambda step: self._step(job, step, name))
        job.done.connect(self._done)
        job.failed.connect(lambda text: self._say(text, "bad"))
        job.cancelled.connect(lambda: self._say("Cancelled; nothing is lost.", "small"))
        job.ended.connect(lambda: self._ended(job))
        self._say("The fit is made again, then the parameter is moved outwards.", "small")
        self.trace_button.setEnabled(False)
        self.cancel_button.show()
        self.bar.setValue(0)
        self.bar.show()

    def cancel(self) -> None:
        if self.job is not None:
            self._say("Ending …", "small")
            self.job.cancel()

    def _step(self, job: Job, step: Step, name: str) -> None:
        if job is not self.job or self.result is None:
            return
        self.bar.setValue(round(1000 * step.fraction))
        if "rise" in step.values and self.chooser.currentText() == name:
            self.plot.take(step.values["value"], step.values["rise"], self.result.parameters[name])

    def _done(self, result: Identification) -> None:
        self.traced.emit(result)

    def _ended(self, job: Job) -> None:
        if job is self.job:
            self.job = None
            self.bar.hide()
            self.cancel_button.hide()
            said, role = self.state.text(), self.state.objectName()
            self._show()
            if self._curve() is None and said:  # why there is none
                self._say(said, role)

    def _say(self, text: str, role: str) -> None:
        self.state.setText(sentence(text))
        self.state.setVisible(bool(text))
        set_role(self.state, role)


def _title(name: str) -> str:
    return f"Tracing the profile of {name}"
