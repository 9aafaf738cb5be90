"""The channels of an NI input task: voltage, IEPE accelerometer and force sensor, strain bridge, TEDS.

A sensor with TEDS carries its own calibration (IEEE 1451.4); with ``teds = true`` that is used. The supply
current of an IEPE sensor, where the profile does not say it, is 4 mA if the device has that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

from drivers.instruments.nidaq_errors import OTHER_SENSOR, UNSUPPORTED
from drivers.instruments.teds import SensorData, with_calibration
from drivers.rig.profile import ChannelProfile, RigError

STANDARD_GRAVITY = 9.80665
USUAL_CURRENT = 0.004  # A
TEDS_RANGE = 5.0  # V, of a sensor that is asked for its data
DIFFERENT = 0.1  # relative difference of a sensor's own sensitivity from the profile's that is worth a word


def conversion(channel: ChannelProfile) -> tuple[float, float]:
    """Factor and summand from what the driver gives (V, strain, g, N) to the channel's unit."""
    if channel.kind in ("iepe", "force"):
        return 1.0, channel.zero
    return 1.0 / channel.sensitivity, channel.zero


def add_channel(task: Any, channel: ChannelProfile, terminal: str, session: Any) -> ChannelProfile:
    """Add a channel to a task; the channel as it is now, with the sensor's own data where they were read."""
    if channel.kind in ("iepe", "force") and channel.excitation_current is None:
        channel = replace(channel, excitation_current=_current(terminal, session))
    if channel.teds:
        channel, created = _add_teds(task.ai_channels, channel, terminal, session)
    else:
        created = _ADDERS[channel.kind](task.ai_channels, channel, terminal)
    if channel.coupling == "ac":
        from nidaqmx.constants import Coupling

        created.ai_coupling = Coupling.AC
    return channel


def teds_notice(stated: ChannelProfile, found: ChannelProfile) -> str:
    """A sentence if the sensor's own sensitivity is not the profile's; a stated 1 says nothing."""
    if not stated.teds or stated.sensitivity == 1.0:
        return ""
    if abs(found.sensitivity / stated.sensitivity - 1) < DIFFERENT:
        return ""
    return (
        f"Channel '{stated.name}': the sensor's own data say {found.sensitivity:.4g} V per {stated.unit}, "
        f"the profile {stated.sensitivity:.4g}; the sensor's are used. Is it the right sensor?"
    )


def sensor_data(terminal: str, session: Any) -> SensorData:
    """What the sensor at an input tells of itself, without opening a rig."""
    from nidaqmx import Task
    from nidaqmx.errors import DaqError

    task = Task(grpc_options=session) if session else Task()
    try:
        for kind, unit in (("iepe", "m/s²"), ("force", "N")):
            asked = ChannelProfile("sensor", unit, kind=kind, teds=True, range=TEDS_RANGE)
            try:
                found = add_channel(task, asked, terminal, session)
            except DaqError as error:  # not an accelerometer
                if kind != "iepe" or error.error_code != OTHER_SENSOR:
                    raise
            else:
                break
    finally:
        task.close()
    place = _place(terminal, session)
    told = SensorData(
        kind, unit, found.sensitivity, int(place.teds_mfg_id), int(place.teds_model_num),
        int(place.teds_serial_num),
    )  # fmt: skip
    return with_calibration(told, place.teds_bit_stream, date.today())


def _current(terminal: str, session: Any) -> float:
    """A supply current (A) that the device has: the usual one, or the lowest."""
    from nidaqmx.errors import DaqError
    from nidaqmx.system.device import Device

    name = terminal.lstrip("/").split("/")[0]
    device = Device(name, grpc_options=session) if session else Device(name)
    try:
        offered = [c for c in device.ai_current_int_excit_discrete_vals if c > 0]
    except DaqError as error:
        if error.error_code != UNSUPPORTED:
            raise
        offered = []
    return USUAL_CURRENT if USUAL_CURRENT in offered or not offered else min(offered)


def _add_teds(
    channels: Any, channel: ChannelProfile, terminal: str, session: Any
) -> tuple[ChannelProfile, Any]:
    from nidaqmx.constants import AccelSensitivityUnits, ForceIEPESensorSensitivityUnits, ForceUnits

    place = _place(terminal, session)
    place.configure_teds("")  # reads the sensor that is plugged in now; the driver keeps what it read before
    common = {"current_excit_val": channel.excitation_current}
    if channel.kind == "iepe":
        created = channels.add_teds_ai_accel_chan(
            terminal, channel.name, units=_acceleration_units(channel), **common
        )
        volts_per_g = created.ai_accel_sensitivity
        if created.ai_accel_sensitivity_units == AccelSensitivityUnits.MILLIVOLTS_PER_G:
            volts_per_g /= 1000
        sensitivity = volts_per_g / (1.0 if channel.unit == "g" else STANDARD_GRAVITY)
    else:
        created = channels.add_teds_ai_force_iepe_chan(
            terminal, channel.name, units=ForceUnits.NEWTONS, **common
        )
        sensitivity = created.ai_force_iepe_sensor_sensitivity / 1000
        per_newton = ForceIEPESensorSensitivityUnits.MILLIVOLTS_PER_NEWTON
        if created.ai_force_iepe_sensor_sensitivity_units != per_newton:  # per pound
            sensitivity /= 4.4482216152605
    created.ai_max = channel.range / sensitivity
    created.ai_min = -channel.range / sensitivity
    named = f"TEDS: maker {place.teds_mfg_id}, model {place.teds_model_num}, serial number "
    sensor = f"{channel.sensor} ({named}{place.teds_serial_num})".strip()
    return replace(channel, sensitivity=float(sensitivity), sensor=sensor), created


def _place(terminal: str, session: Any) -> Any:
    from nidaqmx.system.physical_channel import PhysicalChannel

    return PhysicalChannel(terminal, grpc_options=session) if session else PhysicalChannel(terminal)


def _add_voltage(channels: Any, channel: ChannelProfile, terminal: str) -> Any:
    return channels.add_ai_voltage_chan(terminal, channel.name, min_val=-channel.range, max_val=channel.range)


def _acceleration_units(channel: ChannelProfile) -> Any:
    from nidaqmx.constants import AccelUnits

    units = {
        "g": AccelUnits.G,
        "m/s^2": AccelUnits.METERS_PER_SECOND_SQUARED,
        "m/s²": AccelUnits.METERS_PER_SECOND_SQUARED,
    }
    if channel.unit not in units:
        raise RigError(
            f"channel '{channel.name}': an accelerometer's unit is g or m/s^2, not '{channel.unit}'."
        )
    return units[channel.unit]


def _add_acceleration(channels: Any, channel: ChannelProfile, terminal: str) -> Any:
    from nidaqmx.constants import AccelSensitivityUnits, ExcitationSource

    units = _acceleration_units(channel)
    volts_per_g = channel.sensitivity * (1.0 if channel.unit == "g" else STANDARD_GRAVITY)
    reach = channel.range / channel.sensitivity
    return channels.add_ai_accel_chan(
        terminal,
        channel.name,
        min_val=-reach,
        max_val=reach,
        units=units,
        sensitivity=1000 * volts_per_g,
        sensitivity_units=AccelSensitivityUnits.MILLIVOLTS_PER_G,
        current_excit_source=ExcitationSource.INTERNAL,
        current_excit_val=channel.excitation_current,
    )


def _add_force(channels: Any, channel: ChannelProfile, terminal: str) -> Any:
    from nidaqmx.constants import ExcitationSource, ForceIEPESensorSensitivityUnits, ForceUnits

    reach = channel.range / channel.sensitivity
    return channels.add_ai_force_iepe_chan(
        terminal,
        channel.name,
        min_val=-reach,
        max_val=reach,
        units=ForceUnits.NEWTONS,
        sensitivity=1000 * channel.sensitivity,
        sensitivity_units=ForceIEPESensorSensitivityUnits.MILLIVOLTS_PER_NEWTON,
        current_excit_source=ExcitationSource.INTERNAL,
        current_excit_val=channel.excitation_current,
    )


def _add_strain(channels: Any, channel: ChannelProfile, terminal: str) -> Any:
    from nidaqmx.constants import ExcitationSource, StrainGageBridgeType

    bridges = {
        "quarter": StrainGageBridgeType.QUARTER_BRIDGE_I,
        "half": StrainGageBridgeType.HALF_BRIDGE_I,
        "full": StrainGageBridgeType.FULL_BRIDGE_I,
    }
    created = channels.add_ai_strain_gage_chan(
        terminal,
        channel.name,
        min_val=-channel.range,
        max_val=channel.range,
        strain_config=bridges[channel.bridge],
        voltage_excit_source=ExcitationSource.INTERNAL,
        voltage_excit_val=channel.bridge_excitation,
        gage_factor=channel.gauge_factor,
        initial_bridge_voltage=channel.initial_bridge_voltage,
        nominal_gage_resistance=channel.bridge_resistance,
    )
    if channel.shunt_gain != 1.0:  # the driver multiplies by it, and the next calibration starts from it
        created.ai_bridge_shunt_cal_gain_adjust = channel.shunt_gain
    return created


_ADDERS: dict[str, Callable[[Any, ChannelProfile, str], Any]] = {
    "voltage": _add_voltage,
    "iepe": _add_acceleration,
    "force": _add_force,
    "bridge": _add_strain,
}
