"""Mutation testing, run by hand: small wrong changes to the sources, and whether the tests notice.

    python -m tests.soak.mutants analysis/estimate/finish analysis/validation --tests tests/unit/estimate \
        tests/unit/validation --count 40 --seed 1 [--json survivors.json]

Each mutant is one change of one expression (a sign, a comparison, a constant, a bound) in a copy of the
project; the given tests run on the copy until the first failure. A mutant that no test notices is printed
with its line, so that a test can be written or the reason said why nobody can notice it.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

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
_NAMES = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "any": "all", "all": "any"}


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
        return ast.Constant(node.value * 3 + 1 if type(node.value) is int else node.value * 3.0)
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return ast.Name(_NAMES[node.id], node.ctx)
    if isinstance(node, ast.Attribute) and node.attr in _NAMES:
        return ast.Attribute(node.value, _NAMES[node.attr], node.ctx)
    return None


def _silent(tree: ast.Module) -> set[int]:
    """Nodes whose change nobody could notice: type annotations, and what only formats a message."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            parts = [node.returns, *(a.annotation for a in (*node.args.args, *node.args.kwonlyargs))]
        elif isinstance(node, ast.JoinedStr | ast.Raise):
            parts = [node]
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
    """The source with the change; only the lines of the changed statement are written anew."""
    tree = ast.parse(text)
    node = list(ast.walk(tree))[mutant.position]
    assert isinstance(node, ast.expr) and node.end_lineno is not None and node.end_col_offset is not None
    lines = text.encode().split(b"\n")
    first, last = node.lineno - 1, node.end_lineno - 1
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    lines[first : last + 1] = [head + b"(" + mutant.after.encode() + b")" + tail]
    return b"\n".join(lines).decode()


def copy_of_the_project(folder: Path) -> Path:
    copy = folder / "project"
    copy.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("*.nb?", "*.pyc"))
        else:
            shutil.copy(source, copy / name)
    return copy


def survives(copy: Path, mutant: Mutant, tests: list[str], seconds: float) -> bool:
    """Whether the tests pass on the project with this change."""
    path = copy / mutant.file
    original = path.read_text(encoding="utf-8")
    path.write_text(mutated(original, mutant), encoding="utf-8")
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
            cwd=copy,
            capture_output=True,
            timeout=seconds,
            check=False,
            env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        )
        return run.returncode == 0
    except subprocess.TimeoutExpired:
        return False  # a search that no longer ends is noticed, too
    finally:
        path.write_text(original, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("places", nargs="+", help="files or folders to change")
    parser.add_argument("--tests", nargs="+", required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0, help="limit of one run of the tests")
    parser.add_argument("--json", help="write the survivors here")
    options = parser.parse_args(arguments)
    files = [
        f for p in options.places for f in ([ROOT / p] if p.endswith(".py") else (ROOT / p).rglob("*.py"))
    ]
    every = [m for f in sorted(files) for m in mutants_of(f)]
    chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_of_the_project(Path(folder))
        for number, mutant in enumerate(chosen, start=1):
            if survives(copy, mutant, options.tests, options.seconds):
                survivors.append(mutant)
                print(
                    f"survived  {mutant.file}:{mutant.line}  {mutant.before}  ->  {mutant.after}", flush=True
                )
            print(f"{number} of {len(chosen)}, {len(survivors)} survived", file=sys.stderr, flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(m) for m in survivors], indent=1), encoding="utf-8")
    share = 1 - len(survivors) / max(len(chosen), 1)
    print(f"{len(chosen)} of {len(every)} possible mutants tried, {100 * share:.0f} % noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
