"""Garbage collections at times of our own: a full one holds the interpreter, and with it STOP.

In the rig's process, with everything that is imported there, a full collection takes 30 to 200 ms, on a busy
machine more, and nobody knows when it comes. So none comes by itself: one is made before each drive, while
the output is at zero, and what is alive then is left out of all later ones.
"""

from __future__ import annotations

import gc

NEVER = 1_000_000_000  # collections of the middle generation between two full ones


def collect_little() -> None:
    """From now on only what is new is collected by itself, in a few milliseconds at most."""
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)


def settle_memory() -> None:
    """A full collection now; it takes long the first time, and after much was loaded."""
    gc.collect()
    gc.freeze()
