"""The state of the drive, on every page: a pill beside STOP, and a strip with the whole reason of a stop.

Both show what the rig's own process says, and nothing that the window worked out by itself.
"""

from __future__ import annotations

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy

from app.desktop.widgets.basics import button, label, set_role, timer
from app.desktop.workbench import Workbench
from app.numbers import localised
from drivers.base.drive_page import DriveStatus

FOLLOW = 100  # ms between two looks at the drive: never more than 200 ms behind


class DrivePill(QPushButton):
    """One glance tells whether the shaker moves, and how."""

    looked = pyqtSignal()  # the status was asked for anew

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self._bench = bench
        self.status: DriveStatus | None = None  # None: there is no shaker
        self._shown = ("", "")  # text and reason
        self.setObjectName("pill_off")
        self.setFixedWidth(bench.theme.px(186))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # next to STOP: the keys are for that
        self.clicked.connect(lambda: bench.go("acquire"))
        self._timer = timer(self, FOLLOW, self.refresh)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.start()
        bench.rig.drive_changed.connect(lambda _: self.refresh())
        self.refresh()

    def refresh(self) -> None:
        """Show what the drive does now."""
        rig = self._bench.rig
        self.status = status = rig.drive_status() if rig.limits is not None else None
        text, second = "No shaker", ""
        if status is not None:
            text = "Drive off" if status.state == "off" else localised(status.text)
            text, _, loop = text.partition(" + loop")  # on a line of its own: the pill is narrow
            second = {"ramping": "ramping", "latched": "latched", "tripped": "latched"}.get(status.state, "")
            if loop:
                second = f"+ loop{loop}" + (f", {second}" if second else "")
        self._write(text, second, status)
        self.looked.emit()

    def _write(self, text: str, second: str, status: DriveStatus | None) -> None:
        """Text, explanation and colour, where they are others than those shown."""
        words = f"{text}\n{second}" if second else text
        reason = localised(status.reason) if status is not None else ""
        if (words, reason) == self._shown:
            return
        self._shown = words, reason
        self.setText(words)
        self.setToolTip(reason or "What the shaker does now. Click for the drive's page.")
        self.setAccessibleName(f"Drive: {text} {second} {reason}".strip())
        set_role(self, f"pill_{status.state if status is not None else 'off'}")


class DriveStrip(QFrame):
    """Below the header while the drive is latched: the whole reason, and the button that arms it again."""

    def __init__(self, bench: Workbench, pill: DrivePill) -> None:
        super().__init__()
        self.setObjectName("strip")
        self._pill, theme = pill, bench.theme
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(16), theme.px(5), theme.px(14), theme.px(5))
        self.text = label("", "", wrap=True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        row.addWidget(self.text, 1)
        self.arm = button("Arm", bench.rig.arm, "Allow the drive to be played again; nothing moves by itself")
        row.addWidget(self.arm)
        self.hide()
        pill.looked.connect(self.refresh)  # both say the same at any time

    def refresh(self) -> None:
        status = self._pill.status
        latched = status is not None and status.latched
        if status is not None and latched:
            words = "The drive tripped" if status.state == "tripped" else "The drive was stopped"
            reason = localised(status.reason).rstrip(".") or "for no known reason"
            self.text.setText(f"{words}: {reason}. Nothing plays until you arm it.")
        self.setVisible(latched)
