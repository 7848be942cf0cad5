"""What can be wrong with a journal. Other modules take these from `vesper.journal.journal`."""

from __future__ import annotations

from vesper.values.vesper_error import VesperError


class JournalError(VesperError):
    """The journal cannot be used: the message says which, why, and what to do. Nothing was overwritten."""


class TooLarge(JournalError):
    """What was to be written is larger than the journal takes; nothing of it was remembered."""


class Fenced(JournalError):
    """Another process has taken the run over: this one may write no more of it."""


class NotTaken(JournalError):
    """The run cannot be taken over: it has ended, it is in doubt, or its owner is alive."""


class Unchecked(JournalError):
    """A run began to wait for a signal whose type its sender has not checked; nothing was written."""


class KeyTaken(VesperError):
    """Another run has the idempotency key of this one; the journal is fine. The text is the id of that run."""


class UnknownExecution(JournalError):
    """The journal has no such execution."""
