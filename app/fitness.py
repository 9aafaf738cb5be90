"""Whether this machine is fit: versions, drivers, permissions, disk, timing, display, devices."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from analysis import EXTRAS, __version__, missing_extra, not_used, package_of, plugged
from app.settings import Settings
from drivers.base.control_folder import control_folder
from drivers.base.logs import log_path
from drivers.base.state import state_folder

State = Literal["good", "note", "bad"]
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "matplotlib", "h5py", "npTDMS", "pyserial", "psutil")
EXTRA_PACKAGES = {
    "desktop": "PyQt6",
    "ni": "nidaqmx",
    "opendaq": "opendaq",
    "sound": "sounddevice",
    "visa": "pyvisa",
    "search": "pymoo",
    "cluster": "distributed",
    "tables": "pyarrow",
}
FEWEST_GIGABYTES = 2.0  # of free disk: eight channels at 50 kHz fill 12 GB in an hour
TICK_SECONDS = 0.01  # the pace of the rig's limits
TICKS = 60
LATE_SECONDS = 0.02  # a tick that comes this late makes STOP later by as much


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, what was found, and whether that is as it should be."""

    what: str
    words: str
    state: State = "good"


@dataclass(frozen=True)
class Section:
    title: str
    findings: list[Finding]


def examine() -> list[Section]:
    """Look at everything; what cannot be looked at is a line too, never an exception."""
    parts: list[tuple[str, Callable[[], list[Finding]]]] = [
        ("Program", program),
        ("Extras", extras),
        ("Other packages", other_packages),
        ("Machine", machine),
        ("Folders", folders),
        ("Timing", timing),
        ("Display", display),
        ("Devices", devices),
    ]
    return [Section(title, _safely(look)) for title, look in parts]


def as_text(sections: list[Section]) -> str:
    """The page for people: what is worth a look is marked with -, what is wrong with an exclamation mark."""
    marks = {"good": " ", "note": "-", "bad": "!"}
    lines = []
    for section in sections:
        lines.append(section.title)
        lines += [f"  {marks[f.state]} {f.what}: {f.words}" for f in section.findings]
    wrong = sum(f.state == "bad" for s in sections for f in s.findings)
    lines.append("Nothing is wrong." if not wrong else f"{wrong} to look at: the lines that begin with !")
    return "\n".join(lines)


def _safely(look: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return look()
    except Exception as error:  # the page must come out whatever is wrong with the machine
        return [Finding("not known", f"{type(error).__name__}: {error}", "bad")]


def program() -> list[Finding]:
    found = [
        Finding("Shakedown", f"{__version__} in {Path(__file__).parents[1]}"),
        Finding("Python", f"{platform.python_version()} in {sys.prefix}"),
    ]
    for name in LIBRARIES:
        installed = _version(name)
        found.append(Finding(name, installed or "not installed", "good" if installed else "bad"))
    return found


def extras() -> list[Finding]:
    found = []
    for name, extra in EXTRAS.items():
        if extra.installed:
            package = EXTRA_PACKAGES[name]
            found.append(Finding(name, f"{package} {_version(package)}"))
        else:
            found.append(Finding(name, missing_extra(name), "note"))
    return found


def other_packages() -> list[Finding]:
    """What packages of others add, by name; nothing of them is loaded for this."""
    from analysis import OWN_METHODS
    from drivers.formats import FORMATS
    from drivers.rig.registry import OWN

    own: dict[str, Iterable[str]] = {
        **OWN,
        "rigs": (),
        "formats": [f.name for f in FORMATS],
        "methods": OWN_METHODS,
    }
    found = [
        Finding(f"{group} {name}", f"{package_of(entry)} ({entry.value})")
        for group, names in own.items()
        for name, entry in plugged(group, names).items()
    ]
    unused = [words for group in ("formats", "methods") for words in not_used(group, own[group])]
    found += [Finding("note", words, "note") for words in unused]  # those of drivers stand with the devices
    return found or [Finding("added", "nothing")]


def machine() -> list[Finding]:
    import psutil

    memory = psutil.virtual_memory()
    return [
        Finding("system", platform.platform()),
        Finding("processors", f"{os.cpu_count()}, load {_load()}"),
        Finding("memory", f"{memory.available / 1e9:.1f} of {memory.total / 1e9:.1f} GB free"),
    ]


def folders() -> list[Finding]:
    library = Settings.load().library_folder
    found = [
        _writable("recordings", library),
        _free(library),
        _writable("control of drives", control_folder()),
    ]
    state = state_folder()
    found.append(
        Finding("state", "no folder may be written: no log is kept", "bad")
        if state is None
        else Finding("log", f"{log_path()} ({_size(log_path())})")
    )
    found.append(_cache())
    if serial := _serial_permission():
        found.append(serial)
    return found


def timing() -> list[Finding]:
    """Lateness of a 100 Hz tick, as the rig's process would have it on this machine now."""
    late = []
    due = time.perf_counter()
    for _ in range(TICKS):
        due += TICK_SECONDS
        time.sleep(max(0.0, due - time.perf_counter()))
        late.append(time.perf_counter() - due)
    late.sort()
    words = f"late by {1e3 * late[TICKS // 2]:.2f} ms in the middle, {1e3 * late[-1]:.2f} ms at most"
    state: State = "good" if late[-1] < LATE_SECONDS else "note"
    return [Finding("a tick each 10 ms", words, state), _priority()]


def display() -> list[Finding]:
    if not EXTRAS["desktop"].installed:
        return [Finding("window", "not installed", "note")]
    names = ("WAYLAND_DISPLAY", "DISPLAY", "QT_QPA_PLATFORM")
    given = [f"{n}={os.environ[n]}" for n in names if os.environ.get(n)]
    if given or sys.platform in ("win32", "darwin"):
        return [Finding("display", ", ".join(given) or "the system's own")]
    return [Finding("display", "none: only commands work, the window does not", "note")]


def devices() -> list[Finding]:
    from drivers.instruments.discovery import find_devices

    with contextlib.redirect_stdout(sys.stderr):  # what a driver prints is no part of the page
        found, notes = find_devices()
    shown = [Finding(f"{d.kind} {d.address}", d.description) for d in found]
    return shown + [Finding("note", text, "note") for text in notes]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "not known"


def _writable(what: str, folder: Path) -> Finding:
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK):
        return Finding(what, str(folder))
    return Finding(what, f"{folder} cannot be written", "bad")


def _free(folder: Path) -> Finding:
    """Of the disk on which the folder is, or would be if it could be made."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 1e9
    return Finding("free disk", f"{free:.1f} GB", "good" if free > FEWEST_GIGABYTES else "bad")


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1e3:.0f} kB" if path.exists() else "empty"


def _cache() -> Finding:
    """Whether the numerical core is compiled: without, the first identification waits half a minute."""
    spec = find_spec("analysis")
    assert spec is not None and spec.origin is not None
    compiled = sum(1 for _ in Path(spec.origin).parent.rglob("*.nbi"))
    if compiled:
        return Finding("compiled core", f"{compiled} functions kept in {Path(spec.origin).parent}")
    return Finding(
        "compiled core", "not kept yet: the first identification compiles it (half a minute)", "note"
    )


def _serial_permission() -> Finding | None:
    """Whether this person may open the serial ports that are there."""
    from serial.tools.list_ports import comports

    shut = [p.device for p in comports() if not os.access(p.device, os.R_OK | os.W_OK)]
    if not shut or sys.platform == "win32":
        return None
    words = f"{', '.join(shut)}: join the group that owns it (often `sudo usermod -aG dialout $USER`)"
    return Finding("serial ports that may not be opened", words, "bad")


def _priority() -> Finding:
    """Whether the rig's process may go before others."""
    if sys.platform == "win32":
        return Finding("priority", "the rig's process may ask for a higher one")
    import resource  # noqa: TID251 (not reached on Windows)

    if not hasattr(resource, "RLIMIT_NICE"):
        return Finding("priority", "raised only for root", "note")
    lowest = 20 - resource.getrlimit(resource.RLIMIT_NICE)[0]
    if os.geteuid() == 0 or lowest <= -10:
        return Finding("priority", "the rig's process runs before others")
    words = "the rig's process runs like any other (`@audio - nice -10` in /etc/security/limits.conf helps)"
    return Finding("priority", words, "note")
