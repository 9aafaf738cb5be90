"""The wheel in an environment of its own: nothing of this checkout, nothing but the base dependencies."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from analysis import EXTRAS
from tests.waiting import LONG

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"
LARGEST_BASE = 600e6  # bytes


@dataclass
class Installed:
    """An environment with the program in it, and a folder of the user's to work in."""

    folder: Path
    lab: Path
    wheel: Path
    settings: dict[str, str] = field(default_factory=dict)  # of the environment's variables

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *command: str, program: str = "shakedown") -> subprocess.CompletedProcess[str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "XDG"))}
        homes = {f"XDG_{k}_HOME": str(self.lab / k.lower()) for k in ("STATE", "DATA", "CONFIG")}
        return subprocess.run(
            [str(self.folder / "bin" / program), *command],
            cwd=self.lab,
            env={**kept, **homes, **self.settings, "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=LONG,
        )

    def add(self, *packages: str) -> None:
        _uv("pip", "install", "--python", str(self.python), *packages)


def _uv(*arguments: str) -> None:
    """From the cache where everything is there already, as it is after `make setup`; else from the index."""
    done = subprocess.run([UV, *arguments, "--offline"], capture_output=True, text=True)
    if done.returncode:
        subprocess.run([UV, *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    wheel = _wheel(folder / "dist")
    made = Installed(folder / "environment", folder / "lab", wheel)
    subprocess.run([UV, "venv", "-q", "--python", sys.executable, str(made.folder)], check=True)
    made.add("-c", str(ROOT / "requirements" / "dev.txt"), str(wheel))
    made.lab.mkdir()
    # A physicist's folder: scripts with the names of our packages, and of modules that child processes load.
    for name in ("analysis", "app", "drivers", "resources", "signal", "random", "tempfile"):
        (made.lab / f"{name}.py").write_text("raise SystemExit('a script of the user was taken')\n")
    _share_compiled(made)
    return made


def _wheel(folder: Path) -> Path:
    """The wheel that `make release` has built, or a new one."""
    if built := os.environ.get("SHAKEDOWN_WHEEL"):
        return Path(built)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    return wheel


def _share_compiled(made: Installed) -> None:
    """Machine code of the same sources, if this checkout has it: compiling it would take half a minute."""
    (site,) = (made.folder / "lib").glob("*/site-packages")
    for kept in ROOT.glob("analysis/**/__pycache__/*.nb[ic]"):
        target = site / kept.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(kept, target)


def test_given_the_wheel_then_the_base_environment_is_small(installed: Installed) -> None:
    size = sum(f.stat().st_size for f in installed.folder.rglob("*") if f.is_file() and not f.is_symlink())
    assert size < LARGEST_BASE, f"{size / 1e6:.0f} MB"


def test_given_the_wheel_then_it_holds_licence_types_and_resources(installed: Installed) -> None:
    (site,) = (installed.folder / "lib").glob("*/site-packages")
    (facts,) = site.glob("shakedown_lab-*.dist-info")
    assert "GNU General Public License" in (facts / "licenses" / "LICENSE").read_text()
    for package in ("app", "drivers", "analysis"):
        assert (site / package / "py.typed").exists()
    for folder in ("models", "rigs", "recordings", "icons", "beams"):
        assert {p.name for p in (site / "resources" / folder).iterdir() if p.suffix not in (".py", "")} == {
            p.name for p in (ROOT / "resources" / folder).iterdir() if p.suffix not in (".py", "")
        }


def test_given_the_wheel_then_the_version_is_told_anywhere(installed: Installed) -> None:
    done = installed.run("--version")
    assert re.fullmatch(r"shakedown \d+\.\d+\.\d+\n", done.stdout), done.stderr


def test_given_the_wheel_then_the_doctor_finds_nothing_wrong(installed: Installed) -> None:
    done = installed.run("doctor", "--json", "-")
    page = json.loads(done.stdout)
    shown = {f["what"]: f for s in page["sections"] for f in s["findings"]}
    assert done.returncode == 0 and page["problems"] == 0, done.stdout
    assert str(installed.folder) in shown["Shakedown"]["words"]  # and not the checkout, nor the user's files
    assert shown["virtual two_well_beam"]["state"] == "good"
    for name in EXTRAS:
        assert f'pip install "{requirement(installed, name)}"' in shown[name]["words"]


def test_given_the_wheel_when_the_demo_runs_then_it_finds_the_truth(installed: Installed) -> None:
    done = installed.run("demo", "--seconds", "4", "--out", "demo", "--json", "found.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((installed.lab / "found.json").read_text())
    for parameter in found["parameters"].values():
        if parameter["truth"] is not None:
            assert abs(parameter["value"] - parameter["truth"]) < 4 * parameter["stderr"]
    assert (installed.lab / "demo" / "report.pdf").exists()


def test_given_the_command_as_pipx_starts_it_then_no_script_of_the_user_is_taken(
    installed: Installed,
) -> None:
    command = str(installed.folder / "bin" / "shakedown")
    record = ("acquire", "two_well_beam", "--seconds", "0.5", "--settle", "0", "--out", "pipx.h5")
    done = installed.run("-E", command, *record, program="python")
    assert done.returncode == 0, done.stderr
    assert (installed.lab / "pipx.h5").exists() and "was taken" not in done.stderr


def requirement(installed: Installed, extra: str) -> str:
    """What an installer is asked for: the package came from a file and is published nowhere by that name."""
    return f"shakedown-lab[{extra}] @ {installed.wheel.as_uri()}"


SOURCES = {  # of a rig that needs the extra
    "ni": 'driver = "nidaqmx"\nwiring = { x = "Dev1/ai0" }\n',
    "opendaq": 'driver = "opendaq"\naddress = "daqref://device0"\nwiring = { x = "0" }\n',
    "sound": 'driver = "sound"\nwiring = { x = "1" }\n',
}
GENERATOR = '[instruments.exciter]\ndriver = "scpi"\nport = "visa://TCPIP::127.0.0.1::INSTR"\n'
RIG = 'name = "A rig"\nrate = 1000.0\n[limits]\namplitude = 1.0\n[[channels]]\nname = "x"\nunit = "V"\n'
RECORD = ("acquire", "rig.toml", "--seconds", "1", "--out", "none.h5")
NEEDING = {
    "desktop": ("desktop",),
    **dict.fromkeys((*SOURCES, "visa"), RECORD),
    "search": ("identify", "ring.csv", "duffing", "--method", "global", "--option", "algorithm=genetic"),
    "cluster": ("campaign", "study.toml", "--cluster", "local", "--out", "results"),
}


@pytest.mark.parametrize("name", NEEDING)
def test_given_a_missing_extra_then_one_sentence_has_the_command(installed: Installed, name: str) -> None:
    if name == "visa":
        whole = (ROOT / "resources" / "rigs" / "two_well_beam.toml").read_text()
        profile = whole.partition("[instruments.exciter]")[0] + GENERATOR
    else:
        profile = f"{RIG}[instruments.source]\n{SOURCES.get(name, '')}"
    (installed.lab / "rig.toml").write_text(profile)
    (installed.lab / "ring.csv").write_text("t,x\n" + "".join(f"{i / 100},{i % 7}\n" for i in range(200)))
    (installed.lab / "study.toml").write_text('models = ["duffing"]\n[recordings]\nfiles = ["ring.csv"]\n')
    done = installed.run(*NEEDING[name])
    command = f'pip install "{requirement(installed, name)}"'
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and f"which is not installed: {command}" in done.stderr, done.stderr


def test_given_the_command_of_that_sentence_then_it_installs_the_extra(installed: Installed) -> None:
    installed.add(requirement(installed, "search"))
    assert installed.run("-c", "import pymoo", program="python").returncode == 0


def test_given_a_desktop_entry_then_it_starts_this_very_command(installed: Installed) -> None:
    assert installed.run("desktop-entry").returncode == 0
    entry = (installed.lab / "data" / "applications" / "shakedown.desktop").read_text()
    assert f'Exec="{installed.folder / "bin" / "shakedown"}" desktop %F' in entry
    assert (installed.lab / "data" / "icons" / "hicolor" / "scalable" / "apps" / "shakedown.svg").exists()


@pytest.fixture
def box(installed: Installed, tmp_path: Path) -> Iterator[int]:
    """The template package of the manual in the environment, and the port of its simulated box."""
    package = tmp_path / "tcp-source"
    shutil.copytree(ROOT / "docs" / "templates" / "tcp-source", package)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        cwd=package, check=True, capture_output=True,
    )  # fmt: skip
    installed.add("--no-deps", *map(str, (package / "dist").glob("*.whl")))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    process = subprocess.Popen([installed.python, "-P", "-m", "shakedown_tcp", str(port)])
    yield port
    process.kill()
    process.wait()


def test_given_a_strangers_package_then_its_instrument_is_found_checked_and_recorded(
    installed: Installed, box: int
) -> None:
    installed.settings = {"TCP_BOX": f"127.0.0.1:{box}"}
    found: list[dict[str, str]] = []
    for _ in range(5):  # each driver is asked for a limited time, which a busy machine may use up
        found = json.loads(installed.run("devices", "--json", "-").stdout)["devices"]
        if any(device["kind"] == "tcp" for device in found):
            break
    assert {"kind": "tcp", "address": f"127.0.0.1:{box}", "description": "TCP box"} in found
    assert "tcp_box" in installed.run("rigs").stdout
    (site,) = (installed.folder / "lib").glob("*/site-packages")
    text = (site / "shakedown_tcp" / "tcp_box.toml").read_text().replace("4711", str(box))
    (installed.lab / "mine.toml").write_text(text)
    checked = installed.run("rigs", "mine.toml", "--check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = installed.run(
        "acquire", "mine.toml", "--seconds", "2.5", "--out", "tcp.h5"
    )  # a process of its own
    assert done.returncode == 0, done.stderr
    about = json.loads(installed.run("info", "tcp.h5", "--json", "-").stdout)
    x = about["channels"][0]
    assert (x["name"], x["unit"], x["max"]) == ("x", "mm", pytest.approx(2.0, rel=1e-6))
    ((first, last),) = x["gaps"]  # the box lost 100 samples behind its 2000th; a recording may begin later
    assert last - first == 100 and 0 < first <= 2000


def test_then_the_extras_with_a_sentence_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    offered = project["optional-dependencies"]
    assert set(offered) - {"all"} == set(EXTRAS)
    assert offered["all"] == [f"shakedown-lab[{','.join(n for n in offered if n != 'all')}]"]
