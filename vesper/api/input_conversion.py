"""Convert a caller's objects to plain ones: dataclasses, pydantic models, members of Python enums, JSON text.

Produces dicts, lists and scalars, which every engine accepts. The engines decide which inputs fit; a value that cannot
be converted stays as it is, and the engine refuses it. docs/spec/values.md is the definition: no method and no property
of a caller's class is called.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from keyword import iskeyword
from types import MemberDescriptorType
from typing import Any, ClassVar, Protocol, TypeAlias

from vesper.api.json_source import JsonSource, Mistake
from vesper.api.spelled_declarations import spelled_declarations
from vesper.language.ir import nodes as ir
from vesper.values.base_types import is_a
from vesper.values.inputs import accept_inputs
from vesper.values.json_forms import has_names, input_of_json
from vesper.values.json_mistake import JsonMistake
from vesper.values.model import MAX_ENTRIES
from vesper.values.model import plain as plain_value
from vesper.values.outside_names import to_inside, to_outside
from vesper.values.problem import Problem, ProblemKind
from vesper.values.strict_json import forms_of_json
from vesper.values.types import ArrayOf, Enum, MapOf, OptionalOf, Outside, Record, SetOf, Type

Declared: TypeAlias = Mapping[str, Type]


class DataclassInstance(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


class PydanticModel(Protocol):
    __pydantic_fields__: ClassVar[Any]


Model: TypeAlias = DataclassInstance | PydanticModel
"""For type checkers: an object that is read by its fields."""


@dataclass(slots=True)
class Plain:
    """Inputs as an engine accepts them."""

    inputs: dict[str, object]
    kinds: dict[str, ProblemKind] = field(default_factory=dict)
    """Problems that only the caller's objects show, by path."""
    changed: bool = False
    """Whether any object differs from the caller's."""
    source: JsonSource | None = None
    """The JSON text that the inputs came as."""
    refused: tuple[Problem, ...] = ()
    """The problems of a text that no engine reads: one that is no object, or one with outside names."""

    def caller_problem(self, problem: Problem) -> Problem:
        """Return the problem of the caller's object behind one that the engine reports."""
        return Problem(problem.path, self.kinds.get(problem.path, problem.kind))


class _DuplicateKeys:
    """Marker of two map keys that are equal only after conversion.

    Every engine refuses it at its path.
    """


# -- objects --------------------------------------------------------------------------------------


def fields_of(given: object) -> dict[str, object] | None:
    """Return the fields of a dataclass instance or a pydantic model, read from the instance; None for other objects."""
    kind = type(given)
    if is_dataclass(kind):
        return _read_fields(given, [each.name for each in fields(kind)])
    models = getattr(kind, "__pydantic_fields__", None) or getattr(kind, "model_fields", None)
    if isinstance(models, dict) and all(is_a(name, str) for name in models):
        return _read_fields(given, list(models))
    return None


def declared_fields(given: object, declared: Collection[str]) -> dict[str, object] | None:
    """Return the fields of a dataclass instance or a pydantic model by their declared names.

    A field `from_` is the declared `from`, which no class can have. None for other objects.
    """
    found = fields_of(given)
    if found is None:
        return None
    return {
        name[:-1] if name not in declared and iskeyword(name[:-1]) and name == f"{name[:-1]}_" else name: each
        for name, each in found.items()
    }


def _read_fields(given: object, names: Sequence[str]) -> dict[str, object]:
    try:
        stored: Any = object.__getattribute__(given, "__dict__")
    except AttributeError:
        stored = {}
    found: dict[str, object] = {}
    for name in names:
        if name in stored:
            found[name] = stored[name]
            continue
        # A field is in a slot, or a default that the class holds. A property is neither.
        held = next((vars(each)[name] for each in type(given).__mro__ if name in vars(each)), None)
        if isinstance(held, MemberDescriptorType):
            try:
                found[name] = held.__get__(given)
            except AttributeError:  # the slot is empty
                continue
        elif held is not None and not hasattr(type(held), "__get__"):
            found[name] = held
    return found


def plain_inputs(declared: Declared, given: Mapping[str, object]) -> Plain:
    """Return the inputs without objects of the caller's classes. `given` is a dict, or the fields of an object."""
    plain = Plain({})
    plain.inputs = {
        name: _convert(declared[name], each, name, plain) if name in declared else each for name, each in given.items()
    }
    return plain


def _convert(type_: Type, given: object, path: str, plain: Plain) -> object:
    match type_:
        case OptionalOf(inner):
            return None if given is None else _convert(inner, given, path, plain)
        case Enum():
            return _member_text(given, plain)
        case ArrayOf(element) if holds_objects(element):
            return _items(element, given, path, plain)
        case SetOf(Enum()):
            return _members(given, path, plain)
        case MapOf(key, value) if holds_objects(key) or holds_objects(value):
            return _entries(type_, given, path, plain)
        case Record():
            return _record(type_, given, path, plain)
        case _:
            return given


def holds_objects(type_: Type) -> bool:
    """Return whether a value of this type may be an object that only the API converts."""
    match type_:
        case Record() | Enum():
            return True
        case OptionalOf(inner) | ArrayOf(inner) | SetOf(inner):
            return holds_objects(inner)
        case MapOf(key, value):
            return holds_objects(key) or holds_objects(value)
        case _:
            return False


def _member_text(given: object, plain: Plain) -> object:
    if not is_a(given, enum.Enum) or is_a(given, str):
        return given  # a member that is a string counts as its text
    text = object.__getattribute__(given, "__dict__").get("_value_")
    if not is_a(text, str):
        return given
    plain.changed = True
    return text


def _items(element: Type, given: object, path: str, plain: Plain) -> object:
    items = _sequence(given)
    if items is None:
        return given
    return [_convert(element, item, f"{path}[{index}]", plain) for index, item in enumerate(items)]


def _sequence(given: object) -> Sequence[object] | None:
    """Return the items of a list or tuple, read by the base type; None for other objects, and for too many items."""
    if is_a(given, list):
        return list(list.__iter__(given)) if list.__len__(given) <= MAX_ENTRIES else None
    if is_a(given, tuple):
        return tuple(tuple.__iter__(given)) if tuple.__len__(given) <= MAX_ENTRIES else None
    return None


def _members(given: object, path: str, plain: Plain) -> object:
    if is_a(given, set):
        members = list(set.__iter__(given))
    elif is_a(given, frozenset):
        members = list(frozenset.__iter__(given))
    else:
        items = _sequence(given)
        return given if items is None else [_member_text(item, plain) for item in items]
    if len(members) > MAX_ENTRIES:
        return given
    texts = [_member_text(member, plain) for member in members]
    found = frozenset(texts)
    if len(found) < len(texts):
        plain.kinds[path] = ProblemKind.DUPLICATE
        return _DuplicateKeys()
    return found


def _entries(type_: MapOf, given: object, path: str, plain: Plain) -> object:
    if not is_a(given, dict) or dict.__len__(given) > MAX_ENTRIES:
        return given
    found: dict[object, object] = {}
    for key, value in dict.items(given):
        text = _member_text(key, plain) if isinstance(type_.key, Enum) else key
        if is_a(text, str):
            text = str.__str__(text)  # the lookup must call nothing that a subclass overrides
        if text in found:
            plain.kinds[path] = ProblemKind.DUPLICATE
            return _DuplicateKeys()
        shown = json.dumps(text, ensure_ascii=False) if isinstance(text, str) else str(text)
        found[text] = _convert(type_.value, value, f"{path}[{shown}]", plain)
    return found


def _record(type_: Record, given: object, path: str, plain: Plain) -> object:
    found: dict[Any, object] | None
    types = dict(type_.fields)
    if is_a(given, dict):
        found = dict(dict.items(given))
    else:
        found = declared_fields(given, types)
        if found is None:
            return given
        plain.changed = True
    return {
        name: _convert(types[name], each, f"{path}.{name}", plain) if name in types else each
        for name, each in found.items()
    }


# -- JSON -----------------------------------------------------------------------------------------


def inputs_of_json(inputs: tuple[ir.Input, ...], text: str | bytes | bytearray) -> Plain:
    """Return the inputs of a JSON text by their inside names, or its problems. Numbers are read from their text."""
    decoded, mistake = _decode(text)
    source = JsonSource(decoded, mistake)
    forms: object = None
    if mistake is None:
        try:
            forms = forms_of_json(decoded)
        except JsonMistake as found:
            source.mistake = Mistake(found.offset, found.what, found.kind)
    if source.mistake is not None:
        return Plain({}, source=source, refused=(Problem("", source.mistake.kind),))
    return inputs_of_forms(inputs, forms, source)


def inputs_of_forms(inputs: tuple[ir.Input, ...], forms: object, source: JsonSource | None = None) -> Plain:
    """Return the inputs of a parsed JSON text (`forms_of_json`) by their inside names, or its problems."""
    whole, spelled = spelled_declarations(inputs)
    if not isinstance(forms, dict):
        return Plain({}, source=source, refused=(Problem("", ProblemKind.WRONG_TYPE),))
    plain = Plain({}, changed=True, source=source)
    declared = dict(spelled.fields)
    for name, form in forms.items():
        if name in declared:
            form = input_of_json(declared[name], _without_repeats(declared[name], form, name, plain))
        plain.inputs[name] = form
    if spelled is not whole:
        _read_outside(inputs, whole, spelled, plain)
    return plain


def _read_outside(inputs: Sequence[ir.Input], whole: Record, spelled: Record, plain: Plain) -> None:
    """Read inputs with outside names, which no engine takes as objects.

    They are replaced by inputs with inside names, or refused.
    """
    outside = whole.outside or Outside()
    defaults = {
        outside.name_of(each.name): None if each.default is None else to_outside(each.type, each.default)
        for each in inputs
    }
    values, problems = accept_inputs([(name, type_, defaults[name]) for name, type_ in spelled.fields], plain.inputs)
    if problems:
        plain.refused = tuple(map(plain.caller_problem, problems))
        return
    given = {name: plain_value(value) for name, value in values.items()}
    plain.inputs = to_inside(whole, given) | {
        flag: outside.name_of(name) not in plain.inputs for name, flag in outside.flags
    }


def _decode(text: str | bytes | bytearray) -> tuple[str, Mistake | None]:
    """Return the text, and the mistake of bytes that are no text. Objects are read by their base types."""
    if is_a(text, str):
        return str.__str__(text), None
    assert is_a(text, bytes) or is_a(text, bytearray)
    data = bytes(memoryview(text))
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        offset = len(data[: error.start].decode("utf-8"))
        what = f"the byte 0x{data[error.start]:02x} is not UTF-8, which JSON text is written in"
        return data.decode("utf-8", errors="replace"), Mistake(offset, what)


def _without_repeats(type_: Type, form: Any, path: str, plain: Plain) -> Any:
    """Return the form with `_DuplicateKeys` for every array of pairs that repeats a key."""
    match type_, form:
        case OptionalOf(inner), _:
            return _without_repeats(inner, form, path, plain)
        case ArrayOf(element), list():
            return [_without_repeats(element, item, f"{path}[{index}]", plain) for index, item in enumerate(form)]
        case MapOf(key, value), list() if not has_names(key):
            pairs = [item for item in form if isinstance(item, list) and len(item) == 2]
            keys = [item[0] for item in pairs if isinstance(item[0], bool | int | str)]
            if len(pairs) < len(form) or len(keys) < len(pairs):
                return form  # no map: refused as such
            if len(set(keys)) < len(keys):
                plain.kinds[path] = ProblemKind.DUPLICATE
                return _DuplicateKeys()
            return [[name, _without_repeats(value, item, f"{path}[{name}]", plain)] for name, item in pairs]
        case MapOf(_, value), dict():
            return {
                name: _without_repeats(value, item, f"{path}[{json.dumps(name, ensure_ascii=False)}]", plain)
                for name, item in form.items()
            }
        case Record() as record, dict():
            types = dict(record.fields)  # outside names, by `spelled_type`
            return {
                name: _without_repeats(types[name], item, f"{path}.{name}", plain) if name in types else item
                for name, item in form.items()
            }
        case _:
            return form
