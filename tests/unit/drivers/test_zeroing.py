"""Zeroing an output from outside: the bytes on a line, a reset of a device over its server or its library."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from drivers.base.zeroing import ZeroingFailed, zero_output
from drivers.rig.profile import load_rig
from drivers.virtual.nidaq_server import device_of, serve
from drivers.virtual.simulated_instruments import SimulatedDS345, SimulatedScpi
from tests.waiting import wait_until

posix = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")


@posix
def test_given_a_step_upwards_that_was_broken_off_then_the_end_of_its_line_does_not_set_it() -> None:
    with SimulatedScpi() as instrument:
        with Path(instrument.port).open("wb", buffering=0) as line:
            line.write(b"VOLT 1.0\nVOLT 4.0")  # frozen before the end of the second line
            how = {"kind": "line", "port": instrument.port, "commands": ["OUTP OFF"], "withdraw": "E-9"}
            wait_until(lambda: instrument.peak == 1.0)  # open: told is that into 50 ohm
            zero_output(how)
        wait_until(lambda: instrument.peak == 0.0)
        assert max(peak for _, peak in instrument.history) == 1.0


@posix
@pytest.mark.parametrize(
    ("simulated", "command"), [(SimulatedDS345, "AMPL 0.000VP"), (SimulatedScpi, "OUTP OFF")]
)
def test_given_a_generator_that_plays_then_zero_even_behind_a_broken_line(
    simulated: type, command: str
) -> None:
    with simulated() as instrument:
        with Path(instrument.port).open("wb", buffering=0) as line:
            line.write(b"AMPL 1.")  # the process that wrote this was frozen here
            zero_output({"kind": "line", "port": instrument.port, "baudrate": 9600, "commands": [command]})
        wait_until(lambda: instrument.peak == 0.0)
        assert instrument.received[-1] == command.encode() + b"\n"


@posix
def test_given_a_generator_that_hears_nothing_then_it_is_not_taken_for_reached() -> None:
    with SimulatedDS345() as instrument:
        how = {"kind": "line", "port": instrument.port, "commands": ["AMPL 0.000VP"], "question": "AMPL? VP"}
        zero_output(how)
        assert instrument.peak == 0.0  # it has answered, so the command has been done
        instrument.fault = "deaf"
        with pytest.raises(ZeroingFailed, match="does not answer"):
            zero_output(how)


def test_given_a_socket_then_the_same_bytes_and_a_dead_one_is_said() -> None:
    received = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def take() -> None:
            with server.accept()[0] as link:
                while data := link.recv(100):
                    received.extend(data)

        thread = threading.Thread(target=take)
        thread.start()
        how = {"kind": "line", "port": f"socket://127.0.0.1:{port}", "commands": ["OUTP OFF"]}
        zero_output(how)
        thread.join()
    assert received == b"\nOUTP OFF\nOUTP OFF\n"
    with pytest.raises(ZeroingFailed, match="refused"):
        zero_output(how)
    with pytest.raises(ZeroingFailed, match="nobody knows"):
        zero_output({"kind": "carrier pigeon"})


def test_given_a_device_server_then_the_device_is_reset_and_a_wrong_device_is_said() -> None:
    device = device_of(load_rig("two_well_beam"))
    server, port, _ = serve(device)
    try:
        device.output = 1.5
        zero_output({"kind": "nidaqmx", "device": "Dev1", "server": f"127.0.0.1:{port}"})
        assert device.output == 0.0
        with pytest.raises(ZeroingFailed, match="refused"):
            zero_output({"kind": "nidaqmx", "device": "Dev9", "server": f"127.0.0.1:{port}"})
    finally:
        server.stop(0)
        device.close()


LIBRARY = """
#include <stdio.h>
int DAQmxResetDevice(const char *name) {
    FILE *file = fopen("%s", "w"); fputs(name, file); fclose(file);
    return name[3] == '1' ? 0 : -200220;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_given_the_driver_on_this_machine_then_its_reset_is_called(tmp_path: Path) -> None:
    source, library, called = tmp_path / "ni.c", tmp_path / "ni.so", tmp_path / "called"
    source.write_text(LIBRARY % called)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    zero_output({"kind": "nidaqmx", "device": "Dev1", "library": str(library)})
    assert called.read_text() == "Dev1"
    with pytest.raises(ZeroingFailed, match="-200220"):
        zero_output({"kind": "nidaqmx", "device": "Dev2", "library": str(library)})
    with pytest.raises(ZeroingFailed):
        zero_output({"kind": "nidaqmx", "device": "Dev1", "library": str(tmp_path / "absent.so")})
