"""Loader of `schemas/*.toml`, with validation.

Reads the TOML files beside this module and returns one `Declarations` value, which each emitter under `emit/` turns
into one kind of file. Output formats are not known here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import type_text

SCHEMAS = Path(__file__).parent
ROOT = SCHEMAS.parent

EFFECTS = ("pure", "reads", "writes")
STATUSES = ("implemented", "specified")
"""`specified`: in the specification and the checker's table, not in any engine."""

FORMS = (
    "array", "forall", "exists", "sort_by", "distinct_by", "min_by", "max_by", "group_by", "count_by", "index_by",
    "take_while", "drop_while", "fold",
)  # fmt: skip
"""Kinds of `for` in the IR for operations with an `fn` parameter."""

CODES_WITHOUT_EXAMPLE = {"too_large"}
"""Codes without example, because the arguments would be too large for the repository."""

PHASES = {
    "0": "Syntax",
    "1": "Names",
    "2": "Types",
    "3": "Contracts",
    "4": "Capabilities",
    "5": "Code generation",
    "6": "Run",
    "7": "Verify",
    "8": "Migrate",
}
"""Phase by the first digit of a diagnostic's number."""


class DeclarationError(Exception):
    """An invalid declaration; the message names the file and the entry."""


@dataclass(frozen=True, slots=True)
class Example:
    """One entry of an operation's `examples`: documentation and conformance case."""

    args: tuple[Any, ...]
    of: tuple[str, ...]
    returns: Any
    raises: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Operation:
    """Declaration of one operation."""

    family: str
    name: str
    doc: str
    type_params: tuple[tuple[str, str], ...]
    """Pairs of parameter and bound: `("T", "key")`."""
    params: tuple[tuple[str, str], ...]
    """Pairs of parameter and type text: `("members", "set<T>")`."""
    returns: str
    raises: tuple[str, ...]
    effects: str
    since: str
    operator: str | None
    function: str | None
    """Short name in expressions; overloads share one."""
    call: str | None
    """Notation of a call that is not `function(params)`: binders, `m[k]`, `x IS NULL`."""
    defaults: tuple[tuple[str, Any], ...]
    """Values of trailing parameters that a call may omit."""
    literals: tuple[str, ...]
    """Parameters whose argument is a literal, read at check time."""
    form: str | None
    """Kind of `for` in the IR, for an operation that is evaluated for each item."""
    status: str
    work: tuple[str, ...]
    """Parameters whose size counts as work, and `result` (docs/spec/limits.md)."""
    examples: tuple[Example, ...]

    @property
    def full_name(self) -> str:
        return f"{self.family}.{self.name}"

    @property
    def is_implemented(self) -> bool:
        return self.status == "implemented"

    @property
    def has_kernel(self) -> bool:
        """Return whether engines have a kernel; a form is a `for` and is never called."""
        return self.is_implemented and self.form is None

    @property
    def arities(self) -> range:
        """Return the possible numbers of arguments."""
        return range(len(self.params) - len(self.defaults), len(self.params) + 1)


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """Declaration of one run-time error code."""

    name: str
    doc: str
    effect: bool = False
    """True if effects or called nodes cause it, and no operation."""


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """Declaration of one type."""

    name: str
    doc: str
    json: str
    python: str
    is_key: bool
    is_ordered: bool
    parameters: tuple[str, ...]
    status: str


@dataclass(frozen=True, slots=True)
class DiagnosticCode:
    """Declaration of one diagnostic."""

    code: str
    name: str
    headline: str
    explain: str
    bad: str | None = None
    """A complete node with this diagnostic; None only with a reason in `no_example`."""
    good: str | None = None
    """The same node, repaired."""
    no_example: str | None = None

    @property
    def phase(self) -> str:
        return PHASES[self.code.removeprefix("VSP")[0]]

    @property
    def shown_headline(self) -> str:
        """Return the headline for a page, with `…` in its holes."""
        return re.sub(r"\{[a-z]+\}", "…", self.headline)


@dataclass(frozen=True, slots=True)
class OperatorLevel:
    """One level of precedence; the first level binds loosest."""

    operators: tuple[str, ...]
    associates: str


@dataclass(frozen=True, slots=True)
class Declarations:
    """Everything that `schemas/*.toml` declares."""

    operations: tuple[Operation, ...]
    errors: tuple[ErrorCode, ...]
    types: tuple[TypeDeclaration, ...]
    diagnostics: tuple[DiagnosticCode, ...]
    operator_levels: tuple[OperatorLevel, ...]

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(sorted({operation.family for operation in self.operations}))

    def implemented(self) -> Declarations:
        """Return the operations with kernels, and the errors that these or no operation raise."""
        operations = tuple(operation for operation in self.operations if operation.has_kernel)
        later = {code for operation in self.operations for code in operation.raises}
        later -= {code for operation in operations for code in operation.raises}
        return replace(
            self, operations=operations, errors=tuple(error for error in self.errors if error.name not in later)
        )


def load_declarations() -> Declarations:
    """Read and check all declarations."""
    errors = _load_errors()
    operations = _load_operations({error.name for error in errors})
    check_overloads(operations)
    types = _load_types()
    return Declarations(
        operations=operations,
        errors=errors,
        types=types,
        diagnostics=_load_diagnostics(types),
        operator_levels=_load_operator_levels(),
    )


def _load_errors() -> tuple[ErrorCode, ...]:
    path = SCHEMAS / "errors.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))["error"]
    return tuple(
        ErrorCode(name, **_only(path, name, entry, required={"doc"}, optional={"effect"}))
        for name, entry in sorted(table.items())
    )


def _load_types() -> tuple[TypeDeclaration, ...]:
    path = SCHEMAS / "types.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))["type"]
    found = []
    for name, entry in table.items():
        fields = _only(path, name, entry, {"doc", "json", "python", "is_key", "is_ordered"}, {"parameters", "status"})
        status = fields.get("status", "implemented")
        if status not in STATUSES:
            raise DeclarationError(f"{path.name}: {name}: status must be one of {STATUSES}")
        found.append(
            TypeDeclaration(
                name,
                fields["doc"],
                fields["json"],
                fields["python"],
                fields["is_key"],
                fields["is_ordered"],
                tuple(fields.get("parameters", ())),
                status,
            )
        )
    if {each.name for each in found} != type_text.EVERY:
        raise DeclarationError(f"{path.name} and type_text.py do not know the same types")
    for each in found:
        if (each.name in type_text.KEYS) != each.is_key or (each.name in type_text.ORDERED) != each.is_ordered:
            raise DeclarationError(f"{path.name} and type_text.py differ on whether {each.name} is a key or ordered")
    return tuple(found)


def check_overloads(operations: Iterable[Operation]) -> None:
    """Reject two overloads of a name that can match the same argument types."""
    by_name: dict[str, list[Operation]] = {}
    for operation in operations:
        for name in {operation.function, operation.operator} - {None}:
            by_name.setdefault(str(name), []).append(operation)
    for name, overloads in by_name.items():
        for left, right in combinations(overloads, 2):
            for arity in set(left.arities) & set(right.arities):
                if _can_both_match(left, right, arity):
                    raise DeclarationError(
                        f"`{name}` of {arity} arguments may be {left.full_name} or {right.full_name}"
                    )


def _can_both_match(left: Operation, right: Operation, arity: int) -> bool:
    pairs = zip(left.params[:arity], right.params[:arity], strict=True)
    return all(
        type_text.can_overlap(type_text.parse(a), dict(left.type_params), type_text.parse(b), dict(right.type_params))
        for (_, a), (_, b) in pairs
    )


def _load_diagnostics(types: tuple[TypeDeclaration, ...]) -> tuple[DiagnosticCode, ...]:
    path = SCHEMAS / "diagnostics.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))["diagnostic"]
    found = []
    for code, entry in sorted(table.items()):
        fields = _only(
            path, code, entry, required={"name", "headline", "explain"}, optional={"bad", "good", "no_example"}
        )
        if not re.fullmatch(r"VSP[0-9]{4}", code) or code[3] not in PHASES:
            raise DeclarationError(f"{path.name}: {code} is not VSP, the digit of a phase and three digits")
        if not re.fullmatch(r"[a-z]+(-[a-z]+)*", fields["name"]):
            raise DeclarationError(f"{path.name}: {code}: `{fields['name']}` is not lower-case words with hyphens")
        if {"bad", "good", "no_example"} & set(fields) not in ({"bad", "good"}, {"no_example"}):
            raise DeclarationError(f"{path.name}: {code} needs `bad` and `good`, or `no_example` with the reason")
        fields["explain"] = fields["explain"].replace("{types}", _type_names(types))
        found.append(DiagnosticCode(code, **fields))
    names = [diagnostic.name for diagnostic in found]
    if len(set(names)) != len(names):
        raise DeclarationError(f"{path.name}: two diagnostics share a name")
    return tuple(found)


def _type_names(types: tuple[TypeDeclaration, ...]) -> str:
    """Return all types as a node writes them: `boolean, …, set<T> and json`."""
    forms = {"enum": "enum[…]", "record": "record types of the node (by their names)"}
    names = [
        forms.get(each.name, each.name) + (f"<{', '.join(each.parameters)}>" if each.parameters else "")
        for each in types
    ]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _load_operator_levels() -> tuple[OperatorLevel, ...]:
    path = SCHEMAS / "operators.toml"
    levels = tomllib.loads(path.read_text(encoding="utf-8"))["level"]
    found = []
    for number, entry in enumerate(levels, start=1):
        fields = _only(path, f"level {number}", entry, required={"operators", "associates"})
        found.append(OperatorLevel(tuple(fields["operators"]), fields["associates"]))
    return tuple(found)


def _load_operations(error_names: set[str]) -> tuple[Operation, ...]:
    found: list[Operation] = []
    for path in sorted((SCHEMAS / "ops").glob("*.toml")):
        families = tomllib.loads(path.read_text(encoding="utf-8"))["op"]
        if list(families) != [path.stem]:
            raise DeclarationError(f"{path.name} declares {list(families)}; it may only declare `{path.stem}`")
        for name, entry in families[path.stem].items():
            found.append(_operation(path, name, entry, error_names))
    return tuple(found)


_SIZED = ("string", "bytes", "array", "set", "map")
"""Heads of types whose values have a size."""


def _work(where: str, fields: dict[str, Any]) -> tuple[str, ...]:
    """Return what counts as work: by default every parameter with a size, and the result."""
    sized = [name for name, text in fields["params"].items() if type_text.parse(text).head in _SIZED]
    if type_text.parse(fields["returns"]).head in _SIZED:
        sized.append("result")
    if unknown := set(fields.get("work", ())) - set(sized):
        raise DeclarationError(f"{where}: `work` names {sorted(unknown)}, which has no size")
    return tuple(each for each in sized if each in fields.get("work", sized))


def _operation(path: Path, name: str, entry: dict[str, Any], error_names: set[str]) -> Operation:
    fields = _only(
        path,
        name,
        entry,
        required={"doc", "params", "returns", "raises", "effects", "since", "examples"},
        optional={"operator", "type_params", "function", "call", "defaults", "literals", "form", "status", "work"},
    )
    where = f"{path.name}: {name}"
    if unknown := set(fields["raises"]) - error_names:
        raise DeclarationError(f"{where} raises {sorted(unknown)}, which errors.toml does not declare")
    if fields["effects"] not in EFFECTS:
        raise DeclarationError(f"{where}: effects must be one of {EFFECTS}")
    type_params = tuple(fields.get("type_params", {}).items())
    if bad := [bound for _, bound in type_params if bound not in type_text.BOUNDS]:
        raise DeclarationError(f"{where}: unknown bound {bad}")
    status = fields.get("status", "implemented")
    if status not in STATUSES:
        raise DeclarationError(f"{where}: status must be one of {STATUSES}")
    operation = Operation(
        family=path.stem,
        name=name,
        doc=fields["doc"],
        type_params=type_params,
        params=tuple(fields["params"].items()),
        returns=fields["returns"],
        raises=tuple(fields["raises"]),
        effects=fields["effects"],
        since=fields["since"],
        operator=fields.get("operator"),
        function=fields.get("function"),
        call=fields.get("call"),
        defaults=tuple(fields.get("defaults", {}).items()),
        literals=tuple(fields.get("literals", ())),
        form=fields.get("form"),
        status=status,
        work=_work(where, fields),
        examples=tuple(_example(where, example) for example in fields["examples"]),
    )
    _check_types(where, operation)
    takes_function = any(type_text.parse(text).head == "fn" for _, text in operation.params)
    if takes_function != (operation.form is not None) or (takes_function and operation.call is None):
        raise DeclarationError(f"{where}: an operation with an `fn` parameter, and no other, has `form` and `call`")
    if operation.form is not None and operation.form not in FORMS:
        raise DeclarationError(f"{where}: form must be one of {FORMS}")
    # An example has no document that could hold its table.
    if not operation.examples and "table" not in operation.literals:
        raise DeclarationError(f"{where} has no example")
    for example in operation.examples:
        if len(example.args) not in operation.arities or len(example.of) != len(type_params):
            raise DeclarationError(f"{where}: an example has the wrong number of arguments")
        if example.raises is not None and example.raises not in operation.raises:
            raise DeclarationError(f"{where}: an example raises `{example.raises}`, which is not declared")
    shown = {example.raises for example in operation.examples}
    # An operation that the checker inserts only where it cannot fail has no failing example.
    unreachable = set(operation.raises) if operation.full_name == "optional.unwrap" else set()
    if not_shown := set(operation.raises) - CODES_WITHOUT_EXAMPLE - shown - unreachable:
        raise DeclarationError(f"{where}: no example shows {sorted(not_shown)}")
    return operation


def _check_types(where: str, operation: Operation) -> None:
    """Check that types are valid, and that defaults, literals and example values fit them."""
    names = [name for name, _ in operation.params]
    if [name for name, _ in operation.defaults] != names[len(names) - len(operation.defaults) :]:
        raise DeclarationError(f"{where}: only the last parameters may have defaults, in their order")
    if unknown := set(operation.literals) - set(names):
        raise DeclarationError(f"{where}: `literals` names {sorted(unknown)}, which are no parameters")
    try:
        params = [type_text.parse(text) for _, text in operation.params]
        returns = type_text.parse(operation.returns)
        of = [[type_text.parse(text) for text in example.of] for example in operation.examples]
    except type_text.TypeTextError as error:
        raise DeclarationError(f"{where}: {error}") from None
    for name, value in operation.defaults:
        if not type_text.fits(params[names.index(name)], value):
            raise DeclarationError(f"{where}: the default of {name} is not of its type")
    for example, arguments in zip(operation.examples, of, strict=True):
        known = dict(zip((name for name, _ in operation.type_params), arguments, strict=False))
        for (name, bound), argument in zip(operation.type_params, arguments, strict=False):
            if argument.head not in type_text.BOUNDS[bound]:
                raise DeclarationError(f"{where}: {name} may not be {argument.head}")
        typed = list(zip(params, example.args, strict=False))
        if example.raises is None:
            typed.append((returns, example.returns))
        for pattern, value in typed:
            if not type_text.fits(type_text.substitute(pattern, known), value):
                raise DeclarationError(f"{where}: {value!r} is not a value of {pattern.head}")


def _example(where: str, entry: dict[str, Any]) -> Example:
    if ("returns" in entry) == ("raises" in entry):
        raise DeclarationError(f"{where}: an example either returns or raises")
    unknown = set(entry) - {"args", "of", "returns", "raises", "why"}
    if unknown or "args" not in entry:
        raise DeclarationError(f"{where}: an example has args, of, returns or raises, and why; not {sorted(unknown)}")
    return Example(
        tuple(entry["args"]),
        tuple(entry.get("of", ())),
        entry.get("returns"),
        entry.get("raises"),
        entry.get("why", ""),
    )


def _only(
    path: Path, name: str, entry: dict[str, Any], required: set[str], optional: frozenset[str] | set[str] = frozenset()
) -> dict[str, Any]:
    if missing := required - set(entry):
        raise DeclarationError(f"{path.name}: {name} lacks {sorted(missing)}")
    if unknown := set(entry) - required - set(optional):
        raise DeclarationError(f"{path.name}: {name} has unknown fields {sorted(unknown)}")
    return entry
