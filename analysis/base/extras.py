"""Parts of the program that are installed when asked for, and what to say of one that is not."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from analysis.base.errors import ShakedownError


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
    "tables": Extra("A table as Parquet or a recording as a Dataset", ("pyarrow", "xarray")),
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
    """How this installation gets the extra. A tool is installed anew, with those that it has."""
    wanted = [n for n, extra in EXTRAS.items() if n == name or extra.installed]
    if (Path(sys.prefix) / "uv-receipt.toml").exists():
        return f'uv tool install "shakedown-lab[{",".join(wanted)}]"'
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        return f'pipx install --force "shakedown-lab[{",".join(wanted)}]"'
    return f'pip install "shakedown-lab[{name}]"'
