"""What every engine must answer alike, kept as data: the examples of operations and of the specification, the cases of
nodes, inputs once found, and tables of inputs, fuel and JSON text.

A question is asked of a loaded program. What the python engine answers is the reference; a fault that is planted in the
Rust engine is noticed where the answer is another one.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from tests.conformance import test_operations as operations
from tests.conformance import test_regressions as regressions
from tests.conformance import test_spec_examples as examples
from tests.conformance.forms import typed_form
from tests.proofs.mutants import batches
from tests.proofs.mutants.edges import JSON_FLAT, JSON_REFUSED, JSON_TAKEN, NODES, edge_questions, flat
from tests.support.nodes import compiled, expression_node, operation_node, worked_nodes, written_for_tests
from tests.unit.engines import test_entry as entry
from tests.unit.engines import test_fuel as fuel
from tests.unit.engines import test_inputs as inputs_of_one_kind
from tests.unit.engines import test_inputs_of_other_types as inputs_of_other_kinds
from tests.unit.engines.path_tables import PASSED, READ, Passed, Read
from tests.unit.engines.path_tables import node as node_of_paths
from vesper.compiler import Compiled
from vesper.engines.compare import Agree, compare, same_outcome
from vesper.engines.direct_engine import DirectProgram
from vesper.engines.engine import Completion, Done, Limits, Program
from vesper.engines.outcome import Outcome
from vesper.engines.path import points_of
from vesper.engines.python_engine import PythonEngine
from vesper.language.check.cases import Case
from vesper.language.ir.type_json import type_from_json
from vesper.values.generated.operations import OPERATIONS
from vesper.verify.inputs.responses import NOON, UnexpectedRequest, run_case, run_with

Answer: TypeAlias = "Done | Outcome | str | tuple[Answer, ...]"


@dataclass(frozen=True, slots=True)
class Question:
    name: str
    compiled: Compiled
    ask: Callable[[Program], Answer]
    given: object
    """What it asks about: two questions of one name, one node and one of these are the same."""

    def key(self) -> str:
        text = _ADDRESS.sub("", f"{self.name}\n{self.compiled.semantic_hash}\n{self.given!r}")
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def questions() -> list[Question]:
    """All of them; those that decide soonest come first."""
    found = [
        *operation_questions(),
        *_examples(),
        *_cases(),
        *_inputs(),
        *_fuel(),
        *_json(),
        *_edges(),
        *_regressions(),
        *_bad_responses(),
        *_paths(),
        *_batches(),
    ]
    names = [each.name for each in found]
    assert len(names) == len(set(names)), "two questions have one name"
    return found


ASKED_HERE = ("edge ", "json ", "fuel ", "case planted_", "bad response ", "batch ")
"""How the names begin of those that no other test asks."""


def own_questions() -> list[Question]:
    """Those alone: to compile the others takes seconds, which every test process would spend."""
    made = (*_cases(), *_fuel(), *_json(), *_edges(), *_bad_responses(), *_batches())
    return [each for each in made if each.name.startswith(ASKED_HERE)]


def answer(question: Question, load: Callable[[Compiled], Program]) -> Answer:
    """What a program answers; what it should never do is an answer too."""
    try:
        return question.ask(load(question.compiled))
    except UnexpectedRequest as problem:
        return f"unexpected request: {problem}"
    except Exception as error:  # noqa: BLE001  # an engine that raises has not given the answer of one that does not
        return f"raised {type(error).__name__}"


def kept(load: Callable[[Compiled], Program]) -> Callable[[Compiled], Program]:
    """Loads each node once."""
    programs: dict[int, Program] = {}

    def loaded(compiled: Compiled) -> Program:
        if id(compiled) not in programs:
            programs[id(compiled)] = load(compiled)
        return programs[id(compiled)]

    return loaded


def is_same(left: Answer, right: Answer) -> bool:
    match left, right:
        case tuple(), tuple():
            return len(left) == len(right) and all(map(is_same, left, right))
        case Done(), Done():
            return isinstance(compare(left, right), Agree)
        case str(), _:
            return left == right
        case (Done() | tuple(), _) | (_, Done() | tuple() | str()):
            return False
        case _:
            return same_outcome(left, right)


# -- operations, examples, cases ------------------------------------------------------------------


def _run(inputs: Mapping[str, object]) -> Callable[[Program], Answer]:
    """Called, which is one way through an engine, and observed, which is another."""

    def ask(program: Program) -> Answer:
        return program.call(dict(inputs)), run_with(program, dict(inputs), None, _nothing)

    return ask


def _running(name: str, node: Compiled, inputs: Mapping[str, object]) -> Question:
    return Question(name, node, _run(inputs), inputs)


def _nothing(*_: object) -> Any:
    raise UnexpectedRequest("it should ask for nothing")


def operation_questions() -> Iterator[Question]:
    for case in operations.CASES:
        if "expression" in case:
            typed = {name: typed_form(form) for name, form in case["inputs"].items()}
            node = expression_node(case["expression"], {name: type_ for name, (type_, _) in typed.items()})
            given = {name: value for name, (_, value) in typed.items()}
        else:
            args = [typed_form(form) for form in case["args"]]
            node = operation_node(case["op"], [type_from_json(form) for form in case.get("of", [])], args)
            given = {name: value for (name, _), (_, value) in zip(OPERATIONS[case["op"]].params, args, strict=True)}
        yield _running(f"operation {case['id']}", node, {each.name: given[each.name] for each in node.node.inputs})


def _examples() -> Iterator[Question]:
    for line in examples.LINES:
        expression = examples.typed(examples.parts(line)[0])
        if expression is not None and examples.can_run(line):
            yield _running(f"example {line}", examples.node_of(expression), {})


def _cases() -> Iterator[Question]:
    for path in [*worked_nodes(), *written_for_tests(), *sorted(NODES.glob("*.vsp"))]:
        node = compiled(path)
        for number, case in enumerate(node.cases):
            yield Question(f"case {node.node.node_id} {number}", node, _case(case, node.node.is_pure()), case)


def _case(case: Case, is_pure: bool) -> Callable[[Program], Answer]:
    def ask(program: Program) -> Answer:
        observed = run_case(program, case)
        if case.effects or not is_pure:
            return observed
        return observed, program.call(dict(case.inputs), NOON)

    return ask


def _regressions() -> Iterator[Question]:
    for number, case in enumerate(regressions.CASES):
        beside = sorted(regressions.FOLDER.glob("*.vsp"))
        path = next(path for path in [*worked_nodes(), *beside] if path.stem == case["node"])
        given = {name: regressions.read_value(form) for name, form in case["inputs"].items()}
        if not compiled(path).node.is_pure():
            continue  # it is run with the answers that the case has kept, which `test_regressions.py` does
        yield _running(f"regression {case['node']} {number}", compiled(path), given)


def _bad_responses() -> Iterator[Question]:
    """Every case with effects once more, each request answered by something that is no value at all."""
    for path in worked_nodes():
        node = compiled(path)
        for number, case in enumerate(each for each in node.cases if each.effects):
            yield Question(f"bad response {node.node.node_id} {number}", node, _answered_badly(case), case)


def _answered_badly(case: Case) -> Callable[[Program], Answer]:
    def ask(program: Program) -> Answer:
        return run_with(program, dict(case.inputs), NOON, lambda request: Completion(request.id, object()))

    return ask


def _edges() -> Iterator[Question]:
    for name, node, given in edge_questions():
        yield _running(f"edge {name}", node, given)


# -- tables of inputs, fuel and JSON --------------------------------------------------------------


def _inputs() -> Iterator[Question]:
    tables: list[tuple[dict[str, Compiled], list[Any]]] = [
        (inputs_of_one_kind.ECHOES, [*inputs_of_one_kind.TAKEN, *inputs_of_one_kind.REFUSED]),
        (inputs_of_other_kinds.ECHOES, [*inputs_of_other_kinds.TAKEN, *inputs_of_other_kinds.REFUSED]),
    ]
    files = [inputs_of_one_kind.__file__, inputs_of_other_kinds.__file__]
    for table, ((echoes, rows), file) in enumerate(zip(tables, files, strict=True)):
        text = Path(file).read_bytes()
        for number, (type_, given, *_) in enumerate(rows):
            # By their file: some of these objects have no text, or one of a hundred thousand digits.
            yield Question(f"input {table} {number} {type_}", echoes[type_], _run({"x": given}), text)


def _within(inputs: Mapping[str, object], limits: Limits) -> Callable[[Program], Answer]:
    def ask(program: Program) -> Answer:
        return program.call(dict(inputs), None, limits), run_with(program, dict(inputs), None, _nothing, limits)

    return ask


def _fuel() -> Iterator[Question]:
    nodes = [(name, fuel.computed(type_, text), units) for name, (type_, text, units) in fuel.COSTS.items()]
    nodes += [(f"loop {name}", fuel.looped(fields), units) for name, (fields, units) in fuel.LOOPS.items()]
    nodes.append(("entries of a map", fuel.computed("integer", "sum(n FOR k, n IN {'a': 1, 'b': 2})"), 5))
    both = "over: x IN xs\n  while: total < 99\n  max: 2\n  state: {total: 0}\n  next: {total: total + x}"
    nodes.append(("loop over, while, too many", fuel.looped(both), 3))
    with tempfile.TemporaryDirectory() as folder:
        nodes.append(("called nodes", fuel.calling(Path(folder)), 11))
    for name, node, units in nodes:
        for given in range(units + 2):
            yield Question(f"fuel {name} {given}", node, _within(fuel.XS, Limits(given)), given)
    # More than an engine takes at a time.
    long = fuel.computed("integer", "sum(y FOR y IN range(0, 6000, 1))")
    for given in (4095, 4096, 4097, 5119, 5120, 5121, 5999, 6000):
        for seconds in (None, 1000.0):
            ask = _within(fuel.XS, Limits(given, seconds))
            yield Question(f"fuel for long {given} {seconds}", long, ask, given)


def _json() -> Iterator[Question]:
    for text in JSON_TAKEN:
        yield Question(f"json {text}", entry.RICH, _by_json(text.encode(), partial(_by_objects, text)), text)
    for number, (raw, kind, path) in enumerate(JSON_REFUSED):
        expected = entry.REFUSED.format(kind=kind, path=path)
        yield Question(f"json refused {number}", entry.RICH, _by_json(raw, partial(str, expected)), raw)
    for number, (text, value) in enumerate(JSON_FLAT):
        expected = f'{{"kind":"returned","value":{value}}}'
        yield Question(f"json flat {number}", flat(), _by_json(text.encode(), partial(str, expected)), text)


def _by_json(text: bytes, reference: Callable[[], str]) -> Callable[[Program], Answer]:
    """Only the Rust engine reads JSON text itself; what the reference is, the table or Python says."""

    def ask(program: Program) -> Answer:
        return program.run_json(text).decode() if isinstance(program, DirectProgram) else reference()

    return ask


def _by_objects(text: str) -> str:
    return entry.by_objects(PythonEngine().load(entry.RICH), text)


# -- tables ---------------------------------------------------------------------------------------


def _batches() -> Iterator[Question]:
    for name, node, ask, given in batches.asking():
        yield Question(name, node, ask, given)


# -- paths ----------------------------------------------------------------------------------------

_KEY = bytes(16)


def _paths() -> Iterator[Question]:
    """Only the Rust engine says its path; what it must be, the tables say."""
    for number, passed in enumerate(PASSED):
        yield Question(f"path {number}", node_of_paths(passed.node), _passing(passed), passed)
    for number, read in enumerate(READ):
        yield Question(f"path reads {number}", node_of_paths(read.node), _reading(read), read)
    yield Question("path responses", node_of_paths("asks"), _told_apart, None)
    yield Question("path endings", node_of_paths("broken"), _ended_apart, None)


def _passing(case: Passed) -> Callable[[Program], Answer]:
    def ask(program: Program) -> Answer:
        if not isinstance(program, DirectProgram):
            return case.points
        path = program.call_pathed(case.inputs, _KEY).path
        return " ".join(each.outcome for each in points_of(path, program.points()))

    return ask


def _reading(case: Read) -> Callable[[Program], Answer]:
    def ask(program: Program) -> Answer:
        if not isinstance(program, DirectProgram):
            return f"same: {case.is_same}"
        one, other = (program.call_pathed({**case.one, **changed}, _KEY) for changed in ({}, case.changed))
        return f"same: {one.fingerprint == other.fingerprint}"

    return ask


def _told_apart(program: Program) -> Answer:
    """Whether two answers of the outside have two fingerprints."""
    if not isinstance(program, DirectProgram):
        return "two"
    found = set()
    for text in ("one", "two"):
        execution = program.start_pathed({}, _KEY, NOON)
        execution.advance(())
        execution.advance((Completion(0, text),))
        found.add(execution.fingerprint())
    return "two" if len(found) == 2 else "one"


def _ended_apart(program: Program) -> Answer:
    """How many fingerprints three runs have that end on one path: what the first has not read, the others have."""
    if not isinstance(program, DirectProgram):
        return "3"
    inputs = ({"a": 0, "b": 0}, {"a": 1, "b": 0}, {"a": 1, "b": -1})
    return str(len({program.call_pathed(each, _KEY).fingerprint for each in inputs}))
