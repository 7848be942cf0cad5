"""The user of the operating system at the other end of a connection on this machine."""

from __future__ import annotations

import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Final

_ESTABLISHED: Final = "01"


def peer_user_id(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Return the user that owns the client's socket; None where it is not on this machine."""
    is_v6 = ":" in client[0]
    try:
        wanted = [_kernel_form(*client), _kernel_form(*server), _ESTABLISHED]
        rows = Path("/proc/net/tcp6" if is_v6 else "/proc/net/tcp").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    for row in rows:
        cells = row.split()
        if cells[1:4] == wanted:
            return int(cells[7])
    return None


def _kernel_form(address: str, port: int) -> str:
    """Return an address as the kernel lists it: words of four bytes in the order of the machine."""
    data = ip_address(address.partition("%")[0]).packed
    words = (int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), 4))
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"
