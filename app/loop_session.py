"""A rig with a control loop while one command uses it: opened, watched, recorded and ended in one way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import Cancelled, ShakedownError
from app.ctrl_c import CtrlC
from app.loop_bench import RigBench
from app.rig_access import open_for_command
from app.watched_work import WatchedWork

if TYPE_CHECKING:
    from analysis import Progress
    from drivers.base.protocols import ActiveRecording
    from drivers.rig.profile import RigProfile

PATIENCE = 3.0  # s without a sign of life, as the window has: this process computes beside them
LONGEST_STEP = 5.0  # s between two looks at the rig: a regulator is computed meanwhile


class LoopSession:
    """Work beside a closed loop. The drive ends and the recording is finished however the work ends."""

    def __init__(self, profile: RigProfile, fast: bool, seed: int, out: Path, progress: Progress) -> None:
        from app.loop_rig import with_loop_channels
        from drivers.acquisition.engine import Engine

        self._profile, self._seed, self._out = profile, seed, out
        self.rig = open_for_command(with_loop_channels(profile), fast, seed, PATIENCE)
        self.engine = Engine(self.rig.source, self.rig.exciter, 0.25 if fast else 0.02)
        self._watched = WatchedWork(self.rig.beat, LONGEST_STEP)
        self._interrupted = threading.Event()
        self.bench = RigBench(self.rig, self.engine, self._record, self._watch)
        self.progress = replace(progress, cancelled=self._interrupted.is_set)
        self.problem = ""

    @property
    def files(self) -> list[str]:
        """The finished recordings."""
        return [str(path) for path in self.bench.files]

    def _watch(self) -> None:
        """The work goes on. Raises where the drive has ended, or who watches wants no more."""
        self._watched.step()
        self.rig.check_drive()
        if self._interrupted.is_set():
            raise Cancelled("Cancelled.")

    def _record(self) -> ActiveRecording:
        from drivers.acquisition.capture import recording_to
        from drivers.acquisition.metadata import recording_metadata

        metadata = recording_metadata(self.rig.source, self._profile, seed=self._seed)
        return self.engine.record(recording_to(self._out, self.rig.source, metadata))

    def run(self, work: Callable[[], object], ending: str) -> None:
        """Do the work, then end the drive for the reason ``ending``; what went wrong becomes ``problem``."""
        with CtrlC(at_once=self.rig.emergency_stop) as ctrl_c:
            try:
                self._watched.run(work, lambda: self._look(ctrl_c))
            except ShakedownError as error:
                self.problem = "Stopped by you." if self._interrupted.is_set() else str(error)
            finally:
                self.bench.end(ending, self.rig.beat)
                self.engine.stop()
                self.rig.close()
            self.problem = f"Ended: {ctrl_c.word}." if ctrl_c.word else self.problem

    def _look(self, ctrl_c: CtrlC) -> None:
        try:
            ctrl_c.check()
        except KeyboardInterrupt:
            self.rig.emergency_stop(ctrl_c.word or "Ctrl-C was pressed")
            self._interrupted.set()
