"""A real recorder process to be killed: channel i of sample n holds n * 16 + i, exactly.

`python -m tests.soak.counter_recorder PATH RATE CHANNELS BLOCK SECONDS` prints "ready", then the samples
appended so far after each block, then "closed" and the finished path.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from drivers.recording import ChannelSpec, Recorder, Recording


def counter(start: int, stop: int, channels: int) -> NDArray[np.float64]:
    return np.arange(start, stop, dtype=np.float64) * 16 + np.arange(channels)[:, None]


def record(path: Path, rate: float, channels: int, block: int, seconds: float) -> None:
    """Append counter blocks in step with the clock, then close."""
    import h5py  # noqa: F401 (what the program has imported before it records)

    say("ready")
    recorder = Recorder(path, rate, [ChannelSpec(f"c{i}") for i in range(channels)])
    begin = time.monotonic()
    sent = 0
    while sent < seconds * rate:
        recorder.append(counter(sent, sent + block, channels), sent)
        sent += block
        say(str(sent))
        time.sleep(max(0.0, begin + sent / rate - time.monotonic()))
    finished = recorder.close()
    say(f"closed {finished.problem or finished.path}")


def wrong_samples(recording: Recording) -> int:
    """Samples that are neither the counter's nor marked as lost."""
    wrong = 0
    for i, name in enumerate(recording.names):
        lost = np.zeros(len(recording), bool)
        for start, stop in recording.about.gaps.get(name, ()):
            lost[start:stop] = True
        values = recording.values(name, 0, len(recording))
        expected = np.arange(len(recording)) * 16.0 + i
        wrong += int(np.count_nonzero((values != expected) & ~lost))
    return wrong


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    record(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
