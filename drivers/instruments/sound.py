"""A sound card as converter, through PortAudio: inputs and drive in one stream, on one clock.

    [instruments.source]
    driver = "sound"
    device = "USB Audio"                  # as `shakedown devices` lists it
    wiring = { x = 0, drive = 1 }         # input of the card
    full_scale = 1.9                      # V at the input that are 1.0 in the card's numbers
    loopback = "drive"                    # the channel to which the output is wired as well
    [instruments.exciter]
    driver = "sound"
    output = 0
    full_scale = 1.4                      # V at the output that are 1.0
    corner = 20.0                         # Hz: below, an AC-coupled output passes nothing that it should

The card's delay from output to input differs from start to start. It is measured from the loop-back as soon
as the drive has played for a moment; until then, and without a loop-back, the drive's phase is not known.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import EXTRAS, missing_extra, need_extra
from drivers.base.clock import Clock
from drivers.base.drive_page import started
from drivers.base.limits import STOP_RAMP, LimitError
from drivers.base.overload import overloads
from drivers.base.protocols import Block, DriveState, InstrumentError, LinkLost, Samples
from drivers.base.waveform import Waveform
from drivers.rig.player import PlayedOutput, Player
from drivers.rig.profile import RigError, RigProfile, positive

BUFFER_SECONDS = 10.0  # of samples that nobody has read; then the oldest are lost, and said to be
FRAMES_SECONDS = 0.01  # of one call of the card: STOP waits for it
LOST_SAMPLES = 4  # by which the card's own time may differ from the count before a gap is believed
LISTEN_SECONDS = 0.5  # of drive and loop-back that are compared
LONGEST_DELAY = 0.3  # s
CLEAR_PEAK = 0.9  # correlation of the loop-back with the drive that is believed
WAIT_SECONDS = 2.0  # for the next samples, beyond the time that they take
CORNER = 20.0  # Hz, of most cards


def list_devices() -> tuple[list[tuple[str, str]], str]:
    """Each sound card with its numbers of inputs and outputs."""
    if not EXTRAS["sound"].installed:
        return [], missing_extra("sound")
    try:
        cards = _portaudio().query_devices()
    except InstrumentError as error:
        return [], str(error)
    found = [
        (c["name"], f"sound card, {c['max_input_channels']} inputs, {c['max_output_channels']} outputs")
        for c in cards
        if c["max_input_channels"]
    ]
    return found, "" if found else "No sound card was found."


def terminals(address: str) -> tuple[list[str], list[str]]:
    """Inputs and outputs of a card, which have numbers."""
    host = _portaudio()
    try:
        card = host.query_devices(address)
    except Exception as error:  # PortAudioError, or ValueError for a card that is not there
        raise InstrumentError(f"The sound card cannot be asked ({_words(error)}).") from None
    counts = (card["max_input_channels"], card["max_output_channels"])
    inputs, outputs = ([str(number) for number in range(count)] for count in counts)
    return inputs, outputs


def _portaudio() -> Any:
    need_extra("sound")
    try:
        import sounddevice
    except OSError:
        raise InstrumentError(
            "A sound card needs the library PortAudio, which is not installed: sudo apt install libportaudio2"
        ) from None
    return sounddevice


def open_source(profile: RigProfile, clock: Clock | None, seed: int) -> SoundSource:
    return SoundSource(profile, _portaudio())


def open_exciter(profile: RigProfile, source: Any) -> SoundExciter:
    if not isinstance(source, SoundSource):
        raise RigError("[instruments.exciter]: a sound exciter needs a sound source, to share its clock.")
    return source.exciter


class SoundSource:
    """The inputs of a card, and the stream in which its output is fed."""

    waits = False

    def __init__(self, profile: RigProfile, host: Any) -> None:
        """``host``: the module sounddevice, or what behaves like it."""
        table = profile.instruments["source"]
        self.name, self.rate = profile.name, float(profile.rate)
        self.channels = tuple(c.info() for c in profile.channels)
        self._host, self._device = host, table.get("device")
        self._rows = [int(table["wiring"][c.name]) for c in profile.channels]
        volts = positive("[instruments.source]: full_scale", table.get("full_scale", 1.0))
        self._gain = np.array([[volts / c.sensitivity] for c in profile.channels])
        self._zero = np.array([[c.zero] for c in profile.channels])
        loopback = table.get("loopback")
        names = [c.name for c in profile.channels]
        if loopback is not None and loopback not in names:
            raise RigError(f"[instruments.source]: loopback names no channel: '{loopback}'.")
        self._loopback = None if loopback is None else self._rows[names.index(loopback)]
        self._state = threading.Condition()
        self._stream: Any = None
        self.feeding = False  # the card may play: from before its start until it has let go
        self._failure = ""
        self.exciter = SoundExciter(profile, self)
        self._check()

    def _check(self) -> None:
        """Refuse now what the card cannot do, in its own words."""
        asked = {"device": self._device, "samplerate": self.rate}
        try:
            self._host.check_input_settings(channels=max(self._rows) + 1, **asked)
            if self.exciter.used:
                self._host.check_output_settings(channels=self.exciter.output + 1, **asked)
        except Exception as error:  # PortAudioError, or ValueError for a card that is not there
            raise InstrumentError(f"The sound card cannot do this ({_words(error)}).") from None

    def start(self) -> None:
        self.stop()
        frames = max(1, round(FRAMES_SECONDS * self.rate))
        with self._state:
            self._blocks: deque[tuple[int, NDArray[np.float32], DriveState]] = deque()
            self._held = self._index = self._expected = 0
            self._first_time: float | None = None
            self._failure = self._reason = ""
            self._running = True
            self.exciter.begin()
        both = {"samplerate": self.rate, "blocksize": frames, "dtype": "float32", "latency": "low"}
        inputs = max(self._rows) + 1
        try:
            self.feeding = True
            if self.exciter.used:
                self._stream = self._host.Stream(
                    device=self._device, channels=(inputs, self.exciter.output + 1),
                    callback=self._exchange, finished_callback=self._ended, **both,
                )  # fmt: skip
            else:
                self._stream = self._host.InputStream(
                    device=self._device, channels=inputs, callback=self._take,
                    finished_callback=self._ended, **both,
                )  # fmt: skip
            self._stream.start()
        except Exception as error:
            self._stream, self.feeding = None, False
            raise InstrumentError(f"The sound card cannot be started ({_words(error)}).") from None

    # -- in PortAudio's thread: nothing here waits

    def _exchange(
        self, inputs: NDArray[np.float32], outputs: NDArray[np.float32], frames: int, times: Any, status: Any
    ) -> None:
        outputs[:] = 0.0
        state, sent = self.exciter.next_samples(frames)
        outputs[:, self.exciter.output] = sent
        if self._loopback is not None:
            self.exciter.listen(inputs[:, self._loopback], sent)
        self._keep(inputs, times, status, state)

    def _take(self, inputs: NDArray[np.float32], frames: int, times: Any, status: Any) -> None:
        self._keep(inputs, times, status, DriveState())

    def _keep(self, inputs: NDArray[np.float32], times: Any, status: Any, drive: DriveState) -> None:
        with self._state:
            now = float(times.inputBufferAdcTime)
            if self._first_time is None:
                self._first_time = now
            if status.input_overflow:  # the card's own time tells how many samples are gone
                due = round((now - self._first_time) * self.rate)
                if due - self._index > LOST_SAMPLES:
                    self._index = due
            self._blocks.append((self._index, inputs.copy(), drive))
            self._index += len(inputs)
            self._held += len(inputs)
            while self._held > BUFFER_SECONDS * self.rate:
                self._held -= len(self._blocks.popleft()[1])
            self._state.notify_all()

    def _ended(self) -> None:
        with self._state:
            if self._running:
                self._failure = "The sound card has stopped: was it unplugged? What was recorded is safe."
            self._state.notify_all()

    # -- the reader

    def read(self, into: Samples) -> Block:
        """As many samples as fit, or fewer before a gap."""
        wanted = into.shape[1]
        with self._state:
            if self._stream is None:
                raise InstrumentError("The sound card is not running.")
            patience = wanted / self.rate + WAIT_SECONDS
            if not self._state.wait_for(lambda: self._failure or self._ready(wanted), patience):
                raise LinkLost("The sound card gives no samples any more; what was recorded is safe.")
            if not self._ready(wanted):
                raise LinkLost(self._failure)
            start, drive, count = self._blocks[0][0], self._blocks[0][2], 0
            while count < wanted and self._blocks and self._blocks[0][0] == start + count:
                index, piece, state = self._blocks.popleft()
                use = min(len(piece), wanted - count)
                into[:, count : count + use] = piece[:use, self._rows].T
                if use < len(piece):
                    self._blocks.appendleft((index + use, piece[use:], _later(state, use, self.rate)))
                count += use
                self._held -= use
        data = into[:, :count]
        data *= self._gain
        data += self._zero
        reason = "the sound card's buffer overran" if start > self._expected else ""
        self._expected = start + count
        played = None if not self.exciter.used else self.exciter.as_heard(drive, start)
        return Block(start, data, overloads(data, self.channels, start), reason=reason, drive=played)

    def _ready(self, wanted: int) -> bool:
        """Enough samples in a row, or a gap behind fewer."""
        count = 0
        for index, piece, _ in self._blocks:
            if count and index != self._blocks[0][0] + count:
                return True
            count += len(piece)
            if count >= wanted:
                return True
        return False

    def stop(self) -> None:
        with self._state:
            self._running = False
            stream, self._stream = self._stream, None
        if stream is not None:
            with contextlib.suppress(Exception):
                stream.abort()
                stream.close()
            self.feeding = False  # one that hangs may repeat its last samples: then it counts as playing
            self.exciter.rest()

    def close(self) -> None:
        self.stop()

    _running = False


class SoundExciter(PlayedOutput):
    """The output of the card. Between two of its calls (10 ms) it looks at STOP."""

    def __init__(self, profile: RigProfile, source: SoundSource) -> None:
        table = profile.instruments.get("exciter", {})
        self.used = table.get("driver") == "sound"
        self.output = int(table.get("output", 0))
        self._volts = positive("[instruments.exciter]: full_scale", table.get("full_scale", 1.0))
        self._corner = float(table.get("corner", CORNER))
        if not self._corner >= 0:
            raise RigError(f"[instruments.exciter]: corner must be a frequency in Hz, not {self._corner}.")
        if self.used and profile.limits.peak > self._volts:
            raise RigError(
                f"The drive's limit of {profile.limits.peak:g} V is beyond the output's {self._volts:g} V."
            )
        self._source, self._rate = source, float(profile.rate)
        self._player = Player(profile.limits, self._rate)
        self.delay: int | None = None  # samples from output to input, once it is measured
        self._sent: deque[NDArray[np.float64]] = deque()
        self._heard: deque[NDArray[np.float64]] = deque()
        self._listened = 0
        self.notices: list[str] = []

    def play(self, waveform: Waveform) -> None:
        self._check_corner(waveform.band[0])
        self._player.play(waveform)

    def change(self, frequency: float | None = None, amplitude: float | None = None) -> None:
        if frequency is not None:
            self._check_corner(frequency)
        super().change(frequency, amplitude)

    def _check_corner(self, frequency: float) -> None:
        if frequency < self._corner:
            raise LimitError(
                f"{frequency:g} Hz is below the corner of this sound card's output ({self._corner:g} Hz): it "
                "would pass it weakened and shifted. Use a converter with a DC-coupled output."
            )

    def stop(self, reason: str = "stopped") -> None:
        self._player.stop(reason)
        if not self._source.feeding:
            self.rest()

    def request_stop(self, reason: str = "STOP") -> None:
        self._player.request_stop(reason)

    def zeroing(self) -> Mapping[str, Any]:
        """Nobody else can speak to a card in use: its process is ended, and the system silences the card."""
        return {"kind": "process", "pid": os.getpid(), "started": started(os.getpid())}

    def state(self) -> DriveState:
        if not self._source.feeding and self.latch.reason:
            self.rest()
        return self._player.state()

    def close(self) -> None:
        self.stop("closed")

    # -- for the source

    def begin(self) -> None:
        self.delay, self._listened = None, 0
        self._sent.clear()
        self._heard.clear()

    def rest(self) -> None:
        """The card is silent: what was ramping down is over."""
        self._player.take(round(2 * STOP_RAMP * self._rate) + 1)

    def next_samples(self, frames: int) -> tuple[DriveState, NDArray[np.float64]]:
        """The drive's state at the next sample of the output, and the samples in the card's numbers."""
        _, state, samples = self._player.take_with_state(frames)
        return state, samples / self._volts

    def listen(self, heard: NDArray[np.float32], sent: NDArray[np.float64]) -> None:
        """Compare what comes back with what was sent, until the delay is certain."""
        if self.delay is not None or (not self._sent and not sent.any()):
            return
        self._sent.append(sent)
        self._heard.append(heard.astype(np.float64))
        self._listened += len(sent)
        if self._listened < (LISTEN_SECONDS + LONGEST_DELAY) * self._rate:
            return
        self.delay = delay_between(
            np.concatenate(self._sent), np.concatenate(self._heard), round(LONGEST_DELAY * self._rate)
        )
        self._sent.clear()
        self._heard.clear()
        self._listened = 0

    def as_heard(self, state: DriveState, index: int) -> DriveState:
        """The drive at a sample of the input: what left the output ``delay`` samples earlier."""
        if self.delay is None:
            return replace(state, index=index, phase=np.nan, time=np.nan)
        turned = state.phase - 2 * np.pi * state.frequency * self.delay / self._rate
        return replace(state, index=index, phase=turned, time=state.time - self.delay / self._rate)


def delay_between(sent: NDArray[np.float64], heard: NDArray[np.float64], longest: int) -> int | None:
    """Samples by which ``heard`` follows ``sent``; None if it does not clearly do so.

    The soft start of the drive makes the correlation's highest peak the only right one: a steady sine would
    give one in every period.
    """
    size = 1 << (len(sent) + longest).bit_length()
    cross = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(sent, size)), size)[: longest + 1]
    best = int(np.argmax(cross))
    a, b = sent[: len(sent) - best], heard[best:]
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return best if norm > 0 and float(a @ b) / norm > CLEAR_PEAK else None


def _later(state: DriveState, samples: int, rate: float) -> DriveState:
    turned = state.phase + 2 * np.pi * state.frequency * samples / rate
    return replace(state, index=state.index + samples, phase=turned, time=state.time + samples / rate)


def _words(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".") or type(error).__name__
