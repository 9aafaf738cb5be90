"""A Python process of our own beside this one: same interpreter, same packages, wherever we stand."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def command(module: str, *arguments: str) -> list[str]:
    """Run a module of ours. -P: nothing in the folder we stand in is taken for one."""
    return [sys.executable, "-P", "-m", module, *arguments]


def environment() -> dict[str, str]:
    """Ours, with the folder that these packages came from: a checkout need not be installed to record."""
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), others] if others else [str(_ROOT)])}
