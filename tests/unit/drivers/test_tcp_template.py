"""The driver that docs/templates gives away to be copied, against a box that misbehaves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drivers.base.protocols import InstrumentError, LinkLost
from drivers.rig.profile import RigError, RigProfile, rig_from_text

TEMPLATE = Path(__file__).parents[3] / "docs" / "templates" / "tcp-source"


@pytest.fixture
def tcp(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(TEMPLATE))
    import shakedown_tcp

    return shakedown_tcp


@pytest.fixture
def box() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


def profile(**source: Any) -> RigProfile:
    text = (TEMPLATE / "shakedown_tcp" / "tcp_box.toml").read_text()
    rig = rig_from_text(text.replace('"tcp"', '"virtual"'), "tcp_box")
    return replace(rig, instruments={"source": {**rig.instruments["source"], **source}})


def started(tcp: Any, box: socket.socket) -> tuple[Any, socket.socket]:
    source = tcp.TcpSource(profile(address=f"127.0.0.1:{box.getsockname()[1]}"))
    source.start()
    return source, box.accept()[0]


def packet(tcp: Any, number: int, volts: np.ndarray) -> bytes:
    return bytes(tcp.HEAD.pack(number, volts.shape[1], len(volts)) + volts.astype("<f8").tobytes())


def test_given_a_counter_that_runs_on_a_gap_and_a_lost_link_then_every_sample_is_told(
    tcp: Any, box: socket.socket
) -> None:
    source, link = started(tcp, box)
    volts = np.arange(20.0).reshape(2, 10)
    link.sendall(packet(tcp, 7000, volts) + packet(tcp, 7025, volts))
    link.close()
    blocks = [source.read(np.empty((2, 8))) for _ in range(4)]
    assert [(b.start_index, b.samples) for b in blocks] == [(0, 8), (8, 2), (25, 8), (33, 2)]
    assert [bool(b.reason) for b in blocks] == [False, False, True, False]
    assert np.allclose(np.hstack([b.data for b in blocks[:2]]), volts / [[0.5], [0.1]])
    with pytest.raises(LinkLost):  # only when nothing is in hand any more
        source.read(np.empty((2, 8)))
    source.close()


@pytest.mark.parametrize("head", [(0, 2**31, 2**31), (0, 0, 0), (0, 5, 1)])
def test_given_garbage_then_one_sentence(tcp: Any, box: socket.socket, head: tuple[int, int, int]) -> None:
    source, link = started(tcp, box)
    with link:
        link.sendall(tcp.HEAD.pack(*head))
        with pytest.raises(InstrumentError, match="sent no packet"):
            source.read(np.empty((2, 8)))
    source.close()


def test_given_stop_then_a_read_that_waits_is_woken(tcp: Any, box: socket.socket) -> None:
    source, link = started(tcp, box)
    raised: list[Exception] = []

    def read() -> None:
        try:
            source.read(np.empty((2, 8)))
        except Exception as error:
            raised.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(0.2)  # it waits by now
    source.stop()
    reader.join(tcp.SECONDS / 2)
    assert not reader.is_alive() and isinstance(raised[0], InstrumentError)
    link.close()


@pytest.mark.parametrize(
    "wrong",
    [{"address": 4711}, {"address": "box:70000"}, {"address": "box:x"}, {"wiring": {"x": "ai0", "f": 1}}],
)
def test_given_a_wrong_profile_then_one_sentence(tcp: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(RigError, match=r"instruments\.source"):
        tcp.TcpSource(profile(**wrong))
    with pytest.raises(RigError, match="not 500 Hz"):
        tcp.TcpSource(replace(profile(), rate=500.0))
