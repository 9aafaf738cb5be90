"""Anything at all as a model file: it is read, or refused with one sentence, quickly, and nothing is run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analysis.base.errors import ModelError
from analysis.model import Model
from analysis.model.code import source
from analysis.model.grammar import ExpressionError, parse
from drivers.library import load_model, model_files

LIBRARY = sorted(path.read_text(encoding="utf-8") for path in model_files().values())
SECONDS = 5.0


def read(text: str) -> Model | None:
    start = time.thread_time()
    try:
        model = Model.from_toml(text, "fuzz.toml")
        source(model.equations)
    except ModelError as error:
        assert "\n" not in str(error)
        model = None
    assert time.thread_time() - start < SECONDS
    return model


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=400))
@example("__import__('os').system('x')")
@example("x\u2028y")
def test_given_any_text_when_parsed_as_expression_then_parsed_or_refused(text: str) -> None:
    try:
        parse(text)
    except ExpressionError as error:
        assert 0 <= error.offset <= len(text)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="xt0123456789.e+-*/^()<>=!, minaxwherotd", max_size=60))
def test_given_plausible_text_when_parsed_as_expression_then_parsed_or_refused(text: str) -> None:
    read(f"[states]\nx = '{text}'")


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300))
def test_given_any_text_when_read_as_model_then_read_or_refused(text: str) -> None:
    read(text)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_given_mutated_library_model_when_read_then_read_or_refused(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(LIBRARY))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 30)))
        new = data.draw(
            st.one_of(
                st.text(max_size=5),
                st.sampled_from(
                    ["(", ")", '"', "[", "{", "=", "\n", "nan", "inf", "-", "**", "1e999", "solve"]
                ),
            )
        )
        text = text[:start] + new + text[end:]
    model = read(text)
    if model is not None:
        assert Model.from_toml(model.to_toml(), "again.toml").to_toml() == model.to_toml()


@pytest.mark.parametrize("name", model_files())
def test_given_truncated_library_model_when_read_then_read_or_refused(name: str) -> None:
    text = model_files()[name].read_text(encoding="utf-8")
    for quarter in (0.25, 0.5, 0.75):
        read(text[: int(quarter * len(text))])


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=200))
def test_given_any_bytes_when_loaded_then_read_or_refused(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_bytes(content)
    try:
        load_model(path)
    except ModelError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    "text",
    [
        # each doubles: 2**60 terms if it were expanded
        "[states]\nx = 'd0'\n[definitions]\n"
        + "\n".join(f"d{i} = 'd{i + 1}*d{i + 1} + d{i + 1}'" for i in range(60))
        + "\nd60 = 'x'",
        "[states]\nx = '" + "sin(" * 50 + "x" + ")" * 50 + "'",
        "[states]\nx = 'x**1e300 + x**-999999999 + (x+1)**64 + 2**x**x**x**x'",
        "[states]\nx = '" + "*".join(["(x+a)"] * 1500) + "'\n[parameters]\na = 1",
        # many states in which each depends on all, with many parameters: the derivatives are refused
        "[states]\n"
        + "\n".join(
            f"x{i} = '(" + "+".join(f"x{j}*p{j}" for j in range(100)) + f")**2*p{i}'" for i in range(100)
        )
        + "\n[parameters]\n"
        + "\n".join(f"p{i} = 1" for i in range(100)),
    ],
    ids=["doubling", "nested", "exponents", "long product", "dense"],
)
def test_given_explosive_model_when_read_then_done_or_refused_in_time(text: str) -> None:
    read(text)


def test_given_code_in_a_model_when_loaded_then_never_run(tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    attacks = [
        f"__import__('os').system('touch {trap}')",
        f"open('{trap}','w')",
        "().__class__.__base__.__subclasses__()",
        "x\n__import__",
        "exec(x)",
        "math.sin(x)",
        "x0",
        "v3",
        "p[0]",
    ]
    for attack in attacks:
        quoted = attack.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for table in ("states", "definitions", "inputs", "outputs"):
            with pytest.raises(ModelError):
                Model.from_toml(
                    f'[states]\ny = "y"\n[{table}]\nx = "{quoted}"'.replace(
                        '[states]\ny = "y"\n[states]', "[states]"
                    )
                )
        with pytest.raises(ModelError):
            Model.from_toml(f'[states]\n"{quoted}" = "1 +"')
    assert not trap.exists()
