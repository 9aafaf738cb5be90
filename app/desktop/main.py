"""Start the desktop."""

from __future__ import annotations

import sys

from PyQt6 import sip
from PyQt6.QtCore import QTimer
from PyQt6.QtGui import QPixmapCache
from PyQt6.QtWidgets import QApplication

from app.desktop.crash import CrashDesk
from app.desktop.settings import Settings
from app.desktop.theme import Theme
from app.desktop.window import MainWindow
from app.desktop.workbench import Workbench

PICTURES = 256 << 10  # kB for ready pictures of axes: those of every page, on a 4K screen too


def build(settings: Settings | None = None) -> MainWindow:
    """The window with everything behind it, not yet shown. A QApplication must exist."""
    settings = settings or Settings.load()
    QPixmapCache.setCacheLimit(PICTURES)  # Qt's 10 MB hold one page: each change of stage drew all anew
    theme = Theme(settings.theme, settings.scale)
    theme.apply()
    bench = Workbench(settings, theme)
    return MainWindow(bench)


def start(rig: str | None = None, files: list[str] | None = None) -> int:
    """Run the desktop until its window is closed."""
    app = QApplication(sys.argv[:1])
    app.setApplicationName("Shakedown")
    app.setDesktopFileName("shakedown")
    settings = Settings.load()
    if rig:
        settings.rig = rig
    window = build(settings)
    crashes = CrashDesk(window.bench)
    window.show_page(settings.page)
    window.show()
    QTimer.singleShot(0, lambda: window.begin(files or []))  # after the first paint
    code = app.exec()
    crashes.end()
    sip.delete(window)  # while the application lives: what it draws with is gone after it
    return code
