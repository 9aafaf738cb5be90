"""Ctrl-C in the terminal, a closed terminal, a request to end: the drive to zero, then the window closes."""

from __future__ import annotations

import contextlib
import signal
import socket
from types import FrameType

from PyQt6 import sip
from PyQt6.QtCore import QObject, QSocketNotifier, QTimer
from PyQt6.QtWidgets import QApplication, QDialog

from app.ctrl_c import OTHERS
from app.desktop.window import MainWindow

# Ctrl-Z is not among them: a suspended window gives no sign of life, and the rig's process ends the drive.
ENDING = {"SIGINT": "Ctrl-C was pressed", **{name: OTHERS[name] for name in ("SIGTERM", "SIGHUP", "SIGQUIT")}}


class EndingSignals(QObject):
    """While alive, a signal that would end the program stops the drive and closes the window, with all saved.

    Qt waits outside Python, where no handler runs. The number of a signal is therefore written to a socket,
    which wakes the event loop up; what is done then is done by the loop, between two pieces of its work.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.code = 0  # of the program that a signal ended, as shells count it
        self._read_end, self._write_end = socket.socketpair()
        for end in (self._read_end, self._write_end):
            end.setblocking(False)
        descriptor = sip.voidptr(self._read_end.fileno())
        self._notifier = QSocketNotifier(descriptor, QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._woken)
        numbers = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
        # One that is ignored (nohup, a job in the background) stays so.
        heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
        self._descriptor = signal.set_wakeup_fd(self._write_end.fileno(), warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, _nothing) for number in heard}

    def end(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._descriptor)
        self._notifier.setEnabled(False)
        self._read_end.close()
        self._write_end.close()

    def _woken(self) -> None:
        numbers = b""
        with contextlib.suppress(BlockingIOError):
            numbers = self._read_end.recv(64)
        for number in numbers:
            if number in self._before and not self.code:
                self.code = 128 + number
                self._window.bench.rig.stop(ENDING[signal.Signals(number).name])
                self._close()

    def _close(self) -> None:
        """Dialogs first: each has an event loop of its own, which must end before the window does."""
        for widget in QApplication.topLevelWidgets():
            if isinstance(widget, QDialog) and widget.isVisible():
                widget.reject()
        QTimer.singleShot(0, self._window.close_unasked)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Stands where Python's own handler would raise between any two instructions."""
