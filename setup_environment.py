"""Set up, check, test or run the program from a checkout, on any system, with nothing but Python.

    python setup_environment.py setup | check | test [FILES] | run | doctor | release

The Makefile calls this; without `make` (Windows) call it yourself.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).parent
VENV = ROOT / ".venv"
WINDOWS = sys.platform == "win32"
BIN = VENV / ("Scripts" if WINDOWS else "bin")
REQUIREMENTS = ROOT / "requirements"
READY, PREPARED, PREPARED_WHOLLY = VENV / ".ready", VENV / ".prepared", VENV / ".prepared-wholly"
# What Qt and the tests need of a Debian system.
APT_LIBS = (
    "libegl1",
    "libgl1",
    "libglib2.0-0",
    "libdbus-1-3",
    "libxkbcommon0",
    "libfontconfig1",
    "fonts-dejavu-core",
    "libxcb-cursor0",
    "libxcb-icccm4",
    "libxcb-keysyms1",
    "libxcb-shape0",
    "libxkbcommon-x11-0",
    "libportaudio2",
    "xvfb",
    "xauth",
)
PACKAGES = ("app", "drivers", "analysis")


def run(*command: object, **settings: str) -> None:
    """A command of the environment, from the project's root; the program ends where it fails."""
    # A start without compiled bytecode costs three times as much; more BLAS threads than one cost, too.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    begun = subprocess.Popen(
        [str(part) for part in command], cwd=ROOT, env={**kept, "OPENBLAS_NUM_THREADS": "1", **settings}
    )
    code = end_of(begun)
    if code:
        sys.exit(code)


def end_of(process: subprocess.Popen[bytes]) -> int:
    """Its exit code. Ctrl-C reaches it, too; it may have a shaker to ramp down, so it is waited for."""
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            return process.wait()


def tool(name: str) -> Path:
    return BIN / (f"{name}.exe" if WINDOWS else name)


def newer(stamp: Path, *sources: Path) -> bool:
    """Whether the stamp is there and younger than what it stands for."""
    return stamp.exists() and all(stamp.stat().st_mtime >= s.stat().st_mtime for s in sources)


def environment() -> None:
    """The environment with everything that the program, its extras and its tests need."""
    bootstrap, locked = REQUIREMENTS / "bootstrap.txt", REQUIREMENTS / "dev.txt"
    if not newer(tool("uv"), bootstrap):
        if find_spec("ensurepip") is None:
            sys.exit(f"{sys.executable} cannot make environments (on Debian: sudo apt install python3-venv).")
        if not tool("python").exists():
            venv.create(VENV, with_pip=True)
        run(tool("python"), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", bootstrap)
        tool("uv").touch()
    if not newer(READY, tool("uv"), locked, ROOT / "pyproject.toml"):
        install = (tool("uv"), "pip", "install", "--quiet", "--python", tool("python"))
        run(*install, "--compile-bytecode", "--require-hashes", "-r", locked)
        run(*install, "--no-deps", "--no-build-isolation", "-e", ".")
        READY.touch()


def setup(everything: bool = False) -> None:
    """The environment, and the numerical core compiled: the first identification would wait for it.

    ``everything``: the rest, too, which each process of the tests would compile for itself.
    """
    if sys.platform == "linux":
        run("sh", REQUIREMENTS / "system.sh", *APT_LIBS)
    environment()
    stamp, words, duration = (
        (PREPARED_WHOLLY, ["all"], "two minutes") if everything else (PREPARED, [], "half a minute")
    )
    if not newer(stamp, READY):
        print(f"Compiling the numerical core: {duration}, once.", flush=True)
        run(tool("python"), "-m", "app.prepare", *words)
        stamp.touch()


def check() -> None:
    """Format, lint, types for each system, layers."""
    environment()
    run(tool("ruff"), "format", "--check", ".")
    run(tool("ruff"), "check", ".")
    # On the other systems only what the standard library offers there can differ: no name of ours depends
    # on the system, which tests/component/test_platform.py holds. So the modules that use such parts will do.
    alone = ["--config-file", "requirements/types_elsewhere.ini", *system_dependent()]
    mypy = [str(tool("mypy")), "--platform"]
    checks = [
        subprocess.Popen([*mypy, system, "--cache-dir", f".mypy_cache/{system}", *modules], cwd=ROOT)
        for system, modules in (("linux", []), ("win32", alone), ("darwin", alone))
    ]
    if sum(abs(c.wait()) for c in checks):  # each is waited for
        sys.exit(1)
    run(tool("lint-imports"))


def system_dependent() -> list[str]:
    """Our modules that import a part of the standard library that is not the same on every system."""
    places = ("Lib", "lib/python*")  # Windows; others
    (stubs,) = (s for p in places for s in VENV.glob(f"{p}/site-packages/mypy/typeshed/stdlib"))
    differing = {
        stub.relative_to(stubs).parts[0].removesuffix(".pyi")
        for stub in stubs.rglob("*.pyi")
        if "sys.platform" in stub.read_text(encoding="utf-8")
    }
    imported = re.compile(rf"^\s*(?:import|from) (?:{'|'.join(sorted(differing))})\b", re.MULTILINE)
    modules = (m for package in PACKAGES for m in sorted((ROOT / package).rglob("*.py")))
    return [str(m.relative_to(ROOT)) for m in modules if imported.search(m.read_text(encoding="utf-8"))]


def test(*files: str) -> None:
    """Everything, or the files that are named, on a display or a virtual one."""
    display = ("sh", REQUIREMENTS / "with_display.sh") if sys.platform == "linux" else ()
    run(*display, tool("python"), "-m", "pytest", "-n", "3", "--dist", "worksteal", *files)


def start() -> None:
    """The window; without a display the same experiment headless."""
    setup()
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if has_display or sys.platform != "linux":
        run(tool("shakedown"))
    else:
        print("No display: running the same experiment headless.", flush=True)
        run(tool("shakedown"), "demo")


def run_doctor() -> None:
    run(tool("shakedown"), "doctor")


def release() -> None:
    """Wheel and sdist in dist, looked through, and the wheel used in an environment of its own."""
    environment()
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(tool("python"), "-m", "hatchling", "build")
    (wheel,) = (ROOT / "dist").glob("*.whl")
    run(tool("python"), "-m", "pytest", "-q", "tests/component/test_install.py", SHAKEDOWN_WHEEL=str(wheel))
    print("\n".join(str(p.relative_to(ROOT)) for p in sorted((ROOT / "dist").iterdir())))


COMMANDS: dict[str, Callable[[], None]] = {
    "setup": setup,
    "check": check,
    "run": start,
    "doctor": run_doctor,
    "release": release,
}


def main(words: list[str]) -> None:
    # No ``match`` here: an older Python reads this file, too, before it can be told.
    if sys.version_info < OLDEST:
        needed, found = (".".join(map(str, v)) for v in (OLDEST, sys.version_info[:2]))
        sys.exit(
            f"Shakedown needs Python {needed} or newer, and {sys.executable} is {found}. "
            "With make, name another one: make run PYTHON=python3.12"
        )
    command = words[0] if words else ""
    if command == "test":
        setup(everything=not words[1:])
        test(*words[1:])
    elif command not in COMMANDS or words[1:]:
        sys.exit(__doc__)
    else:
        COMMANDS[command]()


if __name__ == "__main__":
    main(sys.argv[1:])
