"""Every text that a diagnostic proposes works: applied to its file, it removes the diagnostic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from vesper.compiler.pipeline import compile_source
from vesper.language.diagnostics.diagnostic import Diagnostic
from vesper.language.diagnostics.explanations import EXPLANATIONS
from vesper.language.diagnostics.fix import apply_edits
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.repairs import with_fix

HERE = Path(__file__).parent
_MEANT = re.compile(r"did you mean `([^`]*)`(?: or `([^`]*)`)?\?")
_AS_TEXT = re.compile(r"write `text\((.*)\)`")
_ADDED = re.compile(r"add `- ([^`]*)`")


def _files() -> Iterator[SourceFile]:
    for path in sorted([*HERE.glob("*.vsp"), *(HERE.parent / "bad_input").glob("*.vsp")]):
        try:
            yield SourceFile(path.stem, path.read_bytes().decode("utf-8"))
        except UnicodeDecodeError:
            continue  # not text: no diagnostic of it proposes a text
    for number, explanation in EXPLANATIONS.items():
        if explanation.bad is not None:
            yield SourceFile(f"explain_{number}", explanation.bad.lstrip("\n"))


def _diagnostics(source: SourceFile) -> list[Diagnostic]:
    return compile_source(source)[1].sorted()


def _proposals(source: SourceFile, diagnostic: Diagnostic) -> Iterator[tuple[str, str]]:
    """Yield each text that a diagnostic proposes, and the file with it."""
    span, text = diagnostic.primary.span, source.text
    written = source.slice(span).strip("'\"")
    help_ = diagnostic.help or ""
    if (meant := _MEANT.fullmatch(help_)) is not None:
        for name in filter(None, meant.groups()):
            start = text.index(written, span.start)
            yield name, text[:start] + name + text[start + len(written) :]
    if (joined := _AS_TEXT.search(help_)) is not None:
        line_start = text.rindex("\n", 0, span.start)
        start = text.index(joined[1], line_start)
        yield joined[1], text[:start] + f"text({joined[1]})" + text[start + len(joined[1]) :]
    if (fix := with_fix(source, diagnostic).fix) is not None:
        yield fix.description, apply_edits(text, fix.edits)


_CASES = [
    pytest.param(source, diagnostic, proposal, repaired, id=f"{source.path}:{diagnostic.code.number}:{proposal}")
    for source in _files()
    for diagnostic in _diagnostics(source)
    for proposal, repaired in _proposals(source, diagnostic)
]


def test_there_are_proposals() -> None:
    assert len(_CASES) > 50


@pytest.mark.parametrize("source, diagnostic, proposal, repaired", _CASES)
def test_proposal_removes_its_diagnostic(
    source: SourceFile, diagnostic: Diagnostic, proposal: str, repaired: str
) -> None:
    assert repaired != source.text, f"`{proposal}` is what was written"
    line = source.position(diagnostic.primary.span.start)[0]
    again = SourceFile(source.path, repaired)
    left = [(each.code, each.headline, again.position(each.primary.span.start)[0]) for each in _diagnostics(again)]
    assert (diagnostic.code, diagnostic.headline, line) not in left


def test_added_capability_is_not_in_the_list() -> None:
    found = [(source, _ADDED.search(each.help or "")) for source in _files() for each in _diagnostics(source)]
    added = [(source.text, match[1]) for source, match in found if match is not None]
    assert len(added) >= 2
    for text, capability in added:
        assert not re.search(rf"^ *- {re.escape(capability)} *$", text, re.MULTILINE)
