"""Texts in any place of a node never become Python code.

Places are texts, names, expressions, templates, SQL and called nodes. An attempt is either rejected with a diagnostic
(exit code 1 of `vesper check`) or inert: the generated code has the tree of a harmless twin, and running it opens,
compiles, imports and starts nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.integration.security.documents import Document, Put, at, effectful, key_at, pure, shape, yaml_text
from tests.integration.security.watch import CANARY_MODULE, untouched, watched
from vesper.cli.main import vesper
from vesper.codegen.module import generate_module
from vesper.compiler import Compiled, compile_source
from vesper.engines.compare import same_outcome
from vesper.engines.engine import Blocked, Completion
from vesper.engines.outcome import EngineFault, Outcome
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.inputs.responses import NOON

# Injected texts; CANARY becomes the path of a file that must not exist afterwards.
TEXTS = {
    "an import as a call": "__import__('os').system('touch CANARY')",
    "the end of a docstring": '"""\nimport os\nos.system("touch CANARY")\n"""',
    "single quotes, three of them": "''';open('CANARY','w');'''",
    "a backslash at the end": '"+str(open("CANARY","w"))+"\\',
    "the end of a string and of a call": '");__import__("os").system("touch CANARY");("',
    "the end of a list and a comment": "']); import this #",
    "escapes of Python": "\\N{QUOTATION MARK}\\x22\\042\\u0022 + open('CANARY', 'w')",
    "a line end": "plain\nimport this\n",
    "a carriage return": "plain\rimport this\r",
    "a line separator": "plain\u2028import this\u2029import this",
    "a form feed and a next line": "plain\x0cimport this\x85import this\x1c\x1d\x1eimport this",
    "a null": "plain\x00import this",
    "a hole with a call": "{__import__('os').system('touch CANARY')}",
    "a hole with a format": "{0.__class__.__mro__} {a.__class__} {a!r:>9}",
    "a hole that ends an f-string": "}{open('CANARY', 'w')",
    "a percent format": "%(a)s %s %d %n $(touch CANARY) `touch CANARY`",
    "another encoding": "coding: utf-7 +AAo-import this+AAo-",
    "a change of direction": "plain\u202e\u2066import this",
}

FEW = ("an import as a call", "the end of a docstring", "the end of a string and of a call", "a line separator",
       "a null", "a hole with a call", "another encoding")  # fmt: skip

PURE: dict[str, Put] = {
    "intent": at("intent"),
    "author": at("metadata", "author"),
    "tag": at("metadata", "tags", 0),
    "name of a case": at("testing", "test_cases", 0, "name"),
    "input of a case": at("testing", "test_cases", 0, "inputs", "a"),
    "default": at("inputs", "b", "default"),
    "constant": at("constants", "greeting", "value"),
    "key of a map": key_at("constants", "words", "value"),
    "key of a json": key_at("constants", "tree", "value"),
    "text in single quotes": at("flow", 2, "value", around="a + '{}'"),
    "text in double quotes": at("flow", 3, "value", around='a + "{}"'),
    "text of a template": at("flow", 1, "template", around="{} {a}"),
    "text of a message": at("flow", 0, "require", 0, "error", "message"),
    "pattern": at("flow", 4, "value", around="matches(a, '{}')"),
    "member of an enum": at("outputs", "success", "kind", around="enum['plain', other, '{}']"),
    "clause": at("contracts", "preconditions", 0, around="a != '{}'"),
}
EFFECTFUL: dict[str, Put] = {
    "SQL": at("flow", 0, "query", around="SELECT name FROM people WHERE kind = '{}' AND name = :name"),
    "key of a cache": at("flow", 1, "key", around="'{}' + a"),
    "payload of an event": at("flow", 2, "payload", "text"),
    "endpoint": at("flow", 3, "endpoint", around="/{}"),
    "header": at("flow", 3, "headers", "x-note"),
    "body": at("flow", 3, "body", "note"),
    "path of a file": at("flow", 4, "path"),
    "content of a file": at("flow", 4, "content", around="'{}'"),
}


@cache
def _twin_shapes(place: str) -> tuple[str, str]:
    """Return the trees of the node with a harmless text; a template has one part, as in the attempt."""
    make, put = (pure, PURE[place]) if place in PURE else (effectful, EFFECTFUL[place])
    document = make()
    put(document, "harmless")
    node, _ = _compiled(document)
    assert node is not None, place
    return _shapes(node)


def _shapes(node: Compiled) -> tuple[str, str]:
    return shape(generate_module(node.node).text), shape(generate_module(node.node, traced=True).text)


def _compiled(document: Document, path: str = "small_v1.vsp") -> tuple[Compiled | None, list[str]]:
    source = SourceFile(path, yaml_text(document))
    node, bag = compile_source(source)
    return node, [render_full(bag.source, each) for each in bag.sorted()]


def _refused(document: Document, found: list[str], folder: Path) -> None:
    """Assert a diagnostic and exit code 1."""
    assert found, "refused without a word"
    path = folder / "small_v1.vsp"
    path.write_text(yaml_text(document), encoding="utf-8")
    done = CliRunner().invoke(vesper, ["check", "--no-cache", str(path)])
    assert done.exit_code == 1, done.output


def _ends(node: Compiled, canary: Path, given: dict[str, object]) -> list[Outcome]:
    """Return the watched outcome on every engine; every request fails."""
    outcomes: list[Outcome] = []
    for engine in ENGINES.values():
        program = engine.load(node)
        execution = program.start(given, NOON)  # creates the traced form, which is compiled
        with watched(canary):
            step = execution.advance(())
            while isinstance(step, Blocked):
                step = execution.advance((Completion(step.requests[0].id, failure="unavailable"),))
        assert not isinstance(step.outcome, EngineFault), step.outcome
        outcomes.append(step.outcome)
    return outcomes


def _inert(node: Compiled, canary: Path, given: dict[str, object]) -> None:
    first, *others = _ends(node, canary, given)
    assert all(same_outcome(first, other) for other in others), (first, others)


def _attempt(make: Callable[[], Document], put: Put, text: str, twin: tuple[str, str], folder: Path) -> None:
    canary = folder / "canary"
    hostile = text.replace("CANARY", str(canary))
    document = make()
    put(document, hostile)
    node, found = _compiled(document)
    if node is None:
        _refused(document, found, folder)
    else:
        assert _shapes(node) == twin
        _inert(node, canary, {"a": hostile.replace("\u202e", "")})
    untouched(canary)


@pytest.mark.parametrize("make", [pure, effectful])
def test_the_documents_are_accepted_as_they_are(make: Callable[[], Document]) -> None:
    """Otherwise the attempts would be rejected for other reasons."""
    node, found = _compiled(make())
    assert node is not None, found


@pytest.mark.parametrize(
    "place, what",
    [
        *((place, what) for at, place in enumerate(PURE) for what in list(TEXTS)[at % 2 :: 2]),
        *((place, what) for place in EFFECTFUL for what in FEW),
    ],
)
def test_a_text_stays_a_text(place: str, what: str, tmp_path: Path) -> None:
    make, put = (pure, PURE[place]) if place in PURE else (effectful, EFFECTFUL[place])
    _attempt(make, put, TEXTS[what], _twin_shapes(place), tmp_path)


# -- names ----------------------------------------------------------------------------------------------------------

NAMES = {
    "a dunder": "__class__",
    "an import": "__import__",
    "the builtins": "__builtins__",
    "a statement after it": "a_; import this",
    "a line after it": "a_\nimport this",
    "an attribute": "os.system",
    "a call": "exec('import this')",
    "a default": "a_=open('CANARY')",
    "an annotation": "a_: __import__('this')",
    "a comment": "a_ #",
    "letters that Python makes others of": "ｅval",
    "a ligature": "ﬁle",
    "a keyword": "class",
    "a soft keyword": "match",
    "None": "None",
    "exec": "exec",
    "eval": "eval",
    "open": "open",
    "globals": "globals",
    "what generated code is called by": "checked",
    "what the traced form calls": "mark",
    "its own function": "small_v1",
}
NAMED: dict[str, Put] = {
    "node": at("node_id", around="{}_v1"),
    "input": key_at("inputs"),
    "output": key_at("outputs", "success"),
    "constant": key_at("constants"),
    "function": key_at("functions"),
    "parameter": key_at("functions", "twice", "params"),
    "type": key_at("types"),
    "field": key_at("types", "Line", "fields"),
    "step": at("flow", 2, "step"),
    "error": at("outputs", "error", "error_code", around="enum[too_long, {}]"),
    "member": at("outputs", "success", "kind", around="enum['plain', other, {}]"),
    "input of a case": key_at("testing", "test_cases", 0, "inputs"),
    "type expression": at("inputs", "b", "type", around="optional<{}>"),
}


@pytest.mark.parametrize("what", NAMES)
@pytest.mark.parametrize("place", NAMED)
def test_a_name_is_an_identifier_or_refused(place: str, what: str, tmp_path: Path) -> None:
    """Most names break the node anyway; an accepted one is a variable and nothing more."""
    canary = tmp_path / "canary"
    document = pure()
    NAMED[place](document, NAMES[what].replace("CANARY", str(canary)))
    node, found = _compiled(document)
    if node is None:
        _refused(document, found, tmp_path)
    else:
        _inert(node, canary, {"a": "x"})
    untouched(canary)


BUILTINS = ("exec", "eval", "open", "globals", "getattr", "breakpoint", "print", "type", "object", "super", "vars")


def test_names_of_builtins_are_variables(tmp_path: Path) -> None:
    document: Document = {
        "node_id": "small_v1", "type": "function", "intent": "Add",
        "inputs": dict.fromkeys(BUILTINS, "integer"),
        "outputs": {"success": {"compile": "integer"}},
        "flow": [
            {"step": "input_", "operation": "compute", "value": " + ".join(BUILTINS)},
            {"operation": "return", "success": {"compile": "input_"}},
        ],
    }  # fmt: skip
    node, found = _compiled(document)
    assert node is not None, found
    for outcome in _ends(node, tmp_path / "canary", dict.fromkeys(BUILTINS, 1)):
        assert outcome.value == {"compile": len(BUILTINS)}  # type: ignore[union-attr]


# -- expressions ----------------------------------------------------------------------------------------------------

EXPRESSIONS = {
    "eval": "eval('1')",
    "exec": "exec('import this')",
    "open": "open('CANARY', 'w')",
    "an import": "__import__('os')",
    "getattr": "getattr(a, '__class__')",
    "a class": "a.__class__",
    "the class of an input": "input.__class__",
    "the class of a literal": "''.__class__.__mro__",
    "the globals of a function": "twice.__globals__",
    "a kernel by its own name": "vesper.kernels.runtime.flow.request",
    "an internal name": "text_length(a)",
    "a lambda": "(lambda: open('CANARY', 'w'))()",
    "a walrus": "(b_ := a)",
    "an f-string": "f'{a.__class__}'",
    "a bytes literal": "b'x'",
    "a raw string": "r'\\x'",
    "a format method": "'{0.__class__}'.format(a)",
    "a percent operator": "'%s' % a",
    "a Python comprehension": "[x for x in a]",
    "a Python conditional": "a if true else a",
    "a star": "twice(*a)",
    "a keyword argument": "twice(s=a)",
    "a slice": "a[0:1:2]",
    "a decorator": "@exact_decimals",
    "a semicolon": "a; import this",
    "a comment": "a # import this",
    "a triple quote": "'''a'''",
    "a string over lines": "'a\nimport this'",
    "a backtick": "`touch CANARY`",
    "a shell": "$(touch CANARY)",
    "a matrix product": "a @ a",
    "a power": "a ** 99999999",
    "the type of a cast": "CAST(tree AS __import__)",
    "a private field": "({label: a}).__init__",
}


@pytest.mark.parametrize("what", EXPRESSIONS)
def test_an_expression_of_python_is_refused(what: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    document = pure()
    at("flow", 2, "value")(document, EXPRESSIONS[what].replace("CANARY", str(canary)))
    node, found = _compiled(document)
    assert node is None
    _refused(document, found, tmp_path)
    untouched(canary)


HOLES = (
    "0",
    "0.__class__",
    "a.__class__",
    "a!r",
    "a:>10",
    "a[__class__]",
    "a.format",
    "",
    "a}{a.__class__",
    "eval('1')",
)


@pytest.mark.parametrize("hole", HOLES)
def test_a_hole_holds_an_expression_of_the_language(hole: str, tmp_path: Path) -> None:
    document = pure()
    at("flow", 1, "template")(document, f"x {{{hole}}}")
    node, found = _compiled(document)
    if hole == "0":  # the number, not the first argument of a format
        assert node is not None, found
        _inert(node, tmp_path / "canary", {"a": "x"})
    else:
        assert node is None
        _refused(document, found, tmp_path)


# -- SQL, called nodes, capabilities, files -------------------------------------------------------------------------

SQL = {
    "two statements": "SELECT name FROM people; DROP TABLE people",
    "a parameter that is not bound": "SELECT name FROM people WHERE name = :name AND kind = :__class__",
    "a table by parameter": "SELECT name FROM :name",
    "a program": "COPY people FROM PROGRAM 'touch CANARY'",
    "an attached file": "ATTACH DATABASE 'CANARY' AS x",
    "a pragma": "PRAGMA writable_schema = 1",
    "a write in a query": "DELETE FROM people WHERE name = :name",
    "a table that no capability names": "SELECT name FROM secrets WHERE name = :name",
    "a write inside": "WITH x AS (DELETE FROM people RETURNING name) SELECT name FROM x WHERE name = :name",
}


@pytest.mark.parametrize("what", SQL)
def test_sql_is_one_statement_with_bound_parameters(what: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    document = effectful()
    at("flow", 0, "query")(document, SQL[what].replace("CANARY", str(canary)))
    node, found = _compiled(document)
    assert node is None, "accepted"
    _refused(document, found, tmp_path)
    untouched(canary)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM people WHERE name = '{a}' AND name = :name",
        "SELECT name FROM people WHERE name = '%(a)s %s ${a}' AND name = :name",
        "SELECT name FROM people WHERE name = ':a' AND name = :name",
    ],
)
def test_sql_goes_out_as_it_stands(sql: str, tmp_path: Path) -> None:
    """Placeholders of other drivers stay text: values are passed beside SQL, never inserted."""
    document = effectful()
    at("flow", 0, "query")(document, sql)
    node, found = _compiled(document)
    assert node is not None, found
    hostile = "'; DROP TABLE people; --"
    for engine in ENGINES.values():
        execution = engine.load(node).start({"a": hostile}, NOON)
        with watched(tmp_path / "canary"):
            step = execution.advance(())
        assert isinstance(step, Blocked)
        assert step.requests[0].fixed["sql"] == sql
        assert hostile in str(step.requests[0].arguments)


CALLEES = ("os", "../../etc/passwd", "..evil_v1", "vesper.kernels.runtime.flow", "evil_v1; import this", "/evil_v1",
"*", "",
           "evil_v1\nimport this", "evil_v1.vsp", "__init__", "evil_v1 as os", "file:///evil_v1", "..\\x")  # fmt: skip


@pytest.mark.parametrize("callee", CALLEES)
def test_a_called_node_is_an_id_and_no_path(callee: str, tmp_path: Path) -> None:
    outside = tmp_path / "evil_v1.vsp"
    document = pure()
    outside.write_text(yaml_text(document | {"node_id": "evil_v1"}), encoding="utf-8")
    folder = tmp_path / "nodes" / "deep"
    folder.mkdir(parents=True)
    (folder / "good_v1.vsp").write_text(yaml_text(document | {"node_id": "good_v1"}), encoding="utf-8")
    call = {"step": "called", "operation": "call_node", "node": "good_v1", "inputs": ["a"]}
    document["flow"].insert(0, call)
    node, found = _compiled(document, str(folder / "small_v1.vsp"))
    assert node is not None, found  # the node exists, so that later names are rejected for their own sake
    call["node"] = callee
    node, found = _compiled(document, str(folder / "small_v1.vsp"))
    assert node is None
    _refused(document, found, folder)


CAPABILITIES = ("os.system.rm", "*", "*.*.*", "exec.shell_command.*", "database.read.people; import this", "__import__",
                "filesystem.write.../../etc", "database.read.people\nimport this", "{a}", "")  # fmt: skip


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_a_capability_grants_nothing_but_itself(capability: str, tmp_path: Path) -> None:
    document = effectful()
    document["security"]["capabilities_required"][0] = capability
    node, found = _compiled(document)
    assert node is None
    _refused(document, found, tmp_path)


CONFIGURED = ("../secrets", "a/b", "a b", "a\nb", "{a}", "__class__", "", "A", "a;b", "os.system('x')")


@pytest.mark.parametrize("name", CONFIGURED)
@pytest.mark.parametrize("place", [(3, "provider"), (2, "topic"), (4, "root"), (1, "cache")], ids=lambda p: p[1])
def test_a_configured_name_is_a_name(place: tuple[int, str], name: str, tmp_path: Path) -> None:
    document = effectful()
    document["flow"][place[0]][place[1]] = name
    node, found = _compiled(document)
    assert node is None
    _refused(document, found, tmp_path)


FILES = ("small_v1\nimport this\n.vsp", "small\r_v1.vsp", "a\u2028import this.vsp", "'''.vsp", "\\.vsp",
         "x coding=utf-7 .vsp", "x coding: utf_7.vsp", "# -*- coding: rot13 -*-.vsp", "\x0cimport this.vsp",
         "x vim: set fileencoding=utf_7 :.vsp")  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=ascii)
def test_the_name_of_a_file_is_a_comment(path: str, tmp_path: Path) -> None:
    """Also in a generated file, where Python searches the first two lines for an encoding."""
    document = pure() | {"intent": "Say +AAo-import this+AAo- something"}
    node, found = _compiled(document, path)
    assert node is not None, found
    text = generate_module(node.node).text
    twin, _ = _compiled(document)
    assert twin is not None
    assert shape(text) == _shapes(twin)[0]
    # Bytes are decoded as in a file, so that an injected encoding would change the result.
    assert shape(text.encode()) == shape(text)
    _inert(node, tmp_path / "canary", {"a": "x"})


def test_the_watch_sees_what_it_is_for(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for payload in (
        f"open({str(canary)!r}, 'w').close()",
        "__import__('os').system('true')",
        "compile('1', '', 'eval')",
    ):
        code = compile(payload, "payload", "eval")
        with pytest.raises(AssertionError), watched(canary):
            eval(code)
    with pytest.raises(AssertionError):
        untouched(canary)
    assert CANARY_MODULE == "this"
