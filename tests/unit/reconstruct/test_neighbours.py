"""The neighbour search against all pairs."""

import numpy as np
import pytest

from analysis.reconstruct.embedding import delay_coordinates
from analysis.reconstruct.neighbours import build_tree, nearest, nearest_of, pair_counts
from tests.chaotic import lorenz


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    return delay_coordinates(lorenz(1500)[0], 4, 10)


@pytest.fixture(scope="module")
def squares(points: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum((points[:, :, None] - points[:, None, :]) ** 2, axis=0))


@pytest.mark.parametrize("theiler", [0, 40])
def test_given_points_then_the_nearest_are_those_of_all_pairs(
    points: np.ndarray, squares: np.ndarray, theiler: int
) -> None:
    index = np.arange(points.shape[1])
    allowed = np.where(np.abs(index[:, None] - index) > theiler, squares, np.inf)
    places, distances = nearest(build_tree(points), 5, theiler)
    assert distances == pytest.approx(np.sqrt(np.sort(allowed, axis=1)[:, :5]))
    assert np.array_equal(places[:, 0], np.argmin(allowed, axis=1))


def test_given_only_some_usable_points_then_no_other_is_found(
    points: np.ndarray, squares: np.ndarray
) -> None:
    places, _ = nearest(build_tree(points), 1, 20, usable=700)
    index = np.arange(700)
    allowed = np.where(np.abs(index[:, None] - index) > 20, squares[:700, :700], np.inf)
    assert np.array_equal(places[:, 0], np.argmin(allowed, axis=1))


def test_given_radii_then_pairs_are_counted_exactly(points: np.ndarray, squares: np.ndarray) -> None:
    radii = np.geomspace(0.3, 12, 25)
    index = np.arange(points.shape[1])
    apart = (index[None, :] - index[:, None]) > 15
    truth = [int(np.sum(apart & (squares <= r * r))) for r in radii]
    counts, total = pair_counts(build_tree(points), radii, 15)
    assert counts.tolist() == truth
    assert total == int(np.sum(apart))


def test_given_fewer_reference_points_then_the_fractions_stay(points: np.ndarray) -> None:
    radii = np.array([2.0, 4.0, 8.0])
    all_counts, all_pairs = pair_counts(build_tree(points), radii, 15)
    some_counts, some_pairs = pair_counts(build_tree(points), radii, 15, every=4)
    assert some_counts / some_pairs == pytest.approx(all_counts / all_pairs, rel=0.1)


def test_given_every_third_point_then_its_neighbour_is_the_nearest(
    points: np.ndarray, squares: np.ndarray
) -> None:
    rows, places, distances = nearest_of(build_tree(points), 30, 3)
    assert len(rows) == pytest.approx(points.shape[1] / 3, abs=1)
    assert distances == pytest.approx(np.sqrt(squares[rows, places]))


def test_given_equal_points_then_the_tree_still_works() -> None:
    tree = build_tree(np.zeros((3, 200)))
    _, distances = nearest(tree, 1, 5)
    assert np.all(distances == 0)
