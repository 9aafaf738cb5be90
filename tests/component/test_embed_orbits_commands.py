"""The commands `embed` and `orbits` on simulated recordings, from the file to the printed table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.base.record import Channel, Excitation, Record
from app.cli import main
from drivers.formats import write
from tests.chaotic import DUFFING_PERIOD, duffing, lorenz

RATE = 100 / DUFFING_PERIOD


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As long as it takes to meet every orbit."""
    return written(tmp_path_factory.mktemp("records") / "duffing.csv", 60_000)


@pytest.fixture(scope="module")
def short_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("records") / "short.csv", 15_000)


def written(path: Path, samples: int) -> Path:
    x, v = duffing(samples)
    f = 27 * np.cos(2 * np.pi * np.arange(samples) / 100)
    write(Record.from_arrays(RATE, {"x": x, "v": v, "f": f}), path)
    return path


def result(capsys: pytest.CaptureFixture[str], line: str) -> dict:
    assert main([*line.split(), "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def test_given_a_recorded_drive_then_orbits_lists_the_known_ones(recording: Path, capsys) -> None:
    found = result(capsys, f"orbits {recording} --channel x --channel v --period-of f --longest 6")
    first = [o for o in found["orbits"] if o["multiple"] == 1]
    assert found["drive_period"] == pytest.approx(DUFFING_PERIOD, rel=1e-6)
    assert sorted(o["multipliers"][0][0] for o in first) == pytest.approx([-1.877, -1.877, 4.895], rel=0.05)
    assert {o["multiple"] for o in found["orbits"]} == {1, 2, 3, 4, 5, 6}
    assert found["orbits"][0].keys() >= {"start", "period", "closure", "count", "error_bound"}


def test_given_one_channel_then_it_is_embedded_and_a_table_and_a_figure_come_out(
    short_recording: Path, capsys, tmp_path: Path
) -> None:
    figure = tmp_path / "orbits.svg"
    frequency = 1 / DUFFING_PERIOD
    line = f"orbits {short_recording} --channel x --frequency {frequency} --longest 4 --plot {figure}"
    assert main(line.split()) == 0
    text = capsys.readouterr().out
    assert "delay coordinates of x" in text
    assert "multipliers" in text
    assert figure.read_text().startswith("<?xml")


def test_given_a_clock_that_is_off_then_the_drive_is_read_from_the_response(tmp_path: Path, capsys) -> None:
    x, v = duffing(60_000, 25 * (1 + 100e-6))
    record = Record.from_arrays(25.0, {"x": x, "v": v}, excitation=Excitation(1.0))
    path = tmp_path / "clock.h5"
    write(record, path)
    found = result(capsys, f"orbits {path} --channel x --channel v --longest 4")
    assert found["drive_period"] == pytest.approx(1 + 100e-6, abs=1e-6)
    assert any("ppm" in text for text in found["messages"])
    assert len([o for o in found["orbits"] if o["multiple"] == 1]) == 3


def test_given_an_autonomous_record_then_periods_are_found(tmp_path: Path, capsys) -> None:
    x, y, z = lorenz(20_000, 0.025, (16.0, 45.92, 4.0))
    path = tmp_path / "lorenz.csv"
    write(Record.from_arrays(40.0, {"x": x, "y": y, "z": z}), path)
    line = f"orbits {path} --channel x --channel y --channel z --autonomous --longest 5"
    found = result(capsys, line)
    assert min(o["period"] for o in found["orbits"]) == pytest.approx(0.9408, abs=0.003)
    assert found["peaks"]


def test_given_a_channel_then_embed_tells_delay_dimension_and_exponents(
    recording: Path, capsys, tmp_path: Path
) -> None:
    figure = tmp_path / "embed.png"
    found = result(capsys, f"embed {recording} --channel x --period-of f --plot {figure}")
    assert found["dimension"]["value"] == 4
    assert 4 <= found["delay"]["samples"] <= 30
    bits = found["exponents"]["spectrum"]["values"][0] / np.log(2)
    assert bits == pytest.approx(0.211, rel=0.1)
    assert found["exponents"]["rosenstein"]["value"] / np.log(2) == pytest.approx(0.211, rel=0.15)
    assert figure.stat().st_size > 10_000


def test_given_own_choices_then_embed_follows_them(tmp_path: Path, capsys) -> None:
    path = tmp_path / "lorenz.csv"
    write(Record.from_arrays(100.0, {"x": lorenz(6000)[0]}), path)
    choices = "--autonomous --delay 9 --dimension 5 --theiler 70"
    assert main(f"embed {path} --channel x {choices}".split()) == 0
    text = capsys.readouterr().out
    assert "9 samples" in text
    assert "Theiler window 70" in text


def test_given_gaps_then_embed_uses_the_longest_whole_stretch(tmp_path: Path, capsys) -> None:
    x = lorenz(12_000)[0]
    channel = Channel(x, "V", gaps=((4000, 4010),))
    path = tmp_path / "gap.h5"
    write(Record(100.0, {"x": channel}), path)
    found = result(capsys, f"embed {path} --channel x")
    assert found["samples"] == 7990
    assert any("7990 of 12000 samples" in text for text in found["messages"])
    assert found["motion"] == "chaotic"
    assert found["evidence"]["largest_exponent"]["lower"] < 0.9057


def test_given_noise_or_a_torus_then_neither_exponents_nor_orbits_are_offered(tmp_path: Path, capsys) -> None:
    t = 2 * np.pi * np.arange(8000) / 25
    torus = np.sin(t) + 0.5 * np.sin(0.618034 * t)
    noise = np.convolve(np.random.default_rng(1).standard_normal(8100), np.hanning(15), "same")[:8000]
    path = tmp_path / "regular.csv"
    write(Record.from_arrays(100.0, {"torus": torus, "noise": noise}), path)
    for channel, kind in (("torus", "quasi-periodic"), ("noise", "noise")):
        found = result(capsys, f"embed {path} --channel {channel} --autonomous")
        assert (found["motion"], found["exponents"]) == (kind, {})
        assert found["correlation_dimension"]["value"] is None
        found = result(capsys, f"orbits {path} --channel {channel} --autonomous --longest 3")
        assert (found["motion"], found["orbits"]) == (kind, [])
        assert any("none is offered" in text for text in found["messages"])
    assert main(f"embed {path} --channel torus --autonomous".split()) == 0
    assert capsys.readouterr().out.startswith("motion: quasi-periodic")


def test_given_a_drive_frequency_that_is_wrong_then_the_line_in_the_response_is_taken(
    recording: Path, capsys
) -> None:
    wrong = 1.01 / DUFFING_PERIOD
    found = result(capsys, f"orbits {recording} --channel x --channel v --frequency {wrong} --longest 2")
    assert found["drive_period"] == pytest.approx(DUFFING_PERIOD, rel=1e-5)
    assert any("the frequency given is wrong" in text for text in found["messages"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("orbits {file} --channel x", "does not tell the drive"),
        ("orbits {file} --channel x --frequency 9", "cannot be followed"),
        ("orbits {file} --channel q --autonomous", "No channel 'q'"),
        ("embed {file} --channel q", "No channel 'q'"),
        ("embed {file} --channel x --delay soon", "The delay is a number"),
        ("embed {file} --channel x --plot picture.gif", "png, svg or pdf"),
    ],
)
def test_given_a_mistake_then_one_sentence_says_what_to_do(
    short_recording: Path, capsys, line: str, words: str
) -> None:
    assert main(line.format(file=short_recording).split()) == 1
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error


def test_given_a_map_then_embed_and_orbits_say_what_they_cannot_do(capsys, tmp_path: Path) -> None:
    x = np.zeros(4000)
    for i in range(2, len(x)):
        x[i] = 1 - 1.4 * x[i - 1] ** 2 + 0.3 * x[i - 2]
    path = tmp_path / "map.csv"
    write(Record.from_arrays(1.0, {"x": x[10:]}), path)
    found = result(capsys, f"embed {path} --channel x --autonomous")
    assert found["motion"] == "chaotic"
    assert found["delay"]["samples"] == 1
    assert "spectrum" not in found["exponents"]
    assert any("needs a flow" in words for words in found["messages"])
    orbits = result(capsys, f"orbits {path} --channel x --autonomous")
    assert any("none is found says nothing" in words for words in orbits["messages"])
