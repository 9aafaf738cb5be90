"""The work that runs now: what, how far, how long still, and a way to end it."""

from __future__ import annotations

from PyQt6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.desktop.theme import Theme
from app.desktop.widgets.basics import IconButton, label, progress_bar, timer
from app.desktop.worker import Job, Workers
from app.words import duration


class JobBar(QWidget):
    """Shows the newest running job at the foot of the sidebar; hidden while nothing runs."""

    def __init__(self, theme: Theme, workers: Workers) -> None:
        super().__init__()
        self._jobs: list[Job] = []
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(12), theme.px(6), theme.px(8), theme.px(8))
        box.setSpacing(theme.px(4))
        row = QHBoxLayout()
        self._title = label("", "small", wrap=True)
        self._title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._cancel = IconButton(theme, "close", "Cancel this work")
        self._cancel.clicked.connect(self._end)
        row.addWidget(self._title, 1)
        row.addWidget(self._cancel)
        self._bar = progress_bar(1000)
        box.addLayout(row)
        box.addWidget(self._bar)
        self._timer = timer(self, 250, self._show)
        workers.started.connect(self._add)
        self.hide()

    def _add(self, job: Job) -> None:
        self._jobs.append(job)
        job.ended.connect(self._prune)
        self._timer.start()
        self._show()

    def _prune(self) -> None:
        """Forget what has ended. A method, not a lambda: Qt lets go of it together with this widget."""
        self._jobs = [job for job in self._jobs if job.running]
        self._show()

    def _end(self) -> None:
        if self._jobs:
            self._jobs[-1].cancel()

    def _show(self) -> None:
        self.setVisible(bool(self._jobs))
        if not self._jobs:
            self._timer.stop()
            return
        job = self._jobs[-1]
        left = job.time_left
        more = f", {duration(left)} left" if left is not None else ""
        self._title.setText(f"{job.title}{more}")
        self._bar.setRange(0, 1000 if job.fraction > 0 else 0)
        self._bar.setValue(round(1000 * job.fraction))
