"""shakedown select: the equation of motion that a recording supports, term by term."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import ShakedownError, percent
from app import project as projects
from app import project_names as names
from app.commands.project import keep_in_project
from app.output import add_json_option, plain, table, terminal_progress, write_json

if TYPE_CHECKING:
    from analysis import Library, Record, Selection, Shape

_DRIVES = ("f", "force", "u", "drive", "input", "excitation")  # names that a state hardly has
_OSCILLATOR = {"x": "v", "v": "drive - ?"}
_MOTION = ("x", "v", "a")  # displacement, velocity and acceleration of an oscillator


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=names.recording, help="recordings of one specimen"
    )
    parser.add_argument(
        "--equation",
        action="append",
        default=[],
        metavar="'x = v'",
        help="the rate of one state, with ? for what is to be found, such as 'v = f - ?' (default: x = v and "
        "v = drive - ? where nothing but x, v and the acceleration a is recorded, else ? for every channel)",
    )
    parser.add_argument(
        "--terms",
        metavar="A,B",
        help="candidate terms of every ?, such as 'x,x^3,v*abs(v),sign(v)' (default: polynomials)",
    )
    parser.add_argument(
        "--degree", type=int, default=3, help="of the polynomials, with all products (default 3)"
    )
    parser.add_argument(
        "--variables", metavar="A,B", help="what the polynomials are made of (default: all states)"
    )
    parser.add_argument(
        "--keep", metavar="A,B", help="terms that always stay (default: v for x and v, else none)"
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME",
        help="a number to be found inside a term, such as g in 'max(x-g,0)'; NAME=LOW..HIGH within a range",
    )
    parser.add_argument(
        "--shows",
        action="append",
        default=[],
        metavar="'a = dv/dt'",
        help="a channel that shows the rate of a state, such as an accelerometer",
    )
    parser.add_argument("--drive", metavar="WHAT",
                        help="force per mass: a channel, an expression in t, or tone (of unknown size at the "
                        "recorded frequency; the default where there is one)")  # fmt: skip
    parser.add_argument("--map", action="append", default=[], metavar="NAME=CHANNEL",
                        help="the channel that stands for a state or the drive")  # fmt: skip
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE",
        help="how the recordings are to be read, such as inputs=bandlimited or offsets=x",
    )  # fmt: skip
    parser.add_argument("--frequency", type=float, help="of the drive, where the recording does not say")
    parser.add_argument("--rate", type=float, help="sample rate in Hz, for files without times")
    parser.add_argument(
        "--out", metavar="MODEL", help="write the model found as a model file, ready for identify"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the criterion over the number of terms")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from dataclasses import replace

    from analysis import Conditions, parse_options, select_terms
    from app.commands.identify import exit_code, with_sources
    from drivers.base.files import replaced

    records = [_read(file, args) for file in args.files]
    library = _library(records[0], args)
    conditions = Conditions(**parse_options(Conditions, args.option))
    found = select_terms(library, records, terminal_progress(), conditions)
    if not write_json(args.json, payload(found)):
        _show(found)
    first = Path(args.files[0])
    title = f"Selected from {first.name}"
    text = replace(found.model, name=title).to_toml()
    result = with_sources(replace(found.result, model=title, model_text=text), args.files)
    keep_in_project(lambda project: projects.keep_fit(project, result, first.stem))
    keep_in_project(lambda project: projects.keep_analysis(project, payload(found), (first.stem, "select")))
    if args.out:
        with replaced(args.out) as partial:
            partial.write_text(text, encoding="utf-8")
    if args.plot:
        from app.figures.selection import save_sizes

        save_sizes(found, args.plot)
    return exit_code(found.result)


def _read(file: str, args: argparse.Namespace) -> Record:
    from dataclasses import replace

    from analysis import Excitation
    from app.commands.identify import mapped
    from drivers.formats import read

    record = mapped(read(file, rate=args.rate), args.map)
    if args.frequency is None:
        return record
    tone = record.excitation or Excitation(args.frequency)
    return replace(record, excitation=replace(tone, frequency=args.frequency))


def _library(record: Record, args: argparse.Namespace) -> Library:
    from analysis import monomials, oscillator, system

    equations = _equations(record, args)
    variables = _listed(args.variables) if args.variables else list(equations)
    terms = _listed(args.terms) if args.terms else monomials(variables, args.degree)
    drive = _drive(args.drive, record)
    known = {"w": 2 * math.pi * record.excitation.frequency} if drive == "tone" and record.excitation else {}
    shapes = dict(_shape(text) for text in args.shape)
    rates = dict(_shown(text, record) for text in args.shows)
    if not args.equation and equations == _OSCILLATOR:
        keep = ["v"] if args.keep is None else _listed(args.keep)
        acceleration = next(iter(rates), "a" if "a" in record and args.drive != "a" else "")
        return oscillator(terms, drive, known, keep, shapes, acceleration)
    names = set(re.findall(r"[A-Za-z_]\w*", " ".join([*equations.values(), *terms])))
    inputs = {name: "measured" for name in record.channels if name in names - set(equations)}
    free: dict[str, float] = {}
    if "drive" in names and "drive" not in inputs:
        inputs["drive"] = "p*cos(w*t) + q*sin(w*t)" if drive == "tone" else drive
        free = {"p": 0.0, "q": 0.0} if drive == "tone" else {}
    known = known if "drive" in inputs else {}
    return system(equations, terms, _listed(args.keep or ""), inputs, known, free, shapes, rates)


def _shape(text: str) -> tuple[str, Shape]:
    """`g` or `g=0.1..0.5`."""
    from analysis import Shape

    name, sign, ends = (part.strip() for part in text.partition("="))
    if name.isidentifier() and not sign:
        return name, Shape()
    try:
        lower, upper = (float(end) for end in ends.split(".."))
    except ValueError:
        lower = upper = float("nan")
    if not name.isidentifier() or not (math.isfinite(lower) and math.isfinite(upper)):
        raise ShakedownError(f"`--shape {text}` should read NAME or NAME=LOW..HIGH, such as g=0.1..0.5.")
    return name, Shape(lower, upper)


def _shown(text: str, record: Record) -> tuple[str, str]:
    """Channel and the state whose rate it shows, of `a = dv/dt`."""
    found = re.fullmatch(r"\s*(\w+)\s*=\s*d(\w+)/dt\s*", text)
    if found is None:
        raise ShakedownError(f"`--shows '{text}'` should read CHANNEL = dSTATE/dt, such as a = dv/dt.")
    record[found[1]]  # an unknown channel is refused here, with the list of those there are
    return found[1], found[2]


def _equations(record: Record, args: argparse.Namespace) -> dict[str, str]:
    """The equations that were given, or those that the channels suggest."""
    found: dict[str, str] = {}
    for text in args.equation:
        state, sign, right = (part.strip() for part in text.partition("="))
        state = re.sub(r"^d(\w+)/dt$", r"\1", state.rstrip("'"))
        if not sign or not state.isidentifier() or not right:
            raise ShakedownError(f"`{text}` should read STATE = RATE, such as v = f - ?.")
        if state in found:
            raise ShakedownError(f"The state {state} has two equations.")
        found[state] = right
    if found:
        return found
    shown = [text.partition("=")[0].strip() for text in args.shows]
    motion = [n for n in record.channels if n in (*_MOTION, *shown) and n != args.drive]
    others = [n for n in record.channels if n not in (*motion, args.drive)]
    drives = [name for name in others if name.lower() in _DRIVES]
    if motion and (not others or (args.drive is not None and others == drives)):
        return dict(_OSCILLATOR)
    if drives:
        raise ShakedownError(
            f"The recording has a channel {drives[0]}: say --drive {drives[0]} if it drives the motion, or "
            "give the equations with --equation."
        )
    if args.drive is not None:
        raise ShakedownError(
            f"With the channels {', '.join(record.channels)} it is not clear where the drive acts: give the "
            "equations with --equation, such as 'v = drive - ?'."
        )
    return dict.fromkeys((name for name in record.channels if name not in _mapped(args)), "?")


def _mapped(args: argparse.Namespace) -> set[str]:
    """Channels that stand under another name."""
    pairs = [[part.strip() for part in text.split("=", 1)] for text in args.map]
    return {channel for name, channel in pairs if name != channel}


def _listed(text: str) -> list[str]:
    """Parts between commas that stand outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _drive(asked: str | None, record: Record) -> str:
    """The drive that was asked for; the recorded tone, or none, where nothing was."""
    there = record.excitation is not None and record.excitation.frequency > 0
    if asked is None:
        return "tone" if there else "0"
    if asked == "tone" and not there:
        raise ShakedownError("The recording does not tell the drive's frequency: give --frequency.")
    if asked.isidentifier() and asked != "tone":
        record[asked]  # an unknown channel is refused here, with the list of those there are
    return asked


def payload(found: Selection) -> dict[str, Any]:
    """The selection as JSON values with stable keys."""
    candidates = found.library.candidates
    answer: dict[str, Any] = plain(
        {
            "verdict": found.result.verdict,
            "reasons": list(found.result.reasons),
            "kept": {name: candidates[name].term for name in found.kept},
            "probability": {} if found.caveat else found.probability,
            "shares": found.probability if found.caveat else {},
            "caveat": found.caveat,
            "rivals": [
                {
                    "terms": list(r.terms),
                    "criterion": r.criterion,
                    "differs": found.difference(r),
                    "advice": r.advice,
                    "model": r.model.to_toml() if r.model else "",
                }
                for r in found.rivals
            ],
            "path": [{"terms": list(r.terms), "bic": r.criterion} for r in found.sizes],
            "parameters": {
                n: {"value": e.value, "stderr": e.stderr, "lower": e.lower, "upper": e.upper}
                for n, e in found.result.parameters.items()
            },
            "converged": found.result.converged,
            "warnings": list(found.result.warnings),
            "model": found.model.to_toml(),
        }
    )
    return answer


def _show(found: Selection) -> None:
    candidates, result = found.library.candidates, found.result
    print(f"The equation found {result.headline}.")
    for reason in result.reasons:
        print(f"  {reason}")
    print()
    for equation in found.model.to_text().splitlines()[: len(found.model.states)]:
        print(f"  {equation}")
    rows = []
    for name, e in result.parameters.items():
        where = str(candidates[name]) if name in candidates else _role(found, name)
        sure = _percent(found.probability[name]) if name in found.probability and not found.caveat else "-"
        rows.append((name, where, e.value, e.stderr, "always" if name in found.library.always else sure))
    print()
    print(table(("coefficient", "term", "value", "std. error", "probability"), rows))
    if found.caveat:
        print(f"\n{found.caveat}")
    left = {n: p for n, p in found.probability.items() if n not in found.kept and p >= 0.01}
    if left and not found.caveat:
        said = ", ".join(
            f"{candidates[n]} ({_percent(p)})" for n, p in sorted(left.items(), key=lambda i: -i[1])
        )
        print(f"\nLeft out, but possible: {said}.")
    for rival in found.rivals:
        print(f"\nHardly told apart (criterion {rival.criterion:+.1f}): {found.difference(rival)}.")
        print(f"  {rival.advice}")
    for warning in result.warnings:
        print(f"! {warning}")


def _role(found: Selection, name: str) -> str:
    """What a parameter is that is no coefficient of a term."""
    if name in found.library.shapes:
        users = [found.library.candidates[n].term for n in found.library.users(name) if n in found.kept]
        return f"in {', '.join(users)}"
    return "drive" if name in found.library.free else "sensor"


def _percent(share: float) -> str:
    return "> 99.9 %" if share > 0.999 else percent(share, 3)
