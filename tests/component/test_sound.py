"""A sound card: a stand-in wired back to itself, and PortAudio on a card that hears nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from drivers.base.contract import broken_promises
from drivers.base.limits import LimitError
from drivers.base.protocols import Block, Exciter, InstrumentError, LinkLost
from drivers.base.waveform import Sine
from drivers.base.zeroing import zero_output
from drivers.instruments.sound import SoundSource, delay_between
from drivers.rig.profile import RigError, RigProfile, rig_from_text
from drivers.virtual.sound_host import LoopbackHost
from tests.sound_card import PROFILE as TEXT
from tests.waiting import GUARD, wait_until

RATE, DELAY, GAIN = 8000.0, 137, 0.5


@pytest.fixture
def host() -> LoopbackHost:
    return LoopbackHost(DELAY, GAIN, (RATE,))


def profile(**changes: str) -> RigProfile:
    text = TEXT
    for old, new in changes.items():
        text = text.replace(old, new)
    return rig_from_text(text, "card")


def read(source: SoundSource, seconds: float) -> Block:
    return source.read(np.empty((2, round(seconds * RATE))))


def test_given_a_card_then_its_source_keeps_the_contract(host: LoopbackHost) -> None:
    assert broken_promises(SoundSource(profile(), host)) == []


def test_given_a_loopback_when_the_drive_plays_then_its_delay_and_phase_are_known(host: LoopbackHost) -> None:
    source = SoundSource(profile(), host)
    exciter = source.exciter
    assert isinstance(exciter, Exciter)
    source.start()
    assert np.abs(read(source, 0.05).data).max() == 0.0  # silent after opening
    exciter.play(Sine(0.8, 50.0))
    first = read(source, 0.02)
    assert first.drive is not None and np.isnan(first.drive.phase)  # not known yet, and not guessed
    end = time.monotonic() + GUARD
    while exciter.delay is None or not exciter.state().steady:
        read(source, 0.05)
        assert time.monotonic() < end
    assert exciter.delay == DELAY
    read(source, 0.2)
    block = read(source, 0.1)
    drive = block.drive
    assert drive is not None and drive.index == block.start_index
    t = np.arange(block.samples) / RATE
    volts = GAIN * 0.8 / 2.0 * 4.0  # through the output's and the input's scale
    expected = volts * np.cos(drive.phase + 2 * np.pi * 50.0 * t)
    np.testing.assert_allclose(block.data[1], expected, atol=2e-3)
    np.testing.assert_allclose(block.data[0], expected / 0.5, atol=4e-3)  # mm
    exciter.request_stop("STOP")
    end = time.monotonic() + GUARD
    while exciter.state().playing:
        read(source, 0.01)
        assert time.monotonic() < end
    wait_until(lambda: host.output == 0.0)  # the card plays what it was given last
    source.close()


def test_given_a_drive_below_the_corner_then_it_is_refused_in_words(host: LoopbackHost) -> None:
    exciter = SoundSource(profile(), host).exciter
    with pytest.raises(LimitError, match=r"below the corner of this sound card's output \(20 Hz\)"):
        exciter.play(Sine(0.5, 7.5))


def test_given_lost_samples_then_the_index_tells_how_many(host: LoopbackHost) -> None:
    source = SoundSource(profile(), host)
    source.start()
    read(source, 0.1)
    host.lose(400)
    expected, gap, end = round(0.1 * RATE), 0, time.monotonic() + GUARD
    while not gap:
        block = read(source, 0.05)
        gap, expected = block.start_index - expected, block.stop_index
        assert time.monotonic() < end
    assert gap == 400 and "overran" in block.reason
    source.close()


def test_given_a_card_that_stops_then_the_link_is_lost(host: LoopbackHost) -> None:
    source = SoundSource(profile(), host)
    source.start()
    read(source, 0.05)
    source._stream.close()  # as if it were unplugged
    with pytest.raises(LinkLost):
        while True:
            read(source, 0.05)
    source.close()


def test_given_a_card_that_does_not_let_go_then_its_drive_counts_as_playing(host: LoopbackHost) -> None:
    source = SoundSource(profile(), host)
    source.start()
    source.exciter.play(Sine(0.5, 50.0))
    while not source.exciter.state().steady:
        read(source, 0.05)
    hanging, close = threading.Event(), source._stream.abort
    source._stream.abort = lambda: (hanging.wait(GUARD), close())
    stopping = threading.Thread(target=source.stop, daemon=True)
    source._stream.close()  # it asks for no more samples
    stopping.start()
    source.exciter.request_stop("STOP")
    time.sleep(0.3)
    assert source.exciter.state().playing  # so that the second guard ends the process
    hanging.set()
    wait_until(lambda: not source.exciter.state().playing)
    stopping.join(GUARD)


def test_given_what_the_card_cannot_do_then_one_sentence(host: LoopbackHost) -> None:
    with pytest.raises(InstrumentError, match="Invalid sample rate"):
        SoundSource(profile(**{"rate = 8000": "rate = 8001"}), host)
    with pytest.raises(RigError, match="loopback names no channel"):
        SoundSource(profile(**{'loopback = "drive"': 'loopback = "y"'}), host)
    with pytest.raises(RigError, match="beyond the output's 2 V"):
        high = {"amplitude = 1.0": "amplitude = 3.0", "slew = 5000.0": "slew = 50000.0"}
        SoundSource(profile(**high), host)


def test_given_noise_instead_of_a_loopback_then_no_delay_is_believed(rng: np.random.Generator) -> None:
    sent = np.sin(0.04 * np.arange(4000))
    assert delay_between(sent, rng.standard_normal(4000), 500) is None
    assert delay_between(sent, np.zeros(4000), 500) is None


def test_given_a_dead_driver_then_ending_its_process_silences_the_card() -> None:
    from drivers.base.drive_page import started

    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    zero_output({"kind": "process", "pid": process.pid, "started": started(process.pid) + 1})
    assert process.poll() is None  # another process has that number now
    zero_output({"kind": "process", "pid": process.pid, "started": started(process.pid)})
    assert process.wait(GUARD) != 0


ASKED = """
from drivers.instruments.discovery import find_devices
from drivers.instruments.sound import open_source
from drivers.rig.profile import rig_from_text
import numpy as np
assert ("sound", "silent") in [(d.kind, d.address) for d in find_devices()[0]]
text = open("card.toml").read().replace('driver = "sound"', 'driver = "sound"\\ndevice = "silent"', 1)
source = open_source(rig_from_text(text, "card"), None, 0)
source.start()
block = source.read(np.empty((2, 4000)))
assert block.start_index >= 0 and block.samples == 4000  # what they are, nobody has written
source.close()
print("streamed")
"""


def test_given_portaudio_and_a_silent_card_then_samples_stream(tmp_path: Path) -> None:
    """ALSA's null device takes and gives as fast as it is asked: the real library, with no card."""
    try:
        import sounddevice  # noqa: F401
    except OSError:
        pytest.skip("libportaudio2 is not installed")
    (tmp_path / ".asoundrc").write_text('pcm.silent { type null hint { show on description "silent" } }\n')
    (tmp_path / "card.toml").write_text(TEXT)
    done = subprocess.run(
        [sys.executable, "-c", ASKED], cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=GUARD,
    )  # fmt: skip
    assert done.stdout == "streamed\n", done.stderr
