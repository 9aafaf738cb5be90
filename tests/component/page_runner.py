"""Runs programs, each in a process of its own that begins with the imports and machine code of this one.

Started once for many programs, on systems that can fork: a start from nothing costs more than most pages do.
A line of JSON (program, folder, environment, output) asks for one program, a line with its exit code answers.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from importlib import import_module
from typing import NoReturn

from app.prepare import prepare


def _warm_up() -> None:
    """Import what the pages use, and load the machine code that an identification needs."""
    for name in ("app.cli", "scipy.integrate", "scipy.signal", "scipy.stats"):
        import_module(name)
    prepare()


def _run(program: str, folder: str, environment: dict[str, str], output: str) -> NoReturn:
    """The program from its beginning to its end; what it prints goes to ``output``."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(target, 1)
        os.dup2(target, 2)
        sys.argv = [program]
        runpy.run_path(program, run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    _warm_up()
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(**asked)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
