"""Names of processes that own runs, by which another process of the same machine can tell whether they still live.

`host:pid:start:place`. `start` is when the process started, in ticks since the machine did: a pid is used again, the
pair is not. `place` stands for this start of the machine and this namespace of process ids: only where it is the same
can the pid be looked up. Where it differs (another machine, another container) only the lease shows that an owner is
gone.
"""

from __future__ import annotations

from vesper._direct import is_dead, this_owner

__all__ = ["is_dead", "this_owner"]
