"""The client of the configured kernel, and the reasons for its absence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vesper.config.kernel import KernelSettings
from vesper.config.settings import Config
from vesper.dashboard.problem import Unavailable
from vesper.dashboard.stores import Stores
from vesper.kernel.errors import KernelError
from vesper.kernel.tokens import TOKEN_VARIABLE, read_token
from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.kernel import Client

SECONDS = 3.0
"""Time of a call: a page does not wait for a kernel that hangs."""
_UNSPECIFIED = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_REMEDIES = {
    "UNAVAILABLE": "Start it with `vesper kernel serve`, or correct `[kernel]` of vesper.toml. "
    "A kernel that stands by answers when it has taken over.",
    "DEADLINE_EXCEEDED": "It did not answer in time. Load the page again; `vesper kernel status` asks it, too.",
    "UNAUTHENTICATED": f"Start the dashboard with a token of the kernel in {TOKEN_VARIABLE}.",
}


class Absence(Unavailable):
    """There is no client, or no kernel that it can reach."""

    def __init__(self, why: str, remedy: str, address: str = "") -> None:
        super().__init__("the kernel", why, remedy)
        self.address = address

    @classmethod
    def of(cls, config: Config, problem: KernelError) -> Absence:
        """Return the absence for an error of the kernel, with a remedy."""
        address = address_of(config.kernel)
        remedy = _REMEDIES.get(problem.code, "`vesper kernel status` asks the kernel, too.")
        return cls(f"{problem.code}: {printable(problem.message)}", remedy, address)


def address_of(settings: KernelSettings) -> str:
    """Return the address at which a client reaches the kernel."""
    host = _UNSPECIFIED.get(settings.host, settings.host)
    return f"{f'[{host}]' if ':' in host else host}:{settings.port}"


def client_of(stores: Stores) -> Client:
    """Return the client, which is closed with the stores. Raises `Absence`."""
    settings = stores.config.kernel
    if not settings.is_declared:
        raise Absence("no kernel is configured", "Name it in `[kernel]` of vesper.toml, and start the dashboard again.")
    try:
        from vesper.kernel import Client
    except ModuleNotFoundError as missing:
        raise Absence(printable(str(missing)), "Install the client: pip install 'vesper[kernel]'.") from None
    token, address = read_token(), address_of(settings)
    return stores.opened("kernel", lambda: Client(address, token=token, ca=settings.certificate, timeout=SECONDS))
