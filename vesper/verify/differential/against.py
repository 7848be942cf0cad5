"""A Python function of the user as the reference for a node that replaces it.

The function receives the node's inputs as keyword arguments, in the Python forms of a node's caller, with defaults. It
returns a dict of the outputs, or raises. Inputs that the node rejects (types, constraints, preconditions) are not
passed to it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vesper.compiler import Compiled
from vesper.engines.compare import Agree, Comparison, Disagree, same_outcome
from vesper.engines.engine import Done, Program
from vesper.engines.outcome import ContractBroken, Failed, Outcome, Returned
from vesper.engines.python_engine import PythonEngine
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import encode, semantic_hash
from vesper.values.model import ProblemKind, Value, show
from vesper.values.types import Type
from vesper.verify.differential.python_forms import OtherForm, field_names, first_other_form


class CannotImport(Exception):
    """The function does not exist or cannot be imported; the message names module and folder."""


class BadAnswer(Exception):
    """The function returned something that is no outcome of the node."""


def import_function(name: str, folder: Path) -> Callable[..., object]:
    """Import the function `package.module:function`, searching `folder` first."""
    module_name, colon, path = name.partition(":")
    if not colon or not module_name or not path:
        raise CannotImport(f"`{name}` names no function: write package.module:function, such as shop.prices:price")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise CannotImport(f"there is no module `{error.name}` in {folder} or among installed modules") from None
        raise CannotImport(f"module `{module_name}` cannot be imported: {error}") from error
    except Exception as error:  # a module may raise anything
        raise CannotImport(f"module `{module_name}` cannot be imported: {type(error).__name__}: {error}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise CannotImport(f"module `{module_name}` has no `{path}`")
        found = getattr(found, part)
    if not callable(found):
        raise CannotImport(f"`{name}` is a {type(found).__name__} and cannot be called")
    return found


class Function:
    """The user's function, with the forms of one node."""

    def __init__(self, name: str, function: Callable[..., object], compiled: Compiled) -> None:
        self.name = name
        self._function = function
        self._outputs = [each.name for each in compiled.node.outputs]
        # Two identity nodes: their engine converts the Python forms of every type.
        self._inputs = identity_of([(each.name, each.type, each.default) for each in compiled.node.inputs])
        self._answers = answers_of(compiled.node)

    def answer(self, inputs: Mapping[str, object]) -> Done:
        """Return the function's result on inputs that the node accepts.

        Numbers beyond the limits of the outputs count as not returned, because the node fails there.
        """
        taken = self._inputs.call(dict(inputs))
        assert isinstance(taken, Returned), "the node accepts these inputs"
        try:
            answer = self._function(**taken.value)
        except Exception as error:  # noqa: BLE001  # any exception means that it did not return
            return Done(Failed(f"{type(error).__name__}: {error}", None), ())
        shown = ", ".join(f"{name}={show(value)}" for name, value in taken.value.items())
        if not isinstance(answer, Mapping):
            wanted = ", ".join(self._outputs)
            raise BadAnswer(f"{self.name} returned {show(answer)} for {shown}; it must return a dict with {wanted}")
        read = self._answers.read(answer)
        if not isinstance(read, Returned):
            assert isinstance(read, Failed)
            if all(each.kind is ProblemKind.OUT_OF_RANGE for each in read.problems):
                return Done(Failed("out_of_range", None), ())
            problems = "; ".join(f"`{each.path}` is {each.kind.value.replace('_', ' ')}" for each in read.problems)
            raise BadAnswer(f"{self.name} returned {show(dict(answer))} for {shown}, which are no outputs: {problems}")
        other = self._answers.other_form(answer, read)
        if other is not None:
            raise BadAnswer(
                f"{self.name} returned a {other.function} at {other.where} for {shown}, where the node returns a "
                f"{other.node}: callers would get another Python type"
            )
        return Done(read, ())


@dataclass(frozen=True, slots=True)
class Answers:
    """The outputs of a node, to read results of a function."""

    program: Program
    names: frozenset[str]
    """Declared fields, at every depth."""

    def read(self, answer: Mapping[str, object]) -> Outcome:
        """Return the function's result as outputs, or a failure with its problems."""
        return self.program.call(dict(answer))

    def other_form(self, answer: object, read: Returned) -> OtherForm | None:
        """Return where the result has another Python type than the node's outputs."""
        return first_other_form(answer, read.value, self.names)


def answers_of(node: ir.Node) -> Answers:
    types = [each.type for each in node.outputs]
    names = field_names(types) | {each.name for each in node.outputs}
    return Answers(identity_of([(each.name, each.type, None) for each in node.outputs]), names)


def is_refused(outcome: Outcome) -> bool:
    """Return whether a node rejected its inputs."""
    if isinstance(outcome, ContractBroken):
        return outcome.phase in ("constraint", "precondition")
    return isinstance(outcome, Failed) and outcome.at is None


def compare_with_function(function: Done, node: Done) -> Comparison:
    """Compare outputs exactly; reasons for a missing result are not compared."""
    if isinstance(function.outcome, Returned) != isinstance(node.outcome, Returned):
        return Disagree("whether it returned", None)
    if isinstance(function.outcome, Returned) and not same_outcome(function.outcome, node.outcome):
        return Disagree("the outcome", None)
    return Agree()


def identity_of(named: list[tuple[str, Type, Value | None]]) -> Program:
    """Return a node that returns its inputs, so that its engine converts the forms of every type."""
    place = ir.Place(1, 1, 1, 1)
    inputs = tuple(ir.Input(name, type_, default) for name, type_, default in named)
    outputs = tuple(ir.Output(name, type_) for name, type_, _ in named)
    values = tuple((name, ir.Ref("input", name, type_, place)) for name, type_, _ in named)
    source = ir.Source("identity.vsp", "0" * 64, "Return the inputs")
    body = (ir.Return(values),)
    node = ir.number_expressions(ir.Node("identity_v1", "function", inputs, outputs, (), (), (), body, (), source))
    return PythonEngine().load(Compiled(SourceFile("identity.vsp", ""), node, (), encode(node), semantic_hash(node)))
