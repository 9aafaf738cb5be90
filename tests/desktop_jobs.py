"""Work for the desktop's worker processes, in a module that they can import."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Connection

from analysis.base.errors import DataError
from analysis.base.progress import Progress


def double(value: float, progress: Progress) -> float:
    progress.report(0.5, "half way", cost=1.0)
    return 2 * value


def refuse(progress: Progress) -> None:
    raise DataError("There is nothing to work on.")


def trip(progress: Progress) -> None:
    raise ZeroDivisionError("by accident")


def patient(progress: Progress) -> None:
    """Runs until it is cancelled."""
    while True:
        progress.report(0.1, "waiting")
        time.sleep(0.01)


def deaf(progress: Progress) -> None:
    """Never asks again whether it should end."""
    progress.report(0.1, "waiting")
    time.sleep(600)


def vanish(progress: Progress) -> None:
    os._exit(3)


def grind(seconds: float, progress: Progress) -> int:
    """Keeps a core busy in pure Python."""
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        count += sum(range(2000))
        progress.report(0.5, "grinding")
    return count


def own_niceness(progress: Progress) -> int:
    """How far this process steps back behind others."""
    return os.getpriority(os.PRIO_PROCESS, 0)


def push(link: Connection, seconds: float, progress: Progress) -> dict[str, object]:
    """Drive the rig at the end of the pipe for some seconds with its loop closed; why it ended early."""
    import numpy as np

    from analysis import ShakedownError
    from analysis.holding.dither import Dither
    from app.loop_pipe import PipeBench
    from drivers.base.waveform import Sine

    bench, problem = PipeBench(link), ""
    try:
        bench.begin(("x", "f"), 7.5)
        bench.record()
        bench.play(Sine(0.4, 7.5))
        bench.install(Dither(("x",), np.array([0.1, -0.05, 0.02])))
        bench.tell("the loop is closed")
        bench.seconds(seconds)
    except ShakedownError as error:
        problem = str(error)
    return {"files": bench.end("the push is over"), "problem": problem}
