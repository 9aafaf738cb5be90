"""`shakedown desktop-entry`: an entry with icon in the menu of a Linux desktop."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from importlib.resources import files
from pathlib import Path

from analysis import ShakedownError
from drivers.base.files import replaced

ENTRY = """[Desktop Entry]
Type=Application
Name=Shakedown
Comment=From a shaking specimen to a validated equation of motion
Exec="{command}" desktop %F
Icon=shakedown
Terminal=false
Categories=Science;Engineering;DataVisualization;
StartupWMClass=shakedown
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--remove", action="store_true", help="take the entry away again")


def run(args: argparse.Namespace) -> None:
    if sys.platform in ("win32", "darwin"):
        raise ShakedownError(
            "This menu entry is for Linux desktops: here, make a shortcut to the command shakedown."
        )
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    entry = data / "applications" / "shakedown.desktop"
    icon = data / "icons" / "hicolor" / "scalable" / "apps" / "shakedown.svg"
    if args.remove:
        for path in (entry, icon):
            path.unlink(missing_ok=True)
        print(f"Removed {entry}.")
        return
    picture = (files("resources") / "icons" / "shakedown.svg").read_bytes()
    text = ENTRY.format(command=_escaped(_command()))
    for path, content in ((icon, picture), (entry, text.encode())):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as partial:
            partial.write_bytes(content)
    print(f"Shakedown is in the menu now ({entry}).")


def _command() -> Path:
    """The command as it was started: a menu knows nothing of the shell's path."""
    started = shutil.which(sys.argv[0]) or shutil.which("shakedown")
    if started is None or Path(started).stem != "shakedown":
        raise ShakedownError("The command shakedown is not on the path, so a menu could not start it.")
    return Path(started).absolute()


def _escaped(path: Path) -> str:
    """Inside the quotation marks of an Exec line (Desktop Entry Specification, 'The Exec key')."""
    text = str(path)
    for sign in ("\\", '"', "`", "$"):
        text = text.replace(sign, "\\" + sign)
    return text.replace("\\", "\\\\").replace("%", "%%")
