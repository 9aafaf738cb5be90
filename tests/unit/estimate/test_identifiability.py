"""Undetermined combinations, named in words."""

import numpy as np
import pytest

from analysis.base.identification import Estimate, Identification
from analysis.estimate.identifiability import confusion_words, covariance_of, undetermined_words


def information(jacobian):
    J = np.asarray(jacobian, dtype=float)
    return J.T @ J


def test_given_a_regular_problem_when_inverted_then_covariance_is_the_inverse_and_nothing_is_said():
    rng = np.random.default_rng(0)
    J = rng.standard_normal((50, 3)) * [1e-4, 1.0, 1e5]
    assert covariance_of(J.T @ J) == pytest.approx(np.linalg.inv(J.T @ J), rel=1e-6)
    assert undetermined_words(J.T @ J, np.array([1e6, 1.0, 1.0]), ["a", "b", "c"]) == []


@pytest.mark.parametrize(
    ("columns", "values", "words"),
    [
        (lambda r: [3 * r, 2 * r], [2.0, 3.0], "alpha and A only appear as a product."),
        (lambda r: [3 * r, -2 * r], [2.0, 3.0], "alpha and A only appear as a ratio."),
        (lambda r: [r, r], [2.0, 3.0], "alpha and A: only alpha + A is determined."),
        (lambda r: [r, 0 * r], [2.0, 3.0], "A has no visible effect on the data."),
    ],
)
def test_given_a_dependence_when_named_then_the_sentence_says_which(columns, values, words):
    rng = np.random.default_rng(1)
    r, other = rng.standard_normal((2, 80))
    J = np.stack([*columns(r), other], axis=1)
    names = ["alpha", "A", "c"]
    assert undetermined_words(information(J), np.array([*values, 1.0]), names) == [words]
    covariance = covariance_of(information(J))
    assert np.isinf(covariance[1, 1])
    assert covariance[2, 2] == pytest.approx(1 / (other @ other - (other @ r) ** 2 / (r @ r)), rel=1e-6)


def test_given_three_that_scale_together_when_named_then_the_sentence_has_the_powers():
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, 80))
    values = np.array([2.0, 3.0, 0.5])
    null = values * [1.0, -1.0, 0.5]  # a s, b / s, c sqrt(s)
    J = np.stack([a, b, -(a * null[0] + b * null[1]) / null[2]], axis=1)
    assert undetermined_words(information(J), values, ["a", "b", "c"]) == [
        "a, b and c cannot be told apart: multiplying a by s, b by s^-1 and c by s^0.5, whatever s is, "
        "changes nothing that the sensors see."
    ]


def test_given_a_parameter_lost_in_noise_when_named_then_it_is_called_hardly_determined():
    J = np.diag([100.0, 0.1])
    assert undetermined_words(information(J), np.array([1.0, 1.0]), ["a", "b"]) == [
        "b is hardly determined: standard error 10 times its value."
    ]
    # an estimate of zero is no failure: its error is held against its guess, where that says anything
    for guess, said in ((20.0, False), (2.0, True), (0.0, False)):
        words = undetermined_words(information(J), np.array([1.0, 0.1]), ["a", "b"], np.array([1.0, guess]))
        assert bool(words) == said


def test_given_correlated_parameters_when_asked_then_the_words_say_with_which_and_what_knowing_it_gives():
    r = -0.98
    covariance = [[4.0, 2.0 * r, 0.0, 0.0], [2.0 * r, 1.0, 0.0, 0.0], [0, 0, 1.0, 0], [0, 0, 0, np.inf]]
    values = {name: Estimate(1.0) for name in ("k1", "k3", "c", "k")}
    result = Identification("path", "m", True, values, covariance=covariance, undetermined=["k and q: no."])
    (words,) = confusion_words(result, "k1")
    gain = 1 / np.sqrt(1 - r**2)
    assert words == (
        "A larger k1 with a smaller k3 fits nearly as well (correlation \u22120.980): with k3 known "
        f"the error bar of k1 would be {gain:.2g} times smaller."
    )
    assert confusion_words(result, "c") == [
        "Confused with no other: the strongest correlation is 0.00, with k1."
    ]
    assert confusion_words(result, "k") == ["k and q: no."]  # and not k1's
    assert "no error bar" in confusion_words(Identification("path", "m", True, values), "c")[0]
