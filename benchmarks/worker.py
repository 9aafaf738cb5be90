"""One benchmark in a process of its own: `python -m benchmarks.worker NAME FILE [quick]` writes its rows."""

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


def answer(name: str, quick: bool) -> dict[str, Any]:
    """Rows and no problem, or a problem in one line."""
    try:
        return {
            "rows": [asdict(row) for row in rows(import_module(f"benchmarks.{name}"), quick)],
            "problem": "",
        }
    except ModuleNotFoundError as missing:
        return {"rows": [], "problem": f"{missing.name} is not installed (make bench installs the peers)."}
    except Exception as error:  # the others are to be run whatever this one did
        traceback.print_exc()
        return {"rows": [], "problem": f"{type(error).__name__}: {error}"}


def rows(module: Any, quick: bool) -> list[Measurement]:
    """What the module measures; one that only prints has no rows."""
    if not hasattr(module, "measure"):
        module.main()
        return []
    takes_quick = "quick" in inspect.signature(module.measure).parameters
    found: list[Measurement] = module.measure(quick=quick) if takes_quick else module.measure()
    return found


if __name__ == "__main__":
    name, target, *rest = sys.argv[1:]
    sys.argv = sys.argv[:1]  # a benchmark that reads arguments gets its defaults
    told = answer(name, quick="quick" in rest)
    Path(target).write_text(json.dumps(told, default=lambda number: number.item()), encoding="utf-8")
