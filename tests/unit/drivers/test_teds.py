"""The memory of a sensor, bit by bit as IEEE 1451.4 lays it out: when it was calibrated."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from drivers.instruments.teds import SensorData, with_calibration

# An accelerometer of 100 mV per m/s², from the table of template 25: value and number of bits.
FIELDS = {
    "maker": (17, 14), "model": (4507, 15), "letter": (2, 5), "version": (5, 6), "serial": (30001, 24),
    "standard template": (0, 2), "template": (25, 8), "force": (0, 1), "several sensitivities": (0, 1),
    "sensitivity": (40694, 16),  # 5e-7 V per m/s² times 1.0003 to this power
    "corner": (67, 8), "direction": (0, 2), "mass": (21, 6), "sign": (0, 1), "dynamics": (0, 1),
    "reference Hz": (178, 8), "reference °C": (16, 5),
    "day": (9076, 16),  # after 1 January 1998
    "initials": (0b00001_00001_00001, 15), "valid": (365, 12), "place": (0, 11), "end": (0, 3),
}  # fmt: skip
DYNAMICS = {"low corner": (5, 7), "resonance": (9, 9), "quality": (3, 9), "slope": (1, 7), "by °C": (2, 6)}
TOLD = SensorData("iepe", "m/s²", 0.1, 17, 4507, 30001)
TODAY = date(2026, 11, 18)


def memory(**others: tuple[int, int]) -> bytes:
    """The bytes; with dynamics their fields follow the bit that announces them."""
    fields: dict[str, tuple[int, int]] = {}
    for name, value in {**FIELDS, **others}.items():
        fields[name] = value
        if name == "dynamics" and value[0]:
            fields |= DYNAMICS
    bits = "".join(f"{value:0{length}b}"[::-1] for value, length in fields.values())
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8))


@pytest.mark.parametrize("dynamics", [0, 1])
def test_given_the_memory_of_an_accelerometer_then_the_day_of_its_calibration_is_read(dynamics: int) -> None:
    found = with_calibration(TOLD, memory(dynamics=(dynamics, 1)), TODAY)
    assert found == replace(TOLD, calibrated=date(2022, 11, 7), valid_days=365)
    assert found.words.endswith("100 mV per m/s², calibrated on 2022-11-07")


@pytest.mark.parametrize(
    "other",
    [
        {"serial": (30002, 24)},  # of another sensor than the driver speaks of
        {"sensitivity": (40800, 16)},  # 3 % off: not laid out as we read it
        {"template": (27, 8)},
        {"force": (1, 1)},
        {"several sensitivities": (1, 1)},
        {"day": (0, 16)},
        {"day": (0xFFFF, 16)},
        {"day": (10549, 16)},  # tomorrow
    ],
)
def test_given_a_memory_that_is_laid_out_otherwise_or_never_written_then_no_day_is_taken(
    other: dict[str, tuple[int, int]],
) -> None:
    assert with_calibration(TOLD, memory(**other), TODAY) == TOLD


def test_given_a_memory_that_is_cut_off_then_no_day_is_taken() -> None:
    assert with_calibration(TOLD, memory()[:16], TODAY) == TOLD
    assert with_calibration(TOLD, b"", TODAY) == TOLD
