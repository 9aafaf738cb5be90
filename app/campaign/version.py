"""Which program makes the numbers: two programs of one version give the same result for the same job."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import analysis
import drivers

NUMERICAL = ("numpy", "scipy", "numba")  # packages that the last digits depend on


@lru_cache(maxsize=1)
def program_version() -> str:
    """The version and a hash over the sources that a result depends on: a change of either makes new keys."""
    found = hashlib.sha256(Path(__file__).with_name("work.py").read_bytes())
    for package in (analysis, drivers):
        root = Path(str(package.__file__)).parent
        for path in sorted(root.rglob("*.py")):
            found.update(path.relative_to(root).as_posix().encode())
            found.update(path.read_bytes())
    return f"{analysis.__version__} ({found.hexdigest()[:10]})"


@lru_cache(maxsize=1)
def full_version() -> str:
    """The program with the packages under it, in words; compared between this machine and the workers."""
    return f"Shakedown {program_version()} with " + ", ".join(f"{n} {version(n)}" for n in NUMERICAL)
