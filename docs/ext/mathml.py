"""Formulas as MathML, which browsers draw themselves: no script, no network, and a screen reader can read them."""

import re

from docutils.nodes import SkipNode
from docutils.utils.math import latex2mathml
from sphinx.errors import ExtensionError

_BAR = '<mo stretchy="false">|</mo>'
_NAMED = re.compile(r"<mo>&ApplyFunction;</mo>(?=\s*<m(?!o\b|row\b))")


def _mathml(node, inline):
    code = node.astext().strip().replace(r"\dots", r"\ldots")
    if not inline and r"\\" in code and r"\begin" not in code:
        code = rf"\begin{{aligned}}{code}\end{{aligned}}"
    try:
        # Without a space the name of a function and a letter after it read as one word; bars stand close to what they
        # enclose, whether they open or close.
        found = _NAMED.sub('<mspace width="0.17em"/>', latex2mathml.tex2mathml(code, as_block=not inline))
        return found.replace(_BAR, _BAR.replace("<mo ", '<mo lspace="0" rspace="0" '))
    except Exception as error:
        raise ExtensionError(f"this formula cannot be written as MathML: {node.astext()!r}: {error}") from error


def inline(self, node):
    """Write a formula in a line."""
    self.body.append(_mathml(node, True))


def block(self, node):
    """Write a formula on its own lines, in a box that scrolls where the screen is narrow."""
    self.body.append(f'<div class="math-block">{_mathml(node, False)}</div>')


def setup(app):
    """Register it as the way to write formulas."""

    def visit(write):
        def visited(self, node):
            write(self, node)
            raise SkipNode

        return visited, lambda *_: None

    app.add_html_math_renderer("mathml", visit(inline), visit(block))
    app.connect("config-inited", lambda _, config: setattr(config, "html_math_renderer", "mathml"))
    return {"parallel_read_safe": True}
