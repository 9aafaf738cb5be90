"""The line at the foot of the window: the state of the acquisition at a glance."""

from __future__ import annotations

import shutil
from pathlib import Path

from PyQt6.QtWidgets import QFrame, QHBoxLayout, QLabel

from app.desktop.widgets.basics import Elided, Lamp, label, set_role, timer
from app.desktop.workbench import Workbench
from app.numbers import localised
from app.words import counted, duration

LOW_DISK = 2e9  # bytes


class StatusBar(QFrame):
    """Rig, rate, samples, gaps, overloads, recorder lag, free disk; refreshed four times a second."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.setObjectName("statusbar")
        self._bench, theme = bench, bench.theme
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(14), theme.px(4), theme.px(14), theme.px(4))
        row.setSpacing(theme.px(20))
        self._lamp = Lamp(theme, "Green: samples are arriving. Red square: the rig has stopped.")
        row.addWidget(self._lamp)
        tips = {
            "rig": "The rig in use",
            "rate": "Samples per second and channel",
            "samples": "Samples per channel since the rig was started",
            "gaps": "Samples the instrument could not deliver; each gap is stored in the recording",
            "overloads": "Times a channel went beyond its measuring range",
            "lag": "How far the recorder is behind the instrument; nothing is lost while it waits",
            "disk": "Free space for recordings, and how long it lasts at this rate",
        }
        self.cells: dict[str, QLabel] = {}
        for name, tip in tips.items():
            cell = Elided("small") if name == "rig" else label("", "small")  # its name gives way
            cell.setToolTip(tip)
            cell.setAccessibleName(tip)
            self.cells[name] = cell
            row.addWidget(cell, 1 if name == "rig" else 0)
        timer(self, 250, self.refresh).start()
        self.refresh()

    def refresh(self) -> None:
        rig = self._bench.rig
        status = rig.status()
        state = "bad" if rig.failure else "good" if rig.running else "off"
        self._lamp.show_state(state)
        self._put("rig", rig.title or "No rig")
        self._put("rate", f"{quantity(rig.rate)}S/s × {len(rig.channels)}" if rig.channels else "no channels")
        self._put("samples", f"{status.samples:,} samples".replace(",", " "))
        self._put("gaps", counted(status.gaps, "gap"), "bad" if status.gaps else "small")
        self._put("overloads", counted(status.overloads, "overload"), "warn" if status.overloads else "small")
        late = status.lag > 1.0
        words = f"recorder {status.lag:.1f} s behind" if rig.recording else "not recording"
        self._put("lag", words, "warn" if late else "small")
        self._disk()

    def _disk(self) -> None:
        rig, folder = self._bench.rig, self._bench.settings.library_folder
        try:
            free = shutil.disk_usage(_existing(folder)).free
        except OSError:
            self._put("disk", "disk not reachable", "bad")
            return
        pace = 8.0 * rig.rate * len(rig.channels)
        lasts = f" ({duration(free / pace)})" if pace and free / pace < 48 * 3600 else ""
        self._put("disk", f"{quantity(free, 3)}B free{lasts}", "bad" if free < LOW_DISK else "small")

    def _put(self, name: str, text: str, role: str = "small") -> None:
        cell = self.cells[name]
        text = text if name == "rig" else localised(text)
        if cell.text() != text:
            cell.setText(text)
        set_role(cell, role)


def _existing(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def quantity(value: float, digits: int = 4) -> str:
    """A number with its SI prefix and the decimal mark of the locale: 102400 becomes ``102.4 k``."""
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return localised(f"{value / limit:.{digits}g} {prefix}")
    return localised(f"{value:.{digits}g} ")
