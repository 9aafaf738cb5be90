"""Tables computed several at a time, each in a process of its own, with one line of progress for all."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from analysis import Progress, ShakedownError, Step
from app.output import rewrite_line
from app.reproduce import Table, make_table

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

PROCESSES = 2
POLL = 0.3  # seconds between two looks at the workers
REPORTS = 0.2  # seconds between two reports of one worker

# Begun first, the slowest of all in front: the two processes then end at about the same time.
SLOW = ("liu2018-noise", "manikantan2020-9", "liu2018-miura", "banks1983-noise", "manikantan2020-2")

Done = tuple[str, Table | str, float]  # name, table or a sentence why not, processor seconds
_told: SimpleQueue[tuple[str, float]] | None = None  # a worker's way to tell its progress


def compute(names: Sequence[str], show: Callable[[str], None]) -> Iterator[Done]:
    """Tables as they are finished; ``show`` gets a line on what is going on."""
    if len(names) == 1:
        yield one(names[0], Progress(lambda step: show(f"{100 * step.fraction:3.0f} %  {step.message}")))
        return
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from multiprocessing import get_context

    context = get_context("spawn")
    told = context.SimpleQueue()
    workers = min(PROCESSES, os.cpu_count() or 1, len(names))
    running: dict[str, float] = {}
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_listen, initargs=(told,)) as pool:
        waiting = {pool.submit(_worked, name): name for name in in_order(names)}
        while waiting:
            finished, _ = wait(waiting, POLL, FIRST_COMPLETED)
            while not told.empty():
                name, fraction = told.get()
                running[name] = fraction
            for future in finished:
                name = waiting.pop(future)
                running.pop(name, None)
                broken = future.exception()  # only when the worker itself died
                yield (name, f"its process ended ({broken}).", 0.0) if broken else future.result()
            under_way = ", ".join(f"{n} {100 * f:.0f} %" for n, f in running.items() if f < 1)
            show(f"{len(names) - len(waiting)} of {len(names)} done; {under_way}")


def in_order(names: Sequence[str]) -> list[str]:
    """The slow ones first, the others as they are."""
    return [n for n in SLOW if n in names] + [n for n in names if n not in SLOW]


def one(name: str, progress: Progress) -> Done:
    """A table, or a sentence where it could not be made."""
    begun = time.process_time()
    try:
        result: Table | str = make_table(name, progress)
    except ShakedownError as error:
        result = str(error)
    except Exception as error:  # a fault of ours in one table must not cost the others
        result = f"{type(error).__name__}: {error}"
    return name, result, time.process_time() - begun


def line_shower() -> Callable[[str], None]:
    """One line that rewrites itself, on a terminal only."""
    if not sys.stderr.isatty():
        return lambda text: None

    def show(text: str) -> None:
        rewrite_line(sys.stderr, text[:160])

    return show


def _listen(told: Any) -> None:
    global _told
    _told = told


def _worked(name: str) -> Done:
    last = 0.0

    def tell(step: Step) -> None:
        nonlocal last
        if _told is not None and time.monotonic() - last > REPORTS:
            last = time.monotonic()
            _told.put((name, step.fraction))

    tell(Step(0.0, ""))
    return one(name, Progress(tell))
