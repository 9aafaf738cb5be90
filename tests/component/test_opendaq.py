"""An openDAQ front end: the project's own reference device, with eight channels, and gaps made on the way."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import numpy as np
import pytest

from drivers.base.contract import broken_promises
from drivers.base.protocols import InstrumentError, Source
from drivers.instruments.opendaq import OpendaqSource, _symbol, check_unit, list_devices, terminals
from drivers.rig.profile import ChannelProfile, RigError, RigProfile, rig_from_text

RATE = 1000.0


def text_of(count: int) -> str:
    channels = "".join(f'[[channels]]\nname = "c{i}"\nunit = "V"\n' for i in range(count))
    wiring = ", ".join(f'c{i} = "AI{i}"' for i in range(count))
    return (
        f'name = "front end"\nrate = {RATE}\n{channels}[instruments.source]\ndriver = "opendaq"\n'
        f'device = "daqref://device0"\nwiring = {{ {wiring} }}\n'
        f"[instruments.source.settings]\nNumberOfChannels = {count}\n"
    )


def profile(count: int = 8, **changes: str) -> RigProfile:
    text = text_of(count)
    for old, new in changes.items():
        text = text.replace(old, new)
    return rig_from_text(text, "front-end")


def test_given_the_reference_device_then_it_is_listed_and_eight_channels_keep_the_contract() -> None:
    assert "daqref://device0" in [address for address, _ in list_devices()[0]]
    assert terminals("daqref://device0")[0][:2] == ["AI0", "AI1"]
    source = OpendaqSource(profile())
    assert isinstance(source, Source) and source.rate == RATE and len(source.channels) == 8
    assert broken_promises(source) == []


def test_given_the_simulator_then_eight_channels_arrive_whole_at_its_own_rate() -> None:
    """It plays 5 V at 10 kHz on each of its inputs; it is there where the machine has a network."""
    simulators = [address for address, _ in list_devices()[0] if address.startswith("daq.simulator://")]
    if not simulators:
        pytest.skip("openDAQ finds no simulator of its own here")
    text = text_of(8).replace("daqref://device0", simulators[0]).partition("[instruments.source.set")[0]
    for i in range(8):
        text = text.replace(f'"AI{i}"', f'"AI_{i + 1}"')
    source = OpendaqSource(rig_from_text(text.replace("rate = 1000.0", "rate = 10000.0"), "simulator"))
    source.start()
    first = source.read(np.empty((8, 3000)))
    second = source.read(np.empty((8, 7000)))
    source.close()
    assert (first.start_index, second.start_index, second.samples) == (0, 3000, 7000)
    np.testing.assert_allclose(second.data.max(axis=1), 5.0, rtol=1e-3)
    np.testing.assert_allclose(second.data.min(axis=1), -5.0, rtol=1e-3)


def test_given_a_sound_card_of_openDAQ_then_it_is_refused_with_the_driver_that_works() -> None:
    """Closing it would hang: its thread and whoever ends it wait for each other."""
    assert not [address for address, _ in list_devices()[0] if address.startswith("miniaudio://")]
    card = "miniaudio://alsa/null"
    with pytest.raises(InstrumentError, match="use the driver 'sound'"):
        terminals(card)
    with pytest.raises(InstrumentError, match="use the driver 'sound'"):
        OpendaqSource(profile(1, **{"daqref://device0": card}))


def test_given_its_sine_then_it_arrives_with_the_devices_own_frequency_and_amplitude() -> None:
    source = OpendaqSource(profile(1))
    channel = source._device.channels_recursive[0]
    channel.set_property_value("NoiseAmplitude", 0.0)
    frequency, amplitude = (channel.get_property_value(n) for n in ("Frequency", "Amplitude"))
    source.start()
    source.read(np.empty((1, 200)))
    block = source.read(np.empty((1, 1000)))
    source.close()
    t = np.arange(1000) / RATE
    basis = np.array([np.cos(2 * np.pi * frequency * t), np.sin(2 * np.pi * frequency * t), np.ones(1000)])
    fitted, *_ = np.linalg.lstsq(basis.T, block.data[0], rcond=None)
    assert np.hypot(*fitted[:2]) == pytest.approx(amplitude, rel=1e-6)
    np.testing.assert_allclose(fitted @ basis, block.data[0], atol=1e-6 * amplitude)


class Lossy:
    """The device's reader, on whose way 40 samples are lost."""

    def __init__(self, reader: Any, after: int, lost: int) -> None:
        self._reader, self._left, self._lost = reader, after, lost

    def read_with_domain(self, count: int, timeout_ms: int) -> Any:
        if self._left <= 0 and self._lost:
            values, _ = self._reader.read_with_domain(self._lost, timeout_ms)
            self._lost -= values.shape[1]
            return values[:, :0], np.empty((1, 0))
        values, ticks = self._reader.read_with_domain(min(count, max(self._left, 1)), timeout_ms)
        self._left -= values.shape[1]
        return values, ticks


def test_given_lost_samples_then_the_devices_time_tells_how_many() -> None:
    source = OpendaqSource(profile(2))
    source.start()
    source._reader = Lossy(source._reader, 150, 40)
    blocks = [source.read(np.empty((2, 100))) for _ in range(3)]
    assert [(b.start_index, b.samples) for b in blocks] == [(0, 100), (100, 50), (190, 100)]
    assert "lost" in blocks[2].reason
    source.close()


def test_given_a_mistake_in_the_profile_then_one_sentence() -> None:
    with pytest.raises(InstrumentError, match="daqref://nobody cannot be reached"):
        OpendaqSource(profile(1, **{"daqref://device0": "daqref://nobody"}))
    with pytest.raises(RigError, match="there is no signal 'AI77'"):
        OpendaqSource(profile(1, AI0="AI77"))


def test_given_a_rate_that_its_clock_cannot_divide_then_it_is_refused_before_nothing_arrives() -> None:
    with pytest.raises(RigError, match=r"samples at 2049\.18 Hz.*such as 2000 Hz"):
        OpendaqSource(profile(1, **{f"rate = {RATE}": "rate = 2048.0"}))


@pytest.mark.parametrize(
    ("unit", "sensitivity", "symbol", "words"),
    [
        ("mm", 0.5, "V", ""),
        ("m/s^2", 1.0, "m/s²", ""),
        ("g", 1.0, "", ""),
        ("g", 1.0, "m/s^2", "is in 'g', and the device gives it in 'm/s^2'"),
        ("mm", 0.5, "mV", "the device gives it in 'mV'"),
        ("mm", 0.5, "mm", "in mm already, so its sensitivity is 1 and not 0.5"),
    ],
)
def test_given_the_unit_of_the_device_then_what_would_be_misread_is_refused(
    unit: str, sensitivity: float, symbol: str, words: str
) -> None:
    channel = ChannelProfile("x", unit, sensitivity=sensitivity)
    with pytest.raises(RigError, match=re.escape(words)) if words else contextlib.nullcontext():
        check_unit(channel, symbol)


def test_given_the_reference_device_then_its_unit_is_read() -> None:
    source = OpendaqSource(profile(1))
    try:
        assert _symbol(source._signals[0]) == "V"
    finally:
        source.close()
