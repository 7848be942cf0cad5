"""Runs the program of a pattern over a text, in time of at most instructions × (code points + 1).

All ways through the program go along the text together, one code point at a time, in the order in which a backtracking
search would try them; of two that stand at the same instruction the later one can never be preferred and is dropped.
`Finder` carries with each way where it started and what its groups hold. `Recognizer` asks only whether there is a
match: it remembers which ways each code point leads to, so that a text is mostly read by looking up one dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from vesper.kernels.regex.program import JUMP, MATCH, SAVE, SPLIT, TAKE, WORD, Program, program_of

Slots: TypeAlias = tuple[int, ...]
"""Where the match and each group start and end; -1 for what took no part."""

_MAX_STEPS = 10_000
"""So many steps a recognizer remembers; past that it starts again, so that no text takes memory without bound."""


def _holds(anchor: str, before: str, after: str) -> bool:
    """Whether an anchor holds between two code points; nothing stands before the start and after the end."""
    match anchor:
        case "^":
            return before == ""
        case "$":
            return after == ""
        case "b":
            return (before in WORD) != (after in WORD)
        case _:
            return (before in WORD) == (after in WORD)


class Finder:
    """Finds matches with their positions."""

    def __init__(self, program: Program, text: str, *, with_groups: bool = False) -> None:
        self._program = program
        self._text = text
        self._slot_count = 2 * (program.group_count + 1) if with_groups else 2
        self._seen = [0] * len(program.instructions)
        """The step at which an instruction was last reached."""
        self._step = 0
        self._idle: set[tuple[bool, str]] = set()
        """Where no match starts: after a code point of a word or another one, and before which."""

    def find_all(self) -> Iterator[Slots]:
        """All matches from left to right; an empty one not where the one before it ended."""
        position, last_end = 0, -1
        while position <= len(self._text):
            found = self.find(position)
            if found is None:
                return
            start, end = found[:2]
            if start == end == last_end:
                position = end + 1
            else:
                yield found
                position = last_end = end

    def find(self, start: int) -> Slots | None:
        """The leftmost match that starts at this position or after it, and there the preferred one."""
        text, instructions = self._text, self._program.instructions
        unset = (-1,) * (self._slot_count - 1)
        found: Slots | None = None
        ways: list[tuple[int, Slots]] = []
        for position in range(start, len(text) + 1):
            after = text[position : position + 1]
            before = text[position - 1 : position] if position else ""
            surroundings = (before in WORD, after)
            is_fresh = not ways and found is None
            if is_fresh and position and surroundings in self._idle:
                continue
            self._step += 1
            reached: list[tuple[int, Slots]] = []
            for way, slots in ways:
                self._follow(way, slots, position, before, after, reached)
            if found is None:
                # A match that starts here is preferred to none, but not to a way that started before.
                self._follow(0, (position, *unset), position, before, after, reached)
            sets = self._program.sets_with(after) if after else frozenset[int]()
            ways = []
            for way, slots in reached:
                if instructions[way].kind == MATCH:
                    found = (slots[0], position, *slots[2:])
                    break  # what comes after it is less preferred
                if instructions[way].first in sets:
                    ways.append((way + 1, slots))
            if not ways and found is not None:
                break
            if is_fresh and not ways and position:
                self._idle.add(surroundings)
        return found

    def _follow(
        self, start: int, slots: Slots, position: int, before: str, after: str, reached: list[tuple[int, Slots]]
    ) -> None:
        """Adds the instructions that take a code point, or end the match, and that `start` leads to."""
        instructions, seen, step = self._program.instructions, self._seen, self._step
        waiting = [(start, slots)]
        while waiting:
            at, slots = waiting.pop()
            while seen[at] != step:
                seen[at] = step
                instruction = instructions[at]
                kind = instruction.kind
                if kind in (TAKE, MATCH):
                    reached.append((at, slots))
                    break
                if kind == SPLIT:
                    waiting.append((instruction.second, slots))
                    at = instruction.first
                elif kind == JUMP:
                    at = instruction.first
                elif kind == SAVE:
                    slot = instruction.first
                    if slot < len(slots):
                        slots = (*slots[:slot], position, *slots[slot + 1 :])
                    at += 1
                elif _holds(instruction.anchor, before, after):
                    at += 1
                else:
                    break


class _State:
    """The ways that are open between two code points, before anchors are looked at, and where they lead."""

    __slots__ = ("before", "next", "ways")

    def __init__(self, ways: frozenset[int], before: str) -> None:
        self.ways = ways
        self.before = before
        """One code point of the kind that stands before: of a word, another one, none at the start."""
        self.next: dict[str, _State] = {}
        """By code point, and by nothing for the end of the text."""


_MATCHED = _State(frozenset(), "")
"""Where every way ends that has found a match."""


class Recognizer:
    """Answers whether a pattern matches anywhere in a text."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._step_count = 0

    def matches(self, text: str) -> bool:
        state = self._state(frozenset(), "")
        for character in text:
            state = state.next.get(character) or self._take(state, character)
            if state is _MATCHED:
                return True
        return (state.next.get("") or self._take(state, "")) is _MATCHED

    def _state(self, ways: frozenset[int], before: str) -> _State:
        return self._states.setdefault((ways, before), _State(ways, before))

    def _take(self, state: _State, after: str) -> _State:
        """The state after this code point; remembered."""
        self._step_count += 1
        if self._step_count > _MAX_STEPS:
            self._states.clear()
            self._step_count = 0
        instructions = self._program.instructions
        sets = self._program.sets_with(after) if after else frozenset[int]()
        ways: set[int] = set()
        following = state
        for at in self._reached(state, after):
            if instructions[at].kind == MATCH:
                following = _MATCHED
                break
            if instructions[at].first in sets:
                ways.add(at + 1)
        else:
            if after:
                following = self._state(frozenset(ways), "a" if after in WORD else " ")
        state.next[after] = following
        return following

    def _reached(self, state: _State, after: str) -> list[int]:
        """The instructions that take a code point or end the match; a match may start at every position."""
        instructions = self._program.instructions
        seen: set[int] = set()
        reached: list[int] = []
        waiting = [0, *state.ways]
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            instruction = instructions[at]
            if instruction.kind in (TAKE, MATCH):
                reached.append(at)
            elif instruction.kind == SPLIT:
                waiting += (instruction.first, instruction.second)
            elif instruction.kind == JUMP:
                waiting.append(instruction.first)
            elif instruction.kind == SAVE or _holds(instruction.anchor, state.before, after):
                waiting.append(at + 1)
        return reached


@lru_cache(maxsize=256)
def recognizer_of(pattern: str) -> Recognizer:
    return Recognizer(program_of(pattern))
