"""The runner of the benchmarks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as runner
from benchmarks.measure import Measurement, median_times


def test_given_the_list_when_asked_for_then_every_benchmark_is_there() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--list"], cwd=root, capture_output=True, text=True, check=True
    )
    assert {"simulation", "kernels"} <= set(done.stdout.split())
    wrong = subprocess.run([sys.executable, "-m", "benchmarks", "nothing"], cwd=root, capture_output=True)
    assert wrong.returncode == 2


def test_given_measurements_when_run_twice_then_they_are_kept_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Fake:
        __doc__ = "Two numbers.\n\nMore."
        seconds = 0.5

        @classmethod
        def measure(cls) -> list[Measurement]:
            return [Measurement("work", "peer", 2.0, cls.seconds, True, 3.0)]

    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    monkeypatch.setattr(runner, "import_module", lambda name: Fake)
    assert runner._run("fake", store=True)
    Fake.seconds = 1.0
    assert not runner._run("fake", store=True)  # a ratio of 2 misses the wanted 3
    shown = capsys.readouterr().out
    assert "+100 %" in shown
    assert "MISSED" in shown
    runs = json.loads((tmp_path / "fake.json").read_text())
    assert [run["rows"][0]["ratio"] for run in runs] == [4.0, 2.0]
    assert runs[0]["machine"]["cores"] >= 1


def test_given_a_missing_peer_when_run_then_it_is_left_out_with_a_note(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError("no", name="some_peer")

    monkeypatch.setattr(runner, "import_module", missing)
    assert runner._run("fake", store=False)
    assert "some_peer is not installed" in capsys.readouterr().out


def test_given_an_answer_that_disagrees_then_the_row_is_not_good() -> None:
    assert not Measurement("work", "peer", 1.0, 1.0, agrees=False).good
    assert Measurement("work", "peer", None, 1.0, wanted=9.0).good


def test_given_two_runs_when_timed_then_both_have_a_median() -> None:
    times = median_times({"none": lambda: None, "some": lambda: sum(range(20_000))}, 5)
    assert times["some"] > times["none"] >= 0
