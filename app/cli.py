"""The command `shakedown`: with no arguments the desktop, otherwise one headless command."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from app.arguments import Parser

# Command, module, one line of help. Modules are imported only when their command is used: --help stays fast.
COMMANDS: dict[str, tuple[str, str]] = {
    "devices": ("app.commands.devices", "what is connected to this machine"),
    "rigs": ("app.commands.rigs", "the rigs that are known, or one of them in detail"),
    "acquire": ("app.commands.acquire", "record a rig: seconds, periods, a trigger or a whole sequence"),
    "replay": ("app.commands.replay", "play a recording as if it were a rig"),
    "stop": ("app.commands.stop", "stop every drive that runs on this machine, at once"),
    "info": ("app.commands.info", "what a recording holds, and whether it is intact"),
    "convert": ("app.commands.convert", "change a recording's format, or cut a part out of it"),
    "embed": ("app.commands.embed", "delay, dimension, singular values and invariants of a channel"),
    "orbits": ("app.commands.orbits", "close returns and the periodic orbits found"),
    "select": ("app.commands.select", "which terms of an equation of motion a recording supports"),
    "identify": ("app.commands.identify", "parameters of a model from recordings, with error bars"),
    "validate": (
        "app.commands.validate",
        "an identified model beside a recording: orbits, exponents, sections",
    ),
    "reproduce": ("app.commands.reproduce", "published tables beside ours"),
    "report": ("app.commands.report", "a session or a result as self-contained HTML and PDF"),
    "demo": ("app.commands.demo", "the whole experiment on the virtual rig, report at the end"),
    "desktop": ("app.commands.desktop", "the window (also when no command is given)"),
    "simulate": ("app.commands.simulate", "a model's motion as a sensor would record it"),
    "models": ("app.commands.models", "the library of models, or one of them in detail"),
}


UNEXPECTED = "This should not have happened"  # begins the sentence about a mistake of the program itself


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; exit code 0 done, 1 could not (one sentence on stderr), 2 wrong usage."""
    # Our matrices are small: more BLAS threads than one cost several times the work. Read when NumPy loads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    argv = list(sys.argv[1:] if argv is None else argv) or ["desktop"]
    if argv == ["stop"]:  # before everything that takes time to load
        from app.commands.stop import stop_at_once

        return stop_at_once()
    import warnings

    from app.output import printable_streams

    shown, warnings.showwarning = warnings.showwarning, _ignore_warning
    try:
        with printable_streams():
            return _run(argv)
    finally:
        warnings.showwarning = shown


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
    """A sentence about a mistake of the program; all that helps to mend it goes to a file."""
    import traceback
    from pathlib import Path

    where = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{UNEXPECTED}: {type(error).__name__} in {Path(where.filename).name}:{where.lineno}"
    log = _write_log(f"{' '.join(sys.argv)}\n{''.join(traceback.format_exception(error))}\n")
    return what + (f"; please report it with {log}." if log else f" ({error}).")


def _write_log(text: str) -> str | None:
    """Append to the log of mistakes; None if nobody lets us write."""
    import tempfile
    from pathlib import Path

    from app.state import state_folder

    for folder in (state_folder(), tempfile.gettempdir()):
        if folder is None:
            continue
        path = str(Path(folder) / f"shakedown-{os.getpid()}.log")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
            with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            return path
        except OSError:
            continue
    return None


def _overview() -> argparse.ArgumentParser:
    from app.arguments import Parser

    parser = Parser(
        prog="shakedown",
        description="From a shaking specimen to a validated equation of motion. "
        "Without a command the desktop opens.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (_, help_line) in COMMANDS.items():
        commands.add_parser(name, help=help_line, add_help=False)
    return parser


if __name__ == "__main__":
    sys.exit(main())
