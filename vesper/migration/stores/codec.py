"""JSON encoding of a node's state, for stores.

Reading is strict: a document that this version would not have written is refused, because a guess would be a decision
without evidence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from vesper.migration.control import cusum
from vesper.migration.control.modes import Mode, Reason
from vesper.migration.control.state import Latch, NodeState, PathState, Pin, Settings
from vesper.migration.statistics import latency

FORMAT = 1
_LATENCY = re.compile(r'"latency":\[\[[0-9,]*\],\[[0-9,]*\],[0-9]+\]')
_NO_LATENCY = '"latency":[[],[],0]'


class BadState(ValueError):
    """A document is no state of a node, or one of another Vesper version. The message contains the problem."""


def state_text(state: NodeState) -> str:
    """Return the canonical text: equal states have equal texts."""
    return json.dumps(_document(state), sort_keys=True, separators=(",", ":"))


def state_from_text(text: str | bytes, settings: Settings) -> NodeState:
    """Return the state of a text. `settings` are those of the reader, and no part of the text. Raises `BadState`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadState(f"it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadState("it is no object")
    if found.get("format") != FORMAT:
        raise BadState(f"it has the format {found.get('format')!r}, and this Vesper reads {FORMAT}")
    try:
        state = _state(found, settings)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BadState(f"{type(error).__name__}: {error}") from None
    written = _document(state)
    if written != found:
        names = sorted(name for name in {*written, *found} if written.get(name) != found.get(name))
        raise BadState(f"this Vesper would have written it otherwise: {', '.join(map(repr, names))[:200]}")
    return state


def summary_from_text(text: str, settings: Settings) -> NodeState:
    """Return the state without the times of its runs, which are most of the text. Raises `BadState`."""
    return state_from_text(_LATENCY.sub(_NO_LATENCY, text, count=1), settings)


def _document(state: NodeState) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "node": state.node,
        "epoch": state.epoch,
        "mode": state.mode.value,
        "attempt": state.attempt,
        "clean": state.clean,
        "divergences": state.divergences,
        "compared": state.compared,
        "unknown": state.unknown,
        "is_complete": state.is_complete,
        "paths": {
            name: [each.clean, each.generated, each.attempt, each.open] for name, each in sorted(state.paths.items())
        },
        "open": dict(sorted(state.open.items())),
        "noise": dict(sorted(state.noise.items())),
        "lost": list(state.lost),
        "latches": [[each.reason.value, each.who, each.why, each.at_us] for each in state.latches],
        "pin": None if (pin := state.pin) is None else [pin.mode.value, pin.until_us, pin.who, pin.why],
        "rate": str(state.rate.sum),
        "latency": [list(state.latency.python), list(state.latency.direct), state.latency.bad_rounds],
    }


def _state(found: Mapping[str, Any], settings: Settings) -> NodeState:
    python, direct, bad_rounds = found["latency"]
    pin = found["pin"]
    return NodeState(
        _check_text(found["node"]),
        _check_text(found["epoch"]),
        settings,
        Mode(found["mode"]),
        _check_attempt(found["attempt"]),
        _check_count(found["clean"]),
        _check_count(found["divergences"]),
        _check_count(found["compared"]),
        _check_count(found["unknown"]),
        _check_flag(found["is_complete"]),
        _paths(found["paths"]),
        {_check_text(name): _check_text(path) for name, path in found["open"].items()},
        tuple(map(_check_text, found["lost"])),
        tuple(
            Latch(Reason(reason), _check_text(who), _check_text(why), _check_count(at))
            for reason, who, why, at in found["latches"]
        ),
        None if pin is None else Pin(Mode(pin[0]), _check_count(pin[1]), _check_text(pin[2]), _check_text(pin[3])),
        cusum.RateState(_check_count(int(_check_text(found["rate"])))),
        latency.LatencyState(_check_counts(python), _check_counts(direct), _check_count(bad_rounds)),
        {_check_text(name): _check_text(where) for name, where in found["noise"].items()},
    )


def _paths(found: Mapping[str, list[Any]]) -> dict[str, PathState]:
    _check_counts([*chain.from_iterable(found.values())])
    paths = {name: PathState(*each) for name, each in found.items()}
    if any(len(each) != len(PathState.__slots__) for each in found.values()):
        raise ValueError("a path has four counts")
    for each in paths.values():
        _check_attempt(each.attempt)
    return paths


def _check_attempt(value: object) -> int:
    if not _check_count(value):
        raise ValueError("attempts are counted from 1")
    return _check_count(value)


def _check_count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _check_counts(values: Sequence[Any]) -> tuple[int, ...]:
    """Check many counts at once: a fleet of 2,000 nodes has a million of them."""
    if not {*map(type, values)} <= {int} or min(values, default=0) < 0:
        raise ValueError("one of many is no count")
    return tuple(values)


def _check_text(value: object) -> str:
    if type(value) is not str:
        raise ValueError(f"{value!r} is no text")
    return value


def _check_flag(value: object) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{value!r} is neither true nor false")
    return value
