"""Front ends that speak openDAQ (HBK, Dewesoft and others), through the package of that name.

    [instruments.source]
    driver = "opendaq"
    device = "daq.nd://192.168.0.20"      # connection string, as `shakedown devices` lists it
    wiring = { x = "AI0", f = "AI1" }     # signals of the device, by name

Every sample carries the time stamp of the device, in ticks: the index follows from it, so what was lost on
the way is a gap of known length. Values arrive in volts, to which the profile's sensitivity applies, or
as the device scales them to the channel's unit: then the sensitivity is 1. Anything else is refused.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import EXTRAS, missing_extra, need_extra
from drivers.base.clock import Clock
from drivers.base.overload import overloads
from drivers.base.protocols import Block, InstrumentError, LinkLost, Samples
from drivers.rig.profile import ChannelProfile, RigError, RigProfile

STEP_MS = 100  # of one call that waits
WAIT_SECONDS = 5.0  # for samples, beyond the time that they take
SOUND = "miniaudio://"  # openDAQ's own module for sound cards


def list_devices() -> tuple[list[tuple[str, str]], str]:
    """The devices that answer on the network and the simulated ones."""
    if not EXTRAS["opendaq"].installed:
        return [], missing_extra("opendaq")
    import opendaq

    found = [(str(d.connection_string), str(d.name)) for d in opendaq.Instance().available_devices]
    found = [(address, name) for address, name in found if not address.startswith(SOUND)]
    return found, "" if found else "No openDAQ device was found."


def terminals(address: str) -> tuple[list[str], list[str]]:
    """Signals of a device that have a clock; it drives nothing."""
    need_extra("opendaq")
    _refuse_sound(address)
    import opendaq

    instance = opendaq.Instance()
    try:
        device = instance.add_device(address)
        names = [str(s.name) for s in device.signals_recursive if s.domain_signal is not None]
        instance.remove_device(device)
    except RuntimeError as error:
        raise InstrumentError(f"The openDAQ device {address} cannot be asked ({_words(error)}).") from None
    return names, []


def _refuse_sound(address: str) -> None:
    """openDAQ 3.40: letting go of a sound card waits for the card's thread with the lock that it waits for,
    and holds up every other thread of the process."""
    if address.startswith(SOUND):
        raise InstrumentError(
            f"{address} is a sound card: use the driver 'sound'. openDAQ's own module for sound cards hangs "
            "when it is closed."
        )


def open_source(profile: RigProfile, clock: Clock | None, seed: int) -> OpendaqSource:
    return OpendaqSource(profile)


def check_unit(channel: ChannelProfile, symbol: str) -> None:
    """RigError where the unit that the device tells (``symbol``, perhaps empty) would be misread."""
    if symbol in ("", "V"):
        return
    if _plain(symbol) != _plain(channel.unit):
        raise RigError(
            f"channel '{channel.name}' is in '{channel.unit}', and the device gives it in '{symbol}': use "
            "that unit, or set the device to volts."
        )
    if channel.sensitivity != 1:
        raise RigError(
            f"channel '{channel.name}': the device gives it in {symbol} already, so its sensitivity is 1 "
            f"and not {channel.sensitivity:g}."
        )


def _plain(unit: str) -> str:
    """m/s² and m/s^2 are one unit."""
    return unit.translate(str.maketrans("²³µμ", "23uu", "^ "))


def _symbol(signal: Any) -> str:
    """The unit of a signal as the device tells it; empty if it tells none."""
    descriptor = signal.descriptor
    unit = None if descriptor is None else descriptor.unit
    return "" if unit is None else str(unit.symbol or "")


class OpendaqSource:
    """Signals of one device on its clock."""

    waits = False

    def __init__(self, profile: RigProfile) -> None:
        need_extra("opendaq")
        import opendaq

        table = profile.instruments["source"]
        if "device" not in table:
            raise RigError("[instruments.source]: 'device' is missing, such as \"daq.nd://192.168.0.20\".")
        self.name = profile.name
        self.channels = tuple(c.info() for c in profile.channels)
        self._gain = np.array([[1 / c.sensitivity] for c in profile.channels])
        self._zero = np.array([[c.zero] for c in profile.channels])
        address = str(table["device"])
        _refuse_sound(address)
        self._instance: Any = opendaq.Instance()
        try:
            self._device = self._instance.add_device(address)
        except RuntimeError as error:
            raise InstrumentError(
                f"The openDAQ device {address} cannot be reached ({_words(error)})."
            ) from None
        self._set(table.get("settings", {}), profile.rate)
        self._signals = [self._signal(str(table["wiring"][c.name])) for c in profile.channels]
        for channel, signal in zip(profile.channels, self._signals, strict=True):
            check_unit(channel, _symbol(signal))
        domain = self._signals[0].domain_signal.descriptor
        ticks = domain.tick_resolution  # s, a ratio
        self._ticks = float(dict(domain.rule.parameters)["delta"])  # of one sample
        self.rate = float(ticks.denominator) / (float(ticks.numerator) * self._ticks)
        if abs(self.rate / profile.rate - 1) > 1e-3:
            raise RigError(
                f"The device samples at {self.rate:g} Hz and not at {profile.rate:g} Hz: set it so."
            )
        if abs(self.rate - round(self.rate)) > 1e-6 * self.rate:
            raise RigError(
                f"The device samples at {self.rate:.7g} Hz, and openDAQ reads whole numbers of Hz only: "
                "set a rate that divides 1 000 000, such as 2000 Hz."
            )
        self._reader: Any = None

    def _set(self, settings: dict[str, Any], rate: float) -> None:
        """Properties of the device by name, and the rate where the device has one for all."""
        wanted = dict(settings)
        if self._device.has_property("GlobalSampleRate"):
            wanted.setdefault("GlobalSampleRate", float(rate))
        for name, value in wanted.items():
            try:
                self._device.set_property_value(name, value)
            except RuntimeError as error:
                raise RigError(f"[instruments.source.settings]: {name} ({_words(error)}).") from None

    def _signal(self, name: str) -> Any:
        known = {str(s.name): s for s in self._device.signals_recursive}
        if name not in known:
            raise RigError(
                f"[instruments.source] wiring: there is no signal '{name}' but {', '.join(known)}."
            )
        return known[name]

    def start(self) -> None:
        import opendaq

        self.stop()
        kinds = opendaq.SampleType
        self._reader = opendaq.MultiReader(self._signals, value_type=kinds.Float64, domain_type=kinds.Int64)
        self._first: int | None = None  # tick of sample 0
        self._expected = 0
        self._rest: tuple[NDArray[np.float64], NDArray[np.int64]] = self._nothing()

    def _nothing(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return np.empty((len(self._signals), 0)), np.empty(0, np.int64)

    def read(self, into: Samples) -> Block:
        """As many samples as fit, or fewer before a gap."""
        if self._reader is None:
            raise InstrumentError("The openDAQ device is not running.")
        wanted = into.shape[1]
        values, ticks = self._rest
        deadline = time.monotonic() + wanted / self.rate + WAIT_SECONDS
        while len(ticks) < wanted and self._whole(ticks):
            more, stamps = self._reader.read_with_domain(wanted - len(ticks), STEP_MS)
            if np.shape(more)[-1]:
                values = np.concatenate([values, np.atleast_2d(more)], axis=1)  # one signal: a row alone
                ticks = np.concatenate([ticks, np.atleast_2d(stamps)[0].astype(np.int64)])
            elif time.monotonic() > deadline:
                raise LinkLost("The openDAQ device gives no samples any more; what was recorded is safe.")
        count = self._in_a_row(ticks[:wanted])
        self._rest = values[:, count:], ticks[count:]
        if self._first is None:
            self._first = int(ticks[0])
        start = round((int(ticks[0]) - self._first) / self._ticks)
        data = into[:, :count]
        data[:] = values[:, :count] * self._gain + self._zero
        reason = "samples were lost between the device and the program" if start > self._expected else ""
        self._expected = start + count
        return Block(start, data, overloads(data, self.channels, start), reason=reason)

    def _in_a_row(self, ticks: NDArray[np.int64]) -> int:
        """How many samples follow one another without a gap."""
        jumps = np.flatnonzero(np.abs(np.diff(ticks) - self._ticks) > 0.5 * self._ticks)
        return int(jumps[0]) + 1 if len(jumps) else len(ticks)

    def _whole(self, ticks: NDArray[np.int64]) -> bool:
        return self._in_a_row(ticks) == len(ticks)

    def stop(self) -> None:
        self._reader = None

    def close(self) -> None:
        self.stop()
        instance, self._instance = self._instance, None
        if instance is not None:
            instance.remove_device(self._device)


def _words(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".") or type(error).__name__
