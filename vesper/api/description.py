"""The description of a node, as plain data that is cached with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.language.ir import nodes as ir
    from vesper.values.types import Type

_FACT = "api.described"
_MARSHALLED = (type(None), bool, int, str)


class Description(NamedTuple):
    id: str
    name: str
    version: int
    type: str
    intent: str
    is_hosted: bool
    """True where a Host must perform effects or write an audit for it."""
    is_short: bool
    """True where no input can make an execution long."""
    inputs: tuple[tuple[str, str, bool, Any], ...]
    """Name, type, whether it is required, default."""
    outputs: tuple[tuple[str, str], ...]
    errors: tuple[tuple[str, str], ...]

    @property
    def takes_now(self) -> bool:
        """True where an execution has a start time: for every node that is no function."""
        return self.type != "function"


def describe(compiled: Compiled) -> Description:
    """Return the cached description. A default that `marshal` cannot hold is read from the node."""
    kept: tuple[Any, ...] = compiled.kept.fact(_FACT, lambda: tuple(_describe(compiled)))
    found = Description(*kept)
    if all(each[3] is not ... for each in found.inputs):
        return found
    from vesper.values.model import plain

    defaults = {each.name: plain(each.default) for each in compiled.node.inputs}
    inputs = tuple((name, type_, required, defaults[name]) for name, type_, required, _ in found.inputs)
    return found._replace(inputs=inputs)


def _describe(compiled: Compiled) -> Description:
    from vesper.values.node_id import split_node_id

    node = compiled.node
    parts = split_node_id(node.node_id)
    assert parts is not None  # the checker refuses an id without a version
    return Description(
        node.node_id,
        *parts,
        node.type,
        node.source.intent,
        not node.is_pure() or node.grants.audit != "none",
        _is_short(compiled),
        tuple(_input(each, each.name in node.flagged) for each in node.inputs),
        tuple((each.name, str(each.type)) for each in node.outputs),
        tuple((each.name, str(each.type)) for each in node.errors),
    )


def _input(declared: ir.Input, is_flag: bool) -> tuple[str, str, bool, Any]:
    from vesper.values.types import OptionalOf

    is_required = declared.default is None and not isinstance(declared.type, OptionalOf) and not is_flag
    default = declared.default if type(declared.default) in _MARSHALLED else ...
    return declared.name, str(declared.type), is_required, default


def _is_short(compiled: Compiled) -> bool:
    """Return whether no input can make an execution long: no loops, and no computation on collections.

    A constant has a fixed size, whatever its type.
    """
    from vesper.language.ir import nodes as ir
    from vesper.language.ir.statements import Loop, all_statements

    node = compiled.node
    values = [each.type for each in node.inputs]
    for each in node.expressions():
        if not (isinstance(each, ir.Literal) or (isinstance(each, ir.Ref) and each.kind == "constant")):
            values.append(each.type)
    loops = any(isinstance(each, Loop) for each in all_statements(node.body))
    return not loops and not any(map(_grows, values)) and all(map(_is_short, compiled.callees))


def _grows(type_: Type) -> bool:
    from vesper.values.types import JSON, ArrayOf, MapOf, OptionalOf, Record, SetOf

    match type_:
        case ArrayOf() | MapOf() | SetOf():
            return True
        case OptionalOf(inner):
            return _grows(inner)
        case Record(fields):
            return any(_grows(each) for _, each in fields)
        case _:
            return type_ == JSON
