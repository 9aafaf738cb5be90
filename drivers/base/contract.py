"""What every source must keep to, as a check that anybody can run: `shakedown rigs RIG --check`.

The tests of this program run it on every source of its own; whoever writes one runs it on theirs.
"""

from __future__ import annotations

import numpy as np

from drivers.base.protocols import InstrumentError, Source

SIZES = (1, 50, 100, 7)  # samples of the blocks that are read, one after the other


def broken_promises(source: Source) -> list[str]:
    """What the source does not keep to, in sentences; empty: all is well. It is closed at the end."""
    broken: list[str] = []
    try:
        broken += _shape(source)
        broken += _reads_only_when_started(source)
        for attempt in ("the first", "the second"):
            broken += [f"After {attempt} start: {words}" for words in _stream(source)]
            source.stop()
            source.stop()  # allowed at any time
    finally:
        source.close()
        source.close()
    return broken


def _shape(source: Source) -> list[str]:
    if not isinstance(source, Source):
        missing = [n for n in ("name", "channels", "rate", "waits", "start", "read", "stop", "close")
                   if not hasattr(source, n)]  # fmt: skip
        return [f"It has no {', '.join(missing)}."]
    names = [c.name for c in source.channels]
    checks = (
        (bool(source.name), "It has no name."),
        (source.rate > 0, f"Its rate is {source.rate} Hz."),
        (len(set(names)) == len(names) > 0, "Its channels do not have a name each."),
    )
    return [words for good, words in checks if not good]


def _reads_only_when_started(source: Source) -> list[str]:
    try:
        source.read(np.empty((len(source.channels), 10)))
    except InstrumentError:
        return []
    return ["It gives samples before it is started; it should raise InstrumentError."]


def _stream(source: Source) -> list[str]:
    broken: list[str] = []
    rows, index = len(source.channels), 0
    source.start()
    for size in SIZES:
        into = np.full((rows, size), np.nan)
        block = source.read(into)
        if block.data.shape != (rows, size):
            return [*broken, f"it filled {block.data.shape} of {into.shape} samples."]
        if not np.shares_memory(block.data, into):
            broken.append("its block is no view of the array that it was given to fill.")
        if block.start_index < index or (index == 0 and block.start_index != 0):
            broken.append(f"a block begins with sample {block.start_index}; {index} was due.")
        if not np.isfinite(block.data).all() and not block.missing:
            broken.append("there are values that are not a number, and no channel is said to miss samples.")
        index = block.stop_index
    return broken
