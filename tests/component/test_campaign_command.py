"""`shakedown campaign` as a user meets it: on a pool, on a real Dask cluster, killed and started again."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.cli import main
from drivers.formats import write
from tests.ringing import STUDY, make, record


def rows(folder: Path) -> list[dict[str, str]]:
    """The table without the times that jobs took."""
    with (folder / "table.csv").open(newline="", encoding="utf-8") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def campaign(study: Path, out: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of a run in this process."""
    answer = out.with_suffix(".json")
    code = main(["campaign", str(study), "--out", str(out), "--json", str(answer), *more])
    return code, json.loads(answer.read_text())


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("fleet") / "a", 12)


@pytest.fixture(scope="module")
def undisturbed(fleet: Path) -> Path:
    """The results of a run that nothing happened to."""
    out = fleet.parent / "undisturbed"
    code, told = campaign(fleet, out, "--workers", "1")
    assert code == 0 and told["jobs"] == told["done"] == 12
    return out


def test_the_table_the_page_and_the_spread_between_specimens(fleet: Path, undisturbed: Path) -> None:
    import pyarrow.parquet

    table = rows(undisturbed)
    assert [row["recording"] for row in table] == [f"run{i:03d}" for i in range(12)]
    assert {row["temperature"] for row in table} == {str(20.0 + i) for i in range(12)}
    parquet = pyarrow.parquet.read_table(undisturbed / "table.parquet").to_pylist()
    assert [row["k"] for row in parquet] == [float(row["k"]) for row in table]
    summary = json.loads((undisturbed / "summary.json").read_text())["summary"]
    (fit,) = summary["fits"]
    k = fit["parameters"]["k"]
    assert k["between"]["lower"] < 0.08 < k["between"]["upper"]  # 2 % of 4
    assert k["mean"]["lower"] < 4.0 < k["mean"]["upper"]
    page = (undisturbed / "campaign.html").read_text()
    assert "specimens differ by" in page and "http" not in page.split("<style>")[0]


def test_a_second_start_does_only_what_is_missing(
    undisturbed: Path, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.campaign import engine

    with monkeypatch.context() as patch:
        patch.setattr(engine, "engine", None)  # whoever calls it fails
        code, told = campaign(fleet, undisturbed)
    assert code == 0 and (told["done before"], told["done"]) == (12, 0)
    assert told["summary"]["fits"]


def test_new_recordings_are_added_and_one_that_fails_is_listed_while_the_rest_goes_on(
    fleet: Path, undisturbed: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    out = fleet.parent / "grown"
    shutil.copytree(undisturbed, out)
    new = [fleet.parent / "runs" / name for name in ("run900.h5", "short.h5")]
    write(record(4.0, rng), new[0])
    write(record(4.0, rng).cut(0, 5), new[1])
    try:
        code, told = campaign(fleet, out, "--workers", "1")
    finally:
        for path in new:
            path.unlink()
    assert code == 1 and (told["done before"], told["done"], told["failed"]) == (12, 1, 1)
    assert "1 failed (short): The record has 5 samples" in capsys.readouterr().err
    assert rows(out)[:12] == rows(undisturbed)
    page = (out / "campaign.html").read_text()
    assert "Failures by cause" in page and "too few to identify" in page


def test_a_dry_run_lists_the_jobs_and_estimates_the_time(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = fleet.parent / "dry"
    assert main(["campaign", str(fleet), "--out", str(out), "--dry-run", "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert "ring by weak" in shown and "12 jobs, 8 still to be done" in shown
    assert not (out / "table.csv").exists()


def test_the_program_is_killed_and_started_again(fleet: Path, undisturbed: Path) -> None:
    out = fleet.parent / "killed"
    command = [sys.executable, "-m", "app.cli", "campaign", str(fleet), "--out", str(out), "--workers", "1"]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while len(list((out / "fits").glob("*/*.json"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
    kept = len(list((out / "fits").glob("*/*.json")))
    code, told = campaign(fleet, out, "--workers", "1")
    assert code == 0 and 2 <= kept <= told["done before"] + 1 and told["done"] == 12 - told["done before"]
    assert rows(out) == rows(undisturbed)


# -- Dask


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, started by hand as the manual says."""
    bin = Path(sys.executable).parent
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    port = _free_port()
    address = f"tcp://127.0.0.1:{port}"
    settings = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    processes = [subprocess.Popen([bin / "dask", "scheduler", *settings], **quiet)]  # type: ignore[call-overload]
    for _ in range(2):
        worker = [bin / "dask", "worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny"]
        processes.append(subprocess.Popen(worker, **quiet))  # type: ignore[call-overload]
    yield address, processes
    for process in processes:
        process.kill()
        process.wait()


def _free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_cluster_gives_the_same_to_the_last_bit_though_a_worker_is_killed(
    fleet: Path,
    undisturbed: Path,
    cluster: tuple[str, list[subprocess.Popen[bytes]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    import threading

    address, processes = cluster
    out = fleet.parent / "cluster"

    def kill_a_worker() -> None:
        while not list((out / "fits").glob("*/*.json")):
            time.sleep(0.01)
        processes[1].kill()

    killer = threading.Thread(target=kill_a_worker)
    killer.start()
    code, told = campaign(fleet, out, "--cluster", address)
    killer.join()
    assert code == 0 and told["done"] == 12
    assert rows(out) == rows(undisturbed)
    assert "; dashboard http" in capsys.readouterr().err


def test_a_worker_of_another_version_and_a_scheduler_that_is_gone_are_one_sentence(
    fleet: Path,
    cluster: tuple[str, list[subprocess.Popen[bytes]]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from app.campaign import dask_engine

    address, processes = cluster
    with monkeypatch.context() as patch:
        patch.setattr(dask_engine, "full_version", lambda: "Shakedown 9.9")
        assert main(["campaign", str(fleet), "--out", str(fleet.parent / "other"), "--cluster", address]) == 1
    assert "this program Shakedown 9.9: install the same" in capsys.readouterr().err
    for process in processes:
        process.kill()
        process.wait()
    monkeypatch.setattr(dask_engine, "PATIENCE", 1.0)
    assert main(["campaign", str(fleet), "--out", str(fleet.parent / "other"), "--cluster", address]) == 1
    said = capsys.readouterr().err
    assert f"No scheduler answers at {address}" in said and "Traceback" not in said


def test_the_study_of_a_typo_leaves_no_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make(tmp_path / "a", 1, STUDY.replace("methods", "metods"))
    assert main(["campaign", str(path), "--out", str(tmp_path / "out")]) == 1
    assert "did you mean `methods`" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_is_no_address_of_a_cluster_is_one_sentence(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for cluster in ("host:8786", "nonsense", "abc://host:1"):
        assert main(["campaign", str(fleet), "--out", str(tmp_path / "out"), "--cluster", cluster]) == 1
        said = capsys.readouterr().err
        assert f"`{cluster}` is no cluster" in said and "tcp://host:8786" in said


def test_a_study_that_is_refused_leaves_no_folder_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make(tmp_path / "a", 1, STUDY.replace("*.h5", "nothing*.h5"))
    out = tmp_path / "new"
    assert main(["campaign", str(path), "--out", str(out)]) == 1
    assert "No recording matches" in capsys.readouterr().err
    assert not out.exists()
    own = tmp_path / "mine"
    own.mkdir()
    (own / "notes.txt").write_text("of the laboratory")
    assert main(["campaign", str(path), "--out", str(own)]) == 1
    assert [found.name for found in own.iterdir()] == ["notes.txt"]
