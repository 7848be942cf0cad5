"""Requests that a case expects, read with the types of the node's requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vesper.language.check.callees import Interface
from vesper.language.check.expressions.literals import UNREAD, Unread, read_literal
from vesper.language.check.flow.handlers import help_for_code
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import is_code
from vesper.language.ir.statements import all_statements
from vesper.language.syntax import case_ast, yaml_tree
from vesper.language.syntax.fields import expect_scalar
from vesper.language.syntax.yaml_tree import Tree
from vesper.values.model import Value, same
from vesper.values.types import JSON, OptionalOf, Record, Type


@dataclass(frozen=True, slots=True)
class ExpectedRequest:
    """A request that the case must make next, with its completion."""

    path: str
    request: dict[str, Value]
    """Expected values of arguments; fixed fields as text."""
    returns: Value | None
    fails: str | None
    is_due: bool = False
    """Whether a sleep gives the time at which it is due: the case has neither `returns` nor `fails`."""


class CaseEffects:
    """Reads the `effects` of cases against the requests of one node."""

    def __init__(self, node: ir.Node, called: Mapping[str, Interface], bag: DiagnosticBag) -> None:
        self._bag = bag
        self._requests: dict[str, ir.Request] = {}
        for each in all_statements(node.body):
            if isinstance(each, ir.Request):
                self._requests[each.name] = each
            elif isinstance(each, ir.CallNode):
                inner = called[each.node].requests
                self._requests |= {f"{each.name}/{path}": request for path, request in inner.items()}
        # The IR name of a step that may be skipped starts with `_`; cases use the name without it.
        self._requests = {_plain_path(path): request for path, request in self._requests.items()}

    def read(self, case: case_ast.TestCase) -> tuple[ExpectedRequest, ...]:
        """Return the expected requests of a case; faulty ones are reported."""
        found = [self._effect(each) for each in case.effects]
        return tuple(each for each in found if each is not None)

    def _effect(self, effect: case_ast.CaseEffect) -> ExpectedRequest | None:
        path = effect.step.text
        request = self._requests.get(_plain_path(path))
        if request is None:
            help_ = did_you_mean(path, self._requests) or "a step that a case expects needs a name: `step: …`"
            kinds = "no step that makes a request"
            self._bag.error(Code.UNKNOWN_NAME, effect.step.span, kinds=kinds, name=path, help=help_)
            return None
        parts = self._parts(request, effect)
        if effect.fails is not None:
            if not is_code(effect.fails.text):
                help_ = help_for_code(effect.fails.text)
                self._bag.error(Code.CODE_CANNOT_HAPPEN, effect.fails.span, failure=effect.fails.text, help=help_)
            return ExpectedRequest(path, parts, None, effect.fails.text)
        if effect.returns is None and request.effect == "sleep":
            return ExpectedRequest(path, parts, None, None, is_due=True)
        if effect.returns is None:
            expected, found = "`returns` or `fails`", "neither"
            self._bag.error(Code.WRONG_KIND, effect.step.span, key="effects", expected=expected, found=found)
            return None
        value = read_literal(request.result.type, effect.returns, "returns", self._bag)
        return None if isinstance(value, Unread) else ExpectedRequest(path, parts, value, None)

    def _parts(self, request: ir.Request, effect: case_ast.CaseEffect) -> dict[str, Value]:
        types = {name: value.type for name, value in request.arguments}
        names = [*types, *request.fixed, *(() if request.key is None else ("key",))]
        found: dict[str, Value] = {}
        for word, tree in effect.request:
            if word.text not in names:
                help_ = did_you_mean(word.text, names)
                where = f"the request of `{request.name}`"
                self._bag.error(Code.UNKNOWN_KEY, word.span, where=where, key=word.text, help=help_)
                continue
            type_ = types.get(word.text)
            value = self._part(type_, tree, word.text)
            if not isinstance(value, Unread):
                found[word.text] = value
        return found

    def _part(self, type_: Type | None, tree: Tree, key: str) -> Value | Unread:
        if type_ is None:
            scalar = expect_scalar(tree, key, self._bag)
            return UNREAD if scalar is None else scalar.text
        return read_literal(_subset(type_, tree), tree, key, self._bag)


def _subset(type_: Type, tree: Tree) -> Type:
    """Return the type with only the fields that the case names. Other fields are not compared."""
    inner = type_.inner if isinstance(type_, OptionalOf) else type_
    if not isinstance(inner, Record) or not isinstance(tree, yaml_tree.Mapping) or inner == JSON:
        return type_
    given = {key.text: value for key, value in tree.entries}
    fields = tuple((name, _subset(field, given[name])) for name, field in inner.fields if name in given)
    return Record(fields) if fields else type_


def _plain_path(path: str) -> str:
    """Return a path without iteration indices and without the `_` of skippable steps."""
    return "/".join(part.partition("[")[0].lstrip("_") for part in path.split("/"))


def includes(found: object, wanted: object) -> bool:
    """Return whether a value equals the wanted one. A wanted record or JSON object may have fewer fields."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(name in found and includes(found[name], part) for name, part in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(includes, found, wanted))
    return same(found, wanted)
