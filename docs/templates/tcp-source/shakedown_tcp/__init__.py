"""A box that streams volts over TCP, as a source of Shakedown.

The box sends packets: the index of the first sample (8 bytes), the numbers of samples and of channels
(4 bytes each), then the volts as doubles, channel by channel; all of it little-endian.
`python -m shakedown_tcp PORT` is such a box, to try this out.
"""

from __future__ import annotations

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


def open_source(profile: RigProfile, clock: object, seed: int) -> TcpSource:
    """What the entry point names: opens the source of a rig profile."""
    return TcpSource(profile)


def find() -> tuple[list[tuple[str, str]], str]:
    """What the entry point for `shakedown devices` names: addresses with descriptions, and a note."""
    address = os.environ.get("TCP_BOX", "127.0.0.1:4711")
    try:
        _connected(address, 0.2).close()
    except OSError:
        return [], f"No TCP box answers at {address}."
    return [(address, "TCP box")], ""


class TcpSource:
    """Meets drivers.base.protocols.Source: name, channels, rate, waits, start, read, stop, close."""

    waits = False  # its clock runs whether it is read or not

    def __init__(self, profile: RigProfile) -> None:
        table: dict[str, Any] = dict(profile.instruments["source"])
        if "address" not in table:
            raise RigError(
                "[instruments.source]: 'address' is missing, such as \"192.168.0.5:4711\"."
            )
        self.name, self.rate = profile.name, profile.rate
        self.channels = tuple(channel.info() for channel in profile.channels)
        self._address = str(table["address"])
        self._rows = [
            int(table["wiring"][channel.name]) for channel in profile.channels
        ]
        self._gain = np.array([[1 / c.sensitivity] for c in profile.channels])
        self._zero = np.array([[c.zero] for c in profile.channels])
        self._link: socket.socket | None = None

    def start(self) -> None:
        self.stop()
        try:
            self._link = _connected(self._address, SECONDS)
        except OSError as error:
            raise InstrumentError(
                f"The TCP box at {self._address} does not answer ({error})."
            ) from None
        self._index, self._volts = 0, np.empty((max(self._rows) + 1, 0))

    def read(self, into: Samples) -> Block:
        """Wait for as many samples as fit; fewer come only before a gap, which the next index shows."""
        if self._link is None:
            raise InstrumentError("The TCP box is not running.")
        wanted = into.shape[1]
        start = self._index
        while self._volts.shape[1] < wanted:
            index, volts = self._packet(self._link)
            if (
                index != self._index + self._volts.shape[1]
            ):  # samples were lost in between
                if self._volts.shape[1]:
                    self._next = (index, volts)
                    wanted = self._volts.shape[1]
                    break
                self._index = start = index
            self._volts = np.concatenate([self._volts, volts], axis=1)
        data = into[:, :wanted]
        data[:] = self._volts[self._rows, :wanted] * self._gain + self._zero
        self._index, self._volts = start + wanted, self._volts[:, wanted:]
        return Block(start, data, overloads(data, self.channels, start))

    _next: tuple[int, Samples] | None = None  # a packet from behind a gap

    def _packet(self, link: socket.socket) -> tuple[int, Samples]:
        if self._next is not None:
            packet, self._next = self._next, None
            return packet
        index, samples, channels = HEAD.unpack(_exactly(link, HEAD.size))
        volts = np.frombuffer(_exactly(link, 8 * samples * channels), "<f8")
        return index, volts.reshape(channels, samples)

    def stop(self) -> None:
        link, self._link, self._next = self._link, None, None
        if link is not None:
            link.close()

    def close(self) -> None:
        self.stop()


def _connected(address: str, seconds: float) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), seconds)


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
