"""shakedown select: which terms of an equation of motion a recording supports."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import ShakedownError
from app.output import add_json_option, plain, table, terminal_progress, write_json

if TYPE_CHECKING:
    from analysis import Record, Selection


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a recording of x, or of x and v")
    parser.add_argument(
        "--terms", metavar="A,B", help="candidate terms in x and v, such as x,x^3,v*abs(v),sign(v)"
    )
    parser.add_argument(
        "--degree",
        type=int,
        default=3,
        help="without --terms: powers of x and v up to this one, and a constant (default 3)",
    )
    parser.add_argument("--keep", metavar="A,B", default="v", help="terms that always stay (default v)")
    parser.add_argument("--drive", metavar="WHAT",
                        help="force per mass: a channel, an expression in t, or tone (of unknown size at the "
                        "recorded frequency; the default where there is one)")  # fmt: skip
    parser.add_argument(
        "--method",
        choices=("auto", "weak", "balance"),
        default="auto",
        help="how the library is fitted (auto: weak if x and v are measured, else balance on orbits)",
    )
    parser.add_argument("--map", action="append", default=[], metavar="NAME=CHANNEL",
                        help="the channel that stands for x, v or the drive")  # fmt: skip
    parser.add_argument("--frequency", type=float, help="of the drive, where the recording does not say")
    parser.add_argument("--rate", type=float, help="sample rate in Hz, for files without times")
    parser.add_argument(
        "--out", metavar="MODEL", help="write the model found as a model file, ready for identify"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the criterion over the number of terms")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    import math
    from dataclasses import replace

    from analysis import Excitation, named_terms, oscillator, polynomials, select_terms
    from app.commands.identify import mapped
    from drivers.base.files import replaced
    from drivers.formats import read

    record = mapped(read(args.file, rate=args.rate), args.map)
    if args.frequency is not None:
        tone = record.excitation or Excitation(args.frequency)
        record = replace(record, excitation=replace(tone, frequency=args.frequency))
    staying = [term.strip().replace("^", "**") for term in args.keep.split(",") if term.strip()]
    terms = named_terms(args.terms.split(",")) if args.terms else polynomials(args.degree)
    missing = [term for term in staying if term not in terms.values()]
    terms = named_terms([*terms.values(), *missing])
    candidates = [name for name, term in terms.items() if term not in staying]
    if not candidates:
        raise ShakedownError("Every term is to stay: nothing is left to select.")
    drive = _drive(args.drive, record)
    frequency = record.excitation.frequency if record.excitation is not None else 0.0
    known = {"w": 2 * math.pi * frequency} if drive == "tone" else {}
    model = oscillator(terms, drive, known)
    found = select_terms(model, record, candidates, terminal_progress(), args.method)
    if not write_json(args.json, payload(found, terms)):
        _show(found, terms, candidates)
    if args.out:
        text = replace(found.model, name=f"Selected from {Path(args.file).name}").to_toml()
        with replaced(args.out) as partial:
            partial.write_text(text, encoding="utf-8")
    if args.plot:
        from app.figures.selection import save_path

        save_path(found, terms, args.plot)
    return 0 if found.result.converged else 1


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


def payload(found: Selection, terms: dict[str, str]) -> dict[str, Any]:
    """The selection as JSON values with stable keys."""
    answer: dict[str, Any] = plain(
        {
            "kept": {name: terms[name] for name in found.kept},
            "indistinguishable": list(found.indistinguishable),
            "method": found.whole.method,
            "path": [{"terms": list(s.terms), "chi2": s.chi2, "bic": s.bic} for s in found.path],
            "parameters": {
                n: {"value": e.value, "stderr": e.stderr} for n, e in found.result.parameters.items()
            },
            "converged": found.result.converged,
            "warnings": list(found.result.warnings),
            "model": found.model.text,
        }
    )
    return answer


def _show(found: Selection, terms: dict[str, str], candidates: list[str]) -> None:
    print(f"The whole library, fitted by {found.whole.method}:")
    rows = []
    for name, term in terms.items():
        e = found.whole.parameters[name]
        fate = "always" if name not in candidates else "yes" if name in found.kept else "no"
        rows.append((name, term, e.value, e.stderr, fate))
    print(table(("coefficient", "term", "value", "std. error", "kept"), rows))
    print("\nThe best model of each size:")
    lines = [
        (len(s.terms), " ".join(terms[n] for n in s.terms) or "-", f"{s.chi2:.4g}", f"{s.bic:+.4g}")
        for s in found.path
    ]
    print(table(("terms", "which", "rise of chi2", "rise of BIC"), lines))
    if found.indistinguishable:
        said = ", ".join(terms[n] for n in found.indistinguishable)
        print(f"\nIndistinguishable from zero in the whole library: {said}.")
    state = "" if found.result.converged else " (the fit did NOT converge)"
    print(f"\nThe smallest model that the data support{state}:")
    print(table(("coefficient", "term", "value", "std. error"), [
        (n, terms.get(n, "drive"), e.value, e.stderr) for n, e in found.result.parameters.items()
    ]))  # fmt: skip
    for warning in found.result.warnings:
        print(f"! {warning}")
