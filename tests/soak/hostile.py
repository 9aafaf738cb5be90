"""Hostile input by the thousand: `python -m tests.soak.hostile --count 20000`.

Files of every format, models, results, rig profiles, sequences, sessions, projects and their archives, lists
of sensors, templates, stores of campaigns and packages of others are made and then damaged; options get
values that nobody would give. Each goes to the program as a user would hand it over. It must
answer with data or with one sentence: no traceback, no control character on the terminal, no wait beyond
20 s, nothing read or written that was not named. A case is fixed by its number.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from analysis.base.progress import SILENT
from analysis.base.record import Record
from tests.soak.foreign_files import PROJECT, archive, foreign_files

ROOT = Path(__file__).parents[2]
LIMIT = 20.0  # s of processor time that a case may take
WALL = 600.0  # s after which a process that only waits is ended
SECRET = "TOP-SECRET-CONTENT"
ALLOWED_CODES = (0, 1, 2, 3, 4)  # 4: `stop` found nothing that runs
Rng = np.random.Generator


@dataclass(frozen=True)
class Case:
    """One input: the command as it would be typed, and the file that it reads."""

    kind: str
    arguments: list[str]
    content: bytes | None = None
    name: str = ""
    others: dict[str, bytes] = field(default_factory=dict)  # files beside it
    own_process: bool = False  # what it brings along would stay in this one


@dataclass(frozen=True)
class Outcome:
    """What became of a case; ``fault`` is empty if all is well."""

    number: int
    kind: str
    seconds: float
    fault: str = ""


# -- good inputs to start from


@cache
def good_files() -> dict[str, bytes]:
    """A small good file of each kind, by its ending."""
    from drivers.formats import FORMATS, write
    from drivers.recording import Recorder

    rng = np.random.default_rng(1)
    x = np.cumsum(rng.standard_normal(240))
    record = Record.from_arrays(
        100.0, {"x": x, "v": rng.standard_normal(240)}, {"x": "mm", "v": "mm/s"}, metadata={"a": 1}
    )
    result: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as name:
        for suffix in sorted({s for form in FORMATS for s in form.suffixes}):
            path = Path(name) / f"good{suffix}"
            if suffix == ".journal":
                recorder = Recorder(Path(name) / "run", 100.0, ["x", "v"])
                recorder.append([record["x"], record["v"]], 0)
                recorder.note("here")
                recorder._journal.close()
                result[suffix] = recorder.journal_path.read_bytes()
                continue
            write(record, path)
            result[suffix] = path.read_bytes()
    return result


@cache
def good_texts(folder: str) -> list[bytes]:
    root = ROOT / "resources" / folder
    return [path.read_bytes() for path in sorted(root.glob("*.toml"))]


@cache
def good_result() -> bytes:
    from analysis.base.identification import Estimate, Identification

    return (
        Identification(
            "weak", "Duffing", True, {"c": Estimate.normal(0.2, 0.01, "N s/m"), "k1": Estimate.normal(1, 0.1)}
        )
        .to_json()
        .encode()
    )


SEQUENCE = b"""name = "sweep"
from = 5
to = 9
points = 3
amplitude = 1.0
seconds = 2
settle = 1
"""
SESSION = b"""title = "Day one"
notes = "none"
[[recordings]]
file = "a.csv"
[[results]]
file = "fit.json"
recordings = ["a.csv"]
truth = { c = 0.1 }
"""

DRIVE = b"""name = "Plan for the beam"
rig = "two_well_beam"
seconds = 0.2
[drive]
kind = "segments"
amplitude = 1.5
[[drive.parts]]
seconds = 1.0
kind = "sine"
amplitude = 1.0
frequency = 7.5
[[drive.parts]]
seconds = 1.5
kind = "multisine"
amplitude = 1.2
lowest = 4.0
highest = 10.0
spacing = 0.5
"""
STUDY = b"""title = "Beams of lot 7"
models = ["duffing"]
methods = ["weak"]
free = ["c", "k1"]
collect = ["temperature"]
[recordings]
files = ["a.csv"]
specimen = "serial"
order = "start"
rate = 100.0
unsuitable = "skip"
[channels]
x = "x"
[set]
m = 0.2
[guess]
k1 = 40.0
[vary]
guess = { k1 = [10.0, 40.0] }
segments = 2
[run]
limit = 600
workers = 2
"""

SENSORS = b"""[[sensors]]
name = "accelerometer 4711"
kind = "iepe"
unit = "m/s\xc2\xb2"
sensitivity = 0.0102
range = 5.0
calibrated = 2026-03-01
due = 2027-03-01
teds = true
[[sensors]]
name = "bridge 3"
kind = "bridge"
gauge_factor = 2.1
bridge = "half"
"""
TEMPLATE = b"""title = "{recording}: acceptance test, {project}, {date}"
author = "Laboratory 3"
logo = "logo.png"
notes = "Tested by our procedure 12."
without = ["embedding", "earlier"]
"""
TRANSFER = b"frequency [Hz],real,imag,coherence\n1,0.5,0.1,1\n2,0.6,-0.2,0.9\n3,0.1,-0.4,0.8\n"
INDEX = b"""{"key": "0f3a", "status": "done", "words": "a.csv weak", "seconds": 1.5, "row": {"c": 0.1}}
{"key": "77b1", "status": "failed", "words": "b.csv weak", "seconds": 0.5, "row": {}}
"""
SEEN = b'{"/tmp/a.csv": {"size": 12, "time": 1.0, "rate": 100.0, "samples": 240, "channels": ["x"]}}'
PLUGIN = b"""from pathlib import Path
def open_source(profile, clock, seed): return None
def rigs(): return Path(".")
Format = 3
"""
ENTRIES = b"""[shakedown.sources]
box = plugged_in:open_source
[shakedown.exciters]
box = plugged_in:open_source
[shakedown.formats]
box = plugged_in:Format
[shakedown.rigs]
box = plugged_in
[shakedown.methods]
box = plugged_in:open_source
[shakedown.devices]
box = plugged_in:rigs
"""

# -- damage

HOSTILE_WORDS = [
    "", "-", "--", "-1", "0", "1", "nan", "inf", "-inf", "1e308", "-1e308", "1e-308", "1e999", "9" * 400,
    "1_0", "é", "x", "v", "none", "../../etc/passwd", "/etc/passwd", "/dev/zero", "/dev/null", ".", "/", "~",
    "a" * 5000,     "\x1b[2J\x1b]0;owned\x07", "\u202e\u2066", "\udcff", "x\ny", "\x00", "x=1",
    "x=nan", "=", "x=", "=1",
    "c=1e400", "1,2", ",", "1:2", "x**9**9**9", "(" * 300, "a.h5", "b.csv", "secret.txt", "fit.json", "{}",
    "[]", "%s%n", "$(touch hacked)", "`touch hacked`", "'; touch hacked;'", "0x10", "1j", "True", "x > 1",
    "--help",
]  # fmt: skip
HOSTILE_TEXTS = [
    b"[" * 100_000, b"{" * 5000, b'{"a":' * 3000, b"a = " + b"[" * 2000, b"a.a" * 2000, b"\x00", b"\xff\xfe",
    b"a = 1" + b"0" * 5000, b"[a]\n" * 300, b"nan", b"inf", b"-inf", b"1e999", b'""', b"null", b"true", b"[]",
    b"{}", b"-1", b"0", b"9999999999999999999999", b'"\\u001b[2J"', b"1979-05-27T07:32:00Z",
    b'"' + b"x" * 70_000 + b'"',
    "µ²ß\u202e".encode(), "µ²ß".encode("cp1252"), b"\x1b[31m", b"\r\n", b"\t\t\t", b";", b"__import__('os')",
]  # fmt: skip


def damaged(content: bytes, rng: Rng, text: bool) -> bytes:
    """The content with one to four kinds of damage."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        size = max(len(data), 1)
        at = int(rng.random() ** 2 * size)  # more often near the beginning, where the tables are
        length = int(rng.choice([1, 2, 4, 8, 16, 64, 512]))
        way = int(rng.integers(0, 9))
        if way == 0:
            data[at : at + length] = rng.bytes(length)
        elif way == 1:
            data[at : at + length] = bytes(length)
        elif way == 2:
            del data[at:]
        elif way == 3:
            del data[at : at + length]
        elif way == 4:
            data[at:at] = rng.bytes(length) if not text else _text(rng)
        elif way == 5:
            data[at : at + length] = b"\xff" * length
        elif way == 6:
            data[at:at] = data[: int(rng.integers(1, 200))]
        elif text:
            _replace_word(data, rng)
        elif len(data) > at:
            data[at] ^= 1 << int(rng.integers(0, 8))
    return bytes(data)


def _text(rng: Rng) -> bytes:
    return HOSTILE_TEXTS[int(rng.integers(len(HOSTILE_TEXTS)))]


def _replace_word(data: bytearray, rng: Rng) -> None:
    """Put something else in the place of one value or name."""
    import re

    words = list(re.finditer(rb"[\w.+-]+|\"[^\"]*\"", bytes(data)))
    if words:
        word = words[int(rng.integers(len(words)))]
        data[word.start() : word.end()] = _text(rng)


# -- cases


def file_case(rng: Rng) -> Case:
    files = good_files()
    suffix = list(files)[int(rng.integers(len(files)))]
    content = files[suffix]
    if rng.random() < 0.15:
        other = list(files.values())[int(rng.integers(len(files)))]
        content = content[: int(rng.integers(0, 600))] + other
    content = damaged(content, rng, suffix in (".csv", ".tsv", ".txt", ".dat", ".lvm", ".ufa"))
    name = f"a{suffix}"
    commands = [["info", name], ["info", name, "--json", "-"], ["convert", name, "out.csv"],
                ["info", name, "--rate", "100"], ["replay", name, "--fast"]]  # fmt: skip
    weights = [0.5, 0.2, 0.15, 0.1, 0.05]
    return Case(f"file {suffix}", commands[int(rng.choice(len(commands), p=weights))], content, name)


def table_case(rng: Rng) -> Case:
    """A table of text made of whatever tables are made of."""
    pieces = ["0", "1", "2.5", "-3e5", "1e200", "-1e200", "1e308", "nan", "", "x", "t", "x [mm]", "disp (mm)",
              "µm",               "\x1b[2J", '"', "1,5", "abc", "1e-320", "99999999999999999999"]  # fmt: skip
    separator = str(rng.choice([",", ";", "\t", " "]))
    rows = int(rng.integers(0, 12))
    width = int(rng.integers(1, 5))
    lines = [separator.join(["t", "x", "y", "z"][:width])] if rng.random() < 0.8 else []
    for i in range(rows):
        first = str(i * 0.01) if rng.random() < 0.8 else str(rng.choice(pieces))
        lines.append(separator.join([first, *(str(rng.choice(pieces)) for _ in range(width - 1))]))
    text = "\n".join(lines) + "\n"
    coding = "utf-8" if rng.random() < 0.8 else "utf-16"
    arguments = ["info", "a.csv"] if rng.random() < 0.8 else ["embed", "a.csv", "--channel", "x"]
    return Case("table", arguments, text.encode(coding), "a.csv")


def model_case(rng: Rng) -> Case:
    texts = good_texts("models")
    content = damaged(texts[int(rng.integers(len(texts)))], rng, True)
    return Case("model", ["models", "m.toml"], content, "m.toml")


def rig_case(rng: Rng) -> Case:
    texts = good_texts("rigs")
    content = damaged(texts[int(rng.integers(len(texts)))], rng, True)
    return Case("rig", ["rigs", "r.toml"], content, "r.toml")


def sequence_case(rng: Rng) -> Case:
    return Case("sequence", ["(sequence)", "s.toml"], damaged(SEQUENCE, rng, True), "s.toml")


def result_case(rng: Rng) -> Case:
    """A result: damaged as text, or with one value of another type."""
    if rng.random() < 0.5:
        content = damaged(good_result(), rng, True)
    else:
        data = json.loads(good_result())
        key = str(rng.choice(list(data)))
        data[key] = json.loads(
            rng.choice(["null", "[]", "{}", "3", '"x"', "[[1]]", '{"a": 1}', "true", "1e999"])
        )
        content = json.dumps(data).encode()
    return Case("result", ["report", "fit.json", "--out", "out.html"], content, "fit.json")


def session_case(rng: Rng) -> Case:
    return Case("session", ["report", "session.toml"], damaged(SESSION, rng, True), "session.toml")


def drive_case(rng: Rng) -> Case:
    arguments = ["acquire", "two_well_beam", "--drive", "d.toml", "--fast", "--out=run", "--settle=0"]
    arguments += [] if rng.random() < 0.2 else ["--seconds=0.2"]
    return Case("drive", arguments, damaged(DRIVE, rng, True), "d.toml")


def study_case(rng: Rng) -> Case:
    return Case("study", ["(study)", "study.toml"], damaged(STUDY, rng, True), "study.toml")


def foreign_case(rng: Rng) -> Case:
    """A recording as another program writes it."""
    files = {name: content for name, content in foreign_files().items() if not name.endswith(".zip")}
    name = str(rng.choice(list(files)))
    content = files[name]
    if rng.random() < 0.15:
        other = list(files.values())[int(rng.integers(len(files)))]
        content = content[: int(rng.integers(0, 300))] + other
    arguments = ["convert", name, "out.csv"] if rng.random() < 0.2 else ["info", name]
    return Case(f"foreign {name}", arguments, damaged(content, rng, False), name)


HOSTILE_ENTRIES = [
    "../escaped", "/tmp/escaped", "recordings/../../escaped", "C:\\escaped", "a/./b", "PROJECT.TOML", " x",
    "x.", "a\x1b[2J", "\u202ex", "con", "recordings", "recordings/a.csv/b", "x" * 300, "/".join("d" * 200),
]  # fmt: skip


def archive_case(rng: Rng) -> Case:
    """An archive of a project: damaged, or with entries that no project has."""
    import zipfile

    method = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA][
        int(rng.integers(4))
    ]
    project = damaged(PROJECT, rng, True) if rng.random() < 0.3 else PROJECT
    entries = {
        "project.toml": project,
        "recordings/a.csv": good_files()[".csv"],
        "fits/f.json": good_result(),
    }
    if rng.random() < 0.4:
        entries[HOSTILE_ENTRIES[int(rng.integers(len(HOSTILE_ENTRIES)))]] = b"x"
    content = archive(entries, method)
    if rng.random() < 0.7:
        content = damaged(content, rng, False)
    return Case("archive", ["project", "unpack", "a.zip", "--out=new"], content, "a.zip")


def project_case(rng: Rng) -> Case:
    """A folder whose project.toml is damaged, and commands that find themselves in it."""
    commands = [["project", "info"], ["project", "info", "--json", "-"], ["project", "info", "."],
                ["project", "archive", "--out=out.zip"], ["acquire", "--fast", "--out=run", "--seconds=0.1",
                 "--settle=0"], ["report", "fit.json", "--out", "out.html"]]  # fmt: skip
    chosen = commands[int(rng.choice(len(commands), p=[0.35, 0.15, 0.15, 0.15, 0.1, 0.1]))]
    return Case("project", chosen, damaged(PROJECT, rng, True), "project.toml")


def sensors_case(rng: Rng) -> Case:
    """A list of sensors to take in, or this machine's own that somebody has edited."""
    if rng.random() < 0.7:
        return Case("sensors", ["sensors", "--add", "s.toml"], damaged(SENSORS, rng, True), "s.toml")
    own = {"config/shakedown/sensors.toml": damaged(SENSORS, rng, True)}
    arguments = ["sensors"] if rng.random() < 0.6 else ["sensors", "--add", "s.toml"]
    return Case("sensors", arguments, SENSORS, "s.toml", own)


def template_case(rng: Rng) -> Case:
    arguments = ["report", "fit.json", "--out=out.html", "--template=t.toml"]
    return Case("template", arguments, damaged(TEMPLATE, rng, True), "t.toml")


def used_fit_case(rng: Rng) -> Case:
    """A damaged result, handed to what works on with it; other inputs are missing, so that it ends soon."""
    commands = [
        ["plan", "duffing", "--fit=fit.json", "--rig=missing"],
        ["continue", "duffing", "--fit=fit.json", "--over=missing"],
        ["hold", "two_well_beam", "--fit=fit.json", "--record=missing.csv", "--list"],
        ["validate", "missing.csv", "duffing", "fit.json"],
        ["simulate", "fit.json", "--seconds=1", "--rate=20", "--out=out.csv"],
    ]
    content = result_case(rng).content
    return Case("used fit", commands[int(rng.integers(len(commands)))], content, "fit.json")


def transfer_case(rng: Rng) -> Case:
    arguments = ["validate", "a.csv", "duffing", "fit.json", "--transfer=t.csv", "--map=x=missing"]
    return Case("transfer", arguments, damaged(TRANSFER, rng, True), "t.csv")


def store_case(rng: Rng) -> Case:
    """The results of an earlier campaign, damaged; its recordings are missing, so that it ends soon."""
    study = STUDY.replace(b"a.csv", b"missing.csv")
    which = str(rng.choice(["index.jsonl", "recordings.json"]))
    good = {"index.jsonl": INDEX, "recordings.json": SEEN}
    others = {f"out/{name}": content for name, content in good.items()}
    others[f"out/{which}"] = damaged(good[which], rng, True)
    arguments = ["campaign", "study.toml", "--out=out", *(["--retry"] if rng.random() < 0.3 else [])]
    return Case("store", arguments, study, "study.toml", others)


def opened_rig_case(rng: Rng) -> Case:
    """A damaged profile that is not only read: its source is opened, its drive played."""
    texts = [text for text in good_texts("rigs") if b"/dev/" not in text]
    commands = [
        ["acquire", "r.toml", "--fast", "--out=run", "--seconds=0.1", "--settle=0"],
        ["rigs", "r.toml", "--check"],
        ["rigs", "r.toml", "--specimen=3"],
        ["calibrate", "r.toml", "--volts=1", "--sensor=missing", "--known=1"],
        ["plan", "duffing", "--fit=missing.json", "--rig=r.toml"],
    ]
    chosen = commands[int(rng.choice(len(commands), p=[0.4, 0.15, 0.15, 0.15, 0.15]))]
    return Case("opened rig", chosen, damaged(texts[int(rng.integers(len(texts)))], rng, True), "r.toml")


def plugin_case(rng: Rng) -> Case:
    """A package of somebody else whose entry points or code are damaged: all else goes on."""
    code, entries = PLUGIN, ENTRIES
    if rng.random() < 0.5:
        code = damaged(code, rng, True)
    else:
        entries = damaged(entries, rng, True)
    about = b"Metadata-Version: 2.1\nName: plugged_in\nVersion: 1\n"
    table = {
        "entry_points.txt": entries,
        "METADATA": damaged(about, rng, True) if rng.random() < 0.3 else about,
    }
    others = {
        "plugged_in.py": code,
        **{f"plugged_in-1.dist-info/{name}": text for name, text in table.items()},
    }
    commands = [["rigs"], ["info", "a.csv"], ["acquire", "r.toml", "--fast", "--out=run", "--seconds=0.1"],
                ["identify", "missing.csv", "duffing", "--method=box"]]  # fmt: skip
    virtual = next(text for text in good_texts("rigs") if b'driver = "virtual"' in text)
    rig = virtual.replace(b'driver = "virtual"', b'driver = "box"', 1)
    return Case("plugin", commands[int(rng.integers(len(commands)))], rig, "r.toml", others, True)


# The last of an option counts: these runs end soon, whatever else was given.
BRIEF = {
    "acquire": ["--fast", "--out=run", "--seconds=0.2", "--settle=0"],
    "demo": ["--seconds=-1"],  # its length decides how long it takes: one that is refused
}


def option_case(rng: Rng) -> Case:
    """A command with options nobody would give, on small good inputs."""
    from importlib import import_module

    from app.cli import COMMANDS

    names = [n for n in COMMANDS if n not in ("desktop", "devices")]
    command = names[int(rng.integers(len(names)))]
    parser = argparse.ArgumentParser(add_help=False)
    import_module(COMMANDS[command][0]).configure(parser)
    given: list[str] = []
    for action in parser._actions:
        if not action.option_strings:
            usual = {"model": "duffing", "rig": "two_well_beam", "output": "out.csv", "result": "fit.json",
                     "source": "fit.json", "files": "a.csv"}.get(action.dest, "a.csv")  # fmt: skip
            # A study that is there takes minutes: only others are asked for.
            given.append(_word(rng) if command == "reproduce" or rng.random() < 0.15 else usual)
    options = [a for a in parser._actions if a.option_strings]
    for action in options:
        if action.required and rng.random() < 0.9:
            usual = {"fit": "fit.json", "rig": "two_well_beam", "record": "a.csv"}.get(action.dest, "out")
            given += [action.option_strings[-1], usual]
    if command == "hold" and rng.random() < 0.9:
        given += ["--list"]
    if command in ("embed", "orbits"):
        given += ["--channel", _word(rng) if rng.random() < 0.1 else "x"]
    for _ in range(int(rng.integers(1, 4))):
        action = options[int(rng.integers(len(options)))]
        flag = action.option_strings[-1]
        if action.nargs == 0:
            given.append(flag)
        else:
            given += [f"{flag}={_word(rng)}"] if rng.random() < 0.6 else [flag, _word(rng)]
    if command == "simulate" and rng.random() < 0.9:
        given += ["--seconds", "1", "--rate", "20"]
    given += BRIEF.get(command, [])
    if command in ("identify", "select", "validate") and rng.random() < 0.95:
        # Their work would take the time of a thousand other cases: it ends where the recording is read.
        given = ["missing.csv" if word == "a.csv" else word for word in given]
    return Case(f"options of {command}", [command, *given])


def usage_case(rng: Rng) -> Case:
    """The same where no recording is there to work on, so that only the options are read."""
    case = option_case(rng)
    given = ["missing.csv" if word in ("a.csv", "fit.json", "duffing") else word for word in case.arguments]
    return Case(case.kind.replace("options", "usage"), given)


def _word(rng: Rng) -> str:
    return HOSTILE_WORDS[int(rng.integers(len(HOSTILE_WORDS)))]


KINDS: dict[str, tuple[Callable[[Rng], Case], float]] = {
    "file": (file_case, 0.26),
    "foreign": (foreign_case, 0.12),
    "table": (table_case, 0.07),
    "model": (model_case, 0.07),
    "result": (result_case, 0.05),
    "rig": (rig_case, 0.05),
    "sequence": (sequence_case, 0.02),
    "session": (session_case, 0.02),
    "drive": (drive_case, 0.02),
    "study": (study_case, 0.02),
    "archive": (archive_case, 0.08),
    "project": (project_case, 0.04),
    "sensors": (sensors_case, 0.04),
    "template": (template_case, 0.02),
    "used fit": (used_fit_case, 0.03),
    "transfer": (transfer_case, 0.01),
    "store": (store_case, 0.02),
    "opened rig": (opened_rig_case, 0.02),
    "plugin": (plugin_case, 0.01),
    "option": (option_case, 0.02),
    "usage": (usage_case, 0.01),
}


def case_of(number: int, kind: str | None = None) -> Case:
    """The case of that number, always the same."""
    rng = np.random.default_rng([number, 20261117])
    chosen = str(rng.choice(list(KINDS), p=[share for _, share in KINDS.values()]))
    return KINDS[kind or chosen][0](rng)


# -- trying


class TooLong(BaseException):
    """Raised by the alarm: no handler of the program may take it for one of its own errors."""


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of processor time: a busy machine is no fault
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _command(arguments: list[str]) -> int:
    from app.cli import main

    if arguments[0].startswith("("):  # the whole work would take seconds: the file's reader alone
        from analysis.base.errors import ShakedownError

        try:
            _read_alone(*arguments)
        except ShakedownError as error:
            from app.output import sentence

            print(sentence(error), file=sys.stderr)
            return 1
        return 0
    try:
        return main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)


def _elsewhere(arguments: list[str]) -> int:
    """The command in a process that finds packages in the folder it runs in."""
    place = os.pathsep.join([str(Path.cwd()), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments], env={**os.environ, "PYTHONPATH": place},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WALL,
    )  # fmt: skip
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


def _read_alone(kind: str, name: str) -> None:
    if kind == "(sequence)":
        from drivers.acquisition.sequence import load_sequence

        load_sequence(name)
        return
    from app.campaign.study import plan, read_study

    plan(read_study(Path(name)), Path.cwd(), Path.cwd() / "library", {}, SILENT)


def attempt(number: int, kind: str | None = None) -> Outcome:
    """Run one case in an empty folder of its own and judge what came of it."""
    case = case_of(number, kind)
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        folder = Path(name)
        os.chdir(folder)
        (folder / "secret.txt").write_text(SECRET)
        (folder / "a.csv").write_bytes(good_files()[".csv"])
        (folder / "fit.json").write_bytes(good_result())
        for name, content in {**case.others, case.name or "unused": case.content}.items():
            if content is not None:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
        config, os.environ["XDG_CONFIG_HOME"] = os.environ.get("XDG_CONFIG_HOME"), str(folder / "config")
        there = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
        out, err = io.StringIO(), io.StringIO()
        begun = time.process_time()
        code, fault = -1, ""
        try:
            with alarm(LIMIT), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = (_elsewhere if case.own_process else _command)(case.arguments)
        except TooLong:
            fault = f"took longer than {LIMIT:.0f} s"
        except BaseException as error:
            fault = f"raised {type(error).__name__}: {str(error)[:100]}"
        finally:
            os.chdir(before)
            del os.environ["XDG_CONFIG_HOME"]
            os.environ |= {} if config is None else {"XDG_CONFIG_HOME": config}
        seconds = time.process_time() - begun
        fault = fault or judged(case, code, out.getvalue(), err.getvalue(), folder, there)
    words = " ".join(case.arguments)[:200].encode("unicode_escape").decode()
    return Outcome(number, case.kind, seconds, f"{fault} [{words}]" if fault else "")


def judged(case: Case, code: int, out: str, err: str, folder: Path, there: dict[str, bytes]) -> str:
    """What is wrong with the program's answer; "" if nothing is."""
    from app.cli import UNEXPECTED

    if code not in ALLOWED_CODES:
        return f"exit code {code}"
    if "Traceback" in err or UNEXPECTED in err:
        return f"a mistake of the program: {err.strip()[:200]}"
    if any(
        (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c in "\u202e\u2066" for c in out + err
    ):
        return "control characters on the terminal"
    if code in (1, 2) and not out and (err.count("\n") != 1 or len(err.strip()) < 10):
        return f"{err.count(chr(10))} lines instead of a sentence: {err[:200]!r}"
    if code in (0, 3) and err.strip():
        return f"done, but complains: {err[:200]!r}"
    if SECRET in out or SECRET in err:
        return "showed a file that was not for it"
    forced = "--force" in case.arguments
    for name, content in there.items():
        path = folder / name
        # An earlier result may be replaced by a new one, unless the command reads it.
        named = [word for word in case.arguments if "fit.json" in word]
        by_json = name == "fit.json" and named == ["--json=fit.json"]
        if not (forced or by_json) and (not path.exists() or path.read_bytes() != content):
            return f"changed {name}"
    if (folder / "hacked").exists() or any(".partial" in p.name for p in folder.iterdir()):
        return "left something behind"
    if any((place / "escaped").exists() for place in (folder.parent, Path("/tmp"))):
        return "wrote outside its folder"
    return ""


# -- many


def _work(numbers: multiprocessing.Queue, results: multiprocessing.Queue, kind: str | None) -> None:  # type: ignore[type-arg]
    os.environ["XDG_STATE_HOME"] = os.environ["HOME"] = tempfile.mkdtemp(prefix="hostile-home-")
    os.environ["SHAKEDOWN_CONTROL_FOLDER"] = str(Path(os.environ["HOME"]) / "drives")
    while (number := numbers.get()) is not None:
        results.put(("begun", number))
        results.put(("done", attempt(number, kind)))


def run(first: int, count: int, workers: int, kind: str | None) -> list[Outcome]:
    """Try many cases in worker processes; one that hangs beyond the alarm is ended and replaced."""
    context = multiprocessing.get_context("spawn")
    outcomes: list[Outcome] = []
    crews = []
    for w in range(workers):
        numbers, results = context.Queue(), context.Queue()
        for number in range(first + w, first + count, workers):
            numbers.put(number)
        numbers.put(None)
        crews.append(
            [context.Process(target=_work, args=(numbers, results, kind)), numbers, results, None, 0.0]
        )
        crews[-1][0].start()
    begun = time.monotonic()
    while len(outcomes) < count:
        for crew in crews:
            process, numbers, results = crew[:3]
            with contextlib.suppress(Exception):
                while True:
                    what, value = results.get(timeout=0.02)
                    if what == "begun":
                        crew[3], crew[4] = value, time.monotonic()
                    else:
                        crew[3] = None
                        outcomes.append(value)
                        if value.fault:
                            print(f"{value.number}: {value.kind}: {value.fault}", flush=True)
                        if len(outcomes) % 1000 == 0:
                            print(f"{len(outcomes)} in {time.monotonic() - begun:.0f} s", flush=True)
            dead = not process.is_alive() and crew[3] is not None
            if dead or (crew[3] is not None and time.monotonic() - crew[4] > WALL):
                process.kill()
                process.join()
                outcomes.append(Outcome(crew[3], "?", WALL, "crashed" if dead else "hung"))
                print(f"{crew[3]}: {outcomes[-1].fault}", flush=True)
                crew[3] = None
                crew[0] = context.Process(target=_work, args=(numbers, results, kind))
                crew[0].start()
    for crew in crews:
        crew[0].join()
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kind", choices=list(KINDS))
    args = parser.parse_args()
    outcomes = run(args.first, args.count, args.workers, args.kind)
    bad = [o for o in outcomes if o.fault]
    kinds = Counter(o.kind.split(" of ")[0] for o in outcomes)
    slowest = max(outcomes, key=lambda o: o.seconds)
    print(
        f"{len(outcomes)} cases, {len(bad)} faults; slowest {slowest.seconds:.1f} s (case {slowest.number})"
    )
    print(", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items())))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
