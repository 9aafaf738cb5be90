"""Every source and every exciter meets the same contract, whatever stands behind it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from analysis.base.record import Channel, Record
from drivers.acquisition.guarded import open_guarded
from drivers.base.clock import InstantClock
from drivers.base.contract import broken_promises
from drivers.base.limits import LimitError
from drivers.base.protocols import Block, DriveState, Exciter, Source
from drivers.base.waveform import Sine
from drivers.instruments.replay import ReplaySource
from drivers.recording import MemoryRecording
from drivers.rig.profile import load_rig, open_rig
from drivers.virtual.counter import CounterSource
from tests.waiting import GUARD


@dataclass
class Opened:
    source: Source
    exciter: Exciter | None
    close: Callable[[], None]


@contextlib.contextmanager
def virtual() -> Iterator[Opened]:
    rig = open_rig(load_rig("two_well_beam_modern"), InstantClock())
    yield Opened(rig.source, rig.exciter, rig.close)


@contextlib.contextmanager
def guarded() -> Iterator[Opened]:
    rig = open_guarded(load_rig("two_well_beam_modern"), patience=60)
    yield Opened(rig.source, rig.exciter, rig.close)
    rig.close()


@contextlib.contextmanager
def counter() -> Iterator[Opened]:
    source = CounterSource(3, 2000.0)
    yield Opened(source, None, source.close)


@contextlib.contextmanager
def replay() -> Iterator[Opened]:
    data = {n: Channel(np.arange(4000.0), "V") for n in ("a", "b")}
    source = ReplaySource(MemoryRecording(Record(2000.0, data)), clock=InstantClock())
    yield Opened(source, None, source.close)


@contextlib.contextmanager
def nidaq() -> Iterator[Opened]:
    from nidaqmx import GrpcSessionOptions

    from drivers.instruments.nidaq import NidaqExciter, NidaqSource
    from drivers.virtual.nidaq_server import DeviceServer, InProcessChannel, device_of

    profile = load_rig("two_well_beam_modern")
    device = device_of(profile)
    wiring = {c.name: f"Dev1/ai{i}" for i, c in enumerate(profile.channels)}
    instruments = {"source": {"wiring": wiring}, "exciter": {"output": "Dev1/ao0"}}
    hardware = type(profile)(
        "ni", "ni", profile.rate, profile.channels, profile.limits, instruments, profile.drive
    )
    source = NidaqSource(hardware, GrpcSessionOptions(InProcessChannel(DeviceServer(device)), ""))
    exciter = NidaqExciter(hardware, source)

    def close() -> None:
        exciter.close()
        source.close()

    yield Opened(source, exciter, close)
    close()
    device.close()


SOURCES = [virtual, guarded, counter, replay, nidaq]


@pytest.mark.parametrize("make", SOURCES, ids=lambda m: m.__name__)
def test_given_any_source_then_it_keeps_the_contract(make: Any) -> None:
    with make() as opened:
        source = opened.source
        indices: list[int] = []
        read = source.read

        def noted(into: np.ndarray) -> Block:
            block = read(into)
            indices.append(block.start_index)
            return block

        source.read = noted  # type: ignore[method-assign]
        assert broken_promises(source) == []
        assert indices == 2 * [0, 1, 51, 151]  # from 0 again after the second start, and nothing lost
        opened.close()


EXCITERS = [virtual, guarded, nidaq]


@pytest.mark.parametrize("make", EXCITERS, ids=lambda m: m.__name__)
def test_given_any_exciter_then_it_keeps_the_contract(make: Any) -> None:
    with make() as opened:
        exciter, source = opened.exciter, opened.source
        assert isinstance(exciter, Exciter) and exciter.unit == "V"
        assert not exciter.state().playing  # silent after opening
        source.start()
        rows = len(source.channels)

        def run(seconds: float, until: Callable[[DriveState], bool] = lambda drive: True) -> np.ndarray:
            """The drive until it is as wanted (it may have been told late), and for some seconds more."""
            parts, end = [], time.monotonic() + GUARD
            while True:
                block = source.read(np.empty((rows, 40)))
                parts.append(block.data[-1])
                if block.drive is not None and until(block.drive):
                    break
                assert time.monotonic() < end, "the drive does not obey"
            parts += [source.read(np.empty((rows, 40))).data[-1] for _ in range(round(seconds * 50))]
            return np.concatenate(parts)

        exciter.stop()  # nothing plays: allowed
        with pytest.raises(LimitError):
            exciter.play(Sine(100.0, 7.5))
        with pytest.raises(LimitError):
            exciter.play(Sine(1.0, 1000.0))
        assert np.abs(run(0.1)).max() == 0.0
        exciter.play(Sine(1.0, 10.0))
        drive = run(0.3, lambda drive: drive.steady)
        assert np.abs(drive[-400:]).max() == pytest.approx(1.0, rel=1e-3)
        assert np.abs(np.diff(drive)).max() < 0.05  # never a step
        with pytest.raises(LimitError):
            exciter.change(amplitude=50.0)
        exciter.change(frequency=12.0, amplitude=0.5)
        drive = run(0.3, lambda drive: drive.steady and drive.frequency == 12.0)
        assert np.abs(drive[-300:]).max() == pytest.approx(0.5, rel=1e-2)
        assert exciter.state().frequency == 12.0
        exciter.stop("enough")
        drive = run(0.3, lambda drive: not drive.playing)
        assert np.abs(drive[-300:]).max() == 0.0
        assert not exciter.state().playing and exciter.state().reason == "enough"
        source.stop()
        opened.close()
