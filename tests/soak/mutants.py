"""Mutation testing, run by hand: small wrong changes to the sources, and whether the tests notice.

    python -m tests.soak.mutants analysis/estimate/finish=3 analysis/validation --lines /tmp/lines.json \
        --record "tests/unit/estimate tests/unit/validation" --count 200 --seed 1 --results /tmp/results.jsonl

Each mutant is one change of one expression (a sign, a comparison, a constant, a bound) in a copy of the
project. ``--record`` runs the given tests once and keeps in the file of ``--lines`` which of them execute
which line (see `tests.soak.lines`); after that each mutant is met by the tests that execute its line only,
the cheapest and most special first, until one fails or the limit of ``--seconds`` is reached. A place with a
weight (``=3``) gives that many times more of its mutants. Results are added to the file of ``--results``, and
what stands there already is not tried again: a run that was stopped goes on.

What runs as machine code, or once when its module is imported, executes no line of a test: there the tests
count that execute a line which names it, and those of a file of tests that names it. Compiled code that is
kept on disk is put back after each mutant.

A mutant that no test notices is printed with its line, so that a test can be written or the reason said why
nobody can notice it.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import pytest

from tests.soak import lines
from tests.soak.lines import Lines

ROOT = Path(__file__).parents[2]
COPIED = (
    "analysis",
    "app",
    "drivers",
    "resources",
    "tests",
    "benchmarks",
    "docs",
    "pyproject.toml",
    "README.md",
)

_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_PATIENCE = 20  # times the processor time of its tests that a mutant may take on a busy machine
_GUARD = 1e-100  # below it a number only keeps from dividing by zero, and so does three times as much
_NAMES = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "any": "all", "all": "any"}


# Imported once, before the copies of this process that run the tests are made.
PRELOADED = (
    "numpy", "numba", "h5py", "hypothesis", "PyQt6.QtWidgets", "PyQt6.QtTest", "pytestqt.plugin",
    "scipy.integrate", "scipy.interpolate", "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.stats",
)  # fmt: skip
NOTICED, TIME, SURVIVED, NEVER = "noticed", "noticed by time", "survived", "not executed by any test"
ASTRAY = "tests not found"


@dataclass(frozen=True)
class Mutant:
    """One wrong change: where, and what stands there before and after."""

    file: str
    line: int
    before: str
    after: str
    position: int  # of the changed node in a walk of the file's syntax tree


def changed(node: ast.AST) -> ast.AST | None:
    """The node with one wrong change, or None where there is nothing to change."""
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        return ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISON:
        return ast.Compare(node.left, [_COMPARISON[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        return node.operand
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value = cast(float, node.value)
        if type(value) is int:
            return ast.Constant(value * 3 + 1)
        return ast.Constant(1.0 if abs(value) < _GUARD else value * 3.0)
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return ast.Name(_NAMES[node.id], node.ctx)
    if isinstance(node, ast.Attribute) and node.attr in _NAMES:
        return ast.Attribute(node.value, _NAMES[node.attr], node.ctx)
    return None


def _only_shown(call: ast.Call) -> bool:
    """Whether the numbers of a call move a progress bar, choose one of many draws or bound a memory."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    on = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return name in ("report", "default_rng", "lru_cache") or (name == "part" and "progress" in on)


def _silent(tree: ast.Module) -> set[int]:
    """Nodes whose change nobody could notice: types, what only formats a message or shows progress."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            parts = [node.returns, *(a.annotation for a in (*node.args.args, *node.args.kwonlyargs))]
        elif isinstance(node, ast.JoinedStr | ast.Raise) or (
            isinstance(node, ast.Call) and _only_shown(node)
        ):
            parts = [node]
        elif isinstance(node, ast.Slice) and isinstance(node.step, ast.Constant) and node.step.value == 1:
            parts = [node]  # float64[::1], the type of an array
        for part in parts:
            if part is not None:
                found.update(id(inner) for inner in ast.walk(part))
    return found


def mutants_of(path: Path, root: Path = ROOT) -> list[Mutant]:
    """Every mutant of one file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent, found = _silent(tree), []
    for position, node in enumerate(ast.walk(tree)):
        other = None if id(node) in silent else changed(node)
        if other is not None:
            name = str(path.relative_to(root))
            found.append(Mutant(name, node.lineno, ast.unparse(node), ast.unparse(other), position))  # type: ignore[attr-defined]
    return found


def mutated(text: str, mutant: Mutant) -> str:
    """The source with the change, which moves no other line."""
    node = list(ast.walk(ast.parse(text)))[mutant.position]
    assert isinstance(node, ast.expr) and node.end_lineno is not None and node.end_col_offset is not None
    every = text.encode().split(b"\n")
    first, last = node.lineno - 1, node.end_lineno - 1
    head, tail = every[first][: node.col_offset], every[last][node.end_col_offset :]
    filling = b"\n" * (last - first)
    every[first : last + 1] = [head + b"(" + mutant.after.encode() + filling + b")" + tail]
    return b"\n".join(every).decode()


class Callers:
    """Which tests execute a place of the sources, whether or not the tracer sees it."""

    def __init__(self, recorded: Lines, root: Path = ROOT) -> None:
        self.recorded, self.root = recorded, root
        self.texts: dict[str, str] = {}  # of the files of tests
        recorded.compare(root)
        self.trees = {
            f: ast.parse((root / f).read_text(encoding="utf-8"))
            for f in recorded.tests
            if (root / f).exists()
        }
        self.named: dict[str, list[tuple[str, ast.AST]]] = {}  # where each name is used
        self.above: dict[int, ast.AST] = {}  # by node: the node that holds it
        for file, tree in self.trees.items():
            for node in ast.walk(tree):
                self.above.update((id(child), node) for child in ast.iter_child_nodes(node))
                name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
                if name is not None:
                    self.named.setdefault(name, []).append((file, node))

    def tests(self, mutant: Mutant) -> set[str]:
        node = list(ast.walk(self.trees[mutant.file]))[mutant.position]
        found = self._tests(mutant.file, node, set())
        inside = any(isinstance(n, ast.FunctionDef | ast.Lambda) for n in self._chain(node))
        if found or inside:
            return found
        return self.recorded.of(mutant.file, 1, 10**6)  # a name that only the tests use

    def _tests(self, file: str, node: ast.AST, known: set[str]) -> set[str]:
        chain = list(self._chain(node))
        functions = [n for n in chain if isinstance(n, ast.FunctionDef)]
        compiled = [f for f in functions if any("njit" in ast.unparse(d) for d in f.decorator_list)]
        if compiled:
            return self._naming(compiled[-1].name, known) | self._calling(file, compiled[-1].name)
        if functions:
            return self._in_function(file, node, chain, functions, known)
        # a line of the module, which is executed once, but for what stands in a lambda
        found = self._executing(file, node, chain) if any(isinstance(n, ast.Lambda) for n in chain) else set()
        for statement in chain:
            if isinstance(statement, ast.ClassDef):
                found |= self._naming(statement.name, known)
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            if isinstance(statement, ast.AnnAssign):
                targets = [statement.target]
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        found |= self._naming(part.id, known)
        return found

    def _in_function(
        self,
        file: str,
        node: ast.AST,
        chain: list[ast.AST],
        functions: list[ast.FunctionDef],
        known: set[str],
    ) -> set[str]:
        body = functions[0].body
        if body[0].lineno <= node.lineno:  # type: ignore[attr-defined]
            found = self._executing(file, node, chain)
        else:
            found = self.recorded.of(file, body[0].lineno, body[-1].end_lineno or body[-1].lineno)
        outer = functions[-1]
        once = any(
            "cache" in ast.unparse(d) for d in outer.decorator_list
        )  # executed for the first that asks
        if once or not self.recorded.of(file, outer.body[0].lineno, outer.end_lineno or outer.lineno):
            found = found | self._naming(outer.name, known)  # or compiled where it is named
        return found

    def _chain(self, node: ast.AST) -> Iterator[ast.AST]:
        """The node, and what holds it up to the module."""
        while True:
            yield node
            if id(node) not in self.above:
                return
            node = self.above[id(node)]

    def _executing(self, file: str, node: ast.AST, chain: list[ast.AST]) -> set[str]:
        """By the lines of the expression; by those of its statement where the tracer names another one."""
        found = self.recorded.of(file, node.lineno, node.end_lineno)  # type: ignore[attr-defined]
        if found:
            return found
        statement = next(n for n in chain if isinstance(n, ast.stmt))
        last = statement.end_lineno or statement.lineno
        inner = getattr(statement, "body", None)
        return self.recorded.of(file, statement.lineno, inner[0].lineno - 1 if inner else last)

    def _calling(self, file: str, name: str) -> set[str]:
        """The tests of the files that import the module and name the function: its own tests, which execute
        no other line of the sources."""
        module = file.removesuffix(".py").replace("/", ".")
        package, _, last = module.rpartition(".")
        found = set()
        for test in self.recorded.seconds:
            path = test.partition("::")[0]
            if path not in self.texts:
                there = self.root / path
                self.texts[path] = there.read_text(encoding="utf-8") if there.exists() else ""
            text = self.texts[path]
            imported = module in text or re.search(rf"from {re.escape(package)} import .*\b{last}\b", text)
            if imported and re.search(rf"\b{name}\b", text):
                found.add(test)
        return found

    def _naming(self, name: str, known: set[str]) -> set[str]:
        """The tests that execute a line where the name is used."""
        if name in known:
            return set()
        known.add(name)
        return set().union(*(self._tests(file, node, known) for file, node in self.named.get(name, [])))


def copy_of_the_project(folder: Path) -> Path:
    copy = folder / "project"
    copy.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name)  # with the bytecode, which holds by the files' times
        else:
            shutil.copy(source, copy / name)
    return copy


def record(copy: Path, file: Path, places: list[str], tests: list[str]) -> None:
    """Which of the tests execute which lines, added to the file; compiled code is made on the way."""
    folders = os.pathsep.join(
        place if not place.endswith(".py") else str(Path(place).parent) for place in places
    )
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", lines.__name__, *tests],
        cwd=copy,
        check=False,
        env={**_environment(), lines.FILE: str(file), lines.PLACES: folders},
    )
    for kept in copy.rglob("*.nb[ic]"):
        here = ROOT / kept.relative_to(copy)
        here.parent.mkdir(exist_ok=True)
        shutil.copy2(kept, here)


def _environment() -> dict[str, str]:
    return {**os.environ, "QT_QPA_PLATFORM": "offscreen", "OPENBLAS_NUM_THREADS": "1"}


@contextmanager
def in_place(copy: Path, mutant: Mutant) -> Iterator[None]:
    """The change stands in the copy; afterwards the copy is as before, with the compiled code it had."""
    path = copy / mutant.file
    original, then = path.read_text(encoding="utf-8"), path.stat()
    compiled = {kept: kept.stat().st_mtime_ns for kept in copy.rglob("*.nb[ic]")}
    path.write_text(mutated(original, mutant), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(original, encoding="utf-8")
        os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
        for kept in copy.rglob("*.nb[ic]"):
            if compiled.get(kept) != kept.stat().st_mtime_ns:
                kept.unlink()
        for kept in compiled:
            source = ROOT / kept.relative_to(copy)
            if not kept.exists() and source.exists():
                shutil.copy2(source, kept)


def _run_tests(copy: Path, tests: list[str]) -> int:
    """In a process of its own that ends with pytest's answer: the libraries are imported already."""
    os.setsid()
    said = os.open(copy.parent / "said.txt", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for stream in (0, 1, 2):
        os.dup2(said, stream)
    os.chdir(copy)
    os.environ.update(_environment())
    sys.dont_write_bytecode = True
    for name in [n for n in sys.modules if n.partition(".")[0] in ("tests", "analysis", "app", "drivers")]:
        del sys.modules[name]
    sys.path.insert(0, str(copy))
    imported = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
    return int(pytest.main(["-q", "-x", "-W", imported, "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))


def noticed(copy: Path, tests: list[str], seconds: float) -> str:
    """What the tests say of the copy as it stands."""
    child = os.fork()
    if child == 0:
        answer = int(pytest.ExitCode.INTERNAL_ERROR)
        try:
            answer = _run_tests(copy, tests)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(answer)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return {0: SURVIVED, 3: ASTRAY, 4: ASTRAY, 5: ASTRAY}.get(
                os.waitstatus_to_exitcode(status), NOTICED
            )
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return TIME  # a search that no longer ends


def weighted(every: list[tuple[Mutant, float]], count: int, seed: int) -> list[Mutant]:
    """Drawn without repetition, each with a chance in proportion to its weight; a change of one file leaves
    the draws from the others as they are."""

    def key(mutant: Mutant, weight: float) -> float:
        return random.Random(f"{seed} {mutant.file} {mutant.position}").random() ** (1 / weight)

    keyed = sorted(((key(m, w), i) for i, (m, w) in enumerate(every)), reverse=True)
    return [every[i][0] for _, i in keyed[:count]]


def within(tests: list[str], recorded: Lines, seconds: float) -> list[str]:
    """The first tests that together take no longer; one in any case."""
    kept: list[str] = []
    for test in tests:
        if not kept or recorded.seconds[test] <= seconds:
            seconds -= recorded.seconds[test]
            kept.append(test)
    return kept


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "places", nargs="+", help="files or folders to change, with =WEIGHT where it is not 1"
    )
    parser.add_argument("--lines", type=Path, required=True, help="which test executes which line")
    parser.add_argument("--record", default="", help="tests to measure first, with options of pytest")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for one mutant")
    parser.add_argument(
        "--minutes", type=float, default=1e6, help="no mutant is begun later; go on another time"
    )
    parser.add_argument("--results", type=Path, required=True, help="one line of JSON for each mutant")
    parser.add_argument("--again", action="store_true", help="try the survivors in the results once more")
    options = parser.parse_args(arguments)
    places = {place.partition("=")[0]: float(place.partition("=")[2] or 1) for place in options.places}
    weights: dict[Path, float] = {}
    for place, weight in places.items():
        for f in [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py")):
            weights[f] = weight
    every = [(m, weight) for f, weight in sorted(weights.items()) for m in mutants_of(f)]
    chosen = weighted(every, options.count, options.seed)
    results = _read_results(options.results)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_of_the_project(Path(folder))
        if options.record:
            record(copy, options.lines.absolute(), list(places), shlex.split(options.record))
        recorded = Lines.read(options.lines)
        callers = Callers(recorded, copy)
        for name in PRELOADED:
            importlib.import_module(name)
        unchanged = noticed(copy, within(recorded.best_first(set(recorded.seconds)), recorded, 5.0), 120.0)
        if unchanged != SURVIVED:
            parser.error(f"without any change: {unchanged}\n{(Path(folder) / 'said.txt').read_text()}")
        for number, mutant in enumerate(chosen, start=1):
            if mutant in results and not (options.again and results[mutant] in (SURVIVED, NEVER)):
                continue
            if time.monotonic() - begun > 60 * options.minutes:
                break
            tests = recorded.best_first(callers.tests(mutant)) if mutant.file in recorded.tests else []
            few = within(tests, recorded, options.seconds)
            start, answer = time.monotonic(), NEVER
            if few:
                with in_place(copy, mutant):
                    patience = _PATIENCE * sum(recorded.seconds[t] for t in few) + 120
                    answer = noticed(copy, few, patience)
            took = time.monotonic() - start
            results[mutant] = answer
            with options.results.open("a", encoding="utf-8") as file:
                line = {"answer": answer, "tests": len(few), "of": len(tests), **asdict(mutant)}
                file.write(json.dumps(line) + "\n")
            where = f"{mutant.file}:{mutant.line}  {mutant.before}  ->  {mutant.after}"
            print(
                f"{number:4} {answer} ({len(few)} of {len(tests)} tests, {took:.0f} s)  {where}", flush=True
            )
    tried = [mutant for mutant in chosen if mutant in results]
    answers = Counter(results[mutant] for mutant in tried)
    caught = answers[NOTICED] + answers[TIME]
    print(", ".join(f"{count} {answer}" for answer, count in answers.items()))
    share = 100 * caught / max(len(tried), 1)
    print(f"{len(tried)} of {len(every)} possible mutants tried, {share:.0f} % noticed")
    if len(tried) < len(chosen):
        print(f"{len(chosen) - len(tried)} left: the same command goes on")
    return 0


def _read_results(path: Path) -> dict[Mutant, str]:
    """What was found before; the last word on each mutant counts."""
    results: dict[Mutant, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        found = json.loads(line)
        names = Mutant.__dataclass_fields__
        results[Mutant(**{name: found[name] for name in names})] = found["answer"]
    return results


if __name__ == "__main__":
    sys.exit(main())
