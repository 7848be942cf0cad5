"""The worked nodes under `nodes/` use the whole language: every operation, type, form, step, field and kind of clause.

What nobody uses in a node that somebody would write has never been tried the way users try it. The exceptions are
closed both ways: what is not used must be listed, and what is listed must not be used.
"""

from __future__ import annotations

import pytest

from tests.support.language_use import Uses, everything, noting_fields, used_by
from tests.support.nodes import compiled_anew, worked_nodes

UNUSED: dict[tuple[str, str], str] = {}
"""What no worked node uses, and why."""


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
