"""Equations of the manual: TeX in the text, MathML in the built site (a hook of MkDocs).

`$...$` and `$$...$$` are drawn by GitHub; for the site they are turned into MathML when it is built, so that
a page needs neither a script nor the network to show them. GitHub takes the backslash off commands without
letters and refuses `\\operatorname`: hence `\\thinspace` and `\\mathrm` in the text.
"""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

# pymdownx.arithmatex makes <span class="arithmatex">\(...\)</span> of an equation, or a div with \[...\]
MARKED = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL
)

# A function, with its power or base, before what it is taken of: TeX leaves a thin space there, MathML none.
_NAME = r"<mi>(?:cos|ln|log|sin)</mi>"
FUNCTION = re.compile(rf"((?:{_NAME}|<(msu[bp])>{_NAME}.*?</\2>))(?=<m(?!o|row><mo))")

# Browsers know no space by its name.
SPACES = {"thinmathspace": "0.17em", "thickmathspace": "0.28em"}


def mathml(tex: str, display: bool) -> str:
    """One equation as MathML; a command that the converter does not know fails the build."""
    drawn = convert(tex.strip(), display="block" if display else "inline")
    if "\\" in drawn:
        raise PluginError(
            f"An equation holds what cannot be turned into MathML: {tex.strip()}"
        )
    for name, width in SPACES.items():
        drawn = drawn.replace(name, width)
    return FUNCTION.sub(r'\1<mspace width="0.17em" />', drawn)


def on_page_content(content: str, **_: object) -> str:
    """Called by MkDocs with the HTML of each page."""

    def drawn(match: re.Match[str]) -> str:
        kind, tex = match.groups()
        return f'<{kind} class="equation">{mathml(html.unescape(tex), display=kind == "div")}</{kind}>'

    return MARKED.sub(drawn, content)
