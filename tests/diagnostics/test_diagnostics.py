"""Every diagnostic by a file that triggers it.

In a file, `# error: VSP1102 "text"` at the end of a line says that this line has that diagnostic and that its caret
covers that text; `# error at 4: …` says it of another line. All diagnostics of a file must be announced. The rendered
text is kept in a `.snap` beside the file.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.goldens import Golden
from vesper.compiler import compile_file, compile_source
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.render.concise import render_concise
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.vsp"))
_ANNOUNCED = re.compile(r"# (?P<severity>error|warning|note)(?: at (?P<line>[0-9]+))?: (?P<rest>VSP.*)$")
_ONE = re.compile(r'(?P<code>VSP[0-9]{4}) (?P<text>"(?:[^"\\]|\\.)*")')


def announced(text: str) -> list[tuple[int, str, str, str]]:
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        match = _ANNOUNCED.search(line)
        for one in _ONE.finditer(match["rest"]) if match else ():
            assert match is not None
            place = int(match["line"] or number)
            found.append((place, match["severity"], one["code"], str(ast.literal_eval(one["text"]))))
    return sorted(found)


def reported(bag: DiagnosticBag) -> list[tuple[int, str, str, str]]:
    return sorted(
        (
            bag.source.position(each.primary.span.start)[0],
            each.severity.value,
            each.code.number,
            bag.source.slice(each.primary.span),
        )
        for each in bag.sorted(notes=True)
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file(path: Path, golden: Golden) -> None:
    text = path.read_text(encoding="utf-8")
    compiled, bag = compile_source(SourceFile(path.name, text))
    assert reported(bag) == announced(text)
    assert (compiled is None) == bag.has_errors
    shown = "\n\n".join(render_full(bag.source, each) for each in bag.sorted(notes=True))
    golden.check(path.with_suffix(".snap"), shown + "\n")
    numbers = {each.code.number for each in bag.sorted(notes=True)}
    assert path.stem[:7] in numbers, "the file is named after its diagnostic"


def test_every_code_has_a_file() -> None:
    with_file = {path.stem[:7] for path in FILES}
    # A file that cannot be read cannot be a text file of the repository, and one that is too large should not be; see
    # the tests below and those of the limits. One that is no node is not shown: tests/integration/security. Three are
    # about several files: tests/unit/repository has them. Those about called nodes need several files:
    # tests/unit/compiler/test_callees.py has them, and test_libraries.py and test_node_calls.py beside it those about
    # libraries and nodes called within expressions.
    names = (
        Code.UNREADABLE_FILE,
        Code.NOT_A_NODE,
        Code.TOO_LARGE,
        Code.FILE_NAME,
        Code.DUPLICATE_NODE,
        Code.DUPLICATE_ROUTE,
    )
    calls = (Code.UNKNOWN_NODE, Code.DEPENDENCY_CYCLE, Code.VERSION_CONFLICT, Code.BAD_LOCK, Code.WRONG_CALLEE)
    libraries = (Code.UNKNOWN_LIBRARY, Code.WRONG_LIBRARY, Code.IS_A_LIBRARY, Code.NOT_INLINED)
    without_file = {code.number for code in (*names, *calls, *libraries)}
    assert {code.number for code in Code} == with_file | without_file


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"\xff", "byte 0 is not UTF-8"),
        (b"\xef\xbb\xbfnode_id: x_v1", "byte order mark"),
        (b"x" * (1024 * 1024 + 1), "larger than 1 MiB"),
    ],
)
def test_unreadable_files(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "bad.vsp"
    path.write_bytes(data)
    compiled, bag = compile_file(path)
    assert compiled is None
    (diagnostic,) = bag.sorted(notes=True)
    assert diagnostic.code is Code.UNREADABLE_FILE
    assert reason in diagnostic.headline
    assert render_concise(bag.source, diagnostic).endswith(diagnostic.headline)


def test_a_missing_file_is_a_diagnostic(tmp_path: Path) -> None:
    compiled, bag = compile_file(tmp_path / "none.vsp")
    assert compiled is None
    assert bag.sorted(notes=True)[0].code is Code.UNREADABLE_FILE


@pytest.mark.parametrize("opening", ["[", "{", "- ", "a: [", "? "])
def test_hostile_nesting_ends_in_a_diagnostic(opening: str) -> None:
    compiled, bag = compile_source(SourceFile("deep.vsp", opening * 100_000))
    assert compiled is None
    assert bag.has_errors


def test_a_headline_is_one_line_whatever_the_author_wrote() -> None:
    text = 'node_id: "a\\nb\\u202e"\n'
    _, bag = compile_source(SourceFile("odd.vsp", text))
    assert all("\n" not in each.headline and "\u202e" not in each.headline for each in bag.sorted(notes=True))
