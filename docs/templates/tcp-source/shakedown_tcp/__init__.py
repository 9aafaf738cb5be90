"""A box that streams volts over TCP, as a source of Shakedown.

The box sends packets: the index of the first sample (8 bytes), the numbers of samples and of channels
(4 bytes each), then the volts as doubles, channel by channel; all of it little-endian.
`python -m shakedown_tcp PORT` is such a box, to try this out.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from typing import Any

import numpy as np
from drivers.base.overload import overloads
from drivers.base.protocols import Block, InstrumentError, LinkLost, Samples
from drivers.rig.profile import RigError, RigProfile

HEAD = struct.Struct("<QII")
SECONDS = 5.0  # to connect, and to wait for a packet
RATE = 1000.0  # Hz, the only one of this box
MOST = 1 << 20  # values in a packet: a head that says more is none


def open_source(profile: RigProfile, clock: object, seed: int) -> TcpSource:
    """What the entry point names: opens the source of a rig profile."""
    return TcpSource(profile)


def find() -> tuple[list[tuple[str, str]], str]:
    """What the entry point for `shakedown devices` names: addresses with descriptions, and a note."""
    address = os.environ.get("TCP_BOX", "127.0.0.1:4711")
    try:
        _connected(_parts(address), 0.2).close()
    except OSError:
        return [], f"No TCP box answers at {address}."
    return [(address, "TCP box")], ""


class TcpSource:
    """Meets drivers.base.protocols.Source: name, channels, rate, waits, start, read, stop, close."""

    waits = False  # its clock runs whether it is read or not

    def __init__(self, profile: RigProfile) -> None:
        table: dict[str, Any] = dict(profile.instruments["source"])
        if profile.rate != RATE:
            raise RigError(
                f"rate: the TCP box has {RATE:g} Hz alone, not {profile.rate:g} Hz."
            )
        self.name, self.rate = profile.name, RATE
        self.channels = tuple(channel.info() for channel in profile.channels)
        self._address = _parts(table.get("address"))
        self._rows = [_row(table["wiring"], c.name) for c in profile.channels]
        self._gain = np.array([[1 / c.sensitivity] for c in profile.channels])
        self._zero = np.array([[c.zero] for c in profile.channels])
        self._link: socket.socket | None = None

    def start(self) -> None:
        self.stop()
        try:
            self._link = _connected(self._address, SECONDS)
        except OSError as error:
            raise InstrumentError(
                f"The TCP box at {_text(self._address)} does not answer ({error})."
            ) from None
        self._index, self._volts = 0, np.empty((max(self._rows) + 1, 0))
        self._first: int | None = None  # number of the box's first sample
        self._next: tuple[int, Samples] | None = None  # a packet from behind a gap
        self._failure: InstrumentError | None = None
        self._reason = ""  # of the gap before the samples in hand

    def read(self, into: Samples) -> Block:
        """Wait for as many samples as fit; fewer come only before a gap or before an error."""
        link = self._link
        if link is None:
            raise InstrumentError("The TCP box is not running.")
        while self._volts.shape[1] < into.shape[1] and self._add_packet(link):
            pass
        wanted = min(into.shape[1], self._volts.shape[1])
        if not wanted and self._failure is not None:
            raise self._failure
        data, start, reason = into[:, :wanted], self._index, self._reason
        data[:] = self._volts[self._rows, :wanted] * self._gain + self._zero
        self._index, self._volts, self._reason = (
            start + wanted,
            self._volts[:, wanted:],
            "",
        )
        return Block(start, data, overloads(data, self.channels, start), reason=reason)

    def _add_packet(self, link: socket.socket) -> bool:
        """Add a packet to the samples in hand; False if these must be handed over before."""
        if self._failure is not None:
            return False
        try:
            index, volts = self._next or self._packet(link)
        except InstrumentError as error:  # told when nothing is in hand any more
            self._failure = error
            return False
        due = self._index + self._volts.shape[1]
        if index < due:
            self._failure = InstrumentError(
                f"The TCP box went back from sample {due} to {index}."
            )
            return False
        self._next = None
        if index > due:
            if self._volts.shape[1]:
                self._next = index, volts
                return False
            self._index, self._reason = index, "the TCP box left samples out"
        self._volts = np.concatenate([self._volts, volts], axis=1)
        return True

    def _packet(self, link: socket.socket) -> tuple[int, Samples]:
        """A packet, its first sample counted from the start of the stream."""
        number, samples, channels = HEAD.unpack(_exactly(link, HEAD.size))
        rows = self._volts.shape[0]
        if not (0 < samples * channels <= MOST and channels >= rows):
            raise InstrumentError(
                f"The TCP box sent no packet: {samples} samples of {channels} channels, "
                f"where at least {rows} channels are wired."
            )
        volts = np.frombuffer(_exactly(link, 8 * samples * channels), "<f8")
        if self._first is None:  # the box counts from when it was switched on
            self._first = number
        return number - self._first, volts.reshape(channels, samples)[:rows]

    def stop(self) -> None:
        """Also wakes a `read` that waits in another thread."""
        link, self._link = self._link, None
        if link is not None:
            with contextlib.suppress(OSError):  # the other end was faster
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def close(self) -> None:
        self.stop()


def _parts(address: object) -> tuple[str, int]:
    """Host and port; RigError in one sentence if it is no address."""
    host, _, port = str(address).rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) < 65536):
        raise RigError(
            "[instruments.source]: 'address' is a host and a port, such as "
            f'"192.168.0.5:4711", not {address!r}.'
        )
    return host, int(port)


def _text(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


def _row(wiring: dict[str, Any], channel: str) -> int:
    row = wiring[channel]
    if not isinstance(row, int) or not 0 <= row < MOST:
        raise RigError(
            f"[instruments.source] wiring: {channel} is a channel of the box (0, 1, ...), not {row!r}."
        )
    return row


def _connected(address: tuple[str, int], seconds: float) -> socket.socket:
    return socket.create_connection(address, seconds)


def _exactly(link: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        try:
            part = link.recv(count - len(parts))
        except OSError as error:
            raise LinkLost(
                f"The link to the TCP box is lost ({error}); what was recorded is safe."
            ) from None
        if not part:
            raise LinkLost(
                "The TCP box has closed the link; what was recorded is safe."
            )
        parts += part
    return bytes(parts)
