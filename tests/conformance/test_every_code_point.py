"""Single code points through every operation of one string, on every engine.

Results of an operation are compared by chunk, and their digests with a file, which detects engines that are wrong
together and newer tables of Python. The tests take a sample (`some_code_points.yaml`): the first scripts, edges of the
planes, and some in between. `make proof-code-points` takes all (`every_code_point.yaml`) in
minutes. The tables of each engine have their own tests.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.support.goldens import Golden
from tests.support.nodes import compiled_ir, compiled_text
from vesper.compiler import Compiled
from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES, REFERENCE
from vesper.language.ir import nodes as ir
from vesper.values.generated.operations import IMPLEMENTED, OPERATIONS
from vesper.values.limits import MAX_FUEL
from vesper.values.types import STRING, ArrayOf

HERE = Path(__file__).parent
DIGESTS = {True: HERE / "every_code_point.yaml", False: HERE / "some_code_points.yaml"}
CHUNK = 0x4000
OPS = [name for name in IMPLEMENTED if [type_ for _, type_ in OPERATIONS[name].params] == ["string"]]
_AS_TEXT = {"bytes": "hex({})", "array<string>": "join({}, '|')", "array<integer>": "text({}[0])", "string": "{}"}

NODE = """node_id: every_code_point_v1
type: function
intent: One operation for each of many strings
inputs: {{points: array<string>}}
outputs: {{success: {{answers: array<string>}}}}
flow:
  - step: answers
    operation: loop
    over: point IN points
    steps:
      - step: answer
        operation: compute
        value: "{expression}"
{handler}
    collect: answer
  - {{operation: return, success: {{answers: answers.collected}}}}
"""


def is_of_some(number: int) -> bool:
    """Return whether a code point is in the sample: the first scripts, tags, plane ends, some of the rest."""
    if number < 0x3000 or (number < 0x20000 and number % 7 == 0) or 0xD700 <= number < 0xD800:
        return True
    return 0xE0000 <= number < 0xE0200 or not 2 < number & 0xFFFF < 0xFFFD or number % 97 == 0


@cache
def points_of(is_every: bool) -> str:
    """Return the code points as one text; a list would take a hundred megabytes."""
    numbers = (*range(0xD800), *range(0xE000, 0x110000))
    return "".join(chr(number) for number in numbers if is_every or is_of_some(number))


def chunks(is_every: bool) -> Iterator[list[str]]:
    points = points_of(is_every)
    for first in range(0, len(points), CHUNK):
        yield list(points[first : first + CHUNK])


def node_text(op: str) -> str:
    """Return a node that gives the operation's result or failure code for each string."""
    spec = OPERATIONS[op]
    expression = _AS_TEXT.get(spec.returns, "text({})").format(f"{spec.function}(point)")
    codes = "".join(f"          {code}: {{value: \"'fails {code}'\"}}\n" for code in spec.raises)
    return NODE.format(expression=expression, handler=f"        on_error:\n{codes}".rstrip() if codes else "")


def node_of(op: str) -> Compiled:
    if OPERATIONS[op].function is not None:
        return compiled_text(node_text(op))
    # Only the compiler writes this operation, so the node is built as IR.
    place, texts = ir.Place(1, 1, 1, 1), ArrayOf(STRING)
    call = ir.Call(op, (), (ir.Local(0, "point", STRING, place),), STRING, place)
    over = ir.Ref("input", "points", texts, place)
    answers = ir.For("array", (0,), ("point",), over, None, None, call, texts, place)
    body = (ir.Step("answers", answers, place), ir.Return((("answers", ir.Ref("step", "answers", texts, place)),)))
    source = ir.Source("test.vsp", "0" * 64, "One operation for each of many strings")
    inputs, outputs = (ir.Input("points", texts, None),), (ir.Output("answers", texts),)
    return compiled_ir(ir.Node("every_code_point_v1", "function", inputs, outputs, (), (), (), body, (), source))


def answers_of(program: Program, points: list[str]) -> list[str]:
    outcome = program.call({"points": points}, limits=Limits(MAX_FUEL))
    assert isinstance(outcome, Returned), outcome
    answers = outcome.value["answers"]
    assert isinstance(answers, list)
    assert len(answers) == len(points)
    return [str(each) for each in answers]


def first_difference(points: list[str], found: dict[str, list[str]]) -> str | None:
    """Describe the first difference of the engines; None if they agree."""
    for position, answers in enumerate(zip(*found.values(), strict=True)):
        if len(set(answers)) > 1:
            shown = ", ".join(f"{name} {answer!r}" for name, answer in zip(found, answers, strict=True))
            return f"U+{ord(points[position]):04X}: {shown}"
    return None


@cache
def digest_of(op: str, is_every: bool = False) -> str:
    """Return the digest of all results of an operation, after the engines agreed on each."""
    programs = {name: engine.load(node_of(op)) for name, engine in ENGINES.items()}
    digest = hashlib.sha256()
    for points in chunks(is_every):
        found = {name: answers_of(program, points) for name, program in programs.items()}
        reference = found[REFERENCE]
        if any(answers != reference for answers in found.values()):
            raise AssertionError(f"{op} of {first_difference(points, found)}")
        digest.update(json.dumps(reference).encode())
    return digest.hexdigest()


def known(is_every: bool = False) -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load(DIGESTS[is_every].read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("op", OPS)
def test_engines_agree_and_answer_as_the_file_says(op: str, golden: Golden) -> None:
    assert golden.update or digest_of(op) == known()[op], f"{DIGESTS[False].name} differs; `make update` rewrites it"


def test_the_files_have_every_operation(golden: Golden) -> None:
    if golden.update:
        write(is_every=False)
    assert list(known()) == list(known(is_every=True)) == OPS


def test_what_is_special_is_among_some_of_them() -> None:
    assert 30_000 < len(points_of(is_every=False)) < 45_000
    assert {"\0", "\ud7ff", "\uffff", "\U0001ffff", "\U0002fffd", "\U000e0001", "\U0010ffff"} <= set(points_of(False))


def test_a_difference_is_named() -> None:
    found = {"python": ["x", "y"], "interp": ["x", "z"]}
    assert first_difference(["a", "b"], found) == "U+0062: python 'y', interp 'z'"


def test_every_operation_of_one_string_is_here() -> None:
    assert len(OPS) > 20
    assert {"text.lower", "text.is_digits", "integer.parse", "timestamp.parse", "bytes.utf8", "json.parse"} <= set(OPS)


def write(is_every: bool) -> None:
    DIGESTS[is_every].write_text("".join(f"{op}: {digest_of(op, is_every)}\n" for op in OPS), encoding="utf-8")


def main() -> int:
    """Run all code points; `--update` writes the file."""
    if "--update" in sys.argv:
        write(is_every=True)
    wrong = 0
    for op in OPS:
        is_right = digest_of(op, is_every=True) == known(is_every=True).get(op)
        wrong += not is_right
        print(
            f"{'ok  ' if is_right else 'FAIL'} {op}: {len(points_of(True)):,} code points, {len(ENGINES)} engines agree"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
