"""A box to try the driver with: two channels of a 10 Hz sine, and 100 samples lost after 2 s."""

from __future__ import annotations

import socket
import sys
import time

import numpy as np

from shakedown_tcp import HEAD, RATE

PIECE = 20  # samples in a packet
LOST = (2000, 2100)


def serve(port: int) -> None:
    """Answer one caller after the other, for ever."""
    with socket.create_server(("127.0.0.1", port)) as server:
        while True:
            link, _ = server.accept()
            with link:
                _stream(link)


def _stream(link: socket.socket) -> None:
    begun, index = time.monotonic(), 0
    while True:
        time.sleep(max(0.0, begun + (index + PIECE) / RATE - time.monotonic()))
        t = np.arange(index, index + PIECE) / RATE
        volts = np.array([np.sin(20 * np.pi * t), 0.5 * np.cos(20 * np.pi * t)])
        if not LOST[0] <= index < LOST[1]:
            try:
                link.sendall(HEAD.pack(index, PIECE, 2) + volts.astype("<f8").tobytes())
            except OSError:
                return  # the caller is gone
        index += PIECE


if __name__ == "__main__":
    serve(int(sys.argv[1]))
