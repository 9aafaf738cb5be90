"""shakedown frf: frequency response, coherence and resonances of recordings; of multisines the distortion."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import percent
from app import project as projects
from app import project_names as names
from app.commands.project import keep_in_project
from app.output import add_json_option, plain, table, write_json

if TYPE_CHECKING:
    from analysis import FrequencyResponse, LinearApproximation, Record, Resonance

METHODS = ("auto", "average", "multisine")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", type=names.recording, metavar="FILE",
        help="a recording; of a multisine also several",
    )  # fmt: skip
    parser.add_argument("--input", required=True, metavar="CHANNEL", help="what drives: a force, a voltage")
    parser.add_argument("--output", required=True, metavar="CHANNEL", help="what answers")
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="auto",
        help="averaged spectra, or line by line for a multisine (auto: as the recorded drive asks for)",
    )
    parser.add_argument("--period", type=float, metavar="S", help="of a multisine, where it is not recorded")
    parser.add_argument(
        "--estimator", choices=("h1", "h2", "hv"), default="h1",
        help="where the noise is: on the output (h1), on the input (h2), on both (hv)",
    )  # fmt: skip
    parser.add_argument(
        "--window", choices=("hann", "flat top", "blackman-harris", "rectangular"), default="hann"
    )
    parser.add_argument("--lines", type=int, metavar="N", help="frequency lines up to half the sample rate")
    parser.add_argument("--overlap", type=float, default=50.0, metavar="%", help="of two segments, per cent")
    parser.add_argument("--rate", type=float, metavar="HZ", help="sample rate of a file without one")
    parser.add_argument("--out", metavar="FILE", help="write the response as .csv, .mat or .uff")
    parser.add_argument("--plot", metavar="FILE", help="draw it (png, svg or pdf)")
    add_json_option(parser)


def run(args: argparse.Namespace) -> None:
    from drivers.formats import read

    records = [read(name, args.rate) for name in args.files]
    if _is_multisine(args, records):
        _run_multisine(args, records)
    else:
        _run_average(args, records)


def _is_multisine(args: argparse.Namespace, records: list[Record]) -> bool:
    if args.method != "auto":
        return bool(args.method == "multisine")
    drive = records[0].excitation
    return args.period is not None or (drive is not None and "multisine" in drive.waveform)


def _run_average(args: argparse.Namespace, records: list[Record]) -> None:
    from analysis import DataError, doubts, frequency_response, resonances

    if len(records) > 1:
        raise DataError("Spectra are averaged over one recording; several belong to a multisine (--period).")
    found = frequency_response(
        records[0], args.input, args.output, args.estimator, args.lines, args.window, args.overlap / 100
    )
    modes = resonances(found)
    _save(args, found, modes)
    messages = doubts(found, records[0])
    if not _told(args, {**average_payload(found, modes), "messages": messages}):
        print(
            f"{found.estimator.upper()} of {found.output} over {found.input}: {found.segments} segments "
            f"({found.averages:.3g} independent averages), {found.window} window, "
            f"lines every {found.resolution:.4g} Hz"
        )
        good = 100 * float((found.coherence > 0.8).mean())
        print(f"coherence above 0.8 at {good:.0f} % of the lines")
        _show_modes(modes, found.unit)
        for words in messages:
            print(f"! {words}")


def _run_multisine(args: argparse.Namespace, records: list[Record]) -> None:
    from analysis import linear_approximation

    found = linear_approximation(records, args.input, args.output, args.period)
    _save(args, found, [])
    if _told(args, multisine_payload(found)):
        return
    print(found.verdict)
    print(
        f"{len(found.frequency)} driven lines from {found.frequency[0]:.4g} to {found.frequency[-1]:.4g} Hz, "
        f"{found.periods} periods, realisations: {found.realisations}"
    )
    rows = [(d.kind, d.lines, d.rms, percent(d.share), d.chance) for d in found.distortions]
    rows.append(("noise", len(found.lines), float("nan"), percent(found.noise_share), float("nan")))
    print(table(("lines not driven", "number", "rms", "of the response", "chance by noise"), rows))
    for words in found.messages:
        print(f"! {words}")


def _told(args: argparse.Namespace, payload: dict[str, Any]) -> bool:
    """Write the JSON asked for, and keep it; True if standard output now belongs to it."""
    answer = plain(payload)
    of = (Path(args.files[0]).stem, "frf", args.output, "over", args.input)
    keep_in_project(lambda project: projects.keep_analysis(project, answer, of))
    return write_json(args.json, answer)


def _save(
    args: argparse.Namespace, found: FrequencyResponse | LinearApproximation, modes: list[Resonance]
) -> None:
    if args.out:
        from drivers.formats.responses import write_response

        write_response(found, args.out)
    if args.plot:
        from app.figures.response import save_response

        save_response(found, modes, args.plot)


def _show_modes(modes: list[Resonance], unit: str) -> None:
    if not modes:
        print("no clear resonance")
        return
    rows = [
        (f"{m.frequency:.5g} ± {m.frequency_stderr:.1g}", f"{100 * m.damping:.4g} ± "
         f"{100 * m.damping_stderr:.1g}", m.height, m.warning)
        for m in modes
    ]  # fmt: skip
    height = f"height [{unit}]" if unit else "height"
    print(table(("frequency [Hz]", "damping [%]", height, ""), rows))


def average_payload(found: FrequencyResponse, modes: list[Resonance]) -> dict[str, Any]:
    """JSON of averaged spectra."""
    from dataclasses import asdict

    return {
        "method": "average",
        "input": found.input,
        "output": found.output,
        "unit": found.unit,
        "estimator": found.estimator,
        "window": found.window,
        "segments": found.segments,
        "averages": found.averages,
        "frequency": found.frequency,
        "real": found.response.real,
        "imag": found.response.imag,
        "coherence": found.coherence,
        "stderr": found.stderr,
        "resonances": [asdict(m) for m in modes],
    }


def multisine_payload(found: LinearApproximation) -> dict[str, Any]:
    """JSON of the best linear approximation."""
    from dataclasses import asdict

    return {
        "method": "multisine",
        "input": found.input,
        "output": found.output,
        "unit": found.unit,
        "verdict": found.verdict,
        "periods": found.periods,
        "realisations": found.realisations,
        "frequency": found.frequency,
        "real": found.response.real,
        "imag": found.response.imag,
        "noise": found.noise,
        "distortion": found.distortion,
        "noise_share": found.noise_share,
        "distortions": [{**asdict(d), "clear": d.clear} for d in found.distortions],
        "messages": list(found.messages),
    }
