"""Types of item definitions."""

from __future__ import annotations

from vesper.importers.dmn.model import ItemDefinition, Model
from vesper.importers.dmn.types import ANY, SIMPLE, Ty, context_of, list_of


def item_types(model: Model, prefix: str = "", _seen: frozenset[str] = frozenset()) -> dict[str, Ty]:
    """Return the type of each item definition by name, with those of imported models as `import.name`."""
    if model.namespace in _seen:
        return {}
    found: dict[str, Ty] = {}
    for name, inner in model.imports.items():
        found.update(item_types(inner, f"{prefix}{name}.", _seen | {model.namespace}))
    for name, item in model.items.items():
        ty = _type(item, model, frozenset({name}))
        if ty is not None:
            found[f"{prefix}{name}"] = ty
        if item.components:
            for component in item.components:
                inner_type = _type(component, model, frozenset({name}))
                if inner_type is not None:
                    found.setdefault(f"{prefix}{name}.{component.name}", inner_type)
    return found


def _type(item: ItemDefinition, model: Model, seen: frozenset[str]) -> Ty | None:
    """Return the type of an item; None for one without a structure of values: functions, and types in themselves."""
    if item.is_function:
        return None
    ty: Ty | None
    if item.components:
        fields = {}
        for component in item.components:
            inner = _type(component, model, seen)
            fields[component.name] = ANY if inner is None else inner
        ty = context_of(fields)
    else:
        ty = _reference(item.type_ref, model, seen)
    if ty is None:
        return None
    return list_of(ty) if item.is_collection else ty


def _reference(name: str, model: Model, seen: frozenset[str]) -> Ty | None:
    name = name.rpartition(":")[2].strip()
    if name in model.items and name not in seen:
        return _type(model.items[name], model, seen | {name})
    if name in SIMPLE:
        return SIMPLE[name]
    if name in seen:
        return None
    prefix, _, rest = name.partition(".")
    if rest and prefix in model.imports:
        return _reference(rest, model.imports[prefix], frozenset())
    if rest and prefix in model.items:
        component = next((each for each in model.items[prefix].components if each.name == rest), None)
        return None if component is None else _type(component, model, seen | {prefix})
    return ANY if not name else None


def property_names(model: Model, _seen: frozenset[str] = frozenset()) -> set[str]:
    """Return all names of fields, entries and elements that a path may have."""
    if model.namespace in _seen:
        return set()
    found: set[str] = set()
    stack = list(model.items.values())
    while stack:
        item = stack.pop()
        found.add(item.name)
        stack.extend(item.components)
    for decision in model.decisions.values():
        found |= {decision.name} | _entry_names(decision.logic)
    for knowledge in model.knowledge.values():
        found |= {knowledge.name} | _entry_names(knowledge.function)
    found |= {each.name for each in model.services.values()}
    found |= {each.name for each in model.inputs.values()}
    for inner in model.imports.values():
        found |= property_names(inner, _seen | {model.namespace})
    return {name for name in found if name}


def _entry_names(box: object) -> set[str]:
    """Return names of context entries, relation columns and table outputs at any depth."""
    found: set[str] = set()
    stack = [box]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack.extend(part)
            continue
        slots = getattr(type(part), "__slots__", ())
        if "name" in slots:
            found.add(getattr(part, "name", ""))
        stack.extend(getattr(part, slot) for slot in slots if slot not in ("name", "type_ref", "line", "model"))
    return found
