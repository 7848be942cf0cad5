"""The worked nodes under `nodes/` use every operation, type, form, step, field and clause.

A construct that no realistic node uses was never tried as users would. Exceptions are checked both ways: unused
constructs must be listed, and listed ones must be unused.
"""

from __future__ import annotations

import pytest

from tests.support.language_use import Uses, everything, noting_fields, used_by
from tests.support.nodes import compiled_anew, worked_nodes

UNUSED: dict[tuple[str, str], str] = {
    ("field", "an overlay: parameters"): "an overlay is a file of its own",
    ("field", "`rows`: sheet"): "worked nodes have CSV files; tests of tables read XLSX",
    (
        "field",
        "`contracts`: observe",
    ): "worked nodes keep their semantic hashes; tests/unit/host/test_observe.py runs it",
    **{
        ("field", name): "worked nodes keep their semantic hashes; tests/unit/host/test_audit_members.py runs it"
        for name in ("`security`: audit", "`audit`: user_id", "`audit`: action", "`audit`: transaction_id")
    },
    (
        "field",
        "`http`: body",
    ): "no worked handler has one record as its input; tests/unit/language/check/test_http.py does",
    **{
        ("field", f"`events`: {name}"): "the worked consumer begins with a wait; tests/unit/topics/project.py has them"
        for name in ("attempts", "backoff", "order_by")
    },
    ("step", "session"): "agents with a session are lowered to it; tests/unit/effects/sessions has a node of its own",
    **{
        ("field", f"a session step: {name}"): "as the step `session`"
        for name in (
            *("action", "session", "id", "messages", "usage", "summary", "through", "value", "ttl", "returns"),
        )
    },
    **{
        ("field", f"an agent: {name}"): "a field of every node, which other worked nodes have"
        for name in (
            *("constants", "functions", "parallel", "parameters", "performance", "policies", "queue", "tables"),
            "use",
        )
    },
    ("field", "a question to a model: returns"): "no worked node asks a model for sensitive data",
    ("field", "`http`: scopes"): "worked handlers are served without authentication, too",
}
"""Constructs that no worked node uses, with the reason."""


@pytest.fixture(scope="module")
def used() -> Uses:
    found: Uses = set()
    with noting_fields(found):
        for path in worked_nodes():
            found |= used_by(compiled_anew(path))
    return found


def test_everything_is_used_or_is_an_exception(used: Uses) -> None:
    unused = everything() - used - set(UNUSED)
    assert not unused, "no node under nodes/ uses\n" + "\n".join(f"  {kind}: {name}" for kind, name in sorted(unused))


def test_no_exception_is_used(used: Uses) -> None:
    assert not set(UNUSED) & used, "these are used by now: take them out of UNUSED"


def test_every_exception_exists() -> None:
    assert set(UNUSED) <= everything(), "an exception that names nothing of the language"
