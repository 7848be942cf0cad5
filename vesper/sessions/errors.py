"""Errors of sessions."""

from __future__ import annotations

from vesper.values.vesper_error import VesperError


class SessionError(VesperError):
    """The store of sessions cannot be used."""


class UnknownSession(SessionError):
    """No session has this id."""


class WrongMessages(SessionError):
    """A change that a session does not take: its form, its size, or a full session."""
