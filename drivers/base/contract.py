"""What every source must keep to, as a check that anybody can run: `shakedown rigs RIG --check`.

The tests of this program run it on every source of its own; whoever writes one runs it on theirs.
"""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import numpy as np

from analysis import ShakedownError
from drivers.base.foreign_error import in_words
from drivers.base.protocols import InstrumentError, Source

_log = logging.getLogger(__name__)

SIZES = (1, 50, 100, 7)  # samples of the blocks that are read, one after the other


def broken_promises(source: Source) -> list[str]:
    """What the source does not keep to, in sentences; empty: all is well. It is closed at the end."""
    broken: list[str] = []
    try:
        broken += _shape(source)
        broken += _reads_only_when_started(source)
        for attempt in ("the first", "the second"):
            told = {words.partition(": ")[2] for words in broken}
            broken += [f"After {attempt} start: {words}" for words in _stream(source) if words not in told]
            source.stop()
            source.stop()  # allowed at any time
    except ShakedownError:
        raise
    except Exception as error:
        broken.append(_raised(error))
    finally:
        broken += _closes(source)
    return broken


def _closes(source: Source) -> list[str]:
    try:
        source.close()
        source.close()
    except ShakedownError:
        raise
    except Exception as error:
        return [_raised(error)]
    return []


def _raised(error: Exception) -> str:
    _log.warning("the source raised what no source may raise", exc_info=error)
    where = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"It raised {in_words(error)} ({Path(where.filename).name}:{where.lineno}); "
        "a source that cannot go on raises InstrumentError."
    )


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
    """Each complaint once, as it came first."""
    broken: dict[str, str] = {}
    rows, index = len(source.channels), 0
    source.start()
    for size in SIZES:
        into = np.full((rows, size), np.nan)
        block = source.read(into)
        if block.data.shape != (rows, size):
            return [*broken.values(), f"it filled {block.data.shape} of {into.shape} samples."]
        if not np.shares_memory(block.data, into):
            broken.setdefault("view", "its block is no view of the array that it was given to fill.")
        if block.start_index < index or (index == 0 and block.start_index != 0):
            broken.setdefault("index", f"a block begins with sample {block.start_index}; {index} was due.")
        if not np.isfinite(block.data).all() and not block.missing:
            broken.setdefault(
                "values", "there are values that are not a number, and no channel is said to miss samples."
            )
        index = block.stop_index
    return list(broken.values())
