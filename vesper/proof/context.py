"""Everything that is asserted together: facts, names of functions, failure codes and literals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import z3

from vesper.proof.bounds import PROOF, Bounds, TooLarge
from vesper.proof.terms import Term, both, either, integer, is_same

if TYPE_CHECKING:
    from vesper.proof.symbols import Symbolic

MAX_LEVEL = 2
"""Elements of elements at which universal facts are instantiated."""

EntryFacts: TypeAlias = "Callable[[Symbolic, Term, Symbolic], None]"
"""Gets a key that is looked up, whether the map has it, and its value."""
ABSTRACT = "?"
"""First character of the name of a function that stands for something without an encoding."""


class Context:
    """Terms of one or two nodes. Equal operands of a function that has no encoding have equal results."""

    def __init__(self, bounds: Bounds = PROOF) -> None:
        self.bounds = bounds
        self.facts: list[Term] = []
        """What is true of the terms so far, for every input."""
        self.definitions: list[Term] = []
        """Facts that are not linear; a query asserts them only where it is open without them."""
        self.is_bounded = False
        """Whether only a part of the inputs was explored."""
        self.level = 0
        """Nesting of the elements at which universal facts are instantiated."""
        self.entry_facts: dict[int, tuple[Term, EntryFacts]] = {}
        """Makers of facts about the entries of a map that a `for` builds, by the id of its identity."""
        self.member_facts: dict[int, tuple[Term, Callable[[Symbolic], Term]]] = {}
        """Makers of the condition that a value is a member of a set, by the id of its identity."""
        self.ranked: dict[str, Term] = {}
        """Places in the order of texts, of the literals that take part in comparisons."""
        self._sorts: dict[str, Term] = {}
        self._codes: list[str] = []
        self._members: dict[str, int] = {}
        self._literals: dict[tuple[str, str], Term] = {}
        self._literal_values: dict[str, dict[int, object]] = {}
        self._size = 0
        self._known: set[int] = set()
        self._described: dict[int, Term] = {}

    # -- facts -------------------------------------------------------------------------------------

    def assume(self, *facts: Term) -> None:
        """Add facts that hold for every input."""
        for fact in facts:
            if not z3.is_true(fact) and fact.get_id() not in self._known:
                self._known.add(fact.get_id())
                self.facts.append(fact)
                self.grow()

    def mark_described(self, term: Term) -> bool:
        """Record that the facts about a term are described, and return whether they were not before."""
        return self._described.setdefault(term.get_id(), term) is term

    def define(self, definition: Term) -> bool:
        """Add a definition that is not linear, and return whether it is new."""
        if definition.get_id() in self._known:
            return False
        self._known.add(definition.get_id())
        self.definitions.append(definition)
        return True

    def grow(self) -> None:
        self._size += 1
        if self._size > self.bounds.max_terms:
            raise TooLarge(f"more than {self.bounds.max_terms:,} terms")

    def apply(self, name: str, args: Sequence[Term], sort: Term) -> Term:
        """Return the application of a function, or a constant where it has no operands."""
        self.grow()
        if not args:
            return z3.Const(name, sort)
        return z3.Function(name, *[each.sort() for each in args], sort)(*args)

    def sort(self, name: str) -> Term:
        """Return the sort of values that are known only by equality."""
        found = self._sorts.get(name)
        if found is None:
            found = self._sorts[name] = z3.DeclareSort(name)
        return found

    # -- names with numbers ------------------------------------------------------------------------

    def code(self, text: str) -> int:
        """Return the number of a failure code. Those of HTTP are their status."""
        if text.startswith("http_") and text[5:].isdigit():
            return int(text[5:])
        if text not in self._codes:
            self._codes.append(text)
        return 1000 + self._codes.index(text)

    def code_text(self, code: int) -> str:
        return f"http_{code}" if code < 1000 else self._codes[code - 1000]

    def member(self, name: str) -> int:
        """Return the number of a member of enums, the same in every enum that has it."""
        return self._members.setdefault(name, len(self._members))

    def member_name(self, number: int) -> str | None:
        return next((name for name, own in self._members.items() if own == number), None)

    def is_member(self, term: Term, members: Sequence[str]) -> Term:
        """Return whether a number is that of one of the members."""
        codes = sorted(self.member(each) for each in members)
        if codes == list(range(codes[0], codes[-1] + 1)):
            return both(term >= codes[0], term <= codes[-1])
        return either(*(is_same(term, integer(each)) for each in codes))

    # -- literals of sorts without arithmetic ------------------------------------------------------

    def literal(self, sort: str, text: str, value: object) -> Term:
        """Return the constant of a literal; constants of different texts differ."""
        found = self._literals.get((sort, text))
        if found is None:
            number = len(self._literals)
            found = self.apply(f"{sort} {text!r}", (), self.sort(sort))
            self._literals[sort, text] = found
            self._literal_values.setdefault(sort, {})[found.get_id()] = value
            self.assume(self.apply(f"number of {sort}", (found,), z3.IntSort()) == number)
        return found

    def literal_value(self, sort: str, term: Term) -> object | None:
        """Return the value of a term that is a literal."""
        return self._literal_values.get(sort, {}).get(term.get_id())

    def literals(self, sort: str) -> list[tuple[str, Term]]:
        return [(text, term) for (own, text), term in self._literals.items() if own == sort]

    # -- abstraction -------------------------------------------------------------------------------

    def is_exact(self, *terms: Term) -> bool:
        """Return whether no function without an encoding takes part in the terms."""
        waiting, seen = list(terms), set[int]()
        while waiting:
            term = waiting.pop()
            if term.get_id() in seen:
                continue
            seen.add(term.get_id())
            if z3.is_app(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED and term.decl().name()[0] == ABSTRACT:
                return False
            waiting += term.children()
        return True
