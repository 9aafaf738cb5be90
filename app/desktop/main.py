"""Start the desktop."""

from __future__ import annotations

import sys
from functools import partial

from PyQt6 import sip
from PyQt6.QtCore import QTimer
from PyQt6.QtGui import QPixmapCache
from PyQt6.QtWidgets import QApplication

from app.desktop.crash import CrashDesk
from app.desktop.ending_signals import EndingSignals
from app.desktop.theme import Theme
from app.desktop.window import MainWindow
from app.desktop.workbench import Workbench
from app.project import find_folder
from app.settings import Settings

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
    """Run the desktop until its window is closed; the exit code."""
    app = QApplication(sys.argv[:1])
    app.setApplicationName("Shakedown")
    app.setDesktopFileName("shakedown")
    settings = Settings.load()
    if (inside := find_folder()) is not None:
        settings.project = str(inside)
    while True:
        window = build(settings)
        settings.rig, rig = rig or settings.rig, None  # asked for: it goes before the project's own
        crashes, signals = CrashDesk(window.bench), EndingSignals(window)
        window.show_page(settings.page)
        window.show()
        QTimer.singleShot(0, partial(window.begin, files or []))  # after the first paint
        code = app.exec() or signals.code
        signals.end()
        crashes.end()
        ended = window.next_project is None
        sip.delete(window)  # while the application lives: what it draws with is gone after it
        if ended:
            return code
        settings, files = Settings.load(), []  # the next window works in another project
