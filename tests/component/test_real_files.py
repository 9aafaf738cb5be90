"""Files measured by others, read with the right rate, units and values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.base.errors import DataError
from drivers.formats import open_lazily, read

DATA = Path(__file__).parents[1] / "data"
SHARED = Path(__file__).parents[2].parent / "shared" / "data"
whole_files = pytest.mark.skipif(not SHARED.exists(), reason="the whole files are not here")


def test_given_the_silverbox_table_then_both_voltages_are_read() -> None:
    record = read(DATA / "silverbox_excerpt.csv", rate=1e7 / 2**14)
    assert record.names == ("V1", "V2")  # a comma ends each line: no third column
    assert len(record) == 200
    assert record["V1"][:2].tolist() == [0.0057756, 0.0066102]
    assert record["V2"][1] == 0.012971
    with pytest.raises(DataError, match="--rate"):
        read(DATA / "silverbox_excerpt.csv")


def test_given_a_thinned_labview_file_then_its_times_count_and_not_its_header() -> None:
    record = read(DATA / "cantilever_excerpt.lvm")
    assert record.rate == 800.0  # Delta_X still says 51200 Hz
    assert record.names == ("Voltage", "Force", "Acceleratio")
    assert [c.unit for c in record.channels.values()] == ["Volts", "Pounds", "g"]
    assert record["Force"][:2].tolist() == [-3.399325, -3.228965]
    assert record.metadata["Operator"] == "Puja"


def test_given_spectra_then_they_are_refused_as_such() -> None:
    with pytest.raises(DataError, match="spectrum"):
        read(DATA / "cantilever_spectrum_excerpt.lvm")
    with pytest.raises(DataError, match="power spectral density"):
        read(DATA / "power_spectral_density_excerpt.uff")


def test_given_universal_files_then_text_and_binary_agree() -> None:
    text = read(DATA / "microphone_excerpt_ascii.uff")
    binary = read(DATA / "microphone_excerpt_binary.uff")
    for record in (text, binary):
        assert record.rate == 65536.0
        assert record.names == ("Mic 01",)
        assert record.channels["Mic 01"].unit == "Pa"
        assert len(record) == 600
    assert text["Mic 01"][0] == -1.47553e-2
    np.testing.assert_allclose(binary["Mic 01"], text["Mic 01"], rtol=1e-5)


def test_given_matlab_cells_then_the_commonest_length_is_read_and_the_rest_is_named() -> None:
    record = read(DATA / "pendulum_excerpt.mat")
    assert record.rate == 1000.0  # from dt
    assert "Y_id{2}_1" in record
    assert record["Y_id{1}_1"][0] == pytest.approx(1.52316373, abs=1e-8)
    assert record.metadata["left out"] == [
        "Time_vad{1} (49 samples)",
        "Y_vad{1}_1 (49 samples)",
        "Y_vad{1}_2 (49 samples)",
    ]


@whole_files
@pytest.mark.parametrize(
    ("name", "rate", "samples", "names", "unit"),
    [
        ("tdms/raw1.tdms", 50_000.0, 2000, 7, "Volts"),
        ("tdms/big_endian.tdms", 1000.0, 3500, 2, ""),
        ("tdms/raw_timestamps.tdms", 1000.0, 128, 1, ""),
        ("tdms/Digital_Input.tdms", 2000.0, 20_000, 1, ""),
        ("emps/nlid_emps_sim_data_training.mat", 1000.0, 24_841, 12, ""),
        ("pendulum/SinglePendulumDataForParameterEstimation.mat", 1000.0, 9167, 15, ""),
        ("cantilever/data_set_1_downsampled_by_64.lvm", 800.0, 15_761, 3, "Volts"),
        ("uff58/Sample_UFF58_ascii.uff", 65536.0, 79_292, 1, "Pa"),
        ("uff58/Sample_UFF58b_bin.uff", 65536.0, 79_292, 1, "Pa"),
    ],
)
def test_given_a_whole_file_then_rate_length_channels_and_unit_are_right(
    name: str, rate: float, samples: int, names: int, unit: str
) -> None:
    with open_lazily(SHARED / name) as recording:
        assert recording.rate == rate
        assert len(recording) == samples
        assert len(recording.names) == names
        assert recording.about.channels[0].unit == unit
        assert all(np.isfinite(recording.values(n, 0, samples)).all() for n in recording.names)


@whole_files
def test_given_raw_counts_with_scaling_in_tdms_then_volts_are_read() -> None:
    record = read(SHARED / "tdms" / "raw1.tdms")
    assert record["First  Channel"][0] == pytest.approx(-603 * 0.0003051850947599719)
    assert record.start == "2016-12-15T22:35:21.000000+00:00"


@whole_files
def test_given_matlab_files_then_our_reader_agrees_with_scipy() -> None:
    from scipy.io import loadmat

    for name in ("emps/nlid_emps_sim_data_training.mat", "silverbox/Schroeder80mV.mat"):
        record = read(SHARED / name, rate=1000.0)
        content = loadmat(SHARED / name, variable_names=list(record.names))
        for channel in record.names:
            assert np.array_equal(record[channel], content[channel].ravel())
