"""Campaigns: speed of the engines, overhead, resuming, memory, random kills, and a fleet with a change.

`python -m benchmarks.campaign [PART ...] [--size N]` prints; `measure` gives the rows that are
kept. Times are of the clock here, for processes beside each other are what is measured: on a busy machine the
speed-ups suffer, and the note says how many processors were free.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from analysis import Estimate, Identification, Progress, Record
from analysis.population import change_points, random_effects
from app.campaign.child import DONE, Outcome
from app.campaign.engine import Engine, Pool
from app.campaign.jobs import Job
from app.campaign.run import run
from app.campaign.store import Store, rows
from app.campaign.study import Plan, plan, read_study
from benchmarks.measure import Measurement
from drivers.formats import write

ROOT = Path(__file__).parents[1]
RATE = 20.0
MODEL = """name = "Ringing specimen"
[states]
x = "v"
v = "f - c*v - k*x"
[inputs]
f = "measured"
[parameters]
c = { guess = 0.3 }
k = { guess = 3.0 }
[outputs]
x = "x"
"""
FAST = 'methods = ["weak"]', "[options]\nfinish = false"
SLOW = 'methods = ["path"]', ""
LIMIT = 120.0
TURNS = 10


def ringing(k: float, noise: float, samples: int, rng: np.random.Generator, **fields: Any) -> Record:
    """A specimen of unit mass, struck once, in closed form."""
    t = np.arange(samples) / RATE
    w, decay = np.sqrt(k - 0.01), np.exp(-0.1 * t)
    clean = decay * np.cos(w * t), -decay * (0.1 * np.cos(w * t) + w * np.sin(w * t))
    x, v = (signal + noise * rng.standard_normal(samples) for signal in clean)
    return Record.from_arrays(RATE, {"x": x, "v": v, "f": np.zeros(samples)}, **fields)


def study(folder: Path, how: tuple[str, str], extra: str = "", pattern: str = "runs/*.h5") -> Path:
    """A study of the recordings of a folder."""
    (folder / "ring.toml").write_text(MODEL)
    method, options = how
    lines = ['models = ["ring.toml"]', method, "[recordings]", f'files = ["{pattern}"]', extra, options]
    path = folder / "study.toml"
    path.write_text("\n".join(lines))
    return path


def planned(path: Path) -> Plan:
    return plan(read_study(path), path.parent, path.parent, {}, Progress())


def recordings(folder: Path, count: int, samples: int = 300) -> None:
    (folder / "runs").mkdir(parents=True)
    rng = np.random.default_rng(5)
    for i in range(count):
        k = 4.0 * (1 + 0.02 * rng.standard_normal())
        write(ringing(k, 0.02, samples, rng), folder / "runs" / f"run{i:04d}.h5")


def results(folder: Path) -> dict[str, str]:
    """Every stored result by its key."""
    return {path.stem: path.read_text() for path in (folder / "fits").glob("*/*.json")}


def timed(jobs: Sequence[Job], out: Path, engine: Callable[[], Engine]) -> float:
    """Wall seconds of a run once its processes are warm: each has done a job before."""
    with warm(engine, jobs) as started:
        return _run(jobs, out, started)


@contextmanager
def warm(engine: Callable[[], Engine], jobs: Sequence[Job]) -> Iterator[Engine]:
    """An engine whose processes have done a job each."""
    started = engine()
    try:
        list(started.outcomes(jobs[:4]))
        yield started
    finally:
        started.close()


def _run(jobs: Sequence[Job], out: Path, started: Engine) -> float:
    begun = time.monotonic()
    with Store(out) as store:
        run(jobs, store, lambda: _Kept(started), Progress())
    return time.monotonic() - begun


@dataclass
class _Kept:
    """An engine that stays open when a run is over."""

    engine: Engine
    words: str = ""

    def outcomes(self, jobs: Iterable[Job]) -> Iterator[Outcome | None]:
        return self.engine.outcomes(jobs)

    def close(self) -> None:
        return


def speed(count: int) -> list[Measurement]:
    """The same jobs by one process, by two, and by two Dask workers; results compared to the last bit.

    They take turns, a tenth of the jobs at a time: what else the machine does then falls on all of them.
    """
    from app.campaign.dask_engine import DaskEngine

    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        recordings(folder, count, 40_000)  # about 1 s a job
        jobs = planned(study(folder, SLOW)).jobs
        busy = psutil.cpu_percent(1.0)
        makers: dict[str, Callable[[], Engine]] = {
            "one": lambda: Pool(1, LIMIT),
            "two": lambda: Pool(2, LIMIT),
            "dask": lambda: DaskEngine("local", 2, LIMIT),
        }
        engines = {n: stack.enter_context(warm(maker, jobs)) for n, maker in makers.items()}
        times = dict.fromkeys(engines, 0.0)
        turn = max(count // TURNS, 2)
        for first in range(0, count, turn):
            for which, started in engines.items():
                times[which] += _run(jobs[first : first + turn], folder / which, started)
        found = {n: results(folder / n) for n in times}
        inside = {n: sum(row["seconds"] for row in rows(folder / n)) for n in times}
    same = found["one"] == found["two"] == found["dask"] and len(found["one"]) == count
    load = f"{inside['one'] / count:.2g} s a job; processors {busy:.0f} % busy with other work before"

    def row(work: str, which: str, wanted: float) -> Measurement:
        # Other work stretches the jobs as much as the whole: this share tells what the engine itself costs.
        share = f"workers {50 * inside[which] / times[which]:.3g} % of their time in jobs; {load}"
        return Measurement(work, "one process", times["one"], times[which], same, wanted, share)

    return [
        row(f"{count} jobs, pool of 2", "two", 1.8),
        row(f"{count} jobs, 2 Dask workers", "dask", 1.7),
    ]


def overhead(count: int) -> list[Measurement]:
    """What the pool adds to a job: wall time less the time inside the jobs, everything stored."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recordings(folder, count)
        jobs = planned(study(folder, FAST)).jobs
        taken = timed(jobs, folder / "out", lambda: Pool(1, LIMIT))
        done = list(rows(folder / "out"))
    inside = sum(row["seconds"] for row in done)
    each = (taken - inside) / count
    note = f"{1e3 * each:.2g} ms a job over {1e3 * inside / count:.3g} ms of work"
    return [Measurement("overhead of the pool, a job", "5 ms", 5e-3, each, len(done) == count, 1.0, note)]


def resume(count: int) -> list[Measurement]:
    """A second start with everything done, the whole command, from as many recordings as jobs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "runs").mkdir()
        for i in range(count):
            lines = [f"{k / RATE},{np.cos(0.1 * k) + 1e-6 * i:.6f},0,0" for k in range(20)]
            (folder / "runs" / f"run{i:05d}.csv").write_text("\n".join(["t,x,v,f", *lines]))
        path = study(folder, FAST, pattern="runs/*.csv")
        made = planned(path)
        found = Identification("weak", "ring", True, {"k": Estimate.normal(4.0, 0.1)}, verdict="fits")
        before, memory = psutil.Process().memory_info().rss, []
        with Store(folder / "out") as store:
            store.keep_seen(made.seen)
            done = _Immediate(found.to_json(), memory)
            run(made.jobs, store, lambda: done, Progress())
        command = [sys.executable, "-m", "app.cli", "campaign", str(path), "--out", str(folder / "out")]
        taken, spent = [], []
        for _ in range(4):  # the first one writes the table
            begun, before_it = time.monotonic(), os.times()
            subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            taken.append(time.monotonic() - begun)
            after_it = os.times()
            spent.append(sum(after_it[2:4]) - sum(before_it[2:4]))
        shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        begun = time.monotonic()
        subprocess.run([sys.executable, "-m", "app.cli", "models"], cwd=ROOT, check=True, capture_output=True)
        bare = time.monotonic() - begun
    best = min(taken[1:])
    note = (
        f"{min(spent[1:]):.2g} s of the processor; with table and page written {taken[0]:.3g} s; "
        f"`shakedown models` takes {bare:.2g} s"
    )
    grown = (memory[-1] - memory[len(memory) // 10]) / 1e6
    words = f"{grown:.1f} MB more after {count} jobs than after {count // 10} ({before / 1e6:.0f} MB before)"
    return [
        Measurement(
            f"resume of {count} done jobs", "1 s", 1.0, best, f"{count} were done" in shown, 1.0, note
        ),
        Measurement(f"memory over {count} jobs", "", None, grown, grown < 20.0, None, words),
    ]


@dataclass
class _Immediate:
    """An engine that gives the same result for every job at once: what is left is the program's own part."""

    result: str
    memory: list[int]
    words: str = ""

    def outcomes(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        process = psutil.Process()
        for number, job in enumerate(jobs):
            if number % 100 == 0:
                self.memory.append(process.memory_info().rss)
            yield Outcome(job.key, DONE, self.result, seconds=0.01)

    def close(self) -> None:
        return


def kills(count: int) -> list[Measurement]:
    """Studies killed at random, started again until they are done: the table is the undisturbed one."""
    chance = random.Random(20)
    equal = 0
    struck: dict[str, int] = {"worker": 0, "program": 0, "scheduler": 0}
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        recordings(folder, 30)
        path = study(folder, FAST)
        _campaign(path, folder / "calm").wait()
        calm = table(folder / "calm")
        for number in range(count):
            out = folder / f"out{number}"
            what = ("worker", "program", "scheduler")[number % 3]
            if what == "scheduler":
                address, processes = stack.enter_context(dask_cluster())
                program = _campaign(path, out, "--cluster", address)
                struck[what] += _strike(program, processes[0].pid, out, chance)
                program.wait()
            else:
                program = _campaign(path, out)
                struck[what] += _strike(program, what, out, chance)
                program.wait()
            _campaign(path, out).wait()
            equal += table(out) == calm
            shutil.rmtree(out)
    hit = ", ".join(f"{n} {w}" for w, n in struck.items())
    note = f"{equal} of {count} tables equal after resuming; hit while running: {hit}"
    return [
        Measurement(f"{count} random kills", "", None, time.monotonic() - begun, equal == count, None, note)
    ]


def _campaign(path: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "app.cli",
        "campaign",
        str(path),
        "--out",
        str(out),
        "--workers",
        "2",
        *more,
    ]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _strike(program: subprocess.Popen[bytes], what: str | int, out: Path, chance: random.Random) -> bool:
    """Kill something after a random number of results; whether the program was still running then."""
    wanted = chance.randrange(1, 25)
    while program.poll() is None and len(list((out / "fits").glob("*/*.json"))) < wanted:
        time.sleep(0.002)
    if program.poll() is not None:
        return False
    if what == "program":
        program.kill()
    elif isinstance(what, int):
        os.kill(what, signal.SIGKILL)
    else:
        workers = psutil.Process(program.pid).children(recursive=True)
        if not workers:
            return False
        chance.choice(workers).kill()
    return True


@contextmanager
def dask_cluster() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers on loopback."""
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    dask, address = Path(sys.executable).parent / "dask", f"tcp://127.0.0.1:{port}"
    scheduler = [dask, "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    worker = [dask, "worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes: list[Any] = [subprocess.Popen(command, **quiet) for command in (scheduler, worker, worker)]
    try:
        yield address, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def table(folder: Path) -> list[dict[str, str]]:
    """The table without the times that jobs took; empty where there is none."""
    path = folder / "table.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


SPECIMENS, SERIES, SPREAD, REPEAT, DROP = 300, 12, 0.02, 0.004, 0.03


def fleet(fleets: int) -> list[Measurement]:
    """A fleet of 300 specimens, each recorded 12 times, 2 % spread, one of which drops by 3 %: identified by
    a campaign, whose interval of the spread must hold that of the specimens drawn. Then fleets without a
    change, drawn from the errors that the campaign stated: false alarms, and how often the interval holds the
    2 % that specimens are drawn from."""
    rng = np.random.default_rng(300)
    begun = time.monotonic()
    changed, after = 137, 7
    stiffness = 4.0 * (1 + SPREAD * rng.standard_normal(SPECIMENS))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "runs").mkdir()
        for i, own in enumerate(stiffness):
            for j in range(SERIES):
                k = own * (1 + REPEAT * rng.standard_normal())
                k *= 1 - DROP if i == changed and j >= after else 1.0
                about = {"serial": f"beam{i:03d}"}
                record = ringing(
                    k, 0.002, 300, rng, start=f"2026-01-{j + 1:02d}T08:00:00+00:00", metadata=about
                )
                write(record, folder / "runs" / f"beam{i:03d}-{j:02d}.h5")
        path = study(folder, FAST, 'specimen = "serial"')
        _campaign(path, folder / "out").wait()
        summary = json.loads((folder / "out" / "summary.json").read_text())["summary"]
        errors = [float(row["k stderr"]) for row in table(folder / "out")]
    k = summary["fits"][0]["parameters"]["k"]
    found = [(c["series"], c["number"]) for c in k["changes"]]
    truth = float(np.std(stiffness, ddof=1))
    spread = k["between"]["lower"] <= truth <= k["between"]["upper"]
    right = len(found) == 1 and found[0][0] == f"beam{changed:03d}" and abs(found[0][1] - after) <= 2
    size = k["changes"][0]["percent"] if found else {"value": np.nan, "stderr": np.nan}
    calm = [_calm(float(np.median(errors)), rng) for _ in range(fleets)]
    alarms, held = (sum(column) for column in zip(*calm, strict=True))
    words = (
        f"spread {k['between']['value']:.4f} ({k['between']['lower']:.4f} to {k['between']['upper']:.4f}), "
        f"drawn {truth:.4f} of {4 * SPREAD:.4f}; changes found {found}, {size['value']:.2f} ± "
        f"{size['stderr']:.2f} %"
    )
    seconds = time.monotonic() - begun
    level = (
        f"{alarms} of {fleets} fleets without a change raised an alarm, stated: 5 % at most; the interval of "
        f"the spread holds 2 % in {held}, stated: 95 %"
    )
    spare = 2 * math.sqrt(0.0475 * fleets)
    return [
        Measurement(f"fleet of {SPECIMENS} x {SERIES}", "", None, seconds, spread and right, None, words),
        Measurement(
            f"{fleets} fleets without change",
            "",
            None,
            seconds,
            alarms <= 0.05 * fleets + spare and held >= 0.95 * fleets - spare,
            None,
            level,
        ),
    ]


def _calm(error: float, rng: np.random.Generator) -> tuple[bool, bool]:
    """Of a fleet without a change: whether it raises an alarm, at the level that a campaign divides among its
    series, and whether the interval of the spread holds the true one."""
    own = 4.0 * (1 + SPREAD * rng.standard_normal(SPECIMENS))
    series = own[:, None] * (1 + REPEAT * rng.standard_normal((SPECIMENS, SERIES)))
    series += error * rng.standard_normal(series.shape)
    s = np.full(SERIES, error)
    alarm = any(change_points(y, s, 0.05 / SPECIMENS) for y in series)
    groups = np.repeat([str(i) for i in range(SPECIMENS)], SERIES)
    between = random_effects(series.ravel(), np.full(series.size, error), list(groups)).between
    return alarm, between.lower <= 4.0 * SPREAD <= between.upper


PARTS: dict[str, Callable[[int], list[Measurement]]] = {
    "overhead": overhead,
    "resume": resume,
    "fleet": fleet,
    "kills": kills,
    "speed": speed,
}
SIZES = {"overhead": 300, "resume": 10_000, "fleet": 100, "kills": 20, "speed": 400}


def measure(quick: bool = False) -> list[Measurement]:
    sizes = {"overhead": 40, "resume": 500, "fleet": 20, "kills": 3, "speed": 12} if quick else SIZES
    return [row for name, part in PARTS.items() for row in part(sizes[name])]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.campaign", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"which: {', '.join(PARTS)} (all)")
    parser.add_argument("--size", type=int, help="jobs, kills or fleets instead of the full number")
    args = parser.parse_args()
    for name in args.parts or PARTS:
        for row in PARTS[name](args.size or SIZES[name]):
            print(
                row.work,
                row.peer,
                row.peer_seconds,
                row.our_seconds,
                row.ratio,
                row.agrees,
                row.note,
                flush=True,
            )


if __name__ == "__main__":
    main()
