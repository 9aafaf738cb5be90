"""shakedown simulate, from the command line to the file."""

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.simulation.simulate import simulate
from analysis.simulation.virtual_record import harmonic, virtual_record
from app.cli import main
from drivers.formats import read, write
from drivers.library import load_model


def test_given_a_model_when_simulated_to_csv_then_states_and_drive_are_there(tmp_path: Path, capsys) -> None:
    out = tmp_path / "sim.csv"
    code = main(f"simulate duffing --seconds 20 --rate 50 --set a=20 --initial x=2 --out {out}".split())
    assert code == 0
    assert "1000 samples" in capsys.readouterr().out
    record = read(out)
    assert record.names == ("x", "v", "f")
    truth = simulate(load_model("duffing"), np.arange(1000) / 50, {"x": 2.0}, {"a": 20.0})
    assert np.abs(record["x"] - truth["x"]).max() < 1e-6
    assert np.allclose(record["f"], 20 * np.cos(1.33 * record.times))


def test_given_noise_and_seed_when_simulated_twice_then_files_are_equal(tmp_path: Path) -> None:
    lines = "simulate lorenz --seconds 5 --rate 100 --snr 30 --bits 12 --transient 3 --seed"
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert main(f"{lines} {seed} --out {tmp_path}/{name}.csv".split()) == 0
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b
    assert a != c
    clean = virtual_record(load_model("lorenz"), 5.0, 100.0, np.random.default_rng(1), transient=3.0)
    noisy = read(tmp_path / "a.csv")
    ratio = np.var(clean["x"]) / np.var(noisy["x"] - clean["x"])
    assert 10 * np.log10(ratio) == pytest.approx(30, abs=1)


def test_given_json_when_simulated_then_it_alone_is_printed_and_the_native_file_keeps_all(
    tmp_path: Path, capsys
) -> None:
    out = tmp_path / "run.h5"
    assert main(f"simulate duffing --seconds 30 --rate 40 --gaps 2 --out {out} --json -".split()) == 0
    payload = json.loads(capsys.readouterr().out)
    assert payload["samples"] == 1200
    assert payload["channels"]["x"]["lost"] == 40
    assert payload["parameters"]["w"] == 1.33
    record = read(out)
    assert record.excitation is not None
    assert record.excitation.frequency == pytest.approx(1.33 / (2 * np.pi))
    assert record.excitation.amplitude == pytest.approx(27.0)
    assert record.metadata["parameters"]["c"] == 0.2
    assert len(record.channels["x"].gaps) == 2


def test_given_a_recorded_input_when_simulated_then_its_rate_and_length_are_taken(tmp_path: Path) -> None:
    t = np.arange(2000) / 500.0
    record = virtual_record(load_model("duffing"), 4.0, 500.0, np.random.default_rng(0))
    write(record.with_channels(base=3.0 * np.sin(2 * np.pi * 8 * t)), tmp_path / "in.csv")
    assert main(f"simulate bistable_beam --input {tmp_path}/in.csv --out {tmp_path}/out.csv".split()) == 0
    response = read(tmp_path / "out.csv")
    assert response.names == ("x", "v", "base")
    assert len(response) == 2000
    assert 1e-4 < np.std(response["x"]) < 0.01
    write(record.with_channels(table=3.0 * np.sin(2 * np.pi * 8 * t)), tmp_path / "named.csv")
    line = f"simulate bistable_beam --input {tmp_path}/named.csv --map base=table --method implicit"
    assert main(f"{line} --out {tmp_path}/mapped.csv".split()) == 0
    again = read(tmp_path / "mapped.csv")
    assert np.abs(again["x"] - response["x"]).max() < 1e-5 * np.abs(response["x"]).max()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("simulate silverbox --seconds 1 --rate 100", "--input"),
        ("simulate duffing --seconds 1", "--rate"),
        ("simulate duffing --seconds 1 --rate 100 --map f=force", "--input"),
        ("simulate duffing --seconds -1 --rate 100", "positive"),
        ("simulate duffing --seconds nan --rate 100", "positive"),
        ("simulate duffing --seconds 1e9 --rate 1e9", "another length"),
        ("simulate duffing --seconds 1 --rate 100 --set zz=1", "zz"),
        ("simulate duffing --seconds 1 --rate 100 --set c=fast", "NAME=NUMBER"),
        ("simulate duffing --seconds 1 --rate 100 --initial y=1", "No state"),
        ("simulate duffing --seconds 1 --rate 100 --snr 10 --noise-percent 3", "one way"),
        ("simulate duffing --seconds 1 --rate 100 --out run.docx", "docx"),
        ("simulate duffing --seconds 1 --rate 100 --transient inf", "positive"),
        ("simulate duffing --seconds 1 --rate 100 --jitter nan", "finite"),
        ("simulate duffing --seconds 1 --rate 100 --rtol 1e-30", "1e-14"),
        ("simulate no_such_model --seconds 1 --rate 100", "No model"),
        ("simulate two_well_beam --seconds 500 --rate 10 --set a=9", "diverged at t ="),
        ("simulate bistable_beam --input /no/such/file.csv", "file.csv"),
    ],
)
def test_given_what_cannot_be_done_when_simulated_then_one_sentence_and_code_1(line, words, capsys) -> None:
    assert main(line.split()) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_given_wrong_usage_when_simulated_then_code_2() -> None:
    with pytest.raises(SystemExit) as stop:
        main(["simulate", "duffing", "--seconds"])
    assert stop.value.code == 2


def test_given_a_sine_when_fitted_then_its_frequency_amplitude_and_phase_come_out() -> None:
    t = np.arange(777) / 100.0
    drive = harmonic(1.7 * np.cos(2 * np.pi * 3.217 * t + 0.6), 100.0)
    assert drive is not None
    assert (drive.frequency, drive.amplitude, drive.phase) == pytest.approx((3.217, 1.7, 0.6), abs=1e-9)


def test_given_anything_else_when_fitted_then_it_is_no_sine() -> None:
    t = np.arange(777) / 100.0
    assert harmonic(np.cos(3 * t) + 0.01 * np.cos(7 * t), 100.0) is None
    assert harmonic(np.ones(777), 100.0) is None
