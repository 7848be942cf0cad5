"""Closing of a divergence after review."""

from __future__ import annotations

from collections.abc import Mapping

from vesper.dashboard.action import Done
from vesper.dashboard.page import Context
from vesper.dashboard.pages.divergences.stored import detail_address, find_divergence
from vesper.dashboard.problem import Refused
from vesper.journal.moments import number
from vesper.migration.stores.kept_divergences import CannotClose, close_divergence
from vesper.values.model import printable


def close(context: Context, fields: Mapping[str, str]) -> Done:
    """Close the divergence of the address, with a line in the history of its node."""
    opened, found, _ = find_divergence(context)
    try:
        state = close_divergence(
            opened.store, found, context.caller.name, fields["reason"], opened.rules, context.now_us
        )
    except CannotClose as problem:
        raise Refused(str(problem), "The page shows its present state.") from None
    left = len(state.open) + len(state.noise)
    more = f"{number(left, 'divergence')} still open" if left else "none is open"
    message = f"Closed {found.divergence.fingerprint}; {more}"
    if state.latches:
        message += f". {printable(found.key.node)} is latched in python_only: resume it on its page"
    return Done(message, detail_address(found))
