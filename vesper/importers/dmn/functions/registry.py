"""Functions of FEEL: signatures, arguments by name, and the dispatch to their translations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vesper.importers.dmn.code import Closure, Code, null
from vesper.importers.dmn.types import Refusal, Ty, type_error

if TYPE_CHECKING:
    from vesper.importers.dmn.translate import Translator

Translation = Callable[..., Code]


@dataclass(frozen=True, slots=True)
class Signature:
    """Parameters with their types. A name that ends with `?` may be absent, `~` also null, and `…` takes any number."""

    names: tuple[str, ...]
    types: tuple[Ty | None, ...]
    returns: Ty | None
    translate: Translation
    takes_null: bool

    @property
    def least(self) -> int:
        """The number of arguments that must be given."""
        return sum(1 for name in self.names if not name.endswith(("?", "~", "…")))

    @property
    def most(self) -> int:
        """The number of arguments that may be given."""
        return 1000 if self.names and self.names[-1].endswith("…") else len(self.names)


FUNCTIONS: dict[str, list[Signature]] = {}


def feel_function(
    name: str, parameters: str, types: list[Ty | None], returns: Ty | None, *, takes_null: bool = False
) -> Callable[[Translation], Translation]:
    """Declare the translation of a function. Parameters are separated by commas.

    An argument that is always null makes the call null, except with `takes_null`.
    """

    def declare(translation: Translation) -> Translation:
        names = tuple(each.strip() for each in parameters.split(",")) if parameters else ()
        signature = Signature(names, tuple(types), returns, translation, takes_null)
        FUNCTIONS.setdefault(name, []).append(signature)
        return translation

    return declare


def call_builtin(build: Translator, name: str, arguments: list[Code], names: tuple[str, ...]) -> Code:
    """Return the call of a function of the library."""
    _load()
    if name not in FUNCTIONS:
        raise Refusal("unknown name", f"there is no function `{name}`")
    failures: list[Refusal] = []
    for signature in FUNCTIONS[name]:
        ordered = _order(signature, arguments, names)
        if ordered is None:
            continue
        try:
            return _call(build, name, signature, ordered)
        except Refusal as refusal:
            failures.append(refusal)
    if not failures:
        raise type_error(f"`{name}` has no form with these {len(arguments)} arguments")
    raise next((each for each in failures if each.category != "null by a type error"), failures[0])


def _order(signature: Signature, arguments: list[Code], names: tuple[str, ...]) -> list[Code | None] | None:
    """Return the arguments in the order of the parameters; None where they do not fit."""
    if not names:
        return [*arguments] if signature.least <= len(arguments) <= signature.most else None
    known = [each.rstrip("?~…") for each in signature.names]
    given = dict(zip(names, arguments, strict=True))
    if len(given) != len(names) or any(name not in known for name in given):
        return None
    required = [each for each in signature.names if not each.endswith(("?", "~", "…"))]
    if any(name not in given for name in required):
        return None
    ordered: list[Code | None] = [given.get(name) for name in known]
    while ordered and ordered[-1] is None:
        ordered.pop()
    return ordered


def _call(build: Translator, name: str, signature: Signature, arguments: list[Code | None]) -> Code:
    values: list[Code | None] = []
    for at, code in enumerate(arguments):
        ty = signature.types[min(at, len(signature.types) - 1)]
        name_ = signature.names[min(at, len(signature.names) - 1)]
        is_absent = code is None or (code.ty.kind == "null" and name_.endswith("~"))
        if is_absent or code is None:
            values.append(None)
        elif code.ty.kind == "null" and not signature.takes_null:
            return null(signature.returns or Ty("null", is_nullable=True), build.records)
        else:
            values.append(code if ty is None else _argument(build, name, code, ty))
    return signature.translate(build, *values)


def _argument(build: Translator, name: str, code: Code, ty: Ty) -> Code:
    if code.ty.kind == "null":
        return null(ty, build.records)
    if code.closure is not None or code.range is not None:
        raise type_error(f"`{name}` takes a {ty.describe()}, and this is a {code.ty.kind}")
    try:
        return build.coerce(code, ty)
    except Refusal as refusal:
        if refusal.category != "null by a type error":
            raise
        raise type_error(f"`{name}` takes a {ty.describe()}, and this is a {code.ty.describe()}") from None


def builtin_closure(build: Translator, name: str) -> Code | None:
    """Return a function of the library as a value; None where there is none."""
    _load()
    if name not in FUNCTIONS:
        return None
    signature = FUNCTIONS[name][0]
    names = tuple(each.rstrip("?~…") for each in signature.names[: max(signature.least, 1)])

    def call(arguments: list[Code]) -> Code:
        return call_builtin(build, name, arguments, ())

    return Code("", Ty("function"), closure=Closure(names, (None,) * len(names), call))


def _load() -> None:
    """Import the modules that declare functions."""
    from vesper.importers.dmn.functions import (  # noqa: F401  # imported for their declarations
        context_functions,
        list_functions,
        number_functions,
        range_functions,
        text_functions,
        time_functions,
    )
