"""The version of the code that computes something: a hash of all that is reached from one function.

From the function the names are followed, through imports and re-exports, to the functions, classes and constants of
the package they mean, and on from there. What is hashed is what is written in those definitions, as a stream of words
that is the same in every version of Python and whatever a formatter does. A definition of the package is written as
its number in the order in which it is met, so that it can be renamed, and moved to another module, and modules can be
renamed, without a change. Docstrings, comments, annotations, the texts of errors, how a result is printed and
calls of ``check_time`` compute nothing and are left out.

What is found by name at run time counts too:

- a table that functions fill brings these functions, and all that is decorated with them;
- ``import_module`` brings every module of the folder, and ``globals`` or a module taken as a value all of a module;
- a text that is the name of a data file of the package brings the contents of the file.

This module imports nothing but the standard library: any Python can run it on any copy of the package.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

#: The folder of this package.
SOURCE = Path(__file__).parents[1]

_NOTHING = frozenset({"check_time"})  # statements that are a call of these only end a run, or let it go on
_FILLS = frozenset({"add", "append", "extend", "insert", "register", "setdefault", "update"})
_SKIPPED = frozenset({"ctx", "kind", "returns", "simple", "type_comment", "type_ignores", "type_params"})
_KINDS = frozenset({"ClassVar", "InitVar", "KW_ONLY"})  # annotations of a dataclass that do something
_PRINTED = frozenset({"__repr__", "_repr_html_"})  # how a result looks is not what it is
_NO_DATA = frozenset({".py", ".pyc", ".nbi", ".nbc"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Key = tuple[str, ...]  # the path of a module below the package: () for the package, ("data", "_zoo")


class Definition(NamedTuple):
    """A name that a module binds by itself."""

    module: Key
    name: str


class Whole(NamedTuple):
    """A module of the package, as a value."""

    module: Key


class Outside(NamedTuple):
    """A name from another library, with dots."""

    name: str


Meaning = Definition | Whole | Outside | None  # None: a local or built-in name
Scope = Mapping[str, Meaning]


def code_of(root: Path, module: str, name: str) -> str:
    """Return the hash of all that a function reaches.

    Parameters
    ----------
    root : Path
        The folder of the package.
    module : str
        The module of the function below the package, for example ``"data.zoo"``.
    name : str
        Its name.

    Returns
    -------
    str
        16 hexadecimal digits.

    Examples
    --------
    >>> import reluflow
    >>> len(code_of(Path(reluflow.__file__).parent, "problem.loss", "Loss"))
    16
    """
    met = reached_from(root, module, name)
    numbers = {one: k for k, one in enumerate(met)}
    digest = hashlib.sha256()
    for one in met:
        digest.update(b"=\0")
        for word in package_at(root).words(one):
            text = word if isinstance(word, str) else f"#{numbers[word]}"
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:16]


def version_of(function: Callable[..., Any]) -> str:
    """Return the hash of all that a function of this package reaches, see `code_of`.

    >>> from reluflow import initialize
    >>> version_of(initialize) == code_of(SOURCE, "problem.initialize", "initialize")
    True
    """
    return code_of(SOURCE, function.__module__.partition(".")[2], function.__name__)


def text_of(root: Path) -> str:
    """Return the hash of all files of a package as they are: the same text is surely the same code.

    >>> len(text_of(SOURCE))
    16
    """
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.*")):
        if path.suffix not in _NO_DATA - {".py"} and path.is_file():
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def reached_from(root: Path, module: str, name: str) -> list[Definition]:
    """Return all definitions that a function reaches, itself first, in the order in which they are met."""
    package = package_at(root)
    start = Definition(tuple(module.split(".")) if module else (), name)
    if package.meaning(*start) != start:
        raise KeyError(f"{module} does not define {name}")
    met = {start: None}
    for one in (waiting := [start]):  # which grows meanwhile
        new = [word for word in dict.fromkeys(package.words(one)) if isinstance(word, Definition) and word not in met]
        met |= dict.fromkeys(new)
        waiting += new
    return waiting


# -- what the modules bind ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Module:
    """One file: what its names are bound to."""

    key: Key
    folder: Key
    path: Path
    bound: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, tuple[str | Key, str | None]] = field(default_factory=dict)
    effects: list[ast.stmt] = field(default_factory=list)


@dataclass(slots=True)
class Package:
    """All modules below a folder, who fills which table, and who is decorated with what."""

    name: str
    modules: dict[Key, Module]
    files: dict[str, Path]
    fillers: dict[Definition, set[Definition]] = field(default_factory=dict)
    decorated: dict[Definition, set[Definition]] = field(default_factory=dict)
    written: dict[Definition, tuple[str | Definition, ...]] = field(default_factory=dict)

    def words(self, one: Definition) -> tuple[str | Definition, ...]:
        """Return a definition as words; other definitions of the package stand for themselves."""
        if one not in self.written:
            self.written[one] = tuple(Writer(self, self.modules[one.module]).all_of(one.name))
        return self.written[one]

    def meaning(self, module: Key, name: str) -> Meaning:
        """Follow a name of a module to where it is defined."""
        found = self.modules[module]
        if name in found.bound:
            return Definition(module, name)
        return self.target(*found.imported[name]) if name in found.imported else None

    def target(self, source: str | Key, name: str | None) -> Meaning:
        """Return what ``from source import name`` binds; the source itself without a name."""
        if isinstance(source, str):
            return Outside(source if name is None else f"{source}.{name}")
        if name is None:
            return Whole(source)
        if source in self.modules:
            found = self.meaning(source, name)
            if found is not None:
                return found
        return Whole((*source, name)) if (*source, name) in self.modules else Outside(".".join((*source, name)))


@cache
def package_at(root: Path) -> Package:
    """Read all modules of a package."""
    modules: dict[Key, Module] = {}
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).with_suffix("").parts
        folder = place[:-1]
        key = folder if place[-1] == "__init__" else place
        module = modules[key] = Module(key, folder, path)
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            _bind(module, statement, root.name)
    files = {path.name: path for path in sorted(root.rglob("*.*")) if path.suffix not in _NO_DATA and path.is_file()}
    package = Package(root.name, modules, files)
    for module in modules.values():
        _note_tables(package, module)
    return package


def _bind(module: Module, statement: ast.stmt, package: str) -> None:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        module.imported |= _imports(statement, module.folder, package)
        return
    if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
        for part in statement.body:
            if isinstance(part, (ast.Import, ast.ImportFrom)):
                module.imported = _imports(part, module.folder, package) | module.imported
        return
    if isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test):
        return
    for node in _own_nodes([statement]):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module.imported |= _imports(node, module.folder, package)
    names = _bound([statement])
    for name in names:
        module.bound.setdefault(name, []).append(statement)
    if not names and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
        module.effects.append(statement)


def _imports(
    statement: ast.Import | ast.ImportFrom, folder: Key, package: str
) -> dict[str, tuple[str | Key, str | None]]:
    """Return for each name an import binds where it comes from: a module of the package, or another library."""
    found: dict[str, tuple[str | Key, str | None]] = {}
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            path = alias.name if alias.asname else alias.name.partition(".")[0]
            found[alias.asname or path] = _source(path, package), None
        return found
    path = statement.module or ""
    source: str | Key = _source(path, package)
    if statement.level:
        source = (*folder[: len(folder) - statement.level + 1], *filter(None, path.split(".")))
    return {alias.asname or alias.name: (source, alias.name) for alias in statement.names}


def _source(path: str, package: str) -> str | Key:
    first, *rest = path.split(".")
    return tuple(rest) if first == package else path


def _own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Walk what runs in the scope of these statements: into no function, class, lambda or comprehension."""
    for node in body:
        yield node
        if not isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            yield from _own_nodes(ast.iter_child_nodes(node))


def _bound(body: Iterable[ast.AST]) -> set[str]:
    """Return the names that these statements bind in their own scope, but for imports."""
    found, elsewhere = set[str](), set[str]()
    for node in _own_nodes(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)) or (isinstance(node, ast.ExceptHandler) and node.name):
            found.add(str(node.name))
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere |= set(node.names)
        elif isinstance(node, _COMPREHENSIONS):  # := in it binds outside
            found |= {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
    return found - elsewhere


def _note_tables(package: Package, module: Module) -> None:
    """Note the functions that fill a table of the package, and the decorators of each definition."""
    for name, statements in module.bound.items():
        own = Definition(module.key, name)
        for statement in statements:
            if isinstance(statement, _FUNCTIONS):
                for table in _filled(statement):
                    found = package.meaning(module.key, table)
                    if isinstance(found, Definition):
                        package.fillers.setdefault(found, set()).add(own)
            if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
                for decorator in statement.decorator_list:
                    found = package.meaning(module.key, _first_name(decorator))
                    if isinstance(found, Definition):
                        package.decorated.setdefault(found, set()).add(own)


def _filled(function: ast.stmt) -> Iterator[str]:
    """Yield the names of what a function changes from within: by an index, by a method, or as a global."""
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield _first_name(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
            yield _first_name(node.func.value)
        elif isinstance(node, ast.Global):
            yield from node.names


def _first_name(node: ast.AST) -> str:
    """Return the name that an expression like ``a.b[c](d)`` begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


# -- what is written in them ----------------------------------------------------------------------------------------

Words = Iterator[str | Definition]


@dataclass(slots=True)
class Writer:
    """Writes the definitions of one module as words; a definition of the package stands for itself."""

    package: Package
    module: Module

    def all_of(self, name: str) -> Words:
        """Yield the words of all that defines a name, what is done on import, and who fills it if it is a table."""
        one = Definition(self.module.key, name)
        for statement in self.module.bound[name]:
            yield from self.definition(one, statement)
        if name in self.module.imported:  # and bound anew, or in case the import fails
            yield from self.meant(self.package.target(*self.module.imported[name]))
        yield from self.body(self.module.effects, {})
        # In the order of their names: what is registered sees its own name, and is found by it.
        for filler in sorted(self.package.fillers.get(one, ()), key=lambda d: (d.name, d.module)):
            yield from ("filled by", filler)
            for filled in sorted(self.package.decorated.get(filler, ()), key=lambda d: (d.name, d.module)):
                yield from ("with", filled.name, filled)

    def whole(self, key: Key) -> Words:
        """Yield the words for a module that is taken as a value: all that it defines."""
        yield "module"
        for name in self.package.modules[key].bound:
            yield from (name, Definition(key, name))

    def folder(self) -> Words:
        """Yield the words for all modules of the folder, which may be imported by name."""
        for key in sorted(self.package.modules):
            if key and key[:-1] == self.module.folder:
                yield from self.whole(key)

    def definition(self, one: Definition, statement: ast.stmt) -> Words:
        """Yield the words of a statement that defines a name; the name itself is left out, and names beside it."""
        own: Scope = {}
        if isinstance(statement, _FUNCTIONS):
            yield from self.function(statement, own)
        elif isinstance(statement, ast.ClassDef):
            yield from self.type(statement, own)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                for node in ast.walk(target):
                    if isinstance(node, ast.Name):
                        yield "here" if node.id == one.name else "there"
            if statement.value is not None:
                yield from self.node(statement.value, own)
        else:
            yield from self.node(statement, own)

    def body(self, statements: Iterable[ast.stmt], scope: Scope) -> Words:
        """Yield the words of statements, without those that compute nothing."""
        for statement in statements:
            if isinstance(statement, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass)):
                continue
            if isinstance(statement, ast.Expr):
                if isinstance(statement.value, ast.Constant):
                    continue
                called = statement.value.func if isinstance(statement.value, ast.Call) else None
                meant = self.meaning(called, scope) if called is not None else None
                if isinstance(meant, Definition) and meant.name in _NOTHING:
                    continue
            yield from self.node(statement, scope)

    def node(self, node: ast.AST, scope: Scope) -> Words:
        """Yield the words of anything."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield from self.name(node, scope)
        elif isinstance(node, ast.Constant):
            yield from self.constant(node)
        elif isinstance(node, ast.JoinedStr):
            yield from self.text(node, scope)
        elif isinstance(node, _FUNCTIONS):
            yield f"def {node.name}"
            yield from self.function(node, scope)
        elif isinstance(node, ast.ClassDef):
            yield f"class {node.name}"
            yield from self.type(node, scope)
        elif isinstance(node, ast.Lambda):
            yield "lambda"
            yield from self.arguments(node.args, scope)
            yield from self.node(node.body, self.inner(scope, node.args, []))
        elif isinstance(node, _COMPREHENSIONS):
            targets = _bound([g.target for g in node.generators])
            yield from self.fields(node, {**scope, **dict.fromkeys(targets)})
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from self.fields(ast.Assign([node.target], node.value), scope)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            said = ast.Call(node.exc.func, [a for a in node.exc.args if not _is_text(a)], node.exc.keywords)
            yield from self.fields(ast.Raise(said, node.cause), scope)
        else:
            yield from self.fields(node, scope)

    def fields(self, node: ast.AST, scope: Scope) -> Words:
        """Yield kind and fields of a node; what is empty is left out, as other versions of Python may not have it."""
        yield f"({type(node).__name__}"
        for name in node._fields:
            value = getattr(node, name, None)
            if name in _SKIPPED or value is None or value == []:
                continue
            yield f".{name}"
            if isinstance(value, list) and isinstance(value[0], ast.stmt):
                yield from self.body(value, scope)
            elif isinstance(value, list):
                for part in value:
                    yield from self.node(part, scope) if isinstance(part, ast.AST) else (f"{part!r}",)
            elif isinstance(value, ast.AST):
                yield from self.node(value, scope)
            else:
                yield f"{value!r}"
        yield ")"

    def name(self, node: ast.Name | ast.Attribute, scope: Scope) -> Words:
        """Yield the word for a name, or for names with dots between them."""
        meant = self.meaning(node, scope)
        if meant is not None:
            yield from self.meant(meant)
        elif isinstance(node, ast.Name):
            yield node.id
            if node.id == "globals" and node.id not in scope:
                yield from self.whole(self.module.key)
        else:
            yield from self.node(node.value, scope)
            yield f".{node.attr}"

    def meant(self, meant: Meaning) -> Words:
        """Yield the words for what a name means."""
        if isinstance(meant, Definition):
            yield meant
        elif isinstance(meant, Whole):
            yield from self.whole(meant.module)
        elif isinstance(meant, Outside):
            yield meant.name
            if meant.name == "importlib.import_module":
                yield from self.folder()

    def meaning(self, node: ast.AST, scope: Scope) -> Meaning:
        """Return what a name means, or names with dots between them, or a call of such; None for everything else."""
        if isinstance(node, ast.Call):
            return self.meaning(node.func, scope)
        if isinstance(node, ast.Name):
            return scope[node.id] if node.id in scope else self.package.meaning(self.module.key, node.id)
        if isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Call):
            before = self.meaning(node.value, scope)
            if isinstance(before, Outside):
                return Outside(f"{before.name}.{node.attr}")
            if isinstance(before, Whole):
                return self.package.target(before.module, node.attr)
        return None

    def constant(self, node: ast.Constant) -> Words:
        """Yield a number or a text; for the name of a data file of the package its contents."""
        value = node.value
        if isinstance(value, str) and value in self.package.files:
            contents = self.package.files[value].read_bytes().replace(b"\r\n", b"\n")
            yield f"file {hashlib.sha256(contents).hexdigest()}"
        else:
            yield f"{type(value).__name__} {value!r}"

    def text(self, node: ast.JoinedStr, scope: Scope) -> Words:
        """Yield an f-string; how its plain parts are cut differs between versions of Python."""
        yield "(f"
        plain = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                plain += str(part.value)
                continue
            if plain:
                yield f"str {plain!r}"
                plain = ""
            if isinstance(part, ast.FormattedValue):
                yield f"{{{part.conversion}"
                yield from self.node(part.value, scope)
                if isinstance(part.format_spec, ast.JoinedStr) and part.format_spec.values:
                    yield from self.text(part.format_spec, scope)
                yield "}"
        if plain:
            yield f"str {plain!r}"
        yield ")"

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Words:
        """Yield decorators, arguments and body; annotations only where a decorator of the package may read them."""
        annotated = any(isinstance(self.meaning(one, scope), Definition) for one in node.decorator_list)
        for decorator in node.decorator_list:
            yield "@"
            yield from self.node(decorator, scope)
        yield "async" if isinstance(node, ast.AsyncFunctionDef) else "function"
        yield from self.arguments(node.args, scope, annotated)
        yield from self.body(node.body, self.inner(scope, node.args, node.body))
        yield "end"

    def arguments(self, node: ast.arguments, scope: Scope, annotated: bool = False) -> Words:
        """Yield the names and defaults of arguments."""
        kinds = (
            ("/", node.posonlyargs),
            (",", node.args),
            ("*", [node.vararg] if node.vararg else []),
            ("=", node.kwonlyargs),
            ("**", [node.kwarg] if node.kwarg else []),
        )
        for mark, some in kinds:
            for one in some:
                yield f"{mark}{one.arg}"
                if annotated and one.annotation is not None:
                    yield from self.node(one.annotation, scope)
        for default in (*node.defaults, *node.kw_defaults):
            if default is None:
                yield "none"
            else:
                yield from self.node(default, scope)

    def type(self, node: ast.ClassDef, scope: Scope) -> Words:
        """Yield a class: decorators, bases, fields in their order, methods."""
        for part in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            yield from self.node(part, scope)
        yield " ".join(("type", *(str(keyword.arg) for keyword in node.keywords)))
        inside = {**scope, **dict.fromkeys(_bound(node.body))}
        for statement in node.body:
            if isinstance(statement, _FUNCTIONS) and statement.name in _PRINTED:
                continue
            if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
                yield from self.node(statement, scope)  # the names of a class are not seen in its methods
            elif isinstance(statement, ast.AnnAssign):
                names = {n.id for n in ast.walk(statement.annotation) if isinstance(n, ast.Name)}
                yield " ".join(("field", ast.unparse(statement.target), *sorted(names & _KINDS)))
                if statement.value is not None:
                    yield from self.node(statement.value, inside)
            else:
                yield from self.body([statement], inside)
        yield "end"

    def inner(self, scope: Scope, arguments: ast.arguments, body: list[ast.stmt]) -> Scope:
        """Return the scope of a function: what is around it, its arguments, what it binds and what it imports."""
        names = {a.arg for a in ast.walk(arguments) if isinstance(a, ast.arg)}
        found: dict[str, Meaning] = {**scope, **dict.fromkeys(names | _bound(body))}
        for node in _own_nodes(body):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                bound = _imports(node, self.module.folder, self.package.name)
                found |= {name: self.package.target(*source) for name, source in bound.items()}
        return found


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
