"""Matchers that run the program of a pattern over a text in linear time.

A run takes at most instructions × (code points + 1) steps. All threads of the program advance together, one code point
at a time, in the order in which a backtracking search would try them. Of two threads at one instruction the later one
can never be preferred and is dropped. `Finder` carries the start and groups of each thread. `Recognizer` only decides
whether there is a match; it caches transitions by code point, so that most of a text is read through one dictionary
lookup per code point.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from vesper.kernels.regex.program import JUMP, MATCH, SAVE, SPLIT, TAKE, WORD, Program, program_of

Slots: TypeAlias = tuple[int, ...]
"""Start and end of the match and of each group. Groups without part in it have -1."""

_MAX_STEPS = 10_000
"""Maximum number of transitions that a recognizer caches before it starts again, which bounds memory."""


def _holds(anchor: str, before: str, after: str) -> bool:
    """Return whether an anchor holds between two code points. Both are empty at the ends of the text."""
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
        """Step at which each instruction was last reached."""
        self._step = 0
        self._idle: set[tuple[bool, str]] = set()
        """Surroundings at which no match starts.

        A pair of whether a word character precedes, and the next code point.
        """

    def find_all(self) -> Iterator[Slots]:
        """Yield all matches from left to right; an empty one not directly after another match."""
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
        """Return the leftmost match that starts at or after this position, with the preferred end."""
        text, instructions = self._text, self._program.instructions
        unset = (-1,) * (self._slot_count - 1)
        found: Slots | None = None
        threads: list[tuple[int, Slots]] = []
        for position in range(start, len(text) + 1):
            after = text[position : position + 1]
            before = text[position - 1 : position] if position else ""
            surroundings = (before in WORD, after)
            is_fresh = not threads and found is None
            if is_fresh and position and surroundings in self._idle:
                continue
            self._step += 1
            reached: list[tuple[int, Slots]] = []
            for way, slots in threads:
                self._follow(way, slots, position, before, after, reached)
            if found is None:
                # A match that starts here ranks below every thread that started earlier.
                self._follow(0, (position, *unset), position, before, after, reached)
            sets = self._program.sets_with(after) if after else frozenset[int]()
            threads = []
            for way, slots in reached:
                if instructions[way].kind == MATCH:
                    found = (slots[0], position, *slots[2:])
                    break  # later threads are less preferred
                if instructions[way].first in sets:
                    threads.append((way + 1, slots))
            if not threads and found is not None:
                break
            if is_fresh and not threads and position:
                self._idle.add(surroundings)
        return found

    def _follow(
        self, start: int, slots: Slots, position: int, before: str, after: str, reached: list[tuple[int, Slots]]
    ) -> None:
        """Add the instructions reachable from `start` that take a code point or end the match."""
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


class _ThreadSet:
    """The threads between two code points, before anchors are tested, with cached transitions."""

    __slots__ = ("before", "next", "threads")

    def __init__(self, threads: frozenset[int], before: str) -> None:
        self.threads = threads
        self.before = before
        """A sample of the preceding code point's kind: of a word, another, or none."""
        self.next: dict[str, _ThreadSet] = {}
        """Next state by code point; the empty text for the end."""


_MATCHED = _ThreadSet(frozenset(), "")
"""State after a match was found."""


class Recognizer:
    """Decides whether a pattern matches anywhere in a text."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._states: dict[tuple[frozenset[int], str], _ThreadSet] = {}
        self._step_count = 0

    def matches(self, text: str) -> bool:
        state = self._state(frozenset(), "")
        for character in text:
            state = state.next.get(character) or self._take(state, character)
            if state is _MATCHED:
                return True
        return (state.next.get("") or self._take(state, "")) is _MATCHED

    def _state(self, threads: frozenset[int], before: str) -> _ThreadSet:
        return self._states.setdefault((threads, before), _ThreadSet(threads, before))

    def _take(self, state: _ThreadSet, after: str) -> _ThreadSet:
        """Return the state after this code point, and cache the transition."""
        self._step_count += 1
        if self._step_count > _MAX_STEPS:
            self._states.clear()
            self._step_count = 0
        instructions = self._program.instructions
        sets = self._program.sets_with(after) if after else frozenset[int]()
        threads: set[int] = set()
        following = state
        for at in self._reachable(state, after):
            if instructions[at].kind == MATCH:
                following = _MATCHED
                break
            if instructions[at].first in sets:
                threads.add(at + 1)
        else:
            if after:
                following = self._state(frozenset(threads), "a" if after in WORD else " ")
        state.next[after] = following
        return following

    def _reachable(self, state: _ThreadSet, after: str) -> list[int]:
        """Return the reachable instructions that take a code point or end the match. A match may start anywhere."""
        instructions = self._program.instructions
        seen: set[int] = set()
        reached: list[int] = []
        waiting = [0, *state.threads]
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
    """Return the cached recognizer of a pattern."""
    return Recognizer(program_of(pattern))
