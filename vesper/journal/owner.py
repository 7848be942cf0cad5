"""Names of processes that own runs.

Another process of the machine can tell from a name whether its process still lives. A name is `host:pid:start:place`.
`start` is the start of the process, in ticks since the machine started: a pid is used again, but the pair is not.
`place` identifies this start of the machine and this namespace of process ids: a pid can be looked up only if it is
equal. If it differs (another machine, another container), only the lease shows that an owner is gone.
"""

from __future__ import annotations

from vesper._direct import is_dead, this_owner

__all__ = ["is_dead", "this_owner"]
