"""Parts of the program that are installed when asked for, and what to say of one that is not."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from analysis.base.errors import ShakedownError

PACKAGE = "shakedown-lab"


@dataclass(frozen=True)
class Extra:
    """An extra of the package: what it is for, and the modules that show that it is there."""

    purpose: str
    modules: tuple[str, ...]

    @property
    def installed(self) -> bool:
        return all(find_spec(module) is not None for module in self.modules)


EXTRAS = {
    "desktop": Extra("The window", ("PyQt6", "pyqtgraph")),
    "ni": Extra("NI data acquisition", ("nidaqmx", "grpc")),
    "opendaq": Extra("An openDAQ front end", ("opendaq",)),
    "sound": Extra("A sound card", ("sounddevice",)),
    "visa": Extra("A VISA instrument", ("pyvisa", "pyvisa_py")),
    "search": Extra("A particle swarm or a genetic search", ("pymoo",)),
    "cluster": Extra("Work on a Dask cluster", ("distributed",)),
    "tables": Extra("A table as Parquet or a recording as a Dataset", ("xarray", "pyarrow")),
}


class MissingExtra(ShakedownError):
    """Something was asked for whose packages are not installed."""


def need_extra(name: str) -> None:
    """MissingExtra, with the command that installs it, unless the extra is there."""
    if not EXTRAS[name].installed:
        raise MissingExtra(missing_extra(name))


def missing_extra(name: str) -> str:
    """The sentence about an extra that is not installed."""
    extra = EXTRAS[name]
    absent = next(m for m in extra.modules if find_spec(m) is None)
    return f"{extra.purpose} needs the package {absent}, which is not installed: {install_command(name)}"


def install_command(name: str) -> str:
    """How this installation gets the extra, from where it came from; nothing that it has is lost."""
    receipt = Path(sys.prefix) / "uv-receipt.toml"
    if receipt.exists():  # a tool is installed anew, with the extras and the packages beside it that it has
        wanted = [n for n, extra in EXTRAS.items() if n == name or extra.installed]
        return " ".join([f'uv tool install "{_package(wanted)}"', *_beside(receipt)])
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        return f'pipx runpip {PACKAGE} install "{_package([name])}"'
    return f'pip install "{_package([name])}"'


def _beside(receipt: Path) -> list[str]:
    """The options that name the other packages of a tool of uv."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        asked = tomllib.loads(receipt.read_text(encoding="utf-8"))["tool"]["requirements"]
        places = (r.get("directory") or r.get("editable") or r.get("path") or r["name"] for r in asked[1:])
        return [f'--with "{place}"' for place in places]
    return []


def _package(extras: Sequence[str]) -> str:
    """What an installer is asked for; with the file that this installation came from, if it came from one."""
    from importlib.metadata import PackageNotFoundError, distribution

    asked = f"{PACKAGE}[{','.join(extras)}]"
    try:
        origin = json.loads(distribution(PACKAGE).read_text("direct_url.json") or "{}").get("url", "")
    except (PackageNotFoundError, ValueError):
        origin = ""
    return f"{asked} @ {origin}" if origin.startswith("file:") else asked
