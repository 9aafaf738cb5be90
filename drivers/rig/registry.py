"""The drivers by role and name: ours, and those of other packages (see analysis.base.plugins).

A driver is a function, imported when a rig asks for it:

    source      open(profile, clock, seed) -> Source
    exciter     open(profile, source) -> Exciter
    controller  open(table) -> SensorController
    devices     find() -> (list of (address, description), a sentence about what could not be looked for)
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

from analysis import PluginError, ShakedownError, load_plugin, not_used, package_of, plugged
from drivers.base.foreign_error import in_words

_log = logging.getLogger(__name__)
# What the parts of other packages must have at least; `shakedown rigs RIG --check` tries the rest.
_NEEDED: dict[str, tuple[str, ...]] = {
    "sources": ("name", "rate", "channels", "waits", "start", "read", "stop", "close"),
    "exciters": (
        *("unit", "limits", "latch", "play", "change", "stop", "request_stop", "arm"),
        *("state", "zeroing", "close"),
    ),
    "controllers": ("close",),
}

Place = tuple[str, str]  # module and function

SOURCES: dict[str, Place] = {
    "virtual": ("drivers.virtual.parts", "open_source"),
    "nidaqmx": ("drivers.instruments.nidaq", "open_source"),
    "opendaq": ("drivers.instruments.opendaq", "open_source"),
    "sound": ("drivers.instruments.sound", "open_source"),
}
EXCITERS: dict[str, Place] = {
    "virtual": ("drivers.virtual.parts", "open_exciter"),
    "nidaqmx": ("drivers.instruments.nidaq", "open_exciter"),
    "sound": ("drivers.instruments.sound", "open_exciter"),
    "ds345": ("drivers.instruments.generators", "open_ds345"),
    "scpi": ("drivers.instruments.generators", "open_scpi"),
}
CONTROLLERS: dict[str, Place] = {
    "ofv5000": ("drivers.instruments.polytec", "open_ofv5000"),
    "ofv3001": ("drivers.instruments.polytec", "open_ofv3001"),
}
DEVICES: dict[str, Place] = {
    "nidaqmx": ("drivers.instruments.nidaq", "list_devices"),
    "serial": ("drivers.instruments.serial_link", "list_ports"),
    "visa": ("drivers.instruments.visa", "list_devices"),
    "opendaq": ("drivers.instruments.opendaq", "list_devices"),
    "sound": ("drivers.instruments.sound", "list_devices"),
    "virtual": ("drivers.rig.profile", "list_virtual_rigs"),
}
OWN = {"sources": SOURCES, "exciters": EXCITERS, "controllers": CONTROLLERS, "devices": DEVICES}


def names(group: str) -> list[str]:
    """Every driver of a group (sources, exciters, controllers, devices), ours first."""
    own = OWN[group]
    return [*own, *plugged(group, own)]


def called(group: str, name: str) -> str:
    """A driver in words: its name, and the package that it comes from if that is not ours."""
    entry = plugged(group, OWN[group]).get(name)
    return f"The driver '{name}'" + (f" of {package_of(entry)}" if entry is not None else "")


def names_taken() -> list[str]:
    """Sentences about drivers of other packages that are not used because their name is taken."""
    return [words for group, own in OWN.items() for words in not_used(group, own)]


def driver(group: str, name: str) -> Callable[..., Any]:
    """A driver as a promise: its module is imported when it is called. KeyError for an unknown name."""
    own = OWN[group]
    if name in own:
        module, function = own[name]
        return lambda *args: getattr(import_module(module), function)(*args)
    entry = plugged(group, own)[name]
    return lambda *args: _opened(group, entry, *args)


def _opened(group: str, entry: EntryPoint, *args: Any) -> Any:
    """What a driver of another package gives; PluginError if it fails or gives something else."""
    function = load_plugin(entry)
    try:
        made = function(*args)
    except ShakedownError:
        raise
    except (Exception, SystemExit) as error:
        _log.warning("%s failed", entry.value, exc_info=error)
        raise PluginError(f"'{entry.name}' ({entry.value}) failed: {in_words(error)}.") from None
    missing = [name for name in _NEEDED.get(group, ()) if not hasattr(made, name)]
    if missing:
        kind, absent = group.removesuffix("s"), ", ".join(missing)
        raise PluginError(f"'{entry.name}' ({entry.value}) gives no {kind}: it has no {absent}.")
    return made
