"""Tables 2 and 3: the van der Pol-Duffing oscillators (section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from analysis import Progress, Record, identify
from app.reproduce import Figure, Table
from app.reproduce.manikantan2020.common import (
    BESIDE,
    at_bound,
    by_strategy,
    clean_record,
    effort,
    with_noise,
)
from app.reproduce.rows import Row, value
from drivers.library import load_model

WELLS = {"single_well": 20.0, "double_well": 20.0, "double_hump": 2.5}  # seconds
GENERATIONS = 40
TABLE_2 = {  # iterations, evaluations, J
    ("single_well", "PD"): (30, 165, 1.8e-14),
    ("single_well", "GA"): (152, 7650, 8.1e-8),
    ("single_well", "PSO"): (135, 4080, 2.7e-12),
    ("double_well", "PD"): (33, 291, 2.1e-12),
    ("double_well", "GA"): (201, 10_100, 3.8e-8),
    ("double_well", "PSO"): (165, 4980, 7.0e-10),
    ("double_hump", "PD"): (28, 383, 1.5e-10),
    ("double_hump", "GA"): (300, 15_050, 0.84),
    ("double_hump", "PSO"): (140, 4230, 0.014),
}
TABLE_3 = {
    1: (0.5009, 0.4994, 0.1000, -0.5008, 0.5001, 0.0999, 1.5024, -0.5025, 0.0999),
    2: (0.5007, 0.5005, 0.0998, -0.5034, 0.4999, 0.0994, 1.4990, -0.4999, 0.0985),
    5: (0.5004, 0.4974, 0.1005, -0.5066, 0.5009, 0.0976, 1.4923, -0.4898, 0.1040),
}


def model_name(case: str) -> str:
    return f"van_der_pol_duffing_{case}"


def well_record(case: str) -> Record:
    """x of one of the three oscillators, sampled at 100 Hz."""
    return clean_record(model_name(case), WELLS[case], 100.0, "x")


def table_2(progress: Progress) -> Table:
    """Counts of evaluations from the upper bounds."""
    rows: list[Row] = []
    figures = []
    for done, case in enumerate(WELLS):
        progress.report(done / 3, case.replace("_", " "))
        record, start = well_record(case), at_bound(model_name(case), "upper")
        ours = identify(start, record, "homotopy", finish=False)  # the method by itself, as the others
        curves: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
        curves["ours"] = ([r["evaluation"] for r in ours.history], [r["cost"] for r in ours.history])
        for strategy in ("PD", "GA", "PSO"):
            progress.report((done + 0.3) / 3, f"{case.replace('_', ' ')}, {strategy}")
            found = by_strategy(strategy, start, record, 10.0, GENERATIONS)
            words = f"{case.replace('_', ' ')}, {strategy}"
            rows += effort(words, TABLE_2[case, strategy], found, ours, record)
            if found.history:
                curves[strategy] = (
                    [row["evaluation"] for row in found.history],
                    [row["cost"] for row in found.history],
                )
        title = f"Cost from the upper bounds, {case.replace('_', ' ')}"
        figures.append(Figure(title, "evaluations", "cost", curves, log_x=True, log_y=True))
    return Table(
        "manikantan2020-2",
        "Table 2: van der Pol-Duffing oscillators from the upper bounds, x measured at 100 Hz",
        rows,
        notes=(
            BESIDE,
            f"Our GA and PSO were stopped after {GENERATIONS} generations of 30, which the printed ones were "
            "not.",
            "The costs in the figures are scaled differently: J for plain, chi-square for ours.",
        ),
        figures=figures,
    )


def table_3(progress: Progress) -> Table:
    """Estimates from noisy measurements."""
    rows: list[Row] = []
    for done, (percent, printed) in enumerate(TABLE_3.items()):
        values = iter(printed)
        for case in WELLS:
            progress.report(done / 3, f"{percent} %, {case}")
            model = load_model(model_name(case))
            noisy, start = with_noise(well_record(case), percent), at_bound(model_name(case), "upper")
            plain, ours = identify(start, noisy, "homotopy", plain=True), identify(start, noisy, "homotopy")
            for name in model.free:
                found = ours.parameters[name]
                rows.append(
                    value(
                        f"{case.replace('_', ' ')}, {percent} %",
                        name,
                        model.parameters[name].value,
                        next(values),
                        plain.values()[name],
                        found.value,
                        found.stderr,
                        rounding=1e-4,
                    )
                )
    return Table(
        "manikantan2020-3",
        "Table 3: van der Pol-Duffing oscillators with noise",
        rows,
        notes=(
            "One draw of the noise, in print and here: whose error is smaller is chance, the standard error "
            "is not. Noise is proportional to the signal, eq. (9).",
            "The 2.5 s of the double hump carry little, which the standard errors say. Its printed values "
            "are some ten times nearer to the truth than that; a denser record than 100 Hz would explain it.",
        ),
    )
