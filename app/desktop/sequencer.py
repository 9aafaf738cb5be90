"""A sequence of drives and recordings on the open rig, run in a thread and watched by the window."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal

from analysis import Cancelled, Progress, ShakedownError
from drivers.acquisition.engine import Engine
from drivers.acquisition.metadata import recording_metadata
from drivers.acquisition.sequence import Sequence, SequenceRun
from drivers.rig.profile import Rig

_log = logging.getLogger(__name__)


class Sequencer(QObject):
    """Runs one plan at a time; pausing ramps the drive down, stopping keeps every finished step."""

    stepped = pyqtSignal(object)  # Step
    done = pyqtSignal(list)  # Paths
    failed = pyqtSignal(str)
    ended = pyqtSignal()

    def __init__(self) -> None:
        super().__init__()
        self._run: SequenceRun | None = None
        self._cancel = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(
        self,
        sequence: Sequence,
        folder: Path,
        rig: Rig,
        engine: Engine,
        operator: str,
        test: Mapping[str, Any] | None = None,
    ) -> None:
        """Run a plan into a folder; what is done there already is not done again."""
        metadata = recording_metadata(rig.source, rig.profile, operator=operator, driven=False, test=test)
        self._run = SequenceRun(sequence, folder, metadata)
        self._cancel = threading.Event()
        self._thread = threading.Thread(
            target=self._carry, args=(self._run, rig, engine, self._cancel), name="sequence", daemon=True
        )
        self._thread.start()

    def pause(self, on: bool) -> None:
        """Stop after the step under way, or go on."""
        if self._run is not None:
            self._run.pause() if on else self._run.resume()

    def stop(self, wait: float = 0.0) -> None:
        """End the plan; the drive ramps down. ``wait``: seconds to wait for it."""
        self._cancel.set()
        if self._run is not None:
            self._run.resume()
        if self._thread is not None and wait:
            self._thread.join(wait)

    def _carry(self, run: SequenceRun, rig: Rig, engine: Engine, cancel: threading.Event) -> None:
        with contextlib.suppress(RuntimeError):  # the window may be gone
            try:
                paths = run.run(rig, engine, Progress(self.stepped.emit, cancel.is_set))
                self.done.emit(paths)
            except Cancelled:
                self.failed.emit(
                    "Stopped. The finished steps are kept; running the plan again goes on there."
                )
            except ShakedownError as error:
                self.failed.emit(str(error))
            except Exception as error:
                _log.exception("a sequence failed")
                self.failed.emit(f"The sequence ended: {type(error).__name__}: {error}.")
            self.ended.emit()
