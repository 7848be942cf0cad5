"""A case is added behind the last one; every other byte of the node stays."""

from __future__ import annotations

import pytest

from vesper.language.syntax.yaml.edits import EditRejected
from vesper.testing.case_insertion import add_case

OLD = "testing:\n  test_cases:\n    - name: old\n"
LINES = ["    - name: new", "      expect: {fee: 1}"]
ADDED = "\n".join(LINES)
NODE = "node_id: a_v1\n"


@pytest.mark.parametrize(
    "before, after",
    [
        (OLD, OLD + ADDED),
        (
            "testing:\n  test_cases:\n  - name: old",
            "testing:\n  test_cases:\n  - name: old\n  - name: new\n    expect: {fee: 1}",
        ),
        ("", "\ntesting:\n  test_cases:\n" + ADDED),
        ("testing:\n  properties: []\n", "testing:\n  test_cases:\n" + ADDED + "\n  properties: []"),
        ("testing:\n  test_cases: []\nsecurity: {}\n", "testing:\n  test_cases:\n" + ADDED + "\nsecurity: {}"),
        (OLD + "\n# below\nsecurity: {}\n", OLD + ADDED + "\n\n# below\nsecurity: {}"),
    ],
)
def test_a_case_is_added(before: str, after: str) -> None:
    assert add_case(NODE + before, LINES) == NODE + after + "\n"


def test_line_ends_are_those_of_the_file() -> None:
    text = "node_id: a_v1\r\ntesting:\r\n  test_cases:\r\n    - name: old\r\n"
    assert add_case(text, LINES) == text + "    - name: new\r\n      expect: {fee: 1}\r\n"


@pytest.mark.parametrize(
    "text", ["testing: {test_cases: []}", "testing:\n  test_cases: [{name: a}]", "testing:\n  test_cases: 1"]
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(EditRejected, match="by hand"):
        add_case(NODE + text, LINES)
    with pytest.raises(EditRejected):
        add_case("- 1", LINES)
