"""Large recordings: opened at once, drawn from the stored overview, never loaded whole."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from drivers.formats import open_lazily
from drivers.recording import Description, Part, Recording
from drivers.recording.container import write_container
from drivers.recording.journal import ChannelSpec


class Synthetic(Recording):
    """Samples made when asked for: sample n of channel i is (n + i) % 1000, with one spike."""

    def __init__(self, samples: int, channels: int) -> None:
        specs = tuple(ChannelSpec(f"c{i}", "V", "i2", 0.001) for i in range(channels))
        super().__init__(Description(51_200.0, specs, samples))

    def raw(self, channel: int, start: int, stop: int) -> NDArray[Any]:
        values = ((np.arange(start, stop, dtype=np.int32) + channel) % 1000).astype(np.int16)
        spike = len(self) // 3 - start
        if 0 <= spike < len(values):
            values[spike] = 32_000
        return values


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.h5"
    write_container(Synthetic(10_000_000, 8), path)
    return path


def test_given_ten_million_samples_of_eight_channels_then_opening_and_overview_take_no_time_or_memory(
    large: Path,
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.thread_time()
    with open_lazily(large) as recording:
        assert len(recording) == 10_000_000
        for name in recording.names:
            low, high = recording.envelope(name, 0, len(recording), 2000)
            assert len(low) == len(high) == 2000
            assert low.max() == 0.0
            assert high[666] == 32.0  # the one spike in ten million samples is drawn
            assert np.delete(high, [665, 666, 667]).max() == 0.999
        part = recording.slice(5_000_000, 5_001_000)
        assert part["c3"][0] == pytest.approx(0.003)
    assert time.thread_time() - begun < 1.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB; the file holds 160 MB


def test_given_any_window_then_the_overview_holds_every_sample_and_little_more(
    large: Path, rng: np.random.Generator
) -> None:
    with open_lazily(large) as recording:
        for _ in range(20):
            start = int(rng.integers(0, 9_000_000))
            stop = start + int(10 ** rng.uniform(0.5, 6))
            bins = int(rng.integers(1, 1500))
            low, high = recording.envelope("c1", start, stop, bins)
            values = recording.values("c1", start, stop)
            edges = np.arange(len(low) + 1) * len(values) // len(low)
            assert len(low) == min(bins, stop - start)
            assert (low <= np.minimum.reduceat(values, edges[:-1])).all()
            assert (high >= np.maximum.reduceat(values, edges[:-1])).all()
            width = max(1, (stop - start) // bins)  # a cell at the edge may reach into the neighbour
            around = recording.values("c1", max(0, start - width), stop + width)
            assert low.min() >= around.min()
            assert high.max() <= around.max()


def test_given_a_cut_of_a_large_file_then_only_the_cut_is_read(large: Path, tmp_path: Path) -> None:
    begun = time.thread_time()
    with open_lazily(large) as recording:
        write_container(Part(recording, 4_000_000, 4_100_000, ["c2"]), tmp_path / "cut.h5")
    assert time.thread_time() - begun < 1.0
    with open_lazily(tmp_path / "cut.h5") as cut:
        assert cut.values("c2", 0, 3).tolist() == pytest.approx([0.002, 0.003, 0.004])
