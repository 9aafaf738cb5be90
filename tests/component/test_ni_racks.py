"""NI as its users meet it: CompactDAQ, several devices, TEDS, IEPE, and devices that refuse or are in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from nidaqmx import GrpcSessionOptions

from analysis.model import Model
from drivers.base.limits import Limits
from drivers.base.protocols import InstrumentError
from drivers.base.waveform import Sine
from drivers.instruments import nidaq_errors
from drivers.instruments.nidaq import NidaqExciter, NidaqSource, connect, list_devices, sensor_data, terminals
from drivers.rig.profile import ChannelProfile, RigError, RigProfile, open_rig
from drivers.virtual.ni_products import (
    CDAQ_9178,
    NI_9234,
    PXI_6251,
    PXIE_6363,
    USB_6211,
    Rack,
    Teds,
    compact_daq,
)
from drivers.virtual.nidaq_server import DeviceServer, InProcessChannel, serve
from drivers.virtual.plant import Plant, Shaker, Specimen
from drivers.virtual.simulated_device import SimulatedDevice, Wire
from tests.waiting import GUARD, wait_until

KINDS = {"iepe": "accel", "force": "force"}
RATE = 2048.0  # a clock that the NI 9234 has
DRIVE, TABLE = ChannelProfile("drive", "V"), ChannelProfile("table", "mm", sensitivity=2.0)
Open = Callable[..., "Bench"]


def still_plant(rate: float, oversampling: int) -> Plant:
    """A specimen that does nothing but follow the table: easy to predict."""
    model = Model.from_equations({"x": "y - x"}, inputs={"y": "measured"}, name="follower")
    return Plant(Specimen(model, inputs={"y": "table"}), Shaker(1.0, 1e-3), rate, oversampling)


def profile(*wired: tuple[ChannelProfile, str], output: str = "", **more: Any) -> RigProfile:
    source = {"driver": "nidaqmx", "wiring": {c.name: t for c, t in wired}, **more.pop("source", {})}
    instruments: dict[str, Any] = {"source": source}
    if output:
        instruments["exciter"] = {"driver": "nidaqmx", "output": output, **more.pop("exciter", {})}
    limits, rate = Limits(5.0, slew=5000.0), more.pop("rate", RATE)
    return RigProfile("bench", "bench", rate, tuple(c for c, _ in wired), limits, instruments)


class Bench:
    """A rack of simulated devices, the real package's session with them, and the rig opened on it."""

    def __init__(self, rack: Rack, wires: dict[str, Wire]) -> None:
        self.device = SimulatedDevice(still_plant, wires, rack=rack)
        self.calls = DeviceServer(self.device)
        self.session = GrpcSessionOptions(InProcessChannel(self.calls), "")
        self.parts: list[Any] = [self.device]

    def open(self, rig: RigProfile) -> NidaqSource:
        source = NidaqSource(rig, self.session)
        self.parts.insert(0, source)
        return source

    def drive(self, rig: RigProfile, source: NidaqSource) -> NidaqExciter:
        exciter = NidaqExciter(rig, source)
        self.parts.insert(0, exciter)
        return exciter

    def close(self) -> None:
        for part in self.parts:
            part.close()


@pytest.fixture
def bench() -> Iterator[Open]:
    opened: list[Bench] = []

    def make(rack: Rack, **wires: Wire) -> Bench:
        opened.append(Bench(rack, {name.replace("_", "/"): wire for name, wire in wires.items()}))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def steady(source: NidaqSource, size: int = 128) -> list[Any]:
    """Blocks until the drive has its amplitude, and four more."""
    got: list[Any] = []
    while sum(b.drive is not None and b.drive.steady for b in got) < 4:
        got.append(source.read(np.empty((len(source.channels), size))))
        assert len(got) < 400
    return got


def assert_in_step(source: NidaqSource, got: list[Any], amplitude: float, frequency: float) -> None:
    """The drive that came back is the one that the phase of each block says, to rounding."""
    for block in (b for b in got if b.drive is not None and b.drive.steady):
        n = np.arange(block.samples)
        expected = amplitude * np.cos(block.drive.phase + 2 * np.pi * frequency * n / source.rate)
        assert np.abs(block.data[0] - expected).max() < 1e-9


# -- CompactDAQ


def test_given_a_chassis_then_inputs_of_two_modules_and_the_output_run_on_its_clock(bench: Open) -> None:
    rack = bench(compact_daq(), cDAQ1Mod1_ai0=Wire("drive"), cDAQ1Mod2_ai3=Wire("table", 2.0))
    rig = profile((DRIVE, "cDAQ1Mod1/ai0"), (TABLE, "cDAQ1Mod2/ai3"), output="cDAQ1Mod4/ao0")
    source = rack.open(rig)
    exciter = rack.drive(rig, source)
    for _ in range(2):  # and again after a stop
        source.start()
        # not /cDAQ1Mod1/ai/..., and not the chassis' first engine, which another program has
        assert source.inputs.clock == "/cDAQ1/te1/SampleClock"
        assert source.inputs.trigger == "/cDAQ1/te1/StartTrigger"
        exciter.play(Sine(1.5, 32.0, 0.4))
        assert_in_step(source, steady(source), 1.5, 32.0)
        source.stop()
    assert not source.notices
    found, note = list_devices(rack.session)
    assert [name for name, _ in found] == ["cDAQ1", "cDAQ1Mod1", "cDAQ1Mod2", "cDAQ1Mod4"] and not note


def test_given_a_chassis_or_a_module_then_inputs_and_outputs_of_all_its_modules_are_offered(
    bench: Open,
) -> None:
    ends = {"cDAQ1Mod1_ai0": Wire("drive"), "cDAQ1Mod2_ai0": Wire("drive"), "cDAQ1Mod2_ai3": Wire("drive")}
    rack = bench(compact_daq(), **ends)
    inputs = ["cDAQ1Mod1/ai0", "cDAQ1Mod2/ai0", "cDAQ1Mod2/ai3"]
    assert terminals("cDAQ1", rack.session) == (inputs, ["cDAQ1Mod4/ao0"])
    assert terminals("cDAQ1Mod2", rack.session) == ([*inputs[1:], inputs[0]], ["cDAQ1Mod4/ao0"])
    other = bench(Rack({"Dev1": PXIE_6363, "Dev2": PXIE_6363}), ai0=Wire("drive"), Dev2_ai0=Wire("drive"))
    assert terminals("Dev2", other.session) == (["Dev2/ai0"], [])  # no chassis: no module


def test_given_a_terminal_is_asked_for_before_the_task_is_reserved_then_the_device_refuses_as_a_real_one(
    bench: Open,
) -> None:
    import nidaqmx
    from nidaqmx.constants import TaskMode

    rack = bench(compact_daq(), cDAQ1Mod1_ai0=Wire("drive"))
    with nidaqmx.Task(grpc_options=rack.session) as task:
        task.ai_channels.add_ai_voltage_chan("cDAQ1Mod1/ai0")
        task.timing.cfg_samp_clk_timing(RATE)
        with pytest.raises(nidaqmx.DaqError) as error:
            _ = task.triggers.start_trigger.term
        assert error.value.error_code == -200983
        task.control(TaskMode.TASK_RESERVE)
        assert task.triggers.start_trigger.term == "/cDAQ1/te1/StartTrigger"
        assert [d.name for d in task.devices] == ["cDAQ1", "cDAQ1Mod1"]


def test_given_a_rate_that_a_module_has_no_clock_for_then_the_rate_it_takes_is_said_and_used(
    bench: Open,
) -> None:
    rack = bench(compact_daq(), cDAQ1Mod1_ai0=Wire("drive"))
    source = rack.open(profile((DRIVE, "cDAQ1Mod1/ai0"), rate=2000.0))
    assert source.rate == 2048.0  # the next higher one: 51.2 kHz / 25
    assert source.notices == ["The device samples at 2048 Hz: it has no clock of the 2000 Hz asked for."]
    with pytest.raises(InstrumentError, match=r"SampClk_Rate.*Minimum Value: 1\.65.*-200077"):
        rack.open(profile((DRIVE, "cDAQ1Mod1/ai0"), rate=187.5))


def test_given_an_output_on_a_clock_of_its_own_in_a_chassis_then_refused_before_motion(bench: Open) -> None:
    rack = bench(compact_daq(), cDAQ1Mod1_ai0=Wire("drive"))
    rig = profile((DRIVE, "cDAQ1Mod1/ai0"), output="cDAQ1Mod4/ao0", exciter={"oversampling": 4})
    with pytest.raises(RigError, match=r"different devices or modules.*oversampling = 1"):
        rack.drive(rig, rack.open(rig))


def test_given_a_chassis_on_the_network_then_it_is_reserved_for_us_unless_another_computer_has_it(
    bench: Open,
) -> None:
    rack = bench(Rack({"cDAQ9": CDAQ_9178, "cDAQ9Mod1": NI_9234}, "cDAQ9", network=True),
                 cDAQ9Mod1_ai0=Wire("drive"))  # fmt: skip
    rack.device.network_holder = None
    rack.open(profile((DRIVE, "cDAQ9Mod1/ai0"))).close()
    assert rack.device.network_holder == "us"
    rack.device.network_holder = "another"
    with pytest.raises(InstrumentError, match=r"reserved by another host \(-201420\).*release it there"):
        rack.open(profile((DRIVE, "cDAQ9Mod1/ai0")))
    assert rack.device.network_holder == "another"


# -- several devices


@pytest.mark.parametrize("product", [PXIE_6363, PXI_6251])
def test_given_two_devices_then_their_samples_belong_together_in_one_task_or_two(
    bench: Open, product: Any
) -> None:
    """X series devices share a task; for M series each has its own, on the first one's clock."""
    rack = bench(Rack({"Dev1": product, "Dev2": product}, output="Dev2"), ai0=Wire("drive"),
                 Dev2_ai1=Wire("drive", 2.0), Dev1_ai2=Wire("table", 2.0))  # fmt: skip
    again = ChannelProfile("again", "V", sensitivity=2.0)
    rig = profile((DRIVE, "Dev1/ai0"), (again, "Dev2/ai1"), (TABLE, "Dev1/ai2"), output="Dev2/ao0",
                  source={"buffer_seconds": 0.25})  # fmt: skip
    source = rack.open(rig)
    exciter = rack.drive(rig, source)
    assert len(source.inputs._parts) == (1 if product.shares_a_task else 2)
    source.start()
    exciter.play(Sine(1.5, 32.0, 0.4))
    got = steady(source)
    assert_in_step(source, got, 1.5, 32.0)
    assert all(np.array_equal(b.data[0], b.data[1]) for b in got)
    # a reader that is late: the gap is the same for both
    wait_until(lambda: source.inputs.acquired() > got[-1].stop_index + 1200)
    behind = steady(source)
    assert "overran" in behind[0].reason and behind[0].start_index > got[-1].stop_index
    assert_in_step(source, behind, 1.5, 32.0)
    assert all(np.array_equal(b.data[0], b.data[1]) for b in behind)


def test_given_devices_without_a_line_in_common_then_refused_in_a_sentence(bench: Open) -> None:
    rack = bench(Rack({"Dev1": USB_6211, "Dev2": USB_6211}), ai0=Wire("drive"), Dev2_ai0=Wire("table"))
    with pytest.raises(InstrumentError, match=r"-89125.*no line in common.*one chassis"):
        rack.open(profile((DRIVE, "Dev1/ai0"), (TABLE, "Dev2/ai0")))
    assert not any(task.reserved for task in rack.calls._tasks.values())  # and nothing is held


# -- sensors


def test_given_a_module_with_one_supply_current_then_that_is_used_and_another_is_refused_by_name(
    bench: Open,
) -> None:
    rack = bench(compact_daq(), cDAQ1Mod1_ai0=Wire("drive", 0.0, 0.25))
    source = rack.open(
        profile((ChannelProfile("a", "g", kind="iepe", sensitivity=0.1, coupling="ac"), "cDAQ1Mod1/ai0"))
    )
    assert source.channels[0].calibration["excitation_current"] == 0.002
    source.start()
    assert source.read(np.empty((1, 64))).data == pytest.approx(np.full((1, 64), 2.5), rel=1e-9)
    source.close()
    asked = ChannelProfile("a", "g", kind="iepe", sensitivity=0.1, excitation_current=0.004)
    with pytest.raises(InstrumentError) as error:
        rack.open(profile((asked, "cDAQ1Mod1/ai0")))
    words = str(error.value)
    assert "AI_Excit_Val" in words and "Possible Values: 0.000000e+00, 2.000000e-03" in words
    assert "-200077" in words and "\n" not in words


@pytest.mark.parametrize(
    ("channel", "own", "sensitivity", "value"),
    [
        (ChannelProfile("a", "g", kind="iepe", teds=True), 102.0, 0.102, 0.25 / 0.102),
        (
            ChannelProfile("a", "m/s^2", kind="iepe", teds=True),
            102.0,
            0.102 / 9.80665,
            9.80665 * 0.25 / 0.102,
        ),
        (ChannelProfile("a", "N", kind="force", teds=True), 2.2, 0.0022, 0.25 / 0.0022),
    ],
)
def test_given_a_sensor_with_teds_then_its_own_sensitivity_is_used_and_recorded(
    bench: Open, channel: ChannelProfile, own: float, sensitivity: float, value: float
) -> None:
    rack = bench(compact_daq(), cDAQ1Mod1_ai0=Wire("drive", 0.0, 0.25, teds=Teds(own, KINDS[channel.kind])))
    source = rack.open(profile((channel, "cDAQ1Mod1/ai0")))
    source.start()
    assert source.read(np.empty((1, 64))).data == pytest.approx(np.full((1, 64), value), rel=1e-9)
    (info,) = source.channels
    assert info.calibration["sensitivity"] == pytest.approx(sensitivity, rel=1e-12)
    assert info.upper == pytest.approx(10 / sensitivity) and "model 352, serial number 4711" in info.sensor
    assert not source.notices


def test_given_teds_that_contradict_the_profile_or_are_absent_then_said(bench: Open) -> None:
    rack = bench(compact_daq(), cDAQ1Mod1_ai0=Wire("drive", teds=Teds(10.2)), cDAQ1Mod1_ai1=Wire("drive"))
    stated = ChannelProfile("a", "g", kind="iepe", sensitivity=0.1, teds=True)
    source = rack.open(profile((stated, "cDAQ1Mod1/ai0")))
    assert "own data say 0.0102 V per g, the profile 0.1" in source.notices[0]
    source.close()
    with pytest.raises(InstrumentError, match=r"-200709.*take `teds = true` out"):
        rack.open(profile((stated, "cDAQ1Mod1/ai1")))
    with pytest.raises(RigError, match="kind iepe or force"):
        ChannelProfile("a", "V", teds=True)
    usb = bench(Rack({"Dev1": USB_6211}), ai0=Wire("drive", teds=Teds(10.2)))
    with pytest.raises(InstrumentError, match=r"-200741.*state the sensor's sensitivity"):
        usb.open(profile((stated, "Dev1/ai0")))


def test_given_an_input_then_its_sensor_tells_what_it_is_before_any_rig_is_there(bench: Open) -> None:
    wires = {
        "cDAQ1Mod1_ai0": Wire("drive", teds=Teds(102.0)),
        "cDAQ1Mod1_ai1": Wire("drive", teds=Teds(2.2, "force", serial=12)),
        "cDAQ1Mod1_ai2": Wire("drive"),
    }
    rack = bench(compact_daq(), **wires)
    found = sensor_data("cDAQ1Mod1/ai0", {}, rack.session)
    assert (found.kind, found.unit) == ("iepe", "m/s²")
    assert found.sensitivity == pytest.approx(0.102 / 9.80665, rel=1e-12)
    assert found.words == "accelerometer of maker 16, model 352, serial number 4711, 10.4 mV per m/s²"
    force = sensor_data("cDAQ1Mod1/ai1", {}, rack.session)
    assert (force.kind, force.unit, force.serial) == ("force", "N", 12)
    assert force.sensitivity == pytest.approx(0.0022)
    with pytest.raises(InstrumentError, match=r"asking the sensor at cDAQ1Mod1/ai2.*-200709"):
        sensor_data("cDAQ1Mod1/ai2", {}, rack.session)


def test_given_another_sensor_at_the_same_input_then_it_is_read_anew(bench: Open) -> None:
    rack = bench(compact_daq(), cDAQ1Mod1_ai0=Wire("drive", teds=Teds(102.0)))
    assert sensor_data("cDAQ1Mod1/ai0", {}, rack.session).serial == 4711
    rack.device.wiring["cDAQ1Mod1/ai0"].teds = Teds(98.0, serial=12)
    assert sensor_data("cDAQ1Mod1/ai0", {}, rack.session).serial == 12


# -- devices in use


def test_given_a_device_that_a_program_is_letting_go_of_then_it_is_waited_for(bench: Open) -> None:
    rack = bench(Rack({"Dev1": PXIE_6363}), ai0=Wire("drive"))
    rig = profile((DRIVE, "Dev1/ai0"))
    rack.calls.fail_next.extend([("TaskControl", -50103)] * 3)
    with pytest.raises(
        InstrumentError, match=r"-50103.*close NI MAX"
    ):  # of verifying: never passes by itself
        rack.open(rig)
    rack.calls.fail_next.clear()
    source = rack.open(rig)
    rack.calls.fail_next.extend([("TaskControl", -50103)] * 3)
    source.start()  # the reservation was refused three times
    assert not rack.calls.fail_next
    assert source.read(np.empty((1, 64))).start_index == 0


def test_given_a_device_in_use_then_refused_in_a_sentence_and_free_for_the_next(
    bench: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nidaq_errors, "BUSY_SECONDS", 0.15)
    rack = bench(Rack({"Dev1": PXIE_6363}), ai0=Wire("drive"), ai1=Wire("table", 2.0))
    first = rack.open(profile((DRIVE, "Dev1/ai0")))
    first.start()
    with pytest.raises(InstrumentError) as error:
        rack.open(profile((TABLE, "Dev1/ai1")))
    assert "reserved" in str(error.value) and "close NI MAX's test panels" in str(error.value)
    assert first.read(np.empty((1, 64))).start_index == 0  # the one that runs is not disturbed
    first.stop()  # stopped is free
    second = rack.open(profile((TABLE, "Dev1/ai1")))
    second.start()
    with pytest.raises(InstrumentError, match="reserved"):
        first.start()
    second.close()
    first.start()
    assert first.read(np.empty((1, 64))).start_index == 0


def test_given_an_output_that_another_rig_drives_then_refused_and_that_drive_goes_on(
    bench: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nidaq_errors, "BUSY_SECONDS", 0.15)
    rack = bench(Rack({"Dev1": PXIE_6363, "Dev2": PXIE_6363}), ai0=Wire("drive"), Dev2_ai0=Wire("drive"))
    rig = profile((DRIVE, "Dev1/ai0"), output="Dev1/ao0")
    source = rack.open(rig)
    exciter = rack.drive(rig, source)
    source.start()
    exciter.play(Sine(1.5, 32.0, 0.4))
    steady(source)
    other = profile((DRIVE, "Dev2/ai0"), output="Dev1/ao0")  # its own input, the same output
    with pytest.raises(
        InstrumentError, match=r"setting the output to zero: .*reserved.*-50103.*close NI MAX"
    ):
        rack.drive(other, rack.open(other))
    assert_in_step(source, steady(source), 1.5, 32.0)
    source.stop()
    rack.drive(other, rack.open(other))  # stopped is free


@pytest.mark.parametrize(
    "code", [-50103, -200022, -201105, -89120, -88709, -200709, -201420, -200452, -50150]
)
@pytest.mark.parametrize("call", ["TaskControl", "CfgSampClkTiming", "StartTask", "ReadAnalogF64"])
def test_given_any_refusal_at_any_call_then_one_sentence_and_the_rig_can_be_opened_again(
    bench: Open, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    monkeypatch.setattr(nidaq_errors, "BUSY_SECONDS", 0.0)
    rack = bench(Rack({"Dev1": PXIE_6363}), ai0=Wire("drive"))
    rig = profile((DRIVE, "Dev1/ai0"))
    rack.calls.fail_next.append((call, code))
    with pytest.raises(InstrumentError) as error:
        source = rack.open(rig)
        source.start()
        source.read(np.empty((1, 64)))
    assert str(code) in str(error.value) and "\n" not in str(error.value)
    assert not rack.calls.fail_next
    for part in rack.parts[:-1]:
        part.close()
    again = rack.open(rig)
    again.start()
    assert again.read(np.empty((1, 64))).start_index == 0


def test_given_a_chassis_behind_a_server_on_the_loopback_then_the_whole_rig_opens_with_its_notices() -> None:
    device = SimulatedDevice(
        still_plant, {"cDAQ1Mod1/ai0": Wire("drive"), "cDAQ1Mod2/ai0": Wire("table", 2.0)}, rack=compact_daq()
    )
    server, port, _ = serve(device)
    address = f"127.0.0.1:{port}"
    rig = open_rig(
        profile(
            (DRIVE, "cDAQ1Mod1/ai0"),
            (TABLE, "cDAQ1Mod2/ai0"),
            output="cDAQ1Mod4/ao0",
            rate=2000.0,
            source={"server": address},
            exciter={"ahead_seconds": 0.15},
        )
    )
    try:
        assert rig.notices == ["The device samples at 2048 Hz: it has no clock of the 2000 Hz asked for."]
        assert rig.exciter is not None
        rig.source.start()
        rig.exciter.play(Sine(1.5, 32.0))
        assert isinstance(rig.source, NidaqSource)
        assert_in_step(rig.source, steady(rig.source), 1.5, 32.0)
        assert len(list_devices(connect({"server": address}))[0]) == 4
    finally:
        rig.close()
        server.stop(0).wait(GUARD)
        device.close()
