"""Setting an output to zero from outside the process that drives it, with nothing but the standard library.

A driver says by ``zeroing()`` how that is done, as a small table that can be handed to another process:

    {"kind": "virtual"}                                               the page's output
    {"kind": "line", "port", "baudrate", "stopbits", "commands",      text to a serial port or socket://host:port
     "withdraw", "question"}                                          or visa://...; ends a broken line
    {"kind": "process", "pid", "started"}                             a sound card: ends what feeds it
    {"kind": "nidaqmx", "device", "server"}                           reset of an NI device; server: host:port

A line takes what is written to it whether or not somebody listens: an instrument that has a ``question`` is
taken for reached when it has answered that.

The second guard uses it when the rig's process is frozen or gone, the window when it has lost that process,
``shakedown stop`` when it finds a drive that nobody looks after any more.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

CONNECT_SECONDS = 0.5  # to reach an instrument or a device server
ANSWER_SECONDS = 1.0
VISA_SECONDS = 60.0  # to load PyVISA and a maker's library, and to reach the instrument
REPEATS = 2  # of a command on a line: the first may join the rest of a line that was broken off


class ZeroingFailed(Exception):
    """An output that could not be reached, in words."""


def zero_output(how: Mapping[str, Any]) -> None:
    """Set one output to zero; ZeroingFailed if it cannot be reached."""
    action = action_of(how)
    try:
        action(how)
    except ZeroingFailed:
        raise
    except Exception as error:  # OSError, termios.error, a table that misses something
        raise ZeroingFailed(f"{type(error).__name__}: {error}") from None


def action_of(how: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None]:
    """What would be done, by the kind of the output; ZeroingFailed for a kind that nobody knows."""
    actions = {
        "virtual": _nothing, "line": _zero_line, "nidaqmx": _zero_nidaqmx, "process": _end_process,
    }  # fmt: skip
    try:
        return actions[how["kind"]]
    except (KeyError, TypeError):
        raise ZeroingFailed("nobody knows how to reach this output from outside its own process") from None


def _nothing(how: Mapping[str, Any]) -> None:
    """A virtual output is the page's own: whoever takes it over has zeroed it."""


def _end_process(how: Mapping[str, Any]) -> None:
    """A sound card falls silent when the process that feeds it ends; its journal keeps what was recorded."""
    from drivers.base import system
    from drivers.base.drive_page import started

    if started(int(how["pid"])) == how["started"]:  # else it has ended, and the number is another's
        with contextlib.suppress(ProcessLookupError):
            system.kill(int(how["pid"]))


def _zero_line(how: Mapping[str, Any]) -> None:
    commands, question = [str(c) for c in how["commands"]], str(how.get("question", ""))
    lines = b"".join(c.encode("ascii") + b"\n" for c in commands)
    message = str(how.get("withdraw", "")).encode("ascii") + b"\n" + REPEATS * lines
    asked = question.encode("ascii") + b"\n" if question else b""
    port = str(how["port"])
    if port.startswith("visa://"):
        _zero_visa(port, [*REPEATS * commands, *filter(None, [question])])
    elif port.startswith("socket://"):
        _zero_socket(port, message, asked)
    elif os.name == "nt":
        _zero_line_on_windows(port, int(how.get("baudrate", 9600)), message, asked)
    else:
        _zero_tty(port, how, message, asked)


def _check_answer(answer: bytes) -> None:
    if not answer.strip():
        raise ZeroingFailed("it does not answer")


def _zero_socket(port: str, message: bytes, asked: bytes) -> None:
    host, _, number = port.removeprefix("socket://").partition(":")
    with socket.create_connection((host, int(number.split("/")[0])), CONNECT_SECONDS) as link:
        link.sendall(message + asked)
        if asked:
            link.settimeout(ANSWER_SECONDS)
            answer = b""
            with contextlib.suppress(TimeoutError):
                answer = link.recv(256)
            _check_answer(answer)
            return
        link.shutdown(socket.SHUT_WR)
        link.settimeout(CONNECT_SECONDS)
        with contextlib.suppress(OSError):
            link.recv(256)  # closed by the other side once it has read everything


def _zero_visa(port: str, commands: list[str]) -> None:
    """PyVISA is no part of the standard library, and may hang: it gets a process of its own."""
    import subprocess

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    done = subprocess.run(
        [sys.executable, "-P", "-m", "drivers.instruments.visa", port, *commands],
        env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True, timeout=VISA_SECONDS,
    )  # fmt: skip
    if done.returncode:
        raise ZeroingFailed(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no answer")


def _zero_tty(port: str, how: Mapping[str, Any], message: bytes, asked: bytes) -> None:
    if sys.platform == "win32":
        raise ZeroingFailed("this system has no terminals")
    import termios  # noqa: TID251 (not reached on Windows)

    handle = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        speed = getattr(termios, f"B{int(how.get('baudrate', 9600))}")
        control = termios.CREAD | termios.CLOCAL | termios.CS8
        if int(how.get("stopbits", 1)) == 2:
            control |= termios.CSTOPB
        settings = termios.tcgetattr(handle)
        settings[0] = settings[1] = settings[3] = 0  # no translation, no echo
        settings[2], settings[4], settings[5] = control, speed, speed
        termios.tcsetattr(handle, termios.TCSANOW, settings)
        termios.tcflush(handle, termios.TCOFLUSH)  # commands of the other process that have not gone out yet
        _write_all(handle, message, port)
        termios.tcdrain(handle)
        if asked:
            termios.tcflush(handle, termios.TCIFLUSH)
            _write_all(handle, asked, port)
            _check_answer(_read_some(handle))
    finally:
        os.close(handle)


def _write_all(handle: int, message: bytes, port: str) -> None:
    deadline = time.monotonic() + ANSWER_SECONDS
    while message:
        try:
            message = message[os.write(handle, message) :]
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise ZeroingFailed(f"the line on {port} takes nothing") from None
            time.sleep(0.005)


def _read_some(handle: int) -> bytes:
    """What comes first, without its ending perhaps; nothing if nothing comes."""
    deadline, answer = time.monotonic() + ANSWER_SECONDS, b""
    while not answer.strip() and time.monotonic() < deadline:
        with contextlib.suppress(BlockingIOError):
            answer += os.read(handle, 256)
        time.sleep(0.002)
    return answer


def _zero_line_on_windows(port: str, baudrate: int, message: bytes, asked: bytes) -> None:
    import serial

    with serial.Serial(port, baudrate, timeout=ANSWER_SECONDS, write_timeout=ANSWER_SECONDS) as line:
        line.write(message)
        if asked:
            line.reset_input_buffer()
            line.write(asked)
            _check_answer(line.readline())


def _zero_nidaqmx(how: Mapping[str, Any]) -> None:
    device = str(how["device"])
    if server := how.get("server"):
        status = _call_grpc(str(server), "/nidaqmx_grpc.NiDAQmx/ResetDevice", _text_field(1, device))
    else:
        import ctypes

        library = ctypes.CDLL(how.get("library") or ("nicaiu" if os.name == "nt" else "libnidaqmx.so.1"))
        status = int(library.DAQmxResetDevice(device.encode()))
    if status < 0:
        raise ZeroingFailed(f"NI-DAQmx refused the reset of {device} ({status})")


# One call of gRPC by hand (HTTP/2, RFC 9113; header fields as literals, RFC 7541 6.2.2): the package that
# does this for the driver takes half a second to load, which is all the time there is.
_DATA, _HEADERS, _RST, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
_END_STREAM, _END_HEADERS, _ACK = 0x1, 0x4, 0x1


def _call_grpc(server: str, path: str, request: bytes) -> int:
    """The field ``status`` (number 1) of the answer to a call; ZeroingFailed without an answer."""
    host, _, port = server.rpartition(":")
    fields = [
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", server),
        ("te", "trailers"), ("content-type", "application/grpc"),
    ]  # fmt: skip
    head = b"".join(b"\x00" + _header_text(name) + _header_text(value) for name, value in fields)
    message = struct.pack(">BI", 0, len(request)) + request
    with socket.create_connection((host, int(port)), CONNECT_SECONDS) as link:
        link.settimeout(ANSWER_SECONDS)
        link.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0, b"")
            + _frame(_HEADERS, _END_HEADERS, 1, head) + _frame(_DATA, _END_STREAM, 1, message)
        )  # fmt: skip
        answer = b""
        for kind, flags, stream, content in _frames(link):
            if kind in (_SETTINGS, _PING) and not flags & _ACK:
                link.sendall(_frame(kind, _ACK, 0, content if kind == _PING else b""))
            elif stream == 1 and kind == _DATA:
                answer += content
            if kind == _GOAWAY or (stream == 1 and (kind == _RST or flags & _END_STREAM)):
                break
    if len(answer) < 5:
        raise ZeroingFailed(f"the device server {server} refused the call")
    return _number_field(answer[5:])


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content


def _frames(link: socket.socket) -> Iterable[tuple[int, int, int, bytes]]:
    while True:
        head = _receive(link, 9)
        length = int.from_bytes(head[:3], "big")
        yield head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF, _receive(link, length)


def _receive(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = link.recv(count - len(data))
        if not part:
            raise ZeroingFailed("the device server closed the connection")
        data += part
    return data


def _header_text(text: str) -> bytes:
    assert len(text) < 127  # one byte of length; ours are all short
    return bytes([len(text)]) + text.encode("ascii")


def _text_field(number: int, text: str) -> bytes:
    data = text.encode("utf-8")
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def _number_field(message: bytes) -> int:
    """Field 1 as a signed number (protocol buffers' varint); an absent one is 0."""
    if not message or message[0] != 1 << 3:
        return 0
    value = shift = 0
    for byte in message[1:]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 128:
            break
    return value - (1 << 64) if value >= 1 << 63 else value
