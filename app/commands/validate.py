"""shakedown validate: an identified model beside the recording it came from, or another one."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.output import add_json_option, table, terminal_progress, write_json

if TYPE_CHECKING:
    from analysis.validation import Validation


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument("model", metavar="MODEL", help="a model of the library or a model file")
    parser.add_argument("result", metavar="RESULT", nargs="?", help="what identify wrote with --json")
    parser.add_argument("--map", action="append", default=[], metavar="NAME=CHANNEL",
                        help="the channel that stands for a state of the model")  # fmt: skip
    parser.add_argument("--frequency", type=float, help="of the drive, where the recording does not say")
    parser.add_argument("--rate", type=float, help="sample rate in Hz, for files without times")
    parser.add_argument("--plot", metavar="FILE", help="draw the sections (png, svg or pdf)")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from dataclasses import replace

    from analysis.identification import Identification
    from analysis.record import Excitation
    from analysis.validation import validate
    from app.commands.identify import mapped
    from drivers.formats import read
    from drivers.library import load_model

    record = mapped(read(args.file, rate=args.rate), args.map)
    if args.frequency is not None:
        drive = record.excitation or Excitation(args.frequency)
        record = replace(record, excitation=replace(drive, frequency=args.frequency))
    values = {}
    if args.result:
        values = Identification.from_json(Path(args.result).read_text(encoding="utf-8")).values()
    model = load_model(args.model)
    checks = validate(model, record, values, terminal_progress())
    if not write_json(args.json, payload(checks)):
        _show(checks, model.states)
    if args.plot:
        from app.figures.validation import save_sections

        save_sections(checks, model.states, args.plot)
    return 0 if checks.passed else 1


def payload(checks: Validation) -> dict[str, Any]:
    """The validation as JSON values with stable keys; not-a-number becomes null."""

    def number(value: float) -> float | None:
        return float(value) if math.isfinite(value) else None

    return {
        "passed": checks.passed,
        "verdict": checks.verdict,
        "escaped": checks.escaped,
        "exponents": {
            "model": [number(v) for v in checks.model_exponents],
            "model_stderr": [number(v) for v in checks.model_exponents_stderr],
            "record": number(checks.data_exponent),
            "record_stderr": number(checks.data_exponent_stderr),
        },
        "dimension": {"model": number(checks.model_dimension), "record": number(checks.data_dimension)},
        "section": {"distance": number(checks.section_distance), "by_chance": number(checks.section_spread)},
        "horizon": number(checks.horizon),
        "orbits": [
            {
                "multiple": o.multiple,
                "period": o.period,
                "closure": o.closure,
                "found": o.found,
                "distance": number(o.distance),
                "multiplier": number(o.multiplier),
                "measured_multiplier": number(o.measured_multiplier),
            }
            for o in checks.orbits
        ],
        "equilibria": [
            {
                "state": [float(v) for v in e.state],
                "stable": e.stable,
                "frequencies": [float(v) for v in e.frequencies],
                "damping_ratios": [float(v) for v in e.damping_ratios],
            }
            for e in checks.equilibria
        ],
    }


def _show(checks: Validation, states: tuple[str, ...]) -> None:
    rows: list[tuple[Any, ...]] = [
        (o.multiple or "-", o.period, o.closure, "yes" if o.found else "no", o.distance, o.multiplier,
         o.measured_multiplier)
        for o in checks.orbits
    ]  # fmt: skip
    if rows:
        columns = ("periods", "length", "closure", "in model", "apart", "multiplier", "measured")
        print(table(columns, rows))
    for equilibrium in checks.equilibria:
        place = ", ".join(f"{n} = {v:.4g}" for n, v in zip(states, equilibrium.state, strict=True))
        kind = "stable" if equilibrium.stable else "unstable"
        pairs = zip(equilibrium.frequencies, equilibrium.damping_ratios, strict=True)
        modes = "; ".join(f"{f:.4g} per unit of time, damping {100 * d:.3g} %" for f, d in pairs)
        print(f"rest at {place}: {kind}{', ' + modes if modes else ''}")
    for sentence in checks.verdict:
        print(sentence)
