"""The page of every public name of `analysis`, made when the manual is built (a hook of MkDocs)."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from pathlib import Path
from types import FunctionType, GenericAlias

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PAGE = "reference/names.md"
HEAD = """# Every public name

What `from analysis import ...` gives, from the program's own texts; [the Python interface](python.md) tells
what belongs together. Arrays have variables in rows and samples in columns.
"""
WIDTH = 84  # characters of a code line in the column


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by MkDocs with the files of the site: add the page."""
    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    import analysis

    parts = [HEAD]
    for title, names in groups(Path(analysis.__file__).read_text(encoding="utf-8")):
        parts += [f"## {title[0].upper()}{title[1:]}", ""]
        parts += [_entry(name, getattr(analysis, name)) for name in names]
    return "\n".join(parts)


def groups(source: str) -> list[tuple[str, list[str]]]:
    """The headings in the table of names, each with the names below it."""
    table = source[
        source.index("_NAMES = {") : source.index("}", source.index("_NAMES = {"))
    ]
    found: list[tuple[str, list[str]]] = []
    for line in table.splitlines()[1:]:
        if comment := re.match(r"\s*# (.+)", line):
            found.append((comment[1], []))
            continue
        text = line.split(":", 1)[-1]
        for quoted in re.findall(r'"([^"]*)"', text):
            found[-1][1].extend(quoted.split())
    return found


def _entry(name: str, item: object) -> str:
    lines = [f"### `{name}`", ""]
    if isinstance(item, GenericAlias):
        return "\n".join([*lines, f"    {name} = {item}", ""])
    if not callable(item):
        return "\n".join([*lines, f"`{type(item).__name__}`, a value.", ""])
    lines += [_block(name, item), "", *_prose(item)]
    if inspect.isclass(item):
        lines += _members(item)
    return "\n".join([*lines, ""])


def _block(name: str, item: object) -> str:
    """The signature as code that fits the column."""
    try:
        text = str(inspect.signature(item))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        text = "(...)"
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # annotations are kept as text
    text = re.sub(r"<factory>|<object object at [^>]*>", "...", text)
    return textwrap.fill(
        f"{name}{text}",
        WIDTH,
        initial_indent="    ",
        subsequent_indent=" " * 8,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _prose(item: object) -> list[str]:
    """The docstring; indented parts stay as they are written."""
    text = inspect.getdoc(item) or ""
    if dataclasses.is_dataclass(item) and text.startswith(
        f"{getattr(item, '__name__', '')}("
    ):
        return []  # made by the machine
    paragraphs = re.sub(r"``([^`]+)``", r"`\1`", text).split("\n\n")
    written = [
        p
        if p.startswith(("    ", "- "))
        else (textwrap.indent(p, "    ") if re.search(r"^\s*\S.*  \S", p, re.M) else p)
        for p in paragraphs
    ]
    return [line for p in written for line in (p, "")]


def _members(item: type) -> list[str]:
    """Public methods and properties with the first line of each."""
    rows = []
    for name, member in sorted(vars(item).items()):
        function = member.__func__ if isinstance(member, classmethod) else member
        first = (inspect.getdoc(function) or "").split("\n")[0]
        if name.startswith("_") or not first:
            continue
        if isinstance(function, FunctionType | staticmethod):
            rows.append(f"| `{name}()` | {_cell(first)} |")
        elif isinstance(function, property) or hasattr(function, "attrname"):
            rows.append(f"| `{name}` | {_cell(first)} |")
    return ["| member | |", "| --- | --- |", *rows, ""] if rows else []


def _cell(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", text).replace("|", "\\|")
