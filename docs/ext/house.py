"""Names and ids that find their way: `name` in a docstring, ids of claims anywhere, files of the source."""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from formulas import typeset_row
from sphinx import addnodes
from sphinx.pycode import ModuleAnalyzer
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

import reluflow

_ID = re.compile(r"(?<![\w-])(?:(?:PL|ML|SBG|LL|C)-[A-Z](?:[\w.]*[\w*'])?|E-[LS]\d+)(?![\w-])")


def known_names():
    """Return the full name of everything that has a place in the API pages, by its short name."""
    short = {name: f"reluflow.{name}" for name in reluflow.__all__}
    for part in reluflow._PARTS:
        for name in import_module(f"reluflow.{part}").__all__:
            short.setdefault(name, f"reluflow.{part}.{name}")
    return short


class House(SphinxRole):
    """`name`: a link if the name is in the API pages, `method` of one too; otherwise code."""

    names = known_names()

    def run(self):
        """Make the reference; what is not known stays code."""
        text = self.text.lstrip("~.")
        first, _, rest = text.removeprefix("reluflow.").partition(".")
        code = nodes.literal(text, text, classes=["py"])
        if first not in self.names or " " in text:
            return [code], []
        target = self.names[first] + (f".{rest}" if rest else "")
        found = addnodes.pending_xref("", code, refdomain="py", reftype="obj", reftarget=target, refexplicit=False)
        found["refdoc"], found["refwarn"], found["house"] = self.env.docname, False, True
        return [found], []


class Source(SphinxRole):
    """{source}`reluflow.theory.pl.limit`: the page with the code of a module."""

    def run(self):
        """Make the reference; a module that does not exist is an error."""
        if find_spec(self.text) is None:
            logging.getLogger(__name__).warning("there is no module %s", self.text, location=self.get_location())
        path = self.text.replace(".", "/")
        node = nodes.reference("", "", nodes.literal(self.text, self.text), refuri=f"_modules/{path}.html")
        node["internal"], node["house_source"] = True, True
        return [node], []


class Ids(SphinxPostTransform):
    """Link every id of a claim in running text to its place on the page of its paper."""

    default_priority = 800

    def run(self, **_):
        """Go through the text of a page."""
        from claim_pages import places

        known, here = places(), self.env.docname
        relative = self.app.builder.get_relative_uri
        for node in list(self.document.findall(nodes.reference)):
            if node.get("house_source") and not node["refuri"].startswith(".."):
                node["refuri"] = "../" * here.count("/") + node["refuri"]
        if here.startswith(("auto_gallery/sg_", "auto_gallery/index")):
            return
        for text in list(self.document.findall(nodes.Text)):
            parents = set()
            up = text.parent
            while up is not None:
                parents.add(type(up))
                up = up.parent
            if parents & {nodes.reference, nodes.title, nodes.literal_block, nodes.raw, addnodes.desc_signature}:
                continue
            pieces, at, said = [], 0, text.astext()  # without the marks of escapes that the node itself has
            for found in _ID.finditer(said):
                if found[0] not in known:
                    continue
                page, anchor = known[found[0]]
                pieces += [nodes.Text(said[at : found.start()])]
                uri = f"{relative(here, page)}#{anchor}"
                pieces += [nodes.reference(found[0], found[0], refuri=uri, internal=True, classes=["claim"])]
                at = found.end()
            if pieces:
                text.parent.replace(text, [*pieces, nodes.Text(said[at:])])


class Types(SphinxPostTransform):
    """Link the classes that parameters and results are said to be to their place in the API pages."""

    default_priority = 810

    def run(self, **_):
        """Go through the terms of the lists of parameters and results."""
        here, objects = self.env.docname, self.env.domains["py"].objects
        if here == "architecture":
            self._link_literals(here, objects)
        if not here.startswith("api/"):
            return
        terms = [*self.document.findall(nodes.term), *self.document.findall(nodes.classifier)]
        for text in [text for term in terms for text in term.findall(nodes.Text)]:
            if isinstance(text.parent, nodes.reference):
                continue
            pieces, at = [], 0
            for found in re.finditer(r"\b[A-Z]\w+", text):
                entry = objects.get(House.names.get(found[0], ""))
                if entry is None:
                    continue
                uri = f"{self.app.builder.get_relative_uri(here, entry.docname)}#{entry.node_id}"
                pieces += [nodes.Text(text[at : found.start()])]
                pieces += [nodes.reference(found[0], found[0], refuri=uri, internal=True, classes=["claim"])]
                at = found.end()
            if pieces:
                text.parent.replace(text, [*pieces, nodes.Text(text[at:])])

    def _link_literals(self, here, objects):
        """Link `reluflow.data.load` in the map of the house, where it is written as code."""
        for code in list(self.document.findall(nodes.literal)):
            _, part, name = f"{code.astext()}..".split(".")[:3]
            entry = objects.get(House.names.get(name, ""))
            if entry is None or part not in reluflow._PARTS or code.astext() != f"reluflow.{part}.{name}":
                continue
            uri = f"{self.app.builder.get_relative_uri(here, entry.docname)}#{entry.node_id}"
            code.parent.replace(code, nodes.reference("", "", code.deepcopy(), refuri=uri, internal=True))


def _quiet(app, env, node, contnode):  # noqa: ARG001
    """Leave a name in a docstring that has no place of its own as code; in pages every reference must be found."""
    quiet = node.get("house") or (node.get("reftype") == "obj" and "docstring of" in (node.source or ""))
    return contnode if quiet else None


def _paths(app, docname, source):
    """Turn links to the code into links to the pages with it; the tables are written for readers of the repository."""
    source[0] = re.sub(
        r"\[[^\]]*\]\(\.\./src/([\w/]+)\.py\)", lambda m: f"{{source}}`{m[1].replace('/', '.')}`", source[0]
    )
    source[0] = source[0].replace("](../CONTRIBUTING.md)", "](contributing.md)")
    if docname == "coverage":
        title, _, rest = source[0].partition("\n\n")
        rows = re.sub(r"^\|.*$", lambda row: typeset_row(row[0]), rest, flags=re.MULTILINE)
        source[0] = f"{title}\n\n{_COVERAGE}{rows}"
    if docname in ("benchmarks", "reproduction/REPRODUCTION"):
        source[0] = _written(docname, source[0])
    if docname == "index" and not (Path(app.srcdir) / "benchmarks.md").exists():  # `make bench` writes that page
        source[0] = re.sub(r"^.*benchmarks.*\n", "", source[0], flags=re.MULTILINE)


_COVERAGE = "Every statement of the four papers in one table: what is done about it, and what would refute it.\n\n"
_BENCHMARKS = (
    "What the package costs in time, memory and error, beside the programs that one would use instead. Every target "
    "stands in the [first table](#targets), those that are missed before the others.\n\n"
)


def _written(docname, text):
    """Arrange a page that a program wrote for the repository: what it is first, how to add to it last."""
    if docname == "benchmarks":
        head, _, rest = text.partition("\n## Add a rival\n")
        rival, _, results = rest.partition("\n## ")
        title, _, lead = head.partition("\n\n")
        if results:
            text = f"{title}\n\n{_BENCHMARKS}{lead}\n## {results.rstrip()}\n\n## Add a rival\n{rival}"
    text = re.sub(r"(?<!\\)\|w\|(?=\^2)", r"\|w\|", text)
    if docname.startswith("reproduction"):
        for typed, sign in ((">=", "≥"), ("<=", "≤"), ("+-", "±")):
            text = re.sub(rf"(?<=[\s(]){re.escape(typed)}(?=[\s\d])", sign, text)
    # A number and its unit stay in one line of a cell.
    return re.sub(
        r"^\|.*$",
        lambda row: re.sub(r"(?<=\d) (?=(?:s|min|h|MB)\b)", "\N{NO-BREAK SPACE}", row[0]),
        text,
        flags=re.MULTILINE,
    )


_CELL, _NAME = re.compile(r"<td\b.*?</td>", re.DOTALL), re.compile(r'(?<=<span class="pre">)[^<>\s]+(?=</span>)')
_JOINT = re.compile(r"(?<=\w)([./_]|::)(?=\w)")
_JUDGED = re.compile(r'<table class="([^"]*)">(?=\s*<thead>\s*<tr[^>]*>\s*<th[^>]*><p>claim</p>)')
_PICTURE = re.compile(r'(<a\b[^>]*>\s*)?(<img\b[^>]*\bsrc="([^"]*_images/[^"]+)"[^>]*>)')


def _jointed(text, least):
    """Let names of at least so many letters break between their parts."""
    return _NAME.sub(lambda name: _JOINT.sub(r"\1<wbr>", name[0]) if len(name[0]) >= least else name[0], text)


def _pictures(app, pagename, templatename, context, doctree):  # noqa: ARG001
    """Let a picture be opened by itself: on a telephone most are too small beside each other."""
    if pagename not in ("index", "auto_gallery/index") and "body" in context:
        context["body"] = _PICTURE.sub(
            lambda found: found[0] if found[1] else f'<a class="picture" href="{found[3]}">{found[2]}</a>',
            context["body"],
        )
    if "body" in context:  # long names break where they have joints
        context["body"] = _CELL.sub(lambda cell: _jointed(cell[0], 16), _jointed(context["body"], 40))
    if pagename == "coverage":  # on a telephone six columns stand below each other
        context["body"] = context["body"].replace('<table class="', '<table class="stacked ')
    if pagename.startswith("reproduction/"):  # and so do expectations
        context["body"] = _JUDGED.sub(r'<table class="stacked judged \1">', context["body"])


_BACK = re.compile(r'(<a class="viewcode-back" href="([^"#]*)#)([^"]+)"')


def _back(app, pagename, templatename, context, doctree):  # noqa: ARG001
    """Lead the pages with code back to where a name is described; viewcode knows one name a module only."""
    if not pagename.startswith("_modules/"):
        return
    described = {}
    for name, entry in app.env.domains["py"].objects.items():
        described.setdefault(entry.docname, set()).add(name)
    pages = {app.builder.get_relative_uri(pagename, docname): docname for docname in described}

    def right(found):
        names, ends = described[pages[found[2]]], found[3].split(".")
        if found[3] in names:
            return found[0]
        for k in range(1, len(ends)):
            fitting = [name for name in names if name.endswith("." + ".".join(ends[k:]))]
            if fitting:
                return f'{found[1]}{min(fitting, key=len)}"'
        return found[0]

    context["body"] = _BACK.sub(right, context["body"])


def _all_code(app, env):  # noqa: ARG001
    """Give every module a page with its code, whether or not a name in it is described somewhere."""
    seen, house = env._viewcode_modules, Path(reluflow.__file__).parent
    for file in sorted(house.rglob("[a-z]*.py")):
        name = ".".join(("reluflow", *file.relative_to(house).with_suffix("").parts))
        if not seen.get(name):
            code = ModuleAnalyzer.for_file(str(file), name)
            code.find_tags()
            seen[name] = code.code, code.tags, {}, name


def setup(app):
    """Register roles and hooks."""
    app.add_role("house", House())
    app.add_role("source", Source())
    app.add_post_transform(Ids)
    app.add_post_transform(Types)
    app.connect("missing-reference", _quiet)
    app.connect("source-read", _paths)
    app.connect("html-page-context", _back)
    app.connect("html-page-context", _pictures)
    app.connect("env-updated", _all_code)
    return {"parallel_read_safe": True}
