"""Errors of a journal. Other modules import them from `vesper.journal.journal`."""

from __future__ import annotations

from vesper.values.vesper_error import VesperError


class JournalError(VesperError):
    """The journal cannot be used: the message says which one, why, and what to do. Nothing was overwritten."""


class TooLarge(JournalError):
    """An entry or value exceeds a limit of the journal. No part of it was appended."""


class Fenced(JournalError):
    """Another process has taken the run over: this process may no longer write to it."""


class NotTaken(JournalError):
    """The run cannot be taken over: it has ended, it is in doubt, or its owner is alive."""


class Unchecked(JournalError):
    """A run began to wait for a signal whose type its sender has not checked. Nothing was written."""


class KeyTaken(VesperError):
    """Another run has the idempotency key of this one. The text is the id of that run.

    It is no fault of the journal.
    """


class UnknownExecution(JournalError):
    """The journal has no such execution."""
