"""The runner of the benchmarks, its store and its page."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as runner
from benchmarks import store, worker
from benchmarks.measure import Measurement, median_times
from docs import benchmarks as manual

ROOT = Path(__file__).parents[2]


def test_given_the_list_when_asked_for_then_every_benchmark_is_there() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {"simulation", "kernels", "coverage", "recordings"} <= set(done.stdout.split())
    assert not set(runner.HELPERS) & set(done.stdout.split())
    wrong = subprocess.run([sys.executable, "-m", "benchmarks", "nothing"], cwd=ROOT, capture_output=True)
    assert wrong.returncode == 2


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    return tmp_path


def told(rows: list[Measurement] | str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "measured", lambda name, quick, options=None: rows)


def test_given_measurements_when_run_twice_then_they_are_kept_and_compared(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told([Measurement("work", "peer", 2.0, 0.5, True, 3.0)], monkeypatch)
    assert runner.run(["fake"], quick=False, keep=True) == 0
    told([Measurement("work", "peer", 2.0, 1.0, True, 3.0)], monkeypatch)
    assert runner.run(["fake"], quick=False, keep=True) == 1  # a ratio of 2 misses the wanted 3
    shown = capsys.readouterr().out
    assert "+100 %" in shown
    assert "Slower than last time: work (2.0 times)" in shown
    assert "MISSED" in shown
    runs = json.loads((results / "fake.json").read_text())
    assert [run["rows"][0]["ratio"] for run in runs] == [4.0, 2.0]
    assert runs[0]["machine"]["cores"] >= 1


def test_given_another_machine_when_compared_then_its_times_do_not_count(results: Path) -> None:
    store.store("fake", [Measurement("work", "peer", 2.0, 0.5)])
    path = results / "fake.json"
    path.write_text(path.read_text().replace('"cpu": "', '"cpu": "Another '))
    assert store.last_times("fake") == {}


def test_given_one_that_fails_when_all_are_run_then_a_line_says_so_and_the_others_go_on(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: dict[str, list[Measurement] | str] = {
        "bad": "ValueError: no.",
        "good": [Measurement("work", "-", None, 1.0)],
    }
    monkeypatch.setattr(runner, "measured", lambda name, quick, options=None: answers[name])
    assert runner.run(["bad", "good"], quick=False, keep=False) == 1
    shown = capsys.readouterr().out
    assert "bad: could not: ValueError: no." in shown
    assert "good: 1 rows" in shown
    assert not list(results.iterdir())


def test_given_a_process_when_it_is_too_slow_or_dies_then_there_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert runner.measured("simulation", quick=False, limit=0.05) == "it was not done after 0 s."
    monkeypatch.setattr(runner.sys, "executable", "false")
    assert runner.measured("simulation", quick=False) == "its process ended with code 1."


def test_given_a_missing_peer_or_a_fault_when_worked_then_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError("no", name="some_peer")

    monkeypatch.setattr(worker, "import_module", missing)
    assert "some_peer is not installed" in worker.answer("fake", quick=False)["problem"]

    class Short:
        @staticmethod
        def measure(quick: bool = False) -> list[Measurement]:
            return [Measurement("quick" if quick else "whole", "-", None, 1.0)]

    monkeypatch.setattr(worker, "import_module", lambda name: Short)
    assert worker.answer("fake", quick=True)["rows"][0]["work"] == "quick"
    monkeypatch.setattr(worker, "import_module", lambda name: 1 / 0)
    assert "ZeroDivisionError" in worker.answer("fake", quick=False)["problem"]
    assert "Traceback" in capsys.readouterr().err


def test_given_an_answer_that_disagrees_then_the_row_is_not_good() -> None:
    assert not Measurement("work", "peer", 1.0, 1.0, agrees=False).good
    assert Measurement("work", "peer", None, 1.0, wanted=9.0).good


def test_given_two_runs_when_timed_then_both_have_a_median() -> None:
    times = median_times({"none": lambda: None, "some": lambda: sum(range(20_000))}, 5)
    assert times["some"] > times["none"] >= 0


def test_given_kept_results_then_the_page_shows_every_row_and_the_growth(
    results: Path, tmp_path: Path
) -> None:
    sizes = (1000, 10_000)
    store.store("simulation", [Measurement(f"exponent, N = {n}", "-", None, 1e-6 * n) for n in sizes])
    store.store("kernels", [Measurement("Chua", "SymPy", 2.0, 0.1, True, 15.0, "a|b")])
    kept = manual.latest()
    assert manual.growth(kept) == {"exponent": [(1000, 1e-3), (10_000, 1e-2)]}
    text = manual.page(kept)
    assert "| Chua | SymPy | 2 | 0.1 | 20 (wanted 15) | yes | a\\|b |" in text
    manual.draw(kept, tmp_path / "growth.svg")
    assert (
        "exponent" in (tmp_path / "growth.svg").read_text() or (tmp_path / "growth.svg").stat().st_size > 5000
    )


def test_given_the_manual_then_its_page_says_what_was_kept() -> None:
    assert manual.PAGE.read_text(encoding="utf-8") == manual.page(manual.latest())
