"""A device server whose reads hang while a file exists, and the calls that it names: run it with the trace's
path and that file's."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from drivers.rig.profile import load_rig
from drivers.virtual import nidaq_server, simulated_device

TRACE_SECONDS = 0.001
FIFO = 8191  # samples of the output that an X Series device takes into its own memory, out of reach


class StallingCalls(nidaq_server.DeviceServer):
    flag: Path

    def call(self, name: str, request: Any) -> dict[str, Any]:
        while self._hangs(name):
            time.sleep(0.01)
        return super().call(name, request)

    def _hangs(self, name: str) -> bool:
        try:
            return name in ("ReadAnalogF64", *self.flag.read_text(encoding="ascii").split())
        except FileNotFoundError:
            return False


def main(trace: Path, flag: Path) -> None:
    StallingCalls.flag = flag
    nidaq_server.DeviceServer = StallingCalls  # type: ignore[misc]
    simulated_device.UPDATE_SECONDS = TRACE_SECONDS
    device = nidaq_server.device_of(load_rig("two_well_beam_modern"), trace, fifo=FIFO)
    server, port, _ = nidaq_server.serve(device)
    sys.stdout.write(f"ready {port}\n")
    sys.stdout.flush()
    server.wait_for_termination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
