"""Clients, servers and workers of the kernel, public as `vesper.kernel`.

    with vesper.kernel.Kernel() as kernel:
        kernel.client.submit(v1.SubmitRequest(process=v1.CreateProcessRequest(user_id="u-1")))

Names are loaded when they are first used: only clients need the extra `kernel`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from vesper.kernel.errors import KernelError, KernelNotStarted

if TYPE_CHECKING:
    from vesper.kernel import v1
    from vesper.kernel.client import AsyncClient, Client
    from vesper.kernel.process import Kernel

_PLACES = {
    "AsyncClient": "vesper.kernel.client",
    "Client": "vesper.kernel.client",
    "Kernel": "vesper.kernel.process",
    "v1": "vesper.kernel.v1",
}

__all__ = ["AsyncClient", "Client", "Kernel", "KernelError", "KernelNotStarted", "v1"]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(_PLACES[name])
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in ("grpc", "google"):
            raise
        problem = f"clients of the kernel need the package `{missing.name}`: pip install 'vesper[kernel]'"
        raise ModuleNotFoundError(problem, name=missing.name) from None
    return module if name == "v1" else getattr(module, name)
