"""A function of the user's own as the reference: what a node that replaces it must answer.

It is called with the inputs of the node as keyword arguments, in the Python forms that a caller of the node gets, the
defaults filled in; it answers with a dict of the outputs, or raises. Inputs that the node refuses at its door (types,
constraints, preconditions) are not given to it: the node says who may call it, and the function need not know.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from vesper.compiler import Compiled
from vesper.engines.compare import Agree, Comparison, Disagree, same_outcome
from vesper.engines.engine import Done, Program
from vesper.engines.outcome import ContractBroken, Failed, Outcome, Returned
from vesper.engines.python_engine import PythonEngine
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import encode, semantic_hash
from vesper.values.model import Value, show
from vesper.values.types import Type


class CannotImport(Exception):
    """There is no such function; the message says what was looked for and where."""


class BadAnswer(Exception):
    """The function answered with something that is no outcome of the node; the message says what."""


def import_function(name: str, folder: Path) -> Callable[..., object]:
    """The function that `package.module:function` names, looked for in a folder before all else."""
    module_name, colon, path = name.partition(":")
    if not colon or not module_name or not path:
        raise CannotImport(f"`{name}` names no function: write package.module:function, as in shop.prices:order_price")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise CannotImport(f"there is no module `{error.name}` in {folder} or among the installed ones") from None
        raise CannotImport(f"module `{module_name}` cannot be imported: {error}") from error
    except Exception as error:  # a module may raise whatever it likes
        raise CannotImport(f"module `{module_name}` cannot be imported: {type(error).__name__}: {error}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise CannotImport(f"module `{module_name}` has no `{path}`")
        found = getattr(found, part)
    if not callable(found):
        raise CannotImport(f"`{name}` is a {type(found).__name__} and cannot be called")
    return found


class Function:
    """The user's function, beside one node."""

    def __init__(self, name: str, function: Callable[..., object], compiled: Compiled) -> None:
        self.name = name
        self._function = function
        self._outputs = [each.name for each in compiled.node.outputs]
        # Two nodes that give back what they are given: their engine knows what the forms of every type are.
        self._inputs = identity_of([(each.name, each.type, each.default) for each in compiled.node.inputs])
        self._answers = identity_of([(each.name, each.type, None) for each in compiled.node.outputs])

    def answer(self, inputs: Mapping[str, object]) -> Done:
        """What the function says to inputs that the node takes."""
        taken = self._inputs.call(dict(inputs))
        assert isinstance(taken, Returned), "the node takes these inputs"
        try:
            answer = self._function(**taken.value)
        except Exception as error:  # noqa: BLE001  # whatever it raises, it did not return
            return Done(Failed(f"{type(error).__name__}: {error}", None), ())
        shown = ", ".join(f"{name}={show(value)}" for name, value in taken.value.items())
        if not isinstance(answer, Mapping):
            wanted = ", ".join(self._outputs)
            raise BadAnswer(f"{self.name} gave {show(answer)} for {shown}; it must return a dict with {wanted}")
        read = self._answers.call(dict(answer))
        if not isinstance(read, Returned):
            assert isinstance(read, Failed)
            problems = "; ".join(f"`{each.path}` is {each.kind.value.replace('_', ' ')}" for each in read.problems)
            raise BadAnswer(f"{self.name} gave {show(dict(answer))} for {shown}, which are no outputs: {problems}")
        return Done(read, ())


def is_refused(outcome: Outcome) -> bool:
    """True where a node does not take its inputs."""
    if isinstance(outcome, ContractBroken):
        return outcome.phase in ("constraint", "precondition")
    return isinstance(outcome, Failed) and outcome.at is None


def compare_with_function(function: Done, node: Done) -> Comparison:
    """Outputs are compared exactly; why something was not returned is not."""
    if isinstance(function.outcome, Returned) != isinstance(node.outcome, Returned):
        return Disagree("whether there is an answer", None)
    if isinstance(function.outcome, Returned) and not same_outcome(function.outcome, node.outcome):
        return Disagree("the outcome", None)
    return Agree()


def identity_of(named: list[tuple[str, Type, Value | None]]) -> Program:
    """A node that gives back what it is given: its engine knows the forms of every type."""
    place = ir.Place(1, 1, 1, 1)
    inputs = tuple(ir.Input(name, type_, default) for name, type_, default in named)
    outputs = tuple(ir.Output(name, type_) for name, type_, _ in named)
    values = tuple((name, ir.Ref("input", name, type_, place)) for name, type_, _ in named)
    source = ir.Source("identity.vsp", "0" * 64, "Give back what is given")
    body = (ir.Return(values),)
    node = ir.number_expressions(ir.Node("identity_v1", "function", inputs, outputs, (), (), (), body, (), source))
    return PythonEngine().load(Compiled(SourceFile("identity.vsp", ""), node, (), encode(node), semantic_hash(node)))
