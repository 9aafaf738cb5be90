"""When something in the window fails that nobody expected: a word, the drive to zero, the log."""

from __future__ import annotations

import traceback
from pathlib import Path

from PyQt6.QtCore import QObject, pyqtSignal

from app.desktop.workbench import Workbench
from drivers.base.logs import begin_log, log_path


class CrashDesk(QObject):
    """Told of every exception that nobody caught, from any thread. The window goes on."""

    _told = pyqtSignal(str)  # into the window's thread

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self._bench = bench
        self._said: set[str] = set()
        self._told.connect(lambda text: bench.say(text, "bad"))
        self.end = begin_log("window", on_crash=self.take)

    def take(self, error: BaseException) -> None:
        """Stop the drive: what the window shows may be wrong from now on. Say it, once for each place."""
        where = traceback.extract_tb(error.__traceback__)[-1:]
        place = f"{Path(where[0].filename).name}:{where[0].lineno}" if where else "?"
        name = type(error).__name__
        self._bench.rig.stop(f"the window failed ({name})")
        if f"{name} {place}" not in self._said:
            self._said.add(f"{name} {place}")
            self._told.emit(
                f"Something in the window failed ({name} in {place}). The shaker was stopped; recordings are "
                f"safe. Please report it with {log_path()}."
            )
