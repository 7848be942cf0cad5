"""The pages of docs/spec and the declarations name the same functions and codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vesper.values.generated.errors import ErrorCode
from vesper.values.generated.operations import OPERATIONS

PAGES = sorted((Path(__file__).parents[2] / "docs" / "spec").glob("*.md"))
BLOCK = re.compile(r"^```vesper-example\n(.*?)^```", re.DOTALL | re.MULTILINE)
EXAMPLES = [
    (page.stem, line)
    for page in PAGES
    for block in BLOCK.findall(page.read_text(encoding="utf-8"))
    for line in block.splitlines()
]
FUNCTIONS = {spec.function for spec in OPERATIONS.values() if spec.function}
FORMS = {"SUM", "COUNT", "MIN", "MAX", "AVG", "CAST"}


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 200


@pytest.mark.parametrize("page,line", EXAMPLES)
def test_an_example_has_the_form_that_types_md_gives(page: str, line: str) -> None:
    expression, divider, result = line.rpartition(" => ")
    assert divider, f"{page}.md: {line}"
    assert expression
    if result.startswith("fails "):
        ErrorCode(result.removeprefix("fails "))
    called = set(re.findall(r"\b([A-Za-z_]\w*)\(", re.sub(r"'[^']*'", "''", line)))
    assert called <= FUNCTIONS | FORMS, f"{page}.md: no such function"


def test_errors_md_lists_every_code() -> None:
    page = next(page for page in PAGES if page.stem == "errors").read_text(encoding="utf-8")
    operations, _, effects = page.partition("| code of an effect")
    listed = [re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) for part in (operations, effects)]
    assert listed == [["bad_input", *sorted(listed[0][1:])], sorted(listed[1])]
    assert {*listed[0], *listed[1]} == set(ErrorCode)


def test_every_function_is_on_a_page() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert {name for name in FUNCTIONS if not re.search(rf"\b{name}\b", text)} == set()
