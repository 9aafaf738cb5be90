"""Every file format: the same signals come back, piece by piece as well as whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import pyuff
from nptdms import ChannelObject, TdmsFile, TdmsWriter
from scipy.io import loadmat, savemat, wavfile

from analysis.base.errors import DataError
from analysis.base.record import Channel, Excitation, Record
from drivers.formats import FORMATS, format_of, open_lazily, read, write

RATE = 48_000.0
SUFFIXES = [(form.name, suffix) for form in FORMATS if form.writable for suffix in form.suffixes]
EXACT = {suffix for _, suffix in SUFFIXES} - {".ufa"}


@pytest.fixture
def record(rng: np.random.Generator) -> Record:
    return Record(
        RATE,
        {
            "x": Channel(rng.standard_normal(1003), "mm"),
            "base acc.": Channel(1e-7 * rng.standard_normal(1003), "m/s^2"),
            "f": Channel(np.round(100 * rng.standard_normal(1003)), ""),
        },
        start="2026-05-01T12:00:00.250000+00:00",
    )


@pytest.mark.parametrize("form", FORMATS, ids=lambda f: f.name)
def test_given_a_format_then_it_has_all_that_a_format_needs(form: object) -> None:
    module = form.module  # type: ignore[attr-defined]
    assert module.__doc__
    assert callable(module.open_file)
    assert callable(module.write_file) == form.writable  # type: ignore[attr-defined]
    assert all(s.startswith(".") and s == s.lower() for s in form.suffixes)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "suffix"), [s for s in SUFFIXES if s[1] != ".journal"])
def test_given_a_record_when_written_and_read_then_the_signals_are_the_same(
    tmp_path: Path, record: Record, name: str, suffix: str
) -> None:
    path = tmp_path / f"out{suffix}"
    write(record, path)
    assert format_of(path).name in (name, "hdf5")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    back = read(path)
    assert back.rate == RATE
    assert back.names == record.names
    for channel, original in record.channels.items():
        assert back.channels[channel].unit == original.unit
        if suffix in EXACT:
            assert back[channel].tobytes() == original.data.tobytes()
        else:
            np.testing.assert_allclose(back[channel], original.data, rtol=1e-12)
    with open_lazily(path) as recording:
        part = recording.slice(100, 217)
        assert np.array_equal(part["f"], back["f"][100:217])
        low, high = recording.envelope("x", 3, 1003, 10)
        assert np.array_equal(low, back["x"][3:].reshape(10, 100).min(axis=1))
        assert np.array_equal(high, back["x"][3:].reshape(10, 100).max(axis=1))


@pytest.mark.parametrize("suffix", [".csv", ".h5", ".mat", ".tdms", ".uff", ".lvm"])
@pytest.mark.parametrize("rate", [610.3515625, 1000 / 3, 0.1, 1e6])
def test_given_an_odd_rate_then_it_survives(tmp_path: Path, suffix: str, rate: float) -> None:
    write(Record.from_arrays(rate, {"x": np.arange(5000.0)}), tmp_path / f"a{suffix}")
    assert read(tmp_path / f"a{suffix}").rate == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize("suffix", [".h5", ".mat", ".tdms", ".uff", ".wav"])
def test_given_one_sample_then_it_survives(tmp_path: Path, suffix: str) -> None:
    write(Record.from_arrays(10.0, {"x": [1.5], "y": [np.nan]}), tmp_path / f"a{suffix}")
    back = read(tmp_path / f"a{suffix}", rate=10.0)
    assert back["x"][0] == 1.5
    assert np.isnan(back["y"][0])


def test_given_other_programs_readers_then_they_see_the_same(tmp_path: Path, record: Record) -> None:
    for suffix in (".h5", ".mat", ".wav", ".uff", ".ufa", ".tdms"):
        write(record, tmp_path / f"a{suffix}")
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["channels/x"][()], record["x"])
        assert file["channels/x"].attrs["unit"] == "mm"
    mat = loadmat(tmp_path / "a.mat")
    assert np.array_equal(mat["base_acc_"][:, 0], record["base acc."])
    rate, samples = wavfile.read(tmp_path / "a.wav")
    assert rate == RATE
    assert np.array_equal(samples[:, 0], record["x"])
    for suffix in (".uff", ".ufa"):
        sets = pyuff.UFF(str(tmp_path / f"a{suffix}")).read_sets()
        np.testing.assert_allclose(sets[0]["data"], record["x"], rtol=1e-12)
        assert sets[0]["abscissa_inc"] == pytest.approx(1 / RATE, rel=1e-5)
        assert sets[1]["ordinate_axis_units_lab"].strip() == "m/s^2"
    tdms = TdmsFile.read(tmp_path / "a.tdms")["Recording"]["x"]
    assert np.array_equal(tdms[:], record["x"])
    assert tdms.properties["unit_string"] == "mm"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pyuff leaves files open
@pytest.mark.parametrize("binary", [0, 1])
def test_given_universal_files_of_another_writer_then_all_time_signals_are_read(
    tmp_path: Path, rng: np.random.Generator, binary: int
) -> None:
    path = tmp_path / "b.uff"
    arrays = rng.standard_normal((3, 500))
    for i, kind in enumerate((1, 4, 1)):  # the one in the middle is a frequency response
        data = pyuff.prepare_58(
            binary=binary, func_type=kind, rsp_ent_name=f"s{i}", rsp_node=i, rsp_dir=1, ref_node=0, ref_dir=0,
            data=arrays[i] + (1j if kind == 4 else 0), x=np.arange(500) * 0.002, id1=f"s{i}", id2="NONE",
            id3="NONE", id4="NONE", id5="NONE", ver_num=0, load_case_id=0, ref_ent_name="NONE",
            abscissa_spacing=1, abscissa_inc=0.002, abscissa_min=0.0, z_axis_value=0.0, num_pts=500,
            ord_data_type=4 if kind == 1 else 6, abscissa_spec_data_type=17, ordinate_spec_data_type=12,
            orddenom_spec_data_type=0, z_axis_spec_data_type=0, ordinate_axis_units_lab="g",
        )  # fmt: skip
        pyuff.UFF(str(path)).write_sets(data, "add")
    back = read(path)
    assert back.names == ("s0", "s2")
    assert back.rate == 500.0
    assert back.channels["s0"].unit == "g"
    np.testing.assert_allclose(back["s2"], arrays[2], rtol=1e-6)


@pytest.mark.parametrize("coding", ["u1", "<i2", "i3", "<i4", "<f4", "<f8"])
def test_given_wav_of_any_coding_then_full_scale_is_one(tmp_path: Path, coding: str) -> None:
    path = tmp_path / "a.wav"
    levels = np.array([-1.0, -0.5, 0.0, 0.5])
    if coding == "u1":
        wavfile.write(path, 8000, np.array([0, 64, 128, 192], np.uint8))
    elif coding == "i3":
        import wave

        with wave.open(str(path), "wb") as file:
            file.setparams((1, 3, 8000, 4, "NONE", ""))
            values = [int(v * 2**23) for v in levels]
            file.writeframes(b"".join(v.to_bytes(3, "little", signed=True) for v in values))
    else:
        top = 2.0 ** (8 * np.dtype(coding).itemsize - 1) if coding[1] == "i" else 1.0
        wavfile.write(path, 8000, (levels * top).astype(coding))
    back = read(path)
    assert back.rate == 8000.0
    assert np.array_equal(back["c1"], levels)


def test_given_matlab_7_3_then_vectors_matrices_and_cells_are_found(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["x"] = np.arange(100.0).reshape(1, 100)  # MATLAB stores a column vector as one row
        file["Y"] = np.arange(200.0).reshape(2, 100)
        file["fs"] = np.array([[250.0]])
        file["word"] = np.array([[104], [105]], np.uint16)
        file["word"].attrs["MATLAB_class"] = np.bytes_("char")
        file["#refs#/a"] = np.arange(100.0) * 2
        references = file.create_dataset("c", (1, 1), dtype=h5py.ref_dtype)
        references[0, 0] = file["#refs#/a"].ref
        file["out"] = h5py.ExternalLink("/etc/passwd", "/")
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(128))
    back = read(path)
    assert back.rate == 250.0
    assert set(back.names) == {"x", "Y_1", "Y_2", "c{1}"}
    assert np.array_equal(back["Y_2"], np.arange(100.0, 200.0))
    assert np.array_equal(back["c{1}"], np.arange(100.0) * 2)


def test_given_matlab_5_with_structs_and_cells_then_signals_and_rate_are_found(tmp_path: Path) -> None:
    cell = np.empty((1, 2), dtype=object)
    cell[0, 0], cell[0, 1] = np.arange(50.0), np.arange(49.0)
    savemat(
        tmp_path / "a.mat",
        {
            "run": {"x": np.arange(50.0), "t": np.arange(50) / 200},
            "cell": cell, "note": "hi", "units": ["mm", "mm/s"], "gain": 3.0,
        },
    )  # fmt: skip
    back = read(tmp_path / "a.mat")
    assert back.rate == 200.0
    assert set(back.names) == {"run.x", "cell{1}"}
    assert back.metadata["gain"] == 3.0
    assert back.metadata["note"] == "hi" and back.metadata["units"] == "mm, mm/s"  # a table of characters
    assert back.metadata["left out"] == ["cell{2} (49 samples)"]


def test_given_other_peoples_hdf5_then_attributes_give_rate_and_units(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        data = file.create_dataset("run1/acc", data=np.arange(30, dtype=">i2"))
        data.attrs["units"] = "m/s^2"
        file.attrs["sample_rate"] = 128.0
    back = read(tmp_path / "a.hdf5")
    assert (back.rate, back.names) == (128.0, ("run1.acc",))
    assert back.channels["run1.acc"].unit == "m/s^2"
    assert np.array_equal(back["run1.acc"], np.arange(30.0))


def test_given_tdms_with_several_groups_then_the_longest_is_read_and_names_stay_short(tmp_path: Path) -> None:
    with TdmsWriter(tmp_path / "a.tdms") as writer:
        fast = {"wf_increment": 1e-3}
        writer.write_segment(
            [
                ChannelObject("all", "x", np.arange(100, dtype=np.int16), fast),
                ChannelObject("all", "y", np.arange(100, dtype=np.float32), fast),
                ChannelObject("thin", "x", np.arange(10.0), {"wf_increment": 1e-2}),
            ]
        )
    with open_lazily(tmp_path / "a.tdms") as recording:
        assert recording.names == ("x", "y")
        assert recording.rate == 1000.0
        assert recording.raw(0, 0, 5).dtype == np.int16
        assert recording.about.metadata["left out"] == ["thin/x (10 samples)"]


def test_given_a_name_without_a_format_then_the_message_lists_the_endings(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"\.tdms"):
        write(Record.from_arrays(1.0, {"x": [1.0]}), tmp_path / "a.docx")


def test_given_a_rate_that_wav_cannot_hold_then_nothing_is_left_behind(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="whole sample rates"):
        write(Record.from_arrays(0.5, {"x": [1.0]}), tmp_path / "a.wav")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".h5", ".mat", ".tdms"])
def test_given_a_drive_when_written_and_read_then_its_phase_and_time_are_the_same(
    tmp_path: Path, record: Record, suffix: str
) -> None:
    for i, drive in enumerate([None, Excitation(7.5), Excitation(7.5, 1.25, 0.7 + 1e-13, "sweep", 0.01)]):
        for drive_time in (None, 12.5 + 1e-13):
            known = replace(record, excitation=drive, drive_time=drive_time)
            path = tmp_path / f"{i}{drive_time is None}{suffix}"
            write(known, path)
            back = read(path)
            assert (back.excitation, back.drive_time) == (drive, drive_time)
            assert not any("drive" in name for name in back.metadata)


def test_given_a_measurement_file_in_the_western_code_page_then_its_words_are_read(tmp_path: Path) -> None:
    head = "LabVIEW Measurement\t\nSeparator\tTab\nDecimal_Separator\t,\nX_Columns\tOne\nOperator\tMüller\n"
    body = "Y_Unit_Label\tµm\n***End_of_Header***\t\nX_Value\tHöhe\tComment\n0,0\t1,5\n0,1\t2,5\n0,2\t3,5\n"
    path = tmp_path / "a.lvm"
    path.write_bytes(f"{head}***End_of_Header***\t\nChannels\t1\n{body}".encode("cp1252"))
    record = read(path)
    assert record.metadata["Operator"] == "Müller"
    assert {n: c.unit for n, c in record.channels.items()} == {"Höhe": "µm"}
    assert record["Höhe"].tolist() == [1.5, 2.5, 3.5]
