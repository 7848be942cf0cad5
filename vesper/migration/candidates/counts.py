"""Counts of a candidate: agreements, changed outcomes in groups with examples, and runs without a verdict.

A group is the path of the lead, the path of the candidate, and the field that differs. All sizes are bounded, because
every batch writes the document again; examples are in a document of their own for each group.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

MAX_GROUPS = 50
"""Groups of a pair; changed outcomes of any others are counted together."""
MAX_EXAMPLES = 5
MAX_HOURS = 48
HOUR_US = 3600 * 10**6
_FORMAT = 1
Result: TypeAlias = Literal["agreed", "changed", "unanswered", "limits", "faults"]
RESULTS: tuple[Result, ...] = get_args(Result)


@dataclass(frozen=True, slots=True)
class PathText:
    """A path in words. Two versions of a node number their points apart, so the name holds for one of them."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A run whose outcome changed. Texts are masked and shortened."""

    execution: str | None
    """Its name in the journal; None for a node without effects."""
    at_us: int
    inputs: str
    lead: str
    candidate: str


@dataclass(frozen=True, slots=True)
class Group:
    lead_path: PathText
    candidate_path: PathText
    field: str
    """The field that differs: `outputs.fee`, `outcome: returned → failed: overflow`, `new request: …`."""
    count: int
    first_us: int
    last_us: int
    examples: tuple[Example, ...] = ()

    @property
    def id(self) -> str:
        text = f"{self.lead_path.name}\x00{self.candidate_path.name}\x00{self.field}"
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()

    def merge(self, other: Group) -> Group:
        known = {each.inputs for each in self.examples}
        more = (each for each in other.examples if each.inputs not in known)
        return replace(
            self,
            count=self.count + other.count,
            first_us=min(self.first_us, other.first_us),
            last_us=max(self.last_us, other.last_us),
            examples=(*self.examples, *more)[:MAX_EXAMPLES],
        )


@dataclass(slots=True)
class Counts:
    """Results of a candidate, collected in a process and added up in the store."""

    results: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESULTS, 0))
    groups: dict[str, Group] = field(default_factory=dict)
    others: int = 0
    """Changed outcomes beyond `MAX_GROUPS` groups."""
    hours: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Compared and changed by hour since 1970."""
    fault: str = ""
    """Kind of the last fault, without values."""
    first_us: int | None = None
    last_us: int | None = None

    @property
    def compared(self) -> int:
        return self.results["agreed"] + self.results["changed"]

    @property
    def changed_share(self) -> float | None:
        """Share of the compared runs whose outcome changed; None without any."""
        return self.results["changed"] / self.compared if self.compared else None

    @property
    def is_empty(self) -> bool:
        return not any(self.results.values())

    def top_groups(self, count: int = MAX_GROUPS) -> list[Group]:
        """Return the largest groups first."""
        return sorted(self.groups.values(), key=lambda each: (-each.count, each.first_us, each.id))[:count]

    def add(self, result: Result, at_us: int, group: Group | None = None, fault: str = "") -> None:
        """Count one run."""
        self.results[result] += 1
        self.fault = fault or self.fault
        self._note_time(at_us)
        if result in ("agreed", "changed"):
            self._add_hours({at_us // HOUR_US: (1, int(result == "changed"))})
        if group is not None:
            self._add_groups([group])

    def merge(self, other: Counts) -> None:
        for result in RESULTS:
            self.results[result] += other.results[result]
        self.others += other.others
        self.fault = other.fault or self.fault
        self._add_groups(other.groups.values())
        self._add_hours(other.hours)
        for at_us in (other.first_us, other.last_us):
            if at_us is not None:
                self._note_time(at_us)

    def _note_time(self, at_us: int) -> None:
        self.first_us = at_us if self.first_us is None else min(self.first_us, at_us)
        self.last_us = at_us if self.last_us is None else max(self.last_us, at_us)

    def _add_groups(self, groups: Iterable[Group]) -> None:
        for group in groups:
            known = self.groups.get(group.id)
            if known is not None:
                self.groups[group.id] = known.merge(group)
            elif len(self.groups) < MAX_GROUPS:
                self.groups[group.id] = group
            else:
                self.others += group.count

    def _add_hours(self, hours: Mapping[int, tuple[int, int]]) -> None:
        for hour, (compared, changed) in hours.items():
            before = self.hours.get(hour, (0, 0))
            self.hours[hour] = before[0] + compared, before[1] + changed
        for hour in sorted(self.hours)[:-MAX_HOURS]:
            del self.hours[hour]

    # -- texts ------------------------------------------------------------------------------------

    def to_text(self, pair: str) -> str:
        """Return the document of a pair, without examples."""
        groups = [{**asdict(each), "examples": []} for each in self.groups.values()]
        found = {
            "format": _FORMAT,
            "pair": pair,
            "results": self.results,
            "groups": groups,
            "others": self.others,
            "hours": {str(hour): each for hour, each in sorted(self.hours.items())},
            "fault": self.fault,
            "first_us": self.first_us,
            "last_us": self.last_us,
        }
        return json.dumps(found, separators=(",", ":"))

    @staticmethod
    def from_text(text: str | None, pair: str) -> Counts:
        """Read the document of a pair; empty for that of another one. Raises `ValueError`."""
        if text is None:
            return Counts()
        try:
            found = json.loads(text)
            if found["format"] != _FORMAT:
                raise ValueError(f"it has the format {found['format']!r}, and this Vesper reads {_FORMAT}")
            if found["pair"] != pair:
                return Counts()
            groups = [_read_group(each) for each in found["groups"]]
            return Counts(
                {result: _read_count(found["results"][result]) for result in RESULTS},
                {each.id: each for each in groups},
                _read_count(found["others"]),
                {int(hour): (each[0], each[1]) for hour, each in found["hours"].items()},
                str(found["fault"]),
                found["first_us"],
                found["last_us"],
            )
        except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            raise ValueError(f"counts of a candidate cannot be read: {type(error).__name__}: {error}") from None


def examples_text(owner: str, examples: Iterable[Example]) -> str:
    """Return the document with the examples of a group; `owner` names pair and group."""
    return json.dumps({"owner": owner, "examples": [asdict(each) for each in examples]}, separators=(",", ":"))


def read_examples(text: str | None, owner: str) -> tuple[Example, ...]:
    """Read the examples of a group; none where there are none, or those of another owner."""
    try:
        found = {} if text is None else json.loads(text)
        return tuple(Example(**each) for each in found["examples"]) if found.get("owner") == owner else ()
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


def _read_group(found: Mapping[str, Any]) -> Group:
    lead, candidate = (PathText(found[name]["name"], tuple(found[name]["words"])) for name in _PATHS)
    return Group(lead, candidate, found["field"], _read_count(found["count"]), found["first_us"], found["last_us"])


_PATHS = ("lead_path", "candidate_path")


def _read_count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value
