"""The command `shakedown`: with no arguments the desktop, otherwise one headless command."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from logging import Logger

    from app.arguments import Parser

# Command, module, one line of help. Modules are imported only when their command is used: --help stays fast.
COMMANDS: dict[str, tuple[str, str]] = {
    "devices": ("app.commands.devices", "what is connected to this machine"),
    "rigs": ("app.commands.rigs", "the rigs that are known, or one of them in detail"),
    "calibrate": ("app.commands.calibrate", "a sound card to volts, a sensor to its unit"),
    "acquire": ("app.commands.acquire", "record a rig: seconds, periods, a trigger or a whole sequence"),
    "replay": ("app.commands.replay", "play a recording as if it were a rig"),
    "stop": ("app.commands.stop", "stop every drive that runs on this machine, at once"),
    "info": ("app.commands.info", "what a recording holds, and whether it is intact"),
    "convert": ("app.commands.convert", "change a recording's format, or cut a part out of it"),
    "frf": (
        "app.commands.frf",
        "frequency response, coherence, resonances; nonlinear distortion of a multisine",
    ),
    "embed": ("app.commands.embed", "delay, dimension, singular values and invariants of a channel"),
    "orbits": ("app.commands.orbits", "close returns and the periodic orbits found"),
    "select": ("app.commands.select", "which terms of an equation of motion a recording supports"),
    "complete": ("app.commands.complete", "a model with the terms and filters that it lacks"),
    "identify": ("app.commands.identify", "parameters of a model from recordings, with error bars"),
    "plan": ("app.commands.plan", "which drive to play next, so that the error bars shrink most"),
    "campaign": (
        "app.commands.campaign",
        "the same question of many recordings, on one machine or a cluster",
    ),
    "validate": (
        "app.commands.validate",
        "an identified model beside a recording: orbits, exponents, sections",
    ),
    "reproduce": ("app.commands.reproduce", "published tables beside ours"),
    "report": ("app.commands.report", "a session or a result as self-contained HTML and PDF"),
    "demo": ("app.commands.demo", "the whole experiment on the virtual rig, report at the end"),
    "desktop": ("app.commands.desktop", "the window (also when no command is given)"),
    "simulate": ("app.commands.simulate", "a model's motion as a sensor would record it"),
    "continue": (
        "app.commands.continue_branch",
        "branches of a model's periodic motions over a parameter, folds and stability",
    ),
    "track": ("app.commands.track", "backbones and response curves tracked on the rig, through their folds"),
    "hold": ("app.commands.hold", "unstable periodic orbits held on the rig, averaged and judged"),
    "doctor": ("app.commands.doctor", "is this machine fit? versions, drivers, devices: for a bug report"),
    "desktop-entry": ("app.commands.desktop_entry", "an entry with icon in the menu of this desktop"),
    "models": ("app.commands.models", "the library of models, or one of them in detail"),
    "sensors": (
        "app.commands.sensors",
        "the sensors of this laboratory, until when their calibration is good",
    ),
    "project": ("app.commands.project", "a folder with all that belongs to a test; archived as one file"),
}


UNEXPECTED = "This should not have happened"  # begins the sentence about a mistake of the program itself


def _keep_path_safe_in_children() -> None:
    """For commands that ``pipx`` starts by ``python -E``: multiprocessing hands that on to its processes.

    They do not read PYTHONSAFEPATH then, and took a user's ``signal.py`` for that of the library.
    """
    from multiprocessing import util

    flags = util._args_from_interpreter_flags  # type: ignore[attr-defined]
    util._args_from_interpreter_flags = lambda: [*flags(), "-P"]  # type: ignore[attr-defined]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; exit code 0 done, 1 could not (one sentence on stderr), 2 wrong usage."""
    # Our matrices are small: more BLAS threads than one cost several times the work. Read when NumPy loads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Processes that we start take no file in the folder we are in for one of our packages.
    started = argv is None
    if started:
        os.environ.setdefault("PYTHONSAFEPATH", "1")
    argv = list(sys.argv[1:] if argv is None else argv) or ["desktop"]
    if argv == ["stop"]:  # before everything that takes time to load
        if started:  # and before all other processes, where that is allowed: a busy machine takes a second
            from drivers.base.system import set_priority

            set_priority(-10)
        from app.commands.stop import stop_at_once

        return stop_at_once()
    if argv == ["--version"]:
        from analysis import __version__

        print(f"shakedown {__version__}")
        return 0
    if started and sys.flags.ignore_environment and not sys.flags.safe_path:
        _keep_path_safe_in_children()
    import warnings

    from app.output import printable_streams

    shown, warnings.showwarning = warnings.showwarning, _ignore_warning
    try:
        with printable_streams(), _logging(argv) as rest:
            code = _run(rest or ["desktop"])
            _log().info("ends with code %d", code)
            return code
    finally:
        warnings.showwarning = shown


@contextlib.contextmanager
def _logging(argv: list[str]) -> Iterator[list[str]]:
    """Keep a log while a command runs, and show it if the arguments ask for that; the other arguments."""
    import logging

    from drivers.base.logs import VERBOSE, begin_log, show_log

    given = argv[: argv.index("--")] if "--" in argv else argv
    with contextlib.ExitStack() as ended:
        rest = list(argv)
        if "--verbose" in given:
            rest.remove("--verbose")
            os.environ[VERBOSE] = "debug"
            ended.callback(os.environ.pop, VERBOSE)
            ended.callback(show_log(sys.stderr))
        ended.callback(begin_log("command", logging.WARNING))
        _log().info("shakedown %s", " ".join(rest))
        yield rest


def _log() -> Logger:
    import logging

    return logging.getLogger("app.cli")


def _run(argv: list[str]) -> int:
    from analysis import ShakedownError
    from app.arguments import Parser
    from app.overwriting import check_outputs

    if argv[0] not in COMMANDS:
        _overview().parse_args(argv)  # prints help, or explains the wrong usage and exits with 2
        return 2
    module_name, help_line = COMMANDS[argv[0]]
    parser = Parser(prog=f"shakedown {argv[0]}", description=help_line)
    try:
        module = import_module(module_name)
        module.configure(parser)
        args = _parsed(parser, argv)
        if argv[0] != "stop":  # which stops first, whatever was asked for besides
            check_outputs(argv[0], args)
        return int(module.run(args) or 0)
    except ShakedownError as error:
        _log().info("refused: %s", error)
        _say(error)
    except KeyboardInterrupt:
        _say("stopped by you.")
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; nothing is left to say
    except MemoryError:
        _say("There is not enough memory for this: use a shorter piece of the record.")
    except OSError as error:
        _say(f"{error.strerror or error}: {error.filename or ''}".rstrip(": ") + ".")
    except Exception as error:
        _say(_unexpected(error))
    return 1


def _parsed(parser: Parser, argv: list[str]) -> argparse.Namespace:
    """The arguments; exits with 2 if they make no sense. Whoever mistypes `stop` wants STOP all the same."""
    try:
        return parser.parse_command(argv[1:])
    except SystemExit as end:
        if argv[0] == "stop" and end.code:  # not after --help
            from app.commands.stop import stop_at_once

            stop_at_once()
        raise


def _say(words: object) -> None:
    from app.output import sentence

    print(f"shakedown: {sentence(words)}", file=sys.stderr)


def _ignore_warning(*warning: object, **more: object) -> None:
    """Warnings of libraries are for developers: whoever wants them runs Python with -W."""


def _unexpected(error: Exception) -> str:
    """A sentence about a mistake of the program; all that helps to mend it goes to the log."""
    import traceback
    from pathlib import Path

    from drivers.base.logs import flush_log, log_path

    where = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{UNEXPECTED}: {type(error).__name__} in {Path(where.filename).name}:{where.lineno}"
    _log().error("shakedown %s", " ".join(sys.argv[1:]), exc_info=error)
    flush_log()
    log = log_path()
    return what + (f"; please report it with {log}." if log.exists() else f" ({error}).")


def _overview() -> argparse.ArgumentParser:
    from app.arguments import Parser

    parser = Parser(
        prog="shakedown",
        description="From a shaking specimen to a validated equation of motion. "
        "Without a command the desktop opens.",
    )
    parser.add_argument("--version", action="store_true", help="the program's version")
    parser.add_argument(
        "--verbose", action="store_true", help="show on standard error what goes on (with any command)"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (_, help_line) in COMMANDS.items():
        commands.add_parser(name, help=help_line, add_help=False)
    return parser


if __name__ == "__main__":
    sys.exit(main())
