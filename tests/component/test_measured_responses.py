"""Responses out of universal files into beams: files by pyuff, beam by cubic Hermite elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import pyuff

from analysis import SILENT, DataError
from analysis.estimate.functions.beam import Options, identify, load
from drivers.formats.descriptions import load_description
from drivers.formats.measured_responses import read_responses
from tests.unit.estimate.test_beam_responses import FORCE, HEAD, HZ, exact, hermite, noisy, uniform

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pyuff's files


def written(path: Path, name: str, values: np.ndarray, binary: int, unit: str) -> None:
    """One response appended to the file; its unit as others write it. The force has its own line."""
    data = pyuff.prepare_58(
        binary=binary, func_type=4, rsp_ent_name=name, rsp_node=1, rsp_dir=1, ref_node=0, ref_dir=0,
        data=values, x=HZ, id1=name, id2="NONE", id3="NONE", id4="NONE", id5="NONE", ver_num=0,
        load_case_id=0, ref_ent_name="NONE", abscissa_spacing=1, abscissa_inc=0.4,
        abscissa_min=float(HZ[0]), z_axis_value=0.0, num_pts=len(HZ), ord_data_type=6,
        abscissa_spec_data_type=18, ordinate_spec_data_type=12, orddenom_spec_data_type=13,
        z_axis_spec_data_type=0, ordinate_axis_units_lab=unit, orddenom_axis_units_lab="N",
    )  # fmt: skip
    pyuff.UFF(str(path)).write_sets(data, "add")


def described(folder: Path, *tables: str) -> Path:
    path = folder / "beam.toml"
    path.write_text(HEAD.format(beam="", intervals=0) + "\n".join(tables))
    return path


def table(at: float, more: str) -> str:
    return (
        f'[[responses]]\nfile = "frf.uff"\n{more}\n'
        f'sensor = {{ at = {at}, kind = "acceleration" }}\ndrive = {FORCE}\n'
    )


@pytest.mark.parametrize("binary", [0, 1])
def test_given_two_responses_in_a_file_then_the_stiffness_is_that_of_the_beam(
    tmp_path: Path, binary: int
) -> None:
    beam = hermite(uniform)
    truths = [noisy(exact(beam, at, beam.row(0.6), 2), k) for k, at in enumerate((0.5, 0.95))]
    for name, values in zip(("mid", "tip"), truths, strict=True):
        written(tmp_path / "frf.uff", name, values, binary, "m/s^2")
    back = read_responses(tmp_path / "frf.uff")
    assert [(one.name, one.unit) for one in back] == [("mid", "m/s^2/N"), ("tip", "m/s^2/N")]
    np.testing.assert_allclose(back[1].hz, HZ, rtol=1e-6)
    np.testing.assert_allclose(back[1].values, truths[1], rtol=1e-6)
    path = described(tmp_path, table(0.5, "function = 1"), table(0.95, "function = 2"))
    found = identify(load(*load_description(path, "beams")), [], Options(losses=0), SILENT)
    assert found.verdict == "fits"
    assert found.parameters["EI"].covers(1.0)
    assert found.parameters["EI"].stderr < 0.01


def test_given_another_unit_then_it_is_refused_until_a_scale_is_said(tmp_path: Path) -> None:
    values = exact(hermite(uniform), 0.5, hermite(uniform).row(0.6), 2)
    written(tmp_path / "frf.uff", "mid", values / 9.80665, 0, "g")
    with pytest.raises(DataError, match="is in g/N, and m/s\\^2/N is wanted: say scale"):
        load_description(described(tmp_path, table(0.5, "")), "beams")
    path = described(tmp_path, table(0.5, "scale = 9.80665"))
    (measured,) = load(*load_description(path, "beams")).responses
    np.testing.assert_allclose(measured.values, values, rtol=1e-6)


def test_given_several_responses_and_no_choice_then_they_are_named(tmp_path: Path) -> None:
    for name in ("mid", "tip"):
        written(tmp_path / "frf.uff", name, np.ones(len(HZ)) + 1j, 0, "m/s^2")
    with pytest.raises(DataError, match="holds 1 mid, 2 tip: say which one"):
        load_description(described(tmp_path, table(0.5, "")), "beams")


def test_given_a_file_without_responses_or_one_cut_short_then_a_sentence_says_so(tmp_path: Path) -> None:
    path = tmp_path / "frf.uff"
    path.write_text("    -1\n    151\nnothing\n    -1\n")
    with pytest.raises(DataError, match="holds no frequency response"):
        read_responses(path)
    path.unlink()
    written(path, "mid", np.ones(len(HZ)) + 1j, 0, "m/s^2")
    text = path.read_text().splitlines()
    path.write_text("\n".join(text[:20]) + "\n")
    with pytest.raises(DataError, match="cut short"):
        read_responses(path)
