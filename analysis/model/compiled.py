"""How the code around a model's kernels is compiled, and when what is kept of it must be forgotten."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

# Without reference counts (no allocation inside: work space comes from the caller) a step costs half. Fused
# multiply-add is allowed, hiding a not-a-number is not.
COMPILED: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "_nrt": False,
    "error_model": "numpy",
    "fastmath": {"contract"},
}

# Files whose compiled functions hold code of one another.
FILES = ("inputs", "slope", "dop853", "integrate", "lyapunov", "section", "model/tableau")


def forget_stale_code(folder: Path = Path(__file__).parents[1]) -> list[Path]:
    """Delete the compiler's cache of :data:`FILES` where one of them is newer; what was deleted.

    The compiler looks only at the file of the function it keeps, not at those that function calls: after a
    change in one of them the others would go on with the old code.
    """
    forgotten: list[Path] = []
    with suppress(OSError):  # without files to look at, or to delete, there is nothing to be stale
        newest = max((folder / f"{name}.py").stat().st_mtime for name in FILES)
        for name in FILES:
            for index in (folder / "__pycache__").glob(f"{name}.*.nbi"):
                if index.stat().st_mtime < newest:
                    index.unlink()
                    forgotten.append(index)
    return forgotten
