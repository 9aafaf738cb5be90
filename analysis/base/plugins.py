"""What other packages add to the program, found through their entry points.

    [project.entry-points."shakedown.sources"]
    my_box = "my_package.box:open_source"

Nothing of a package is imported before it is asked for. A name of ours cannot be taken by another package.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from typing import Any

from analysis.base.errors import ShakedownError

GROUPS = ("sources", "exciters", "controllers", "devices", "rigs", "formats", "methods")

_log = logging.getLogger(__name__)


class PluginError(ShakedownError):
    """Something that another package adds, and that cannot be loaded."""


@cache
def _found() -> Mapping[str, tuple[EntryPoint, ...]]:
    """The entry points of each group; looking through all packages takes some 50 ms, once."""
    try:
        every = entry_points()
        return {group: tuple(every.select(group=f"shakedown.{group}")) for group in GROUPS}
    except Exception as error:  # one package with a damaged list must not take the others away
        _log.warning("the entry points of a package cannot be read", exc_info=error)
    readable = [entry for package in distributions() for entry in _entries(package)]
    return {group: tuple(e for e in readable if e.group == f"shakedown.{group}") for group in GROUPS}


def _entries(package: Distribution) -> list[EntryPoint]:
    """The entry points of one package; none if their list is damaged."""
    try:
        return list(package.entry_points)
    except Exception:
        return []


def plugged(group: str, own: Iterable[str] = ()) -> dict[str, EntryPoint]:
    """What other packages add to a group, by name; ``own``: names that are ours already."""
    taken = set(own)
    added: dict[str, EntryPoint] = {}
    for entry in _found()[group]:
        if entry.name in taken or entry.name in added:
            _note_taken(entry.name, package_of(entry))
        else:
            added[entry.name] = entry
    return added


@cache
def _note_taken(name: str, package: str) -> None:
    """Once in the life of a process: the lists are asked for again and again."""
    _log.warning("%s of %s is not used: the name is taken", name, package)


def not_used(group: str, own: Iterable[str] = ()) -> list[str]:
    """Sentences about what other packages add under a name that is taken: the first of a name is used."""
    used = plugged(group, own)
    return [
        f"'{entry.name}' ({group}) of {package_of(entry)} is not used: "
        f"{package_of(used[entry.name]) if entry.name in used else 'Shakedown'} has that name already."
        for entry in _found()[group]
        if entry is not used.get(entry.name)
    ]


def package_of(entry: EntryPoint) -> str:
    """The package in words."""
    name = _about(entry, "Name")
    return f"the package {name}" if name else "a package"


def summary_of(entry: EntryPoint) -> str:
    """What the package says of itself in a line; empty if it says nothing."""
    return _about(entry, "Summary")


def _about(entry: EntryPoint, what: str) -> str:
    try:
        return "" if entry.dist is None else str(entry.dist.metadata[what] or "")
    except Exception:  # the package's own description is damaged
        return ""


def load_plugin(entry: EntryPoint) -> Any:
    """The object behind an entry point; PluginError in one sentence where its package fails."""
    try:
        return entry.load()
    except (Exception, SystemExit) as error:  # also one that ends its process when it is imported
        _log.warning("%s of %s cannot be loaded", entry.name, package_of(entry), exc_info=error)
        raise PluginError(
            f"'{entry.name}' of {package_of(entry)} cannot be loaded ({type(error).__name__}: {error})."
        ) from None
