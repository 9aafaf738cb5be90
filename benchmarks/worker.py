"""One benchmark in its own process: `python -m benchmarks.worker NAME FILE [quick] [options=JSON]`."""

from __future__ import annotations

import inspect
import json
import sys
import traceback
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measure import Measurement


def answer(name: str, quick: bool, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """Rows and no problem, or a problem in one line."""
    try:
        return {
            "rows": [asdict(row) for row in rows(import_module(f"benchmarks.{name}"), quick, options)],
            "problem": "",
        }
    except ModuleNotFoundError as missing:
        return {"rows": [], "problem": f"{missing.name} is not installed (make bench installs the peers)."}
    except Exception as error:  # the others are to be run whatever this one did
        traceback.print_exc()
        return {"rows": [], "problem": f"{type(error).__name__}: {error}"}


def rows(module: Any, quick: bool, options: dict[str, Any] | None = None) -> list[Measurement]:
    """What the module measures; one that only prints has no rows."""
    if not hasattr(module, "measure"):
        module.main()
        return []
    taken = inspect.signature(module.measure).parameters
    given = {"quick": quick, **(options or {})}
    found: list[Measurement] = module.measure(**{k: v for k, v in given.items() if k in taken})
    return found


if __name__ == "__main__":
    name, target, *rest = sys.argv[1:]
    sys.argv = sys.argv[:1]  # a benchmark that reads arguments gets its defaults
    given = next((text.partition("=")[2] for text in rest if text.startswith("options=")), "{}")
    told = answer(name, "quick" in rest, json.loads(given))
    Path(target).write_text(json.dumps(told, default=lambda number: number.item()), encoding="utf-8")
