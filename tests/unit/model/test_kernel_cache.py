"""Compiled code between runs: kept on disk, found again, replaced when damaged, shared by threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numba import njit, types

import analysis.model.kernels
from analysis.model import Model
from analysis.model.kernels import RHS_TYPE
from tests.waiting import GUARD

ROOT = Path(__file__).parents[3]
USE = """
import json, time
from analysis.model import Model
import numpy as np
kernels = Model.from_equations({"x": "v", "v": "-k*x - sin(x)"}, {"k": 2.0}).kernels()
kernels.rhs  # the first pays for setting up the compiler
begin = time.process_time()
dx, jx, jp = np.empty(2), np.empty((2, 2)), np.empty((2, 1))
kernels.jac(0.0, np.array([0.5, 1.0]), np.empty(0), np.array([2.0]), dx, jx, jp)
seconds = time.process_time() - begin
stats = kernels.jac.stats
hits, misses = sum(stats.cache_hits.values()), sum(stats.cache_misses.values())
print(json.dumps([dx.tolist(), hits, misses, seconds, str(kernels._module.__file__)]))
"""


def start(cache: Path, before: str = "") -> tuple[list[float], int, int, float, str]:
    """A fresh process that uses a kernel: result, cache hits and misses, CPU seconds, file of the source."""
    environment = {**os.environ, "SHAKEDOWN_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", before + USE],
        env=environment,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: tuple[list[float], int, int, float, str] = tuple(json.loads(done.stdout))
    return result


def files(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}


def test_given_second_start_when_kernels_are_used_then_nothing_is_compiled(tmp_path: Path) -> None:
    first = start(tmp_path)
    written = files(tmp_path)
    assert tuple(first[1:3]) == (0, 1)
    assert any(name.startswith("kernels/gen_") for name in written)
    second = start(tmp_path)
    assert tuple(second[1:3]) == (1, 0)
    assert files(tmp_path) == written
    assert second[0] == first[0] == pytest.approx([1.0, -1.0 - np.sin(0.5)])
    assert second[3] < 0.3 * first[3]


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))  # as on a full disk: longer files cannot be written
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of file size")
def test_given_no_room_for_compiled_code_when_kernels_are_used_then_they_work_all_the_same(
    tmp_path: Path,
) -> None:
    source = Path(start(tmp_path / "roomy")[4]).stat().st_size
    found = start(tmp_path / "full", FULL.format(source + 100))
    assert found[0] == pytest.approx([1.0, -1.0 - np.sin(0.5)]) and tuple(found[1:3]) == (0, 1)
    kept = {name: len(list((tmp_path / name).rglob("*.nbc"))) for name in ("roomy", "full")}
    assert kept["full"] < kept["roomy"]  # the limit was felt


def test_given_no_room_at_all_then_one_sentence_says_so(tmp_path: Path) -> None:
    environment = {**os.environ, "SHAKEDOWN_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", FULL.format(10) + USE], env=environment, capture_output=True, text=True,
        cwd=ROOT, check=False,
    )  # fmt: skip
    said = done.stderr.strip().splitlines()[-1]
    assert said.startswith("analysis.base.errors.ShakedownError: The equations cannot be compiled: ")
    assert "take no more data (File too large)" in said


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of its own, in this process."""
    monkeypatch.setenv("SHAKEDOWN_CACHE", str(tmp_path))
    monkeypatch.setattr(analysis.model.kernels, "_loaded", {})
    analysis.model.kernels._cache_folder.cache_clear()
    yield tmp_path
    analysis.model.kernels._cache_folder.cache_clear()


def test_given_damaged_cache_when_kernels_are_used_then_made_again(own_cache: Path) -> None:
    def result() -> tuple[float, int]:
        analysis.model.kernels._loaded.clear()
        model = Model.from_equations({"x": "-k*x + 0.5"}, {"k": 2.0})
        rhs = model.kernels().rhs
        dx = np.empty(1)
        rhs(0.0, np.array([3.0]), np.empty(0), model.values(), dx)
        return float(dx[0]), sum(rhs.stats.cache_hits.values())

    assert result() == (-5.5, 0)
    assert result() == (-5.5, 1)
    for pattern in ("*.nbi", "*.nbc", "gen_*.py"):
        for keep in (0, 40):
            damaged = list(own_cache.rglob(pattern))
            assert damaged
            for path in damaged:
                path.write_bytes(path.read_bytes()[:keep])
            assert result()[0] == -5.5
            assert result() == (-5.5, 1)


def test_given_full_cache_when_a_model_is_added_then_the_oldest_go(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis.model.kernels, "MAX_CACHED", 2)
    for i in range(4):
        Model.from_equations({"x": f"-x + {i}"}).kernels()
        newest = max((own_cache / "kernels").glob("gen_*.py"), key=lambda p: p.stat().st_mtime_ns)
        os.utime(newest, (i, i))
    left = list((own_cache / "kernels").glob("gen_*.py"))
    assert sorted(p.stat().st_mtime for p in left) == [2, 3]


def test_given_unwritable_cache_when_kernels_are_used_then_a_temporary_folder_serves(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    result = start(blocked)
    assert result[0] == pytest.approx([1.0, -1.0 - np.sin(0.5)])
    assert "shakedown-kernels-" in result[4]


def test_given_equal_equations_when_asked_twice_then_the_same_kernels() -> None:
    one = Model.from_equations({"x": "-k*x"}, {"k": 1.0}, name="one")
    two = Model.from_equations({"y": "-c*y"}, {"c": {"guess": 5.0}}, name="two")
    assert one.kernels() is two.kernels()  # names do not matter
    assert one.with_values({"k": 3.0}).kernels() is one.kernels()
    other = Model.from_equations({"x": "-k*x**2"}, {"k": 1.0})
    assert other.kernels() is not one.kernels()


def test_given_several_threads_when_kernels_are_asked_for_then_compiled_once() -> None:
    model = Model.from_equations({"x": "-k*x + 0.123456789"}, {"k": 1.0})
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(model.kernels().rhs)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len(set(map(id, found))) == 1


def test_given_kernel_at_work_when_another_thread_runs_then_it_is_not_held_up() -> None:
    model = Model.from_equations({"x": "-k*sin(x)"}, {"k": 1.0})
    kernel = model.kernels().rhs_many
    n = 3_000_000
    t, x, u, dx = np.zeros(n), np.ones((1, n)), np.empty((0, n)), np.zeros((1, n))
    calls, inside, enough = 0, False, threading.Event()

    def work() -> None:
        nonlocal calls, inside
        while not enough.is_set():
            calls += 1
            inside = True
            kernel(t, x, u, np.ones(1), dx)
            inside = False

    thread = threading.Thread(target=work)
    thread.start()
    most, until = 0, time.monotonic() + GUARD
    while most < 100 and time.monotonic() < until:
        turns, call = 0, calls
        while inside and calls == call and turns < 100:
            turns += 1
            time.sleep(0)
        most = max(most, turns)
    enough.set()
    thread.join()
    assert most >= 100  # within one call


@njit(types.void(RHS_TYPE, types.float64[::1], types.float64[::1], types.float64[::1]))
def _apply(rhs, x, p, dx):  # type: ignore[no-untyped-def]
    rhs(0.0, x, p[:0], p, dx)


def test_given_compiled_caller_when_given_different_models_then_none_is_recompiled() -> None:
    dx = np.empty(1)
    for text, expected in (("-k*x", -6.0), ("k*x**2", 18.0)):
        model = Model.from_equations({"x": text}, {"k": 2.0})
        _apply(model.kernels().rhs, np.array([3.0]), model.values(), dx)
        assert dx[0] == expected
    assert len(_apply.signatures) == 1
