"""The errors of NI-DAQmx in words: what the driver says, which setting it means, and what to do about it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from drivers.base.protocols import InstrumentError, LinkLost

OVERRUN, OLDER_FIRMWARE_OVERRUN, TIMED_OUT, UNSUPPORTED = -200279, -200278, -200284, -200452
PLAYED_ALREADY = -200289
NOT_RESERVED = -200983  # a property that only a reserved task has
RESERVED = (-50103, -200022, -201105)
NETWORK_NOT_RESERVED, NETWORK_RESERVED_ELSEWHERE = -201388, -201420
ONE_DEVICE_A_TASK = (-200558, -209882, -201207, -201094)
NO_TEDS, TEDS_NOT_SUPPORTED = -200709, -200741
OTHER_SENSOR = -200756  # its own data tell of another kind than was asked for
NO_ROUTE = (-89120, -89125, -89136, -89137, -89138, -89139, -89140, -200368, -200395)
GONE = (-200220, -201003, -88705)
NO_TERMINAL = -200170
RESET = (-88709, -88710, -200088)
BUSY_SECONDS = 1.5  # that a device may be held by a program which is ending
BUSY_PAUSE = 0.1

_ADVICE = {
    **dict.fromkeys(
        RESERVED,
        "Another program or another rig uses it: close NI MAX's test panels, LabVIEW or the other window, "
        "and open the rig again.",
    ),
    NETWORK_RESERVED_ELSEWHERE: "Another computer holds this chassis: release it there, or in NI MAX.",
    NO_TEDS: "Is the sensor one with TEDS, and plugged in? Otherwise take `teds = true` out of the profile "
    "and state its sensitivity.",
    TEDS_NOT_SUPPORTED: "Take `teds = true` out of the profile and state the sensor's sensitivity.",
    **dict.fromkeys(
        NO_ROUTE,
        "These devices have no line in common for the clock: use modules of one chassis, or one device, for "
        "inputs and output.",
    ),
    **dict.fromkeys(
        GONE,
        "Is the device plugged in, switched on and named as in the rig's profile? `shakedown devices` lists "
        "what is there.",
    ),
    NO_TERMINAL: "The device has no input or output of the name that the rig's profile gives.",
    **dict.fromkeys(RESET, "The device was reset while it ran: open the rig again."),
}
# Lines of the driver's messages that say which setting is meant.
_DETAILS = ("property", "requested value", "possible values", "maximum value", "minimum value",
            "channel name", "physical channel name", "device", "source terminal")  # fmt: skip

T = TypeVar("T")


@contextlib.contextmanager
def in_words(doing: str) -> Iterator[None]:
    """Turn the driver's errors into sentences. A lost server is a LinkLost."""
    from nidaqmx.errors import Error, RpcError

    try:
        yield
    except RpcError as error:
        raise LinkLost(
            f"The NI device server cannot be reached while {doing} ({first_sentence(error)}); "
            "what was recorded is safe. Check the server and the network, then open the rig again."
        ) from None
    except Error as error:
        advice = _ADVICE.get(getattr(error, "error_code", 0), "")
        raise InstrumentError(f"NI-DAQmx, {doing}: {first_sentence(error)} {advice}".rstrip()) from None


def first_sentence(error: Exception) -> str:
    """The first line of the driver's message with the settings that it names, and the error's number."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    details = [line.rstrip(".") for line in lines[1:] if line.partition(":")[0].lower() in _DETAILS]
    code = getattr(error, "error_code", None)
    about = "; ".join([*details, *([str(code)] if code else [])])
    return f"{text.rstrip('.')} ({about})." if about else text


def patiently(action: Callable[[], T]) -> T:
    """Do what reserves a device; again for a while if a program that is ending still has it."""
    from nidaqmx.errors import DaqError

    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return action()
        except DaqError as error:
            if error.error_code not in RESERVED or time.monotonic() > deadline:
                raise
        time.sleep(BUSY_PAUSE)
