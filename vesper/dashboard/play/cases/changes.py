"""Changes of `testing.test_cases` as edits of the text: add a run, rename, remove."""

from __future__ import annotations

import re

from vesper.compiler import Compiled
from vesper.dashboard.problem import Refused
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.yaml.edits import (
    Edit,
    EditRejected,
    apply_edits,
    entry_of,
    is_flow,
    remove_entry,
    remove_item,
    write_scalar,
)
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.lsp.features.knowledge import read_tree
from vesper.replay.to_test import case_text
from vesper.testing.case_insertion import add_case as insert_lines
from vesper.trace.model import Trace, TraceError

MAX_NAME_CHARACTERS = 120
_NOW = re.compile(r" +now: .*")


def add_case(text: str, compiled: Compiled, trace: Trace, name: str) -> str:
    """Return the text with the run as a case: its inputs and answers, and its outcome as the expectation."""
    _check_name(compiled, name)
    try:
        written = case_text(trace, name)
    except TraceError as problem:
        what = str(problem).rpartition("cannot be made a case: ")[2]
        raise Refused(f"this run cannot be kept: {what}", "Keep a run that ends with an outcome.") from None
    lines = written.partition("test_cases:\n")[2].splitlines()
    if compiled.node.type == "function":
        lines = [line for line in lines if not _NOW.fullmatch(line)]  # a function has no clock
    return insert_lines(text, lines)


def remove_case(text: str, name: str) -> str:
    """Return the text without a case. The list is removed with its last case."""
    tree = _root(text)
    testing = entry_of(tree, "testing")
    cases, at, _ = _find(testing, name)
    if len(cases.items) > 1:
        return apply_edits(text, [remove_item(text, cases, at)])
    assert isinstance(testing, Mapping)
    holder, key = (testing, "test_cases") if len(testing.entries) > 1 else (tree, "testing")
    return apply_edits(text, [_removal(text, holder, key)])


def rename_case(text: str, compiled: Compiled, name: str, to: str) -> str:
    """Return the text with another name of a case."""
    _check_name(compiled, to)
    cases, at, scalar = _find(entry_of(_root(text), "testing"), name)
    return apply_edits(text, [(scalar.span, write_scalar(to, is_flow(text, cases.items[at]), scalar.style))])


def _check_name(compiled: Compiled, name: str) -> None:
    if not name.strip() or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise EditRejected(f"a case needs a name of at most {MAX_NAME_CHARACTERS} characters on one line")
    if any(each.name == name for each in compiled.cases):
        raise EditRejected(f"there is a case `{name}` already")


def _root(text: str) -> Mapping:
    tree = read_tree(SourceFile("", text))[1]
    if not isinstance(tree, Mapping):
        raise EditRejected("the text is no YAML: correct what the editor underlines")
    return tree


def _find(testing: Tree | None, name: str) -> tuple[Sequence, int, Scalar]:
    cases = entry_of(testing, "test_cases")
    for at, case in enumerate(cases.items if isinstance(cases, Sequence) else ()):
        found = entry_of(case, "name")
        if isinstance(found, Scalar) and found.text == name:
            assert isinstance(cases, Sequence)
            return cases, at, found
    raise EditRejected(f"the text has no case `{name}` any more")


def _removal(text: str, holder: Mapping, key: str) -> Edit:
    return remove_entry(text, holder, next(n for n, (word, _) in enumerate(holder.entries) if word.text == key))
