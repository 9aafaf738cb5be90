"""Which test executes which line: a plugin of pytest for `tests.soak.mutants`, and what it found.

    SHAKEDOWN_LINES=lines.json SHAKEDOWN_LINES_OF=analysis/estimate python -m pytest -p tests.soak.lines ...

A fixture that serves a module runs in the first test that asks for it; its lines count for every test that
uses it. Tests that fail are left out. What is measured anew replaces what the file says of the same tests.

The library `coverage` would do the same, but where it is installed Numba imports it at every start of the
program, which costs 0.1 s each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

FILE, PLACES = "SHAKEDOWN_LINES", "SHAKEDOWN_LINES_OF"


def stamp(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


@dataclass
class Lines:
    """The seconds of processor of each test with the fixtures it uses, and by file and line the tests that
    execute it.

    Of a file that has changed since then, every test that executes any line of it counts.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)  # hash of each file when it was measured
    changed: set[str] = field(default_factory=set)

    @staticmethod
    def read(path: Path) -> Lines:
        kept = json.loads(path.read_text(encoding="utf-8"))
        names = list(kept["seconds"])
        return Lines(
            kept["seconds"],
            {
                file: {int(line): {names[i] for i in tests} for line, tests in lines.items()}
                for file, lines in kept["tests"].items()
            },
            kept["sources"],
        )

    def write(self, path: Path) -> None:
        number = {test: i for i, test in enumerate(self.seconds)}
        tests = {
            file: {line: sorted(number[t] for t in found) for line, found in lines.items()}
            for file, lines in self.tests.items()
        }
        path.write_text(
            json.dumps({"seconds": self.seconds, "tests": tests, "sources": self.sources}), encoding="utf-8"
        )

    def renew(self, other: Lines) -> None:
        """Take over what was measured later."""
        self.seconds.update(other.seconds)
        for lines in self.tests.values():
            for found in lines.values():
                found -= other.seconds.keys()
        for file, lines in other.tests.items():
            if self.sources.setdefault(file, other.sources[file]) != other.sources[file]:
                self.sources[file] = "mixed"
            for line, found in lines.items():
                self.tests.setdefault(file, {}).setdefault(line, set()).update(found)

    def compare(self, root: Path) -> None:
        self.changed = {file for file, known in self.sources.items() if stamp(root / file) != known}

    def of(self, file: str, first: int, last: int) -> set[str]:
        """The tests that execute one of these lines."""
        lines = self.tests.get(file, {})
        every = file in self.changed
        return set().union(*(found for line, found in lines.items() if every or first <= line <= last))

    def best_first(self, tests: set[str]) -> list[str]:
        """The cheapest and those that execute least beside: they look closest at what they execute."""
        breadth = Counter(
            t for lines in self.tests.values() for found in lines.values() for t in found & tests
        )
        return sorted(tests, key=lambda test: (self.seconds[test] * breadth[test], test))


class Tracer:
    """Lines that are executed in files below some folders, by context."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        self.folders = folders
        self.found: dict[tuple[str, str], set[int]] = {}  # by file and context
        self.whole: dict[CodeType, int] = {}  # lines of a function; 0: of another file
        self.seen: dict[CodeType, set[int]] = {}  # in the current context
        self.context = ""

    def start(self) -> None:
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def stop(self) -> None:
        self.switch_context("")
        sys.settrace(None)
        threading.settrace(None)

    def switch_context(self, context: str) -> None:
        for code, lines in self.seen.items():
            self.found.setdefault((code.co_filename, self.context), set()).update(lines)
        self.seen.clear()
        self.context = context
        if context:  # an exception inside of the tracer, such as that of a timeout, has ended it
            sys.settrace(self._enter)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        count = self.whole.get(code)
        if count is None:
            ours = code.co_filename.startswith(self.folders)
            count = len({line for *_, line in code.co_lines() if line is not None}) if ours else 0
            self.whole[code] = count
        if count == 0:
            return None
        seen = self.seen.setdefault(code, set())
        seen.add(frame.f_lineno)
        return self._line if len(seen) < count else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.seen.setdefault(frame.f_code, set()).add(frame.f_lineno)
        return self._line


class Recorder:
    """Tells the line tracer which test, or which shared fixture, is running."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tracer = Tracer(tuple(str(root / place) for place in os.environ[PLACES].split(os.pathsep)))
        self.uses: dict[str, set[str]] = {}  # contexts by test
        self.seconds: dict[str, float] = {}
        self.fixture_seconds: dict[str, float] = {}
        self.shared_seconds = 0.0  # spent on shared fixtures in the running test
        self.failed: set[str] = set()
        self.current = ""
        self.tracer.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        self.current, self.shared_seconds = item.nodeid, 0.0
        self.uses[item.nodeid] = {item.nodeid}
        self.tracer.switch_context(item.nodeid)
        start = time.process_time()
        yield
        self.seconds[item.nodeid] = time.process_time() - start - self.shared_seconds
        self.tracer.switch_context("")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, None]:
        if fixturedef.scope == "function":
            yield
            return
        shared = f"{fixturedef.baseid}::{fixturedef.argname}"
        self.tracer.switch_context(shared)
        start = time.process_time()
        yield
        self.fixture_seconds[shared] = time.process_time() - start
        self.shared_seconds += self.fixture_seconds[shared]
        self.tracer.switch_context(self.current)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        info = getattr(item, "_fixtureinfo", None)
        for name, definitions in (info.name2fixturedefs if info is not None else {}).items():
            self.uses[item.nodeid].update(f"{definition.baseid}::{name}" for definition in definitions)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.tracer.stop()
        path = Path(os.environ[FILE])
        users: dict[str, set[str]] = {}
        for test in self.seconds.keys() - self.failed:
            for context in self.uses[test]:
                users.setdefault(context, set()).add(test)
        alone = {
            test: seconds + sum(self.fixture_seconds.get(context, 0.0) for context in self.uses[test])
            for test, seconds in self.seconds.items()
        }
        found = Lines({t: round(s, 3) for t, s in alone.items() if t not in self.failed})
        for (file, context), lines in self.tracer.found.items():
            name = str(Path(file).relative_to(self.root))
            found.sources[name] = stamp(Path(file))
            by_line = found.tests.setdefault(name, {})
            for line in lines:
                by_line.setdefault(line, set()).update(users.get(context, set()))
        every = Lines.read(path) if path.exists() else Lines()
        every.renew(found)
        every.write(path)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(config.rootpath), "lines of tests")
