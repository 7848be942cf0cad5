"""Capabilities: nodes require them, the configuration grants them, and a handle is the proof of a grant.

An effect is performed only for a *handle*: an object that only a mint makes, and that only that mint accepts. Deny by
default: a node may use the capabilities that it requires *and* that are granted, except those that it or the
configuration denies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NoReturn, final

from vesper.effects.settings import ConfigError, Table
from vesper.language.diagnostics.capability_words import covers, denies, is_misspelling, is_word, nearest_word
from vesper.values.model import printable
from vesper.values.node_id import split_node_id

_NODES = re.compile(r"[a-z0-9_*?\[\]!-]+", re.ASCII)
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Grant:
    """One `[[grants]]` of the configuration."""

    nodes: tuple[str, ...]
    """Ids, names without a version, or patterns with `*`."""
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    where: str

    def is_for(self, node_id: str) -> bool:
        return matches_node(self.nodes, node_id)


def matches_node(patterns: Iterable[str], node_id: str) -> bool:
    """Return whether one of the patterns matches the id, or the name without its version."""
    parts = split_node_id(node_id)
    names = {node_id} if parts is None else {node_id, parts[0]}
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


def grant_from_table(table: Table) -> Grant:
    """Read `nodes`, `allow` and `deny`."""
    grant = Grant(table.texts("nodes"), table.texts("allow", ()), table.texts("deny", ()), table.where)
    table.done()
    for pattern in grant.nodes:
        if not _NODES.fullmatch(pattern):
            text = f"`{printable(pattern)}` can match no node; write an id, a name or a pattern such as `pay_*`"
            raise ConfigError(f"{table.where}.nodes", text)
    for name, words in (("allow", grant.allow), ("deny", grant.deny)):
        for word in words:
            if not is_word(word, takes_wildcards=True, takes_prefix=name == "deny"):
                raise ConfigError(
                    f"{table.where}.{name}",
                    f"`{printable(word)}` is no capability; did you mean `{nearest_word(word)}`? "
                    "(`resource.operation.target`, with `*` for all below)",
                )
    return grant


def refuse_void(node_id: str, declared: Iterable[str], grants: Iterable[Grant]) -> None:
    """Raise `ConfigError` for a word of a grant that matches no declared capability of this node.

    In an entry for this node alone every word must match. In an entry for several nodes a word may be for another node:
    it is an error only if it is a misspelling of a capability of this node that no other word names.
    """
    declared = tuple(dict.fromkeys(declared))
    about = [grant for grant in grants if grant.is_for(node_id)]
    named = {word for grant in about for word in (*grant.allow, *grant.deny)}
    open_to_typing = [each for each in declared if each not in named]
    for grant in about:
        is_alone = len(grant.nodes) == 1 and not _PATTERN.search(grant.nodes[0])
        for name, words in (("allow", grant.allow), ("deny", grant.deny)):
            for word in words:
                if word.count(".") < 2 or word.endswith(".*") or any(matches_word(word, each) for each in declared):
                    continue
                if is_alone or any(is_misspelling(word, each) for each in open_to_typing):
                    raise _void_error(grant, name, word, node_id, declared)


def _void_error(grant: Grant, name: str, word: str, node_id: str, declared: tuple[str, ...]) -> ConfigError:
    nearest = nearest_word(word, declared)
    if nearest not in declared:
        advice = (
            f"{node_id} declares {', '.join(f'`{each}`' for each in sorted(declared)[:5])}" if declared else "remove it"
        )
    elif len(grant.nodes) == 1 and not _PATTERN.search(grant.nodes[0]):
        advice = f"did you mean `{nearest}`?"
    else:
        advice = f"did you mean `{nearest}`? If it is for another node, give that node an entry of its own"
    return ConfigError(f"{grant.where}.{name}", f"`{word}` matches nothing that {node_id} declares; {advice}")


def matches_word(word: str, declared: str) -> bool:
    """Return whether a word and a declared capability, which may end in `*`, overlap."""
    return covers(word, declared) or covers(declared, word) or declared.startswith(f"{word}.")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The decision whether a node may use a capability, with its reason."""

    is_allowed: bool
    why: str


def denied_by(capability: str, node_id: str, grants: Iterable[Grant]) -> str | None:
    """Return the entry of the configuration that denies a node the capability. None if none does."""
    for grant in grants:
        if grant.is_for(node_id):
            for word in grant.deny:
                if denies(word, capability):
                    return f"{grant.where} denies `{word}`"
    return None


def judge(
    capability: str, node_id: str, required: Iterable[str], denied: Iterable[str], grants: Iterable[Grant]
) -> Judgement:
    """Return whether a node may use a capability. Denials of the node and of the configuration take precedence."""
    for word in denied:
        if denies(word, capability):
            return Judgement(False, f"the node denies itself `{word}`")
    grants = tuple(grants)
    denial = denied_by(capability, node_id, grants)
    if denial is not None:
        return Judgement(False, denial)
    allowing = (each for each in grants if each.is_for(node_id))
    granted = next((each.where for each in allowing if any(covers(word, capability) for word in each.allow)), None)
    if not any(covers(word, capability) for word in required):
        return Judgement(False, "the node does not ask for it in `capabilities_required`")
    if granted is None:
        return Judgement(False, "nothing in the configuration grants it")
    return Judgement(True, f"granted by {granted}")


@final
class Handle:
    """The right to use one capability. Only a mint makes handles, and they cannot be copied."""

    __slots__ = ("__weakref__", "capability")

    capability: str

    def __init__(self) -> None:
        raise TypeError("only the Host can mint a handle")

    def __copy__(self) -> NoReturn:
        raise TypeError("a handle cannot be copied")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("a handle cannot be copied")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a handle cannot be pickled")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a handle does not change")

    def __repr__(self) -> str:
        return f"<Handle {self.capability}>"


class Mint:
    """Makes handles, and recognizes its own by identity."""

    def __init__(self, grants: Iterable[Grant]) -> None:
        self._grants = tuple(grants)
        self._made: dict[int, tuple[Handle, str]] = {}

    def handles(
        self, node_id: str, required: Iterable[str], denied: Iterable[str], needed: Iterable[str]
    ) -> tuple[Mapping[str, Handle], Mapping[str, str]]:
        """Return a handle for each allowed capability, and the reason of each refusal."""
        required, denied = tuple(required), tuple(denied)
        handles: dict[str, Handle] = {}
        refused: dict[str, str] = {}
        for capability in dict.fromkeys(needed):
            found = judge(capability, node_id, required, denied, self._grants)
            if found.is_allowed:
                handle = object.__new__(Handle)
                object.__setattr__(handle, "capability", capability)
                self._made[id(handle)] = (handle, capability)  # kept for ever, so that an id is never reused
                handles[capability] = handle
            else:
                refused[capability] = found.why
        return handles, refused

    def denial(self, capability: str, node_id: str) -> str | None:
        """Return why the configuration denies a called node this capability; None if it does not."""
        return denied_by(capability, node_id, self._grants)

    def opens(self, handle: object, capability: str) -> bool:
        """Return whether this mint made this object for this capability."""
        made = self._made.get(id(handle))
        return made is not None and made[0] is handle and made[1] == capability
