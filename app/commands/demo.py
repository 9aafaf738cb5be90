"""`shakedown demo`: the whole experiment on the virtual rig, from the shaker to the report, headless."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis import Progress, ShakedownError, Step
from app.output import add_json_option, rewrite_line, table, write_json

if TYPE_CHECKING:
    from analysis import Identification, Record
    from app.orbit_search import Embedding
    from app.report.findings import Findings, Measured, OrbitsFound, Study
    from app.session import Session
    from drivers.rig.profile import RigProfile

RIG, MODEL = "two_well_beam", "beam_with_drive"
_NEAR_STOP = 0.99  # of the stop's place: a sensor's noise below it
_APART = 3.0  # standard errors between two exponents that differ


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the record (default 60)")
    parser.add_argument(
        "--out", metavar="FOLDER", help="session folder (default: demo in your Shakedown folder)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the virtual sensors' noise")
    parser.add_argument(
        "--specimen", type=int, metavar="N", help="number of the beam (default: one that nobody has seen yet)"
    )
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from app.report import write_report
    from app.report.findings import Measured, Study, check, orbits_of
    from app.session import Session, fingerprint
    from app.settings import data_folder
    from drivers.rig.profile import load_rig
    from drivers.virtual.specimens import new_number, with_specimen

    if not 4 <= args.seconds <= 3600:
        raise ShakedownError(
            "--seconds takes a length between 4 and 3600: the beam needs a few to show its motion."
        )
    folder = Path(args.out) if args.out else data_folder() / "demo"
    say = _Printer(quiet=args.json == "-")
    path = folder / "beam.h5"
    _check_own(folder, path, args.force)
    session = Session.create(folder, TITLE, NOTES)

    number = new_number() if args.specimen is None else args.specimen
    profile = with_specimen(load_rig(RIG), number)
    say.step(f"Shaking beam number {number} and recording")
    record = _record(profile, path, args.seconds, args.seed, say.progress())
    session.add_recording(path)
    session.save()
    say.done(f"{record.duration:.0f} s at {record.rate:g} Hz, {len(record)} samples, {_lost(record)} lost")

    say.step("Unfolding the phase space")
    embedding = _embed(record)
    say.done(f"{embedding.dimension} dimensions, delay {1e3 * embedding.delay * record.dt:.3g} ms")

    say.step("Looking for periodic orbits")
    measured = Measured(path.name, record, fingerprint(path))
    orbits = orbits_of(measured, say.progress())
    say.done(_orbit_words(orbits))

    say.step("Identifying the parameters (first run: compiling the equations)")
    result = _identify(record, say.progress())
    truth = _truth(profile)
    session.add_result(result, "identification.json", [path.name], truth)
    session.save()
    state = "" if result.converged else "NOT converged, "
    say.done(f"{state}{result.headline}, method {result.method}")

    say.step("Checking the model against the record")
    study = Study(result, check(result, record, say.progress()), record, truth)
    exponents = _exponents(study)
    say.done(study.validation.verdict if study.validation is not None else "the model could not be checked")

    say.step("Writing the report")
    findings = _findings(session, measured, embedding, orbits, study)
    files = write_report(findings, folder / "report", say.progress())
    say.done(", ".join(str(f) for f in files))

    from app.commands.identify import exit_code

    summary = {"specimen": number, **_summary(args, embedding, orbits, study, exponents, files)}
    if not write_json(args.json, summary):
        _print(summary)
        print(_stop_words(profile, record), end="")
    return exit_code(result)


def _stop_words(profile: RigProfile, record: Record) -> str:
    """That the beam struck the stops beside it, which the model does not have; empty if it did not."""
    stop = profile.instruments["source"]["specimen"].get("stop", {})
    largest = float(np.nanmax(np.abs(record["x"])))
    if not stop or largest < _NEAR_STOP * stop["at"]:
        return ""
    return (
        f"This beam swung to |x| = {largest:.3g} and struck its stops at {stop['at']:g}, which the model "
        "does not have: numbers from this record need not be the beam's.\n"
    )


def _findings(
    session: Session, measured: Measured, embedding: Embedding, orbits: OrbitsFound | None, study: Study
) -> Findings:
    from app.report.findings import Findings

    return Findings(
        session.title,
        session.notes,
        created=session.created,
        recordings=(measured,),
        embedding=embedding,
        orbits=() if orbits is None else (orbits,),
        studies=(study,),
    )


TITLE = "Two-well beam: from the shaker to the equation of motion"
NOTES = (
    "A steel beam between two magnets, shaken so that it jumps between its two wells without ever repeating "
    "itself. A strain gauge behind a 12-bit converter and an accelerometer on the table are all that the "
    "identification sees. The rig is virtual, so that what was found can be held against the truth."
)


def _check_own(folder: Path, path: Path, force: bool) -> None:
    """Refuse to replace a recording or a session that is not of an earlier demonstration."""
    from app.session import NAME, Session

    there = path.exists() or (folder / NAME).exists()
    if there and not force and not ((folder / NAME).exists() and Session.load(folder).title == TITLE):
        raise ShakedownError(
            f"{folder} holds a session or a recording of somebody else (--force replaces it)."
        )


def _record(profile: RigProfile, path: Path, seconds: float, seed: int, progress: Progress) -> Record:
    """Drive the virtual rig into chaos and record it, as fast as the machine can."""
    from drivers.acquisition.capture import recording_to
    from drivers.acquisition.engine import Engine
    from drivers.acquisition.metadata import recording_metadata
    from drivers.base.clock import InstantClock
    from drivers.formats import read
    from drivers.rig.profile import open_rig

    path.unlink(missing_ok=True)  # of an earlier demonstration
    rig = open_rig(profile, InstantClock(), seed)
    engine = Engine(rig.source, rig.exciter, 0.25)
    metadata = recording_metadata(rig.source, profile, seed=seed)
    try:
        engine.start(held=True)
        rig.play()
        engine.advance(profile.settle + 0.5, lambda part: progress.report(0.1 * part, "settling"))
        capture = engine.record(recording_to(path, rig.source, metadata), round(seconds * rig.source.rate))
        engine.advance(
            seconds, lambda part: progress.report(0.1 + 0.9 * part, f"{part * seconds:.0f} s recorded")
        )
        capture.wait(60)
        capture.end()
    finally:
        engine.stop()
        rig.close()
    problem = capture.failed or engine.status.failure
    if problem or not capture.finished:
        raise ShakedownError(f"The recording failed: {problem or 'nothing was written'}")
    return read(capture.finished[0].path)


def _lost(record: Record) -> int:
    """Samples that were lost or clipped in any channel."""
    return int(sum(np.sum(~channel.valid()) for channel in record.channels.values()))


def _embed(record: Record) -> Embedding:
    """Delay and dimension in which the strain alone unfolds the motion.

    The mutual information has its first minimum where the drive comes round again, and coordinates a whole
    drive period apart all see it at the same phase: a quarter of it is the most that is taken.
    """
    from analysis import delay_by_mutual_information, false_neighbours
    from app.orbit_search import Embedding

    delay = delay_by_mutual_information(record["x"], record.dt).samples
    if record.excitation is not None:
        delay = min(delay, max(round(record.rate / record.excitation.frequency / 4), 1))
    return Embedding("x", delay, false_neighbours(record["x"], delay).dimension)


def _orbit_words(found: OrbitsFound | None) -> str:
    if found is None or not len(found.orbits):
        return "none close in so short a record"
    periods = sorted({o.multiple or 0 for o in found.orbits})
    return f"{len(found.orbits)} distinct orbits, of {', '.join(map(str, periods))} drive periods"


def _identify(record: Record, progress: Progress) -> Identification:
    from analysis import identify
    from drivers.library import load_model

    return identify(load_model(MODEL), record, "auto", progress)


def _truth(profile: RigProfile) -> dict[str, float]:
    """The parameters of the beam on the shaker, as far as they are looked for."""
    from drivers.library import load_model
    from drivers.virtual.specimens import true_parameters

    free = load_model(MODEL).free
    return {name: value for name, value in true_parameters(profile).items() if name in free}


def _exponents(study: Study) -> dict[str, float]:
    """Largest Lyapunov exponents of the identified model and of the true one, run from the same states.

    Both start where the record is. A beam that is chaotic for minutes may end on a periodic motion, so that
    one long run of either says little.
    """
    from analysis import SILENT, model_spectrum, prepare_subject
    from drivers.library import load_model

    if study.record is None:
        return {}
    subject = prepare_subject(load_model(MODEL), study.record, study.result.values())
    if subject.driven is None:
        return {}
    exponents: dict[str, float] = {}
    known = {n: v for n, v in study.truth.items() if n in subject.driven.parameters}
    for name, model in (("model", subject.driven), ("truth", subject.driven.with_values(known))):
        found = model_spectrum(subject, SILENT, model)
        if found is not None:
            exponents[name], exponents[f"{name}_stderr"] = float(found.exponents[0]), float(found.stderr[0])
            exponents[f"{name}_left_chaos"] = found.regular / found.runs
    return exponents


def _summary(
    args: argparse.Namespace,
    embedding: Embedding,
    orbits: OrbitsFound | None,
    study: Study,
    exponents: dict[str, float],
    files: list[Path],
) -> dict[str, Any]:
    result = study.result
    found = study.validation
    return {
        "seconds": args.seconds,
        "seed": args.seed,
        "method": result.method,
        "converged": result.converged,
        "identified": result.verdict,
        "parameters": {
            name: {
                "value": e.value,
                "stderr": _finite(e.stderr),
                "truth": study.truth.get(name),
                "error_percent": _percent(e.value, study.truth.get(name)),
                "covered": e.covers(study.truth[name]) if name in study.truth else None,
            }
            for name, e in result.parameters.items()
        },
        "embedding": {"delay": embedding.delay, "dimension": embedding.dimension},
        "orbits": 0 if orbits is None else len(orbits.orbits),
        "exponents": exponents,
        "validated": found is not None and found.passed,
        "checks": {} if found is None else {c.name: c.status for c in found.checks},
        "verdict": "" if found is None else found.verdict,
        "files": [str(f) for f in files],
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _percent(value: float, truth: float | None) -> float | None:
    return None if not truth else 100 * (value - truth) / abs(truth)


def _print(summary: Mapping[str, Any]) -> None:
    number = summary["specimen"]
    print(f"\nBeam number {number} (`shakedown demo --specimen {number}` takes the same again)")
    rows = []
    for name, p in summary["parameters"].items():
        if p["truth"] is None:
            rows.append((name, "", p["value"], p["stderr"], "", ""))
        else:
            inside = "yes" if p["covered"] else "no"
            rows.append(
                (name, f"{p['truth']:.5g}", p["value"], p["stderr"], f"{p['error_percent']:+.2g} %", inside)
            )
    print(table(("parameter", "truth", "found", "std. error", "error", "truth inside 95 %"), rows))
    print(_exponent_words(summary["exponents"]))
    print(summary["verdict"])
    print("\nReport: " + ", ".join(summary["files"]))


def _exponent_words(e: Mapping[str, float]) -> str:
    """Both exponents, and what is to be said where they differ or mix two kinds of motion."""
    if not ("model" in e and "truth" in e):
        return ""
    error = float(np.hypot(e["model_stderr"], e["truth_stderr"]))
    words = (
        f"\nLargest Lyapunov exponent [1/s]: model {e['model']:.3g} ± {e['model_stderr']:.2g}, "
        f"truth {e['truth']:.3g} ± {e['truth_stderr']:.2g}"
    )
    for name in ("model", "truth"):
        if left := e[f"{name}_left_chaos"]:
            words += (
                f"\n  {100 * left:.0f} % of the runs of the {name} left chaos for a regular motion; "
                "chaos does not last for ever in this beam, and their mean is of neither motion."
            )
    if abs(e["model"] - e["truth"]) > _APART * error:
        words += f"\n  They DIFFER by {abs(e['model'] - e['truth']) / error:.1f} standard errors."
    return words


class _Printer:
    """Says what is being done: a line for each stage, rewritten while it runs on a terminal."""

    def __init__(self, quiet: bool) -> None:
        self._out = sys.stderr if quiet else sys.stdout
        self._terminal = self._out.isatty()
        self._text, self._begun, self._told = "", 0.0, 0.0

    def step(self, text: str) -> None:
        self._text, self._begun, self._told = text, time.monotonic(), time.monotonic()
        self._out.write(f"{text} ..." + ("" if self._terminal else "\n"))
        self._out.flush()

    def progress(self) -> Progress:
        return Progress(on_step=self._show)

    def done(self, words: str) -> None:
        said = f"{words} ({time.monotonic() - self._begun:.1f} s)"
        if self._terminal:
            rewrite_line(self._out, f"{self._text}: {said}")
            said = ""
        self._out.write(f"    {said}\n" if said else "\n")
        self._out.flush()

    def _show(self, step: Step) -> None:
        now = time.monotonic()
        if now - self._told < (0.1 if self._terminal else 10.0):
            return
        self._told = now
        line = f"{self._text} ... {100 * step.fraction:.0f} %  {step.message}"
        if self._terminal:
            rewrite_line(self._out, line[:150])
        else:
            self._out.write(f"    {100 * step.fraction:.0f} %  {step.message}\n")
            self._out.flush()
