"""The virtual rig: right physics, exact drive phase, determinism, chaos at once, taps, overloads."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis import ShakedownError
from analysis.model import Model
from drivers.base.clock import InstantClock
from drivers.base.waveform import Sine
from drivers.rig.profile import Rig, RigError, load_rig, open_rig, rig_files, rig_from_text
from drivers.virtual.parts import open_plant
from drivers.virtual.plant import EndStop, Plant, Shaker, Specimen
from tests.waiting import NotedClock

DUFFING = """
name = "Duffing on a table"
[states]
x = "v"
v = "-c*v - k*x - x**3 + g*y + d*w"
[inputs]
y = "measured"
w = "measured"
[parameters]
c = { value = 0.3 }
k = { value = -1.0 }
g = { value = 2.0 }
d = { value = 0.1 }
[outputs]
energy = "v**2/2 + y"
[initial]
x = 0.5
v = 0.0
"""


def opened(name: str = "two_well_beam", seed: int = 1, **changes: float) -> Rig:
    rig = open_rig(load_rig(name).with_changes(**changes), InstantClock(), seed)  # type: ignore[arg-type]
    rig.source.start()
    return rig


def run(rig: Rig, samples: int, block: int = 500) -> np.ndarray:
    channels = len(rig.source.channels)
    parts = []
    while samples:
        now = min(block, samples)
        parts.append(rig.source.read(np.empty((channels, now))).data)
        samples -= now
    return np.concatenate(parts, axis=1)


def test_given_a_duffing_table_then_plant_agrees_with_dop853() -> None:
    specimen = Specimen(
        Model.from_toml(DUFFING), time_scale=3.0, inputs={"y": "table", "w": "table velocity"}
    )
    lag, gain, f, amplitude = 0.05, 0.8, 1.7, 1.2
    plant = Plant(specimen, Shaker(gain, lag), 50.0, 20)
    t = np.arange(400 * 40) / plant.drive_rate
    out = plant.advance(amplitude * np.cos(2 * np.pi * f * t))

    def rhs(s: float, z: np.ndarray) -> list[float]:
        y, x, v = z
        w = (gain * amplitude * np.cos(2 * np.pi * f * s) - y) / lag
        return [w, 3 * v, 3 * (-0.3 * v + x - x**3 + 2 * y + 0.1 * w)]

    times = np.arange(400) / 50.0
    truth = solve_ivp(rhs, (0, 8), [0, 0.5, 0], "DOP853", times, rtol=1e-12, atol=1e-13).y
    assert np.abs(out[plant.row("table")] - truth[0]).max() < 1e-6
    assert np.abs(out[plant.row("x")] - truth[1]).max() < 2e-6
    assert np.abs(out[plant.row("v")] - truth[2]).max() < 2e-6
    energy = out[plant.row("v")] ** 2 / 2 + out[plant.row("y")]
    assert np.allclose(out[plant.row("energy")], energy)


def test_given_an_end_stop_then_the_specimen_stays_inside() -> None:
    stop = EndStop("x", "v", 1.1)
    specimen = Specimen(Model.from_toml(DUFFING), inputs={"y": "table", "w": "table velocity"}, stop=stop)
    plant = Plant(specimen, Shaker(5.0), 50.0, 20)
    t = np.arange(1000 * 40) / plant.drive_rate
    x = plant.advance(np.cos(2 * np.pi * 0.3 * t))[plant.row("x")]
    assert 1.05 < np.abs(x).max() <= 1.1


def test_given_a_table_at_its_end_stops_then_its_motion_is_held() -> None:
    specimen = Specimen(Model.from_toml(DUFFING), inputs={"y": "table", "w": "table velocity"})
    plant = Plant(specimen, Shaker(1.0, 0.01, travel=0.4), 100.0, 20)
    out = plant.advance(np.cos(2 * np.pi * np.arange(300 * 40) / plant.drive_rate))
    table, velocity = out[plant.row("table")], out[plant.row("table velocity")]
    assert np.abs(table).max() == 0.4 and not velocity[np.abs(table) == 0.4].any()


def test_given_the_same_seed_then_same_samples_whatever_the_block_size() -> None:
    runs = []
    for block in (1, 17, 1000):
        rig = opened()
        rig.play()
        runs.append(run(rig, 1000, block))
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])
    other = opened(seed=2)
    other.play()
    assert not np.array_equal(run(other, 1000)[0], runs[0][0])


def test_given_the_beam_at_its_own_settings_then_chaos_in_both_wells() -> None:
    rig = opened()
    rig.play()
    x = run(rig, 25 * 1600)[0, 25 * 100 :]
    section = x[::25]
    right = section > 0
    assert 0.1 < right.mean() < 0.6
    crossings = np.count_nonzero(np.diff(right.astype(int)))
    assert crossings > 200  # hops between the wells again and again
    lags = [np.abs(section[lag:] - section[:-lag]).mean() for lag in range(1, 13)]
    assert min(lags) > 0.3  # no period up to twelve


def test_given_the_beam_undriven_then_it_rests_in_the_published_wells_and_a_tap_changes_them() -> None:
    profile = load_rig("two_well_beam")
    rig = open_rig(profile, InstantClock(), 0)
    rig.source.start()
    wells = np.roots([-0.064, 0.336, 0.178, -0.28])  # published: 0.72 and -1.1 (Yuan 1995, section 4.8)
    before = run(rig, 4000)[0, -500:].mean()
    assert np.abs(wells - before).min() < 0.002 and before == pytest.approx(0.72, abs=0.01)
    assert rig.specimen is not None
    rig.specimen.tap(-1.0)
    after = run(rig, 6000)[0, -500:].mean()
    assert np.abs(wells - after).min() < 0.002 and after == pytest.approx(-1.1, abs=0.03)


def test_given_a_drive_then_its_phase_is_known_at_every_sample() -> None:
    rig = opened("two_well_beam_modern")
    rig.exciter.play(Sine(1.2, 11.3, 0.5))  # type: ignore[union-attr]
    run(rig, 3000, 77)
    row = [c.name for c in rig.source.channels].index("drive")
    block = rig.source.read(np.empty((len(rig.source.channels), 400)))
    state = block.drive
    assert state is not None and state.steady and state.index == block.start_index == 3000
    n = np.arange(400)
    expected = 1.2 * np.cos(state.phase + 2 * np.pi * 11.3 * n / rig.source.rate)
    assert np.abs(block.data[row] - expected).max() < 2e-6  # half a step of the converter
    start = state.phase - 2 * np.pi * 11.3 * 3000 / rig.source.rate
    assert np.cos(start) == pytest.approx(np.cos(0.5), abs=1e-6)


def test_given_a_twelve_bit_converter_then_values_are_whole_counts_and_overloads_are_flagged() -> None:
    profile = load_rig("two_well_beam")
    small = tuple(replace(c, range=1.0) if c.name == "x" else c for c in profile.channels)
    rig = open_rig(replace(profile, channels=small), InstantClock(), 0)
    rig.source.start()
    rig.play()
    run(rig, 2000)
    block = rig.source.read(np.empty((3, 2000)))
    counts = block.data[0] * 1.0742 / (2 / 4096)
    assert np.abs(counts - np.rint(counts)).max() < 1e-6
    assert counts.max() == pytest.approx(2047) and counts.min() == pytest.approx(-2048)
    flagged = np.zeros(2000, dtype=bool)
    for span in block.overloads:
        assert span.channel == 0
        flagged[span.start - block.start_index : span.stop - block.start_index] = True
    at_end = (np.rint(counts) == 2047) | (np.rint(counts) == -2048)
    assert np.array_equal(flagged, at_end) and flagged.sum() > 50


def test_given_the_cantilever_then_its_resonances_are_those_of_the_beam() -> None:
    rig = opened("cantilever")
    rig.play()
    data = run(rig, 2048 * 40, 4096)
    names = [c.name for c in rig.source.channels]
    window = np.hanning(8192)

    def spectrum(name: str) -> np.ndarray:
        segments = data[names.index(name), 8192:].reshape(-1, 8192)
        return np.asarray((np.abs(np.fft.rfft(segments * window)) ** 2).mean(axis=0))

    f = np.fft.rfftfreq(8192, 1 / 2048)
    response = spectrum("v100") / spectrum("w")
    for low, high, expected in ((5, 12, 8.0), (40, 60, 50.135), (125, 155, 140.38)):
        inside = (f > low) & (f < high)
        assert f[inside][response[inside].argmax()] == pytest.approx(expected, abs=0.3)


def test_given_real_time_then_a_second_takes_a_second() -> None:
    clock = NotedClock()
    rig = open_rig(load_rig("two_well_beam"), clock, 0)
    begin = time.monotonic()
    rig.source.start()
    rig.play()
    run(rig, 96, 4)
    assert time.monotonic() - begin >= 96 / 187.5
    due = np.array(clock.moments)
    assert due - due[0] == pytest.approx(np.arange(24) * 4 / 187.5, abs=1e-9)  # a delay is made up for


def test_given_a_stopped_source_then_stop_silences_at_once() -> None:
    rig = opened()
    rig.play()
    run(rig, 500)
    rig.source.stop()
    assert rig.exciter is not None
    rig.exciter.stop("enough")
    assert not rig.exciter.state().playing and rig.exciter.state().reason == "enough"
    rig.close()


@pytest.mark.parametrize("name", sorted(rig_files()))
def test_given_every_rig_of_the_library_then_it_opens_drives_and_stays_in_range(name: str) -> None:
    rig = opened(name)
    rig.play()
    data = run(rig, round(5 * rig.source.rate), 1000)
    assert np.isfinite(data).all() and (data.std(axis=1) > 0).all()
    block = rig.source.read(np.empty((len(data), 1000)))
    assert not block.overloads
    assert rig.profile.model and rig.profile.description
    for channel, row in zip(rig.profile.channels, data, strict=True):
        if channel.limit is not None:
            assert np.abs(row).max() < channel.limit
    rig.close()


TEXT = (Path(str(rig_files()["two_well_beam"]))).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("rate = 187.5", "rate = 0", "rate must be a positive number"),
        ("rate = 187.5", 'rate = "fast"', "rate must be a positive number"),
        ("rate = 187.5", "", "'rate' is missing"),
        ("amplitude = 4.0", "amplitud = 4.0", "did you mean 'amplitude'"),
        ("slew = 2000.0", "slew = 20.0", "100 ms"),
        ("sensitivity = 1.0742", "sensitivity = 0", "must not be 0"),
        ('[[channels]]', '[[channels]]\nkind = "bridg"', "one of voltage"),
        ('name = "f"', 'name = "x"', "name of its own"),
        ('driver = "virtual"\nbits', 'driver = "magic"\nbits', "driver is one of"),
        ("x = \"x\", f", "f", "connected to nothing"),
        ('kind = "sine"', 'kind = "square"', "No waveform"),
        ("noise = 0.0024", "noise = true", "must be a number"),
        ("noise = 0.0024", "noise = -0.1", "noise must be a number of at least 0"),
        ("[limits]", "[limits", "line"),
    ],
)  # fmt: skip
def test_given_a_broken_profile_then_one_sentence_names_the_place(
    before: str, after: str, words: str
) -> None:
    assert before in TEXT
    with pytest.raises(RigError) as error:
        rig_from_text(TEXT.replace(before, after, 1), "beam", "beam.toml")
    assert words in str(error.value) and str(error.value).startswith("beam.toml")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("bits = 12", "bits = 0", "whole number of bits"),
        ("bits = 12", "bits = 12.5", "whole number of bits"),
        ("bits = 12", "bits = 5000", "whole number of bits"),
        ("travel = ", "travel = -", "travel must be a positive length"),
        ("lag = 0.0005", "lag = 1e-9", "more steps_a_second"),
        ("steps_a_second = 6000", "steps_a_second = 1e15", "steps_a_second must be"),
        ("jitter = 0.0003", "jitter = -1.0", "jitter must be at least 0"),
        ("missed = 0.001", "missed = 2.0", "between 0 and 1, not 2"),
        ("bits = 16", "bits = 0", "whole number of bits"),
        ("bits = 16", "bits = 1.5", "must be a whole number"),
    ],
)
def test_given_a_virtual_part_that_cannot_be_then_the_rig_is_not_opened_and_one_sentence_says_why(
    before: str, after: str, words: str
) -> None:
    assert before in TEXT
    with pytest.raises(ShakedownError) as error:
        open_rig(rig_from_text(TEXT.replace(before, after, 1), "beam"), InstantClock())
    assert words in str(error.value) and "\n" not in str(error.value)


def test_given_an_unknown_rig_then_the_nearest_is_named() -> None:
    with pytest.raises(RigError, match="two_well_beam"):
        load_rig("two_wel_beam")


def test_given_an_unknown_quantity_or_parameter_then_said_in_words() -> None:
    profile = rig_from_text(TEXT.replace('x = "x", f', 'x = "strain", f', 1), "beam")
    with pytest.raises(Exception, match="no 'strain': there are drive, table"):
        open_rig(profile, InstantClock())
    with pytest.raises(Exception, match="k9"):
        open_rig(load_rig("two_well_beam").with_changes(specimen={"k9": 1.0}), InstantClock())


def test_given_a_stream_that_begins_then_everything_is_compiled_and_the_specimen_has_not_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant, plain = open_plant(load_rig("two_well_beam")), open_plant(load_rig("two_well_beam"))
    drive = np.sin(0.3 * np.arange(20 * plant.steps))
    for _ in range(2):  # a stream that is started again
        plant.prepare()
        assert np.array_equal(plant.advance(drive), plain.advance(drive))
    prepared: list[Plant] = []
    monkeypatch.setattr(Plant, "prepare", lambda plant: prepared.append(plant))
    rig = opened()
    assert prepared == [rig.source._plant]  # type: ignore[attr-defined]
