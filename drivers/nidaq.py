"""NI-DAQmx through the nidaqmx package."""

from __future__ import annotations


def list_devices() -> tuple[list[tuple[str, str]], str]:
    """Name and description of each NI device, and a sentence if none could be looked for."""
    from nidaqmx.errors import DaqNotFoundError, DaqNotSupportedError, Error
    from nidaqmx.system import System

    try:
        found = [
            (d.name, f"{d.product_type}, serial number {d.serial_num:X}") for d in System.local().devices
        ]
    except (DaqNotFoundError, DaqNotSupportedError):
        return [], "The NI-DAQmx driver is not installed, so NI devices were not looked for."
    except Error as error:
        return [], f"NI devices could not be listed: {str(error).splitlines()[0]}"
    return found, "" if found else "No NI device was found."
