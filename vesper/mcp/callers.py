"""The callers of an HTTP server: API keys of `[[serve.keys]]`, checked before a request reaches the protocol."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

SCOPE_KEY: Final = "vesper.caller"


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of an API key, or anyone where no key is configured."""

    name: str | None = None
    tenant: str | None = None
    scopes: frozenset[str] | None = None
    """None for a caller who may call every node: over standard input, or without keys."""

    def lacks(self, needed: Iterable[str]) -> list[str]:
        """Return the scopes that this caller would need and does not have."""
        return [] if self.scopes is None else [each for each in needed if each not in self.scopes]


ANYONE: Final = Caller()


class KeyMiddleware:
    """Answers requests without a valid API key with 401."""

    def __init__(self, app: ASGIApp, rows: Iterable[Mapping[str, Any]]) -> None:
        """`rows` are those of `vesper.serve.keys`: name, tenant, scopes and SHA-256 of each key."""
        self._app = app
        self._rows = list(rows)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            caller = self._caller(dict(scope["headers"]))
            if caller is None:
                refusal = PlainTextResponse(
                    "an API key is required: `Authorization: Bearer KEY`", 401, {"WWW-Authenticate": "Bearer"}
                )
                await refusal(scope, receive, send)
                return
            scope[SCOPE_KEY] = caller
        await self._app(scope, receive, send)

    def _caller(self, headers: Mapping[bytes, bytes]) -> Caller | None:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        key = token.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"")
        digest = hashlib.sha256(key).hexdigest()
        for row in self._rows:
            if hmac.compare_digest(digest, str(row["sha256"])):
                return Caller(row["name"], row["tenant"], frozenset(row["scopes"]))
        return None


def caller_of(request: Any) -> Caller:
    """Return the caller of a request; anyone over standard input."""
    found = None if request is None else request.scope.get(SCOPE_KEY)
    return ANYONE if found is None else found
