"""Entities of declarations: inputs, outputs, types, constants, parameters, functions, clauses, cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from vesper.changes.diff.forms import Names, form_of, tree_form, tree_text
from vesper.changes.diff.model import Entity, Group, Level, Part
from vesper.changes.diff.tables import table_groups, table_parts
from vesper.changes.diff.version import Texts
from vesper.language.syntax import ast, case_ast, library_ast
from vesper.language.syntax.yaml_tree import Mapping, Tree

_NO_NAMES = Names()


class Outline:
    """Writes entities of one document; `names` are the new names of its declarations."""

    def __init__(self, texts: Texts, names: Names = _NO_NAMES) -> None:
        self.texts = texts
        self.names = names

    # -- parts ------------------------------------------------------------------------------------

    def expression(self, given: ast.Expression, kind: str = "", bound: Iterable[str] = ()) -> Part:
        locals_ = {name: place for place, name in enumerate(bound)}
        form = form_of(given, self.names, locals_)
        return Part(form, self.texts.expression(given), self.texts.line(given.span), kind, expression=given)

    def type(self, given: ast.TypeText) -> Part:
        return Part(form_of(given, self.names), self.texts.text(given.span), self.texts.line(given.span))

    def word(self, given: ast.Word, level: Level = "meaning", form: str | None = None) -> Part:
        return Part(given.text if form is None else form, given.text, self.texts.line(given.span), level=level)

    def tree(self, given: Tree, kind: str = "", level: Level = "meaning") -> Part:
        return Part(tree_form(given), tree_text(given), self.texts.line(given.span), kind, level)

    def tree_parts(self, given: Tree, prefix: str = "", kind: str = "") -> dict[str, Part]:
        """Return a part for each leaf of nested mappings, labelled by its path."""
        if not isinstance(given, Mapping):
            return {prefix: self.tree(given, kind)}
        found: dict[str, Part] = {}
        for key, value in given.entries:
            found |= self.tree_parts(value, f"{prefix}.{key.text}" if prefix else key.text, kind)
        return found

    # -- inputs, outputs, types -------------------------------------------------------------------

    def inputs(self, listed: Sequence[ast.Input]) -> Group:
        return Group(tuple(map(self._input, listed)), "text", "callers name the inputs")

    def _input(self, given: ast.Input) -> Entity:
        name = self.names.of("value", given.name.text)
        type_ = self.type(given.type)
        if not given.is_required:
            type_ = replace(type_, form=("optional", type_.form), text=f"{type_.text}, not required")
        parts = {"type": type_}
        if given.default is not None:
            parts["default"] = self.tree(given.default)
        parts |= self._outside(given)
        groups = {"constraints": Group(tuple(map(self._constraint, given.constraints)))}
        return self._named("input", given.name, parts, groups, of=name, name_level="meaning")

    def fields(self, kind: str, listed: Sequence[ast.Output], of: str | None = None) -> Group:
        """Return outputs, error fields, or the fields of a record."""
        entities = []
        for each in listed:
            name = each.name.text if of is None else self.names.of(of, each.name.text)
            parts = {"type": self.type(each.type), **self._outside(each)}
            entities.append(self._named(kind, each.name, parts, of=name, name_level="meaning"))
        return Group(tuple(entities), "text", "callers name them")

    def _outside(self, given: ast.Input | ast.Output) -> dict[str, Part]:
        found: dict[str, Part] = {}
        if given.outside is not None:
            found["outside name"] = self.word(given.outside)
        if given.flag is not None:
            flag = self.names.of("value", given.flag.text)
            found["flag of absence"] = self.word(given.flag, form=flag)
        return found

    def _constraint(self, given: ast.Constraint | ast.Clause) -> Entity:
        if isinstance(given, ast.Clause):
            return self.clause("constraint", given)
        text = given.name.text if given.bound is None else f"{given.name.text}: {given.bound.text}"
        parts = {} if given.bound is None else {"bound": self.tree(given.bound)}
        line = self.texts.line(given.span)
        title = f"constraint `{given.name.text}`"
        return Entity("constraint", given.name.text, title, parts, line=line, text=text)

    def types(self, listed: Sequence[ast.RecordType | ast.NamedType]) -> Group:
        return Group(tuple(map(self._type, listed)), "text", "types are named")

    def _type(self, given: ast.RecordType | ast.NamedType) -> Entity:
        groups = {"constraints": Group(tuple(map(self._constraint, given.constraints)))}
        parts: dict[str, Part] = {}
        if isinstance(given, ast.RecordType):
            groups["fields"] = self.fields("field", given.fields)
            if given.rest is not None:
                parts["rest"] = self.word(given.rest)
        else:
            parts["type"] = self.type(given.type)
            for member, outside in given.outside:
                parts[f"outside name of {member.text}"] = replace(self.word(outside), kind="outside_name")
        return self._named("type", given.name, parts, groups, of=self.names.of("type", given.name.text))

    # -- constants, parameters, functions ---------------------------------------------------------

    def constants(self, listed: Sequence[ast.Constant]) -> Group:
        found = []
        for each in listed:
            parts = {"type": self.type(each.type), "value": self.tree(each.value)}
            found.append(self._named("constant", each.name, parts, of=self.names.of("value", each.name.text)))
        return Group(tuple(found), "text", "constants are named")

    def parameters(self, listed: Sequence[library_ast.Parameter]) -> Group:
        return Group(tuple(map(self._parameter, listed)), "text", "parameters are named")

    def _parameter(self, given: library_ast.Parameter) -> Entity:
        line = self.texts.line(given.name.span)
        parts: dict[str, Part] = {}
        if given.type is not None:
            parts["type"] = self.type(given.type)
        if given.scale is not None:
            parts["scale"] = Part(given.scale, given.scale, line)
        if given.unit is not None:
            parts["unit"] = Part(given.unit, given.unit, line, level="text")
        if given.reference is not None:
            parts["source"] = Part(given.reference, given.reference, line, level="text")
        entries = Group(tuple(map(self._parameter_value, given.entries)))
        name = self.names.of("value", given.name.text)
        return self._named("parameter", given.name, parts, {"values": entries}, of=name, name_level="meaning")

    def _parameter_value(self, given: library_ast.ParameterEntry) -> Entity:
        since = given.since.text
        parts = {"value": self.tree(given.value)}
        if given.reference is not None:
            parts["source"] = self.word(given.reference, "text")
        line = self.texts.line(given.since.span)
        title, text = f"value since {since}", tree_text(given.value)
        return Entity("parameter_value", since, title, parts, line=line, text=text, name_level="meaning")

    def functions(self, listed: Sequence[ast.Function]) -> Group:
        return Group(tuple(map(self._function, listed)), "text", "functions are named")

    def _function(self, given: ast.Function) -> Entity:
        bound = tuple(each.name.text for each in given.parameters)
        shown = ", ".join(f"{each.name.text}: {self.texts.text(each.type.span)}" for each in given.parameters)
        taken = tuple(form_of(each.type, self.names) for each in given.parameters)
        parts = {"parameters": Part(taken, shown, self.texts.line(given.name.span))}
        groups: dict[str, Group] = {}
        if given.returns is not None:
            parts["type"] = self.type(given.returns)
        if given.max_depth is not None:
            parts["max_depth"] = self.tree(given.max_depth)
        if isinstance(given.value, ast.DecisionTable):
            parts |= table_parts(self, given.value)
            groups |= table_groups(self, given.value, bound)
        else:
            parts["value"] = self.expression(given.value, bound=bound)
        name = self.names.of("function", given.name.text)
        kind = "table" if isinstance(given.value, ast.DecisionTable) else "function"
        return self._named(kind, given.name, parts, groups, of=name)

    # -- contracts and tests ----------------------------------------------------------------------

    def clauses(self, kind: str, listed: Sequence[ast.Clause], outputs: frozenset[str] = frozenset()) -> Group:
        own = Outline(self.texts, replace(self.names, outputs=outputs)) if outputs else self
        why = "of several broken clauses the first is reported"
        return Group(tuple(own.clause(kind, each) for each in listed), "text", why)

    def clause(self, kind: str, given: ast.Clause) -> Entity:
        part = self.expression(given.holds)
        return Entity(kind, None, kind, {"condition": part}, line=part.line, text=part.text)

    def cases(self, listed: Sequence[case_ast.TestCase]) -> Group:
        return Group(tuple(map(self._case, listed)))

    def _case(self, given: case_ast.TestCase) -> Entity:
        parts = self._named_trees("input", given.inputs) | self._named_trees("expected", given.expect)
        parts |= self._named_trees("error", given.error or ())
        for label, word in (("breaks", given.breaks), ("fails", given.fails)):
            if word is not None:
                parts[label] = self.word(word)
        if given.now is not None:
            parts["now"] = self.tree(given.now)
        for place, effect in enumerate(given.effects):
            form = form_of((effect.request, effect.returns, effect.fails), self.names)
            text = effect.step.text if effect.fails is None else f"{effect.step.text} fails: {effect.fails.text}"
            if effect.returns is not None:
                text = f"{effect.step.text} returns {tree_text(effect.returns)}"
            step = self.names.of_value(effect.step.text)
            parts[f"effect {place + 1}"] = Part((step, form), text, self.texts.line(effect.step.span), "effect")
        return self._tested("case", given.name, parts)

    def _named_trees(self, kind: str, listed: Iterable[tuple[ast.Word, Tree]]) -> dict[str, Part]:
        names = {"input": "value", "expected": "output", "error": "error"}
        return {f"{kind} {self.names.of(names[kind], name.text)}": self.tree(value, kind) for name, value in listed}

    def properties(self, listed: Sequence[case_ast.Property]) -> Group:
        found = []
        for each in listed:
            parts = {"holds": self.expression(each.holds)} | self._named_trees("input", each.given)
            if each.where is not None:
                parts["where"] = self.expression(each.where)
            if each.varied is not None:
                text = ", ".join(word.text for word in each.varied)
                parts["varied"] = Part(text, text, self.texts.line(each.name.span))
            found.append(self._tested("property", each.name, parts))
        return Group(tuple(found))

    def _tested(self, kind: str, name: ast.Word, parts: dict[str, Part]) -> Entity:
        tested = {label: replace(part, level="tests") for label, part in parts.items()}
        return replace(self._named(kind, name, tested), level="tests")

    # -- state machines ---------------------------------------------------------------------------

    def machines(self, listed: Sequence[ast.StateMachine]) -> Group:
        found = []
        for each in listed:
            parts = {"initial state": self.word(each.initial)}
            for state, targets in each.transitions:
                text = ", ".join(word.text for word in targets)
                form = frozenset(word.text for word in targets)
                label = f"transitions from {state.text}"
                parts[label] = Part(form, text, self.texts.line(state.span), "transitions")
            found.append(self._named("state machine", each.name, parts, name_level="meaning"))
        return Group(tuple(found))

    # -- names ------------------------------------------------------------------------------------

    def _named(
        self,
        kind: str,
        name: ast.Word,
        parts: dict[str, Part],
        groups: dict[str, Group] | None = None,
        of: str | None = None,
        name_level: Level = "text",
    ) -> Entity:
        """Return an entity with a name; `of` is the name that the other version has for it."""
        shown = name.text if of is None else of
        text = "; ".join(part.text if label in ("type", "value") else f"{label} {part.text}"
                         for label, part in parts.items())  # fmt: skip
        return Entity(
            kind, shown, f"{kind} `{name.text}`", parts, groups or {}, self.texts.line(name.span), text,
            name_level=name_level,
        )  # fmt: skip
