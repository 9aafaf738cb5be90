"""Crashes done for real (kill -9) or modelled (power cut), and what is left of the recording afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from analysis.base.errors import DataError
from drivers.formats import open_lazily
from drivers.recording import ChannelSpec, Recorder, find_unfinished, journal, recover
from tests.heart import Heart
from tests.soak.counter_recorder import counter, wrong_samples

ROOT = Path(__file__).parents[2]
PAGE = 4096


@dataclass(frozen=True)
class Outcome:
    """What was found after a crash."""

    appended: int  # samples the recorder had taken when it died
    kept: int  # samples in order from the start that are there
    wrong: int  # samples that are there but not right
    recovered: bool  # the recording had to be recovered; otherwise it had been finished

    @property
    def lost(self) -> int:
        return max(0, self.appended - self.kept)


def kill_once(
    folder: Path, delay: float, rate: float, channels: int, block: int, seconds: float
) -> Outcome | None:
    """Start a recorder process, kill it some time after its first block, look at the remains.

    None if nothing had come of it.
    """
    path = folder / "run"
    arguments = [str(path), str(rate), str(channels), str(block), str(seconds)]
    command = [sys.executable, "-m", "tests.soak.counter_recorder", *arguments]
    appended = 0
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        killer = threading.Timer(delay, process.kill)
        for line in process.stdout:
            if line.strip().isdigit():
                if not appended:
                    killer.start()
                appended = int(line)
        killer.cancel()
        killer.join()
    recovered = False
    deadline = time.monotonic() + 60
    while list(folder.glob(f"*{journal.SUFFIX}")) and time.monotonic() < deadline:
        for left in find_unfinished(folder):
            try:
                recovered = recover(left).samples > 0
            except DataError as error:  # killed while closing: the finishing process goes on by itself
                if "Another process" not in str(error) and left.exists():
                    raise
        time.sleep(0.05)
    if not path.with_suffix(".h5").exists():
        assert appended == 0
        return None
    return look(path.with_suffix(".h5"), appended, recovered)


def look(path: Path, appended: int, recovered: bool) -> Outcome:
    with open_lazily(path) as recording:
        assert recording.verify().ok is not False
        gaps = [span for spans in recording.about.gaps.values() for span in spans]
        kept = min([start for start, _ in gaps], default=len(recording))
        return Outcome(appended, kept, wrong_samples(recording), recovered)


@dataclass
class Take:
    """A recording made in step with the clock, and what was on the disk for certain at each moment."""

    content: bytes
    rate: float
    appends: list[tuple[float, int, int]] = field(default_factory=list)  # time, bytes, samples
    syncs: list[tuple[float, float, int]] = field(default_factory=list)  # begun, ended, bytes before it
    stalled: float = 0.0  # s that a busy machine kept the recorder from running

    @property
    def delays(self) -> float:
        """Seconds of the machine's and its disk's own that may be lost beyond what is promised."""
        return self.stalled + max(ended - begun for begun, ended, _ in self.syncs)


def take(folder: Path, rate: float, channels: int, block: int, seconds: float) -> Take:
    """Record, noting every append and every sync of the real recorder."""
    result = Take(b"", rate)
    real_sync = journal.sync_data

    def noted_sync(file: int) -> None:
        size, begun = os.fstat(file).st_size, time.monotonic()
        real_sync(file)
        result.syncs.append((begun, time.monotonic(), size))

    journal.sync_data = noted_sync
    try:
        recorder = Recorder(folder / "take", rate, [ChannelSpec(f"c{i}") for i in range(channels)])
        header = recorder.bytes_written
        result.syncs.append((0.0, 0.0, header))
        begin, sent = time.monotonic(), 0
        with Heart() as heart:
            while sent < seconds * rate:
                recorder.append(counter(sent, sent + block, channels), sent)
                sent += block
                result.appends.append((time.monotonic(), recorder.bytes_written, sent))
                time.sleep(max(0.0, begin + sent / rate - time.monotonic()))
        result.stalled = heart.stalled(begin, time.monotonic())
        result.content = recorder.journal_path.read_bytes()
    finally:
        journal.sync_data = real_sync
    recorder.close()
    return result


def cut_power(taken: Take, folder: Path, rng: np.random.Generator) -> Outcome:
    """A journal as a power cut at a random moment may leave it, recovered.

    What was written before the last finished sync began is there. Of the pages after that each may be there,
    be zeros, or hold what the disk held before; the file may end anywhere after the last sync.
    """
    first, last = taken.appends[0][0], taken.appends[-1][0]
    moment = rng.uniform(first, last)
    safe = max(size for _, ended, size in taken.syncs if ended <= moment)
    _, written, appended = [a for a in taken.appends if a[0] <= moment][-1]
    end = int(rng.integers(safe, written + 1))
    remains = bytearray(taken.content[:end])
    for start in range(safe - safe % PAGE, end, PAGE):
        fate = rng.choice(["there", "zeros", "old"], p=[0.4, 0.4, 0.2])
        begin, stop = max(start, safe), min(start + PAGE, end)
        if fate == "zeros":
            remains[begin:stop] = bytes(stop - begin)
        elif fate == "old":  # pages of an older part of a recording, as reused disk blocks hold them
            old = int(rng.integers(0, len(taken.content) - PAGE))
            remains[begin:stop] = taken.content[old : old + stop - begin]
    path = folder / f"cut.h5{journal.SUFFIX}"
    path.write_bytes(remains)
    finished = recover(path)
    outcome = look(finished.path, appended, True)
    finished.path.unlink()
    return outcome
