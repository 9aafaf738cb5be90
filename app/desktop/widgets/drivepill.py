"""The state of the drive, on every page: a pill beside STOP, and a strip with the whole reason of a stop."""

from __future__ import annotations

from dataclasses import dataclass

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy

from app.desktop.numbers import localised
from app.desktop.rigdesk import RigDesk
from app.desktop.widgets.basics import button, label, set_role, timer
from app.desktop.workbench import Workbench
from drivers.base.protocols import DriveState

FOLLOW = 100  # ms between two looks at the drive: never more than 200 ms behind
QUIET = (
    "",
    "not started",
    "stopped by you",
    "the self-test is over",
    "finished",
)  # reasons that nobody needs to be told
ROLES = {"none": "pill_off", "off": "pill_off", "armed": "pill_off", "ramping": "pill_ramping",
         "playing": "pill_playing", "stopped": "pill_stopped", "tripped": "pill_tripped"}  # fmt: skip


@dataclass(frozen=True)
class DriveStatus:
    """What the drive does. ``state``: none, off, armed, ramping, playing, stopped or tripped."""

    state: str
    text: str  # such as “SINE 7.5 Hz 1.50 V”
    reason: str = ""  # of a stop, whole
    latched: bool = False  # nothing plays until a person arms it

    @property
    def driving(self) -> bool:
        return self.state in ("ramping", "playing")


def drive_words(drive: DriveState, unit: str) -> str:
    """Waveform, frequency and amplitude: “SINE 7.5 Hz 1.50 V”."""
    frequency = f" {drive.frequency:.4g} Hz" if drive.frequency else ""
    return f"{drive.waveform.upper()}{frequency} {drive.amplitude:.2f} {unit}".rstrip()


def status_of(rig: RigDesk) -> DriveStatus:
    """The status of the rig that is open."""
    if rig.limits is None:
        return DriveStatus("none", "No shaker")
    drive = rig.drive()
    if drive.playing:
        return DriveStatus("playing" if drive.steady else "ramping", drive_words(drive, rig.unit))
    if drive.reason in QUIET:
        return DriveStatus("off", "Drive off")
    return DriveStatus("stopped", "Drive off", drive.reason)


class DrivePill(QPushButton):
    """One glance tells whether the shaker moves, and how."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self._bench = bench
        self.status = DriveStatus("none", "")
        self.setFixedWidth(bench.theme.px(186))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # next to STOP: the keys are for that
        self.clicked.connect(lambda: bench.go("acquire"))
        self._timer = timer(self, FOLLOW, self.refresh)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.start()
        self.refresh()

    def refresh(self) -> None:
        """Show what the drive does now."""
        status = status_of(self._bench.rig)
        if status == self.status:
            return
        self.status = status
        words = {"ramping": "ramping", "tripped": "tripped", "stopped": "stopped", "armed": "armed"}
        second = words.get(status.state, "")
        text = localised(status.text)
        self.setText(f"{text}\n{second}" if second else text)
        self.setToolTip(localised(status.reason) or "What the shaker does now. Click for the drive's page.")
        self.setAccessibleName(f"Drive: {text} {second} {status.reason}".strip())
        set_role(self, ROLES[status.state])


class DriveStrip(QFrame):
    """Below the header while a drive was stopped: the whole reason, and the way on."""

    def __init__(self, bench: Workbench, pill: DrivePill) -> None:
        super().__init__()
        self.setObjectName("strip")
        self._bench, self._pill, theme = bench, pill, bench.theme
        self._dismissed = ""
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(16), theme.px(5), theme.px(14), theme.px(5))
        self.text = label("", "", wrap=True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        row.addWidget(self.text, 1)
        self.dismiss = button("Dismiss", self._dismiss, "Hide this line; the pill goes on to show it")
        row.addWidget(self.dismiss)
        self.hide()
        timer(self, FOLLOW, self.refresh).start()

    def refresh(self) -> None:
        status = self._pill.status
        if status.driving:
            self._dismissed = ""
        wanted = status.state in ("stopped", "tripped") and status.reason != self._dismissed
        if wanted:
            words = "The drive tripped" if status.state == "tripped" else "The drive was stopped"
            self.text.setText(localised(f"{words}: {status.reason.rstrip('.')}."))
        self.setVisible(wanted)

    def _dismiss(self) -> None:
        self._dismissed = self._pill.status.reason
        self.hide()
