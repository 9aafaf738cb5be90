"""What app and drivers use of analysis is its public list, loaded lazily."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import analysis

ROOT = Path(analysis.__file__).parent.parent
# Deliberately inside: the virtual plant's compiled loop, the beams and functions that published tables vary,
# the method of the thesis step by step, and the parts of the loops that hold orbits and track branches, which
# the rig runs.
INSIDE = (
    "analysis.base.compiling",
    "analysis.model.kernels",
    "analysis.estimate.functions",
    "analysis.estimate.balance",
    "analysis.holding",
    "analysis.tracking",
)


def _imports(path: Path) -> list[ast.ImportFrom]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [
        n for n in nodes if isinstance(n, ast.ImportFrom) and (n.module or "").split(".")[0] == "analysis"
    ]


def test_every_public_name_is_there_and_typed_from_the_same_home() -> None:
    stub = {a.name: n.module for n in _imports(Path(analysis.__file__).with_suffix(".pyi")) for a in n.names}
    homes = {name: f"analysis.{room}" for name, room in analysis._HOMES.items()}  # type: ignore[attr-defined]
    assert stub == homes
    for name in homes:
        assert getattr(analysis, name) is not None


def test_app_and_drivers_import_public_names_only() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {node.module}"
        for layer in ("app", "drivers")
        for path in sorted((ROOT / layer).rglob("*.py"))
        for node in _imports(path)
        if node.module != "analysis" and not (node.module or "").startswith(INSIDE)
    ]
    assert found == []


def test_asking_for_a_record_does_not_load_the_estimators() -> None:
    code = "import sys, analysis; analysis.Record; print(*sorted(m for m in sys.modules if 'analysis' in m))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert "analysis.base.record" in loaded.stdout
    assert "estimate" not in loaded.stdout
    assert "numba" not in loaded.stdout


def test_no_public_name_is_that_of_a_room() -> None:
    """A room that was imported would stand in the place of the name."""
    rooms = {path.parent.name for path in Path(analysis.__file__).parent.glob("*/__init__.py")}
    assert not rooms & set(analysis.__all__)
