"""After the build: every link inside the site leads to a page, a place on it, or a file."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The places of a page, and where it points."""

    def __init__(self, text):
        super().__init__()
        self.places, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Note ids, links, and everything that is loaded."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src") and value is not None:
                self.links.append((tag, value))


def _pages(root):
    return [file for file in sorted(Path(root).rglob("*.html")) if "_static" not in file.parts]


def broken(root):
    """Return the links of the site below a folder that lead nowhere, and what it would load from elsewhere."""
    pages = {file.resolve(): _Page(file.read_text(encoding="utf-8")) for file in _pages(root)}
    wrong = []
    for file, page in pages.items():
        for tag, link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if tag in ("script", "link", "img", "iframe") and parts.scheme != "data":
                    wrong.append(f"{file.relative_to(Path(root).resolve())}: loads {link} from elsewhere")
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                wrong.append(f"{file.relative_to(Path(root).resolve())}: {link} is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                wrong.append(f"{file.relative_to(Path(root).resolve())}: {link} has no such place")
    return sorted(set(wrong))


def _check(app, exception):
    if exception is None and app.builder.name == "html":
        wrong = broken(app.outdir)
        if wrong:
            from sphinx.errors import ExtensionError

            shown = "\n".join(wrong[:50])
            raise ExtensionError(f"{len(wrong)} broken links in the site:\n{shown}")


def setup(app):
    """Look at the pages when all are written."""
    app.connect("build-finished", _check, priority=900)
    return {"parallel_read_safe": True}
