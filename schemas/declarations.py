"""Reads everything that `schemas/*.toml` declares and checks that it makes sense.

In: the TOML files beside this module. Out: one `Declarations` value, which every emitter under
`emit/` turns into one kind of file. Nothing here knows how an output looks.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parent
ROOT = SCHEMAS.parent

TYPE_PARAM_BOUNDS = ("key", "enum")
EFFECTS = ("pure", "reads", "writes")

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
"""What the first digit of a diagnostic's number says."""


class DeclarationError(Exception):
    """A declaration that cannot be used; the message names the file and the entry."""


@dataclass(frozen=True, slots=True)
class Example:
    """One line of an operation's `examples`: it is documentation and a conformance case at once."""

    args: tuple[Any, ...]
    of: tuple[str, ...]
    returns: Any
    raises: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Operation:
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
    examples: tuple[Example, ...]

    @property
    def full_name(self) -> str:
        return f"{self.family}.{self.name}"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    name: str
    doc: str


@dataclass(frozen=True, slots=True)
class DiagnosticCode:
    code: str
    name: str
    headline: str
    explain: str
    bad: str | None = None
    """A complete node that has this diagnostic; None only with a reason in `no_example`."""
    good: str | None = None
    """The same node, repaired."""
    no_example: str | None = None

    @property
    def phase(self) -> str:
        return PHASES[self.code.removeprefix("VSP")[0]]

    @property
    def shown_headline(self) -> str:
        """The headline as a page shows it, with `…` in its holes."""
        return re.sub(r"\{[a-z]+\}", "…", self.headline)


@dataclass(frozen=True, slots=True)
class OperatorLevel:
    """One level of precedence; the first level binds loosest."""

    operators: tuple[str, ...]
    associates: str


@dataclass(frozen=True, slots=True)
class Declarations:
    operations: tuple[Operation, ...]
    errors: tuple[ErrorCode, ...]
    diagnostics: tuple[DiagnosticCode, ...]
    operator_levels: tuple[OperatorLevel, ...]

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(sorted({operation.family for operation in self.operations}))


def load_declarations() -> Declarations:
    errors = _load_errors()
    return Declarations(
        operations=_load_operations({error.name for error in errors}),
        errors=errors,
        diagnostics=_load_diagnostics(),
        operator_levels=_load_operator_levels(),
    )


def _load_errors() -> tuple[ErrorCode, ...]:
    path = SCHEMAS / "errors.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))["error"]
    return tuple(ErrorCode(name, **_only(path, name, entry, required={"doc"})) for name, entry in sorted(table.items()))


def _load_diagnostics() -> tuple[DiagnosticCode, ...]:
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
        found.append(DiagnosticCode(code, **fields))
    names = [diagnostic.name for diagnostic in found]
    if len(set(names)) != len(names):
        raise DeclarationError(f"{path.name}: two diagnostics share a name")
    return tuple(found)


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


def _operation(path: Path, name: str, entry: dict[str, Any], error_names: set[str]) -> Operation:
    fields = _only(
        path,
        name,
        entry,
        required={"doc", "params", "returns", "raises", "effects", "since", "examples"},
        optional={"operator", "type_params"},
    )
    where = f"{path.name}: {name}"
    if unknown := set(fields["raises"]) - error_names:
        raise DeclarationError(f"{where} raises {sorted(unknown)}, which errors.toml does not declare")
    if fields["effects"] not in EFFECTS:
        raise DeclarationError(f"{where}: effects must be one of {EFFECTS}")
    type_params = tuple(fields.get("type_params", {}).items())
    if bad := [bound for _, bound in type_params if bound not in TYPE_PARAM_BOUNDS]:
        raise DeclarationError(f"{where}: unknown bound {bad}")
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
        examples=tuple(_example(where, example) for example in fields["examples"]),
    )
    if not operation.examples:
        raise DeclarationError(f"{where} has no example")
    for example in operation.examples:
        if len(example.args) != len(operation.params) or len(example.of) != len(type_params):
            raise DeclarationError(f"{where}: an example has the wrong number of arguments")
        if example.raises is not None and example.raises not in operation.raises:
            raise DeclarationError(f"{where}: an example raises `{example.raises}`, which is not declared")
    if not_shown := set(operation.raises) - {example.raises for example in operation.examples}:
        raise DeclarationError(f"{where}: no example shows {sorted(not_shown)}")
    return operation


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
