"""Long work beside a drive: it runs in a thread, and this thread goes on giving signs of life.

A program that is frozen gives none, and the rig's process ends the drive after its usual patience, however
long the work itself takes. Work that shows no step for ``longest`` seconds is taken for stuck: then the signs
of life stay away too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LOOK_SECONDS = 0.05


class WatchedWork:
    """Runs one piece of work; ``step`` is called by the work, ``beat`` here."""

    def __init__(self, beat: Callable[[], object], longest: float) -> None:
        self._beat, self._longest = beat, longest
        self._latest = 0.0
        self._error: BaseException | None = None

    def step(self) -> None:
        """The work goes on."""
        self._latest = time.monotonic()

    def run(self, work: Callable[[], object], look: Callable[[], object]) -> None:
        """Do the work; ``look`` is called meanwhile, many times a second. Raises what the work raised."""
        self.step()
        thread = threading.Thread(target=self._do, args=(work,), name="watched work", daemon=True)
        thread.start()
        while thread.is_alive():
            if time.monotonic() - self._latest < self._longest:
                self._beat()
            look()
            thread.join(LOOK_SECONDS)
        if self._error is not None:
            raise self._error

    def _do(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            self._error = error
