"""shakedown validate: an identified model beside the recording it came from, or another one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import ShakedownError
from app import project as projects
from app import project_names as names
from app.arguments import add_channel_options
from app.commands.project import keep_in_project
from app.output import add_json_option, as_words, plain, table, terminal_progress, write_json

if TYPE_CHECKING:
    from analysis import Check, Conditions, Identification, MeasuredCurve, Record, Sweep, Validation


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=names.recording, metavar="FILE", help="a recording")
    parser.add_argument("model", type=names.model, metavar="MODEL", help=names.MODEL)
    parser.add_argument("result", type=names.fit, metavar="RESULT", nargs="?", help=names.FIT)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="a parameter's value, instead of the result's")  # fmt: skip
    add_channel_options(parser)
    parser.add_argument("--frequency", type=float, help="of the drive, where the recording does not say")
    parser.add_argument("--also", action="append", default=[], type=names.recording, metavar="FILE",
                        help="a recording at another setting of the drive, for the diagram")  # fmt: skip
    parser.add_argument("--over", metavar="NAME[=FROM:TO]",
                        help="parameter of the bifurcation diagram (default: the drive's size)")  # fmt: skip
    parser.add_argument("--transfer", metavar="FILE",
                        help="a measured transfer function (table: frequency, real, imag, coherence), or a "
                        "recording under a broadband input")  # fmt: skip
    parser.add_argument("--curve", action="append", default=[], metavar="FILE",
                        help="a table of a measured response curve or backbone")  # fmt: skip
    parser.add_argument("--held", metavar="FILE", help="orbits held on the rig, the result of `hold`")
    parser.add_argument("--plot", metavar="FILE", help="draw every check (png, svg or pdf)")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from analysis import Identification, validate
    from app.commands.identify import mapped, numbers
    from app.held_orbits import read_held
    from app.transfer_table import read_transfer
    from drivers.base.files import read_text
    from drivers.formats import read
    from drivers.library import load_model

    def recording(path: str) -> Record:
        channels = [text for text in args.map if text.partition("=")[2].strip() != "amplitude"]
        return mapped(read(path, rate=args.rate), channels if args.curve else args.map)

    model = load_model(args.model)
    identified = None
    if args.result:
        identified = Identification.from_json(read_text(args.result, "a result of identify"))
    values = {} if identified is None else identified.values()
    found = validate(
        model,
        recording(args.file),
        {**values, **numbers(args.set)},
        terminal_progress(),
        frequency=args.frequency,
        others=[recording(path) for path in args.also],
        transfer=read_transfer(args.transfer, recording) if args.transfer else None,
        sweep=_sweep(args.over) if args.over else None,
        stated=None if identified is None or args.set else identified.stated_miss,
        held=read_held(args.held, model) if args.held else (),
        conditions=None if identified is None else _stated(identified),
        curves=[_curve(path, args, model.outputs[0]) for path in args.curve],
    )
    answer = payload(found)
    if identified is not None and identified.verdict:
        answer["identification"] = {"verdict": identified.verdict, "reasons": identified.reasons}
    if not write_json(args.json, answer):
        if identified is not None and identified.verdict:
            print(f"As identified, the model {identified.headline}.\n")
        _show(found)
    keep_in_project(
        lambda project: projects.keep_validation(project, answer, Path(args.file).stem, model.name)
    )
    if args.plot:
        from app.figures.validation import save_validation

        save_validation(found, args.plot)
    if identified is not None and not identified.usable:
        return 3
    return 0 if found.passed else 1


def _curve(path: str, args: argparse.Namespace, first: str) -> MeasuredCurve:
    from analysis import MeasuredCurve
    from drivers.formats.curves import read_curve

    pairs = (text.partition("=") for text in args.map)
    output = {channel.strip(): name.strip() for name, _, channel in pairs}.get("amplitude", first)
    curve = read_curve(path, output)
    if not isinstance(curve, MeasuredCurve):
        raise ShakedownError(f"{path} is a decay: it is data for `identify`, not for `validate --curve`.")
    return curve


def _sweep(text: str) -> Sweep:
    from analysis import Sweep

    name, sign, limits = text.partition("=")
    if not sign:
        return Sweep(name)
    try:
        lower, upper = (float(part) for part in limits.split(":"))
    except ValueError:
        raise ShakedownError(f"`{text}` should read NAME or NAME=FROM:TO.") from None
    return Sweep(name, lower, upper)


def _stated(identified: Identification) -> Conditions | None:
    """How the fit was told to read the channels; None where it was told nothing of it."""
    from analysis import Conditions

    told = {name: identified.options.get(name) for name in ("inputs", "dispersion", "denoise")}
    if told["inputs"] in (None, "auto") and not told["dispersion"]:
        return None
    return Conditions(**{name: value for name, value in told.items() if value is not None})


def payload(found: Validation) -> dict[str, Any]:
    """The validation as JSON values with stable keys; not-a-number becomes null."""
    answer: dict[str, Any] = plain(
        {
            "passed": found.passed,
            "verdict": found.verdict,
            "checks": {
                c.name: {
                    "status": c.status,
                    "sentence": c.sentence,
                    "numbers": dict(c.numbers),
                    "rows": [dict(row) for row in c.rows],
                }
                for c in found.checks
            },
        }
    )
    return answer


def _show(found: Validation) -> None:
    for check in found.checks:
        _show_rows(check)
    print(table(("check", "result"), [(c.title, c.status) for c in found.checks]))
    for check in found.checks:
        print(f"\n{check.title} ({check.status}). {check.sentence}")
    print(f"\n{found.verdict}")


def _show_rows(check: Check) -> None:
    if not check.rows:
        return
    print(f"{check.title}")
    columns = [name.replace("_", " ") for name in check.rows[0]]
    print(table(columns, [[as_words(v) for v in row.values()] for row in check.rows]))
    print()
