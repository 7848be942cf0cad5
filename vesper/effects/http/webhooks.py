"""Signatures of webhooks: schemes of packs, and their verification."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vesper._direct import verify_webhook
from vesper.effects.http.provider_packs import find_pack
from vesper.effects.settings import Table
from vesper.values.vesper_error import VesperError

TOLERANCE_SECONDS = 300.0


class SignatureRefused(VesperError):
    """A signature is missing, too old, or made with none of the secrets."""


@dataclass(frozen=True, slots=True)
class WebhookScheme:
    """How a sender signs: HMAC-SHA256 in hex over a text that ends with the body."""

    fields: Mapping[str, object]
    """The scheme as the native part reads it, without secrets."""
    secrets: tuple[str, ...]
    """Names of the secrets, the current one first."""

    @classmethod
    def from_table(cls, table: Table, folder: Path | None) -> WebhookScheme:
        """Read `[serve.webhooks.NODE]`, merged over its pack. Raises `ConfigError`."""
        given = dict(table.values())
        name = table.where.rpartition(".")[2]
        if "extends" in table:
            pack = find_pack(table, folder)
            if not pack.webhook:
                raise table.error("extends", f"the pack {pack} describes no webhooks")
            name, given = pack.name, {**pack.webhook, **given}
        merged = Table(table.where, given)
        merged.text("extends", "")
        pairs = merged.table("pairs")
        fields = {
            "name": name,
            "header": merged.text("header"),
            "signed": merged.text("signed"),
            "prefix": merged.text("prefix", ""),
            "signature_field": pairs.text("signature") if "pairs" in merged else None,
            "timestamp_field": pairs.text("timestamp") if "pairs" in merged else None,
            "timestamp_header": merged.text("timestamp_header") if "timestamp_header" in merged else None,
            "tolerance_seconds": merged.seconds("tolerance", TOLERANCE_SECONDS),
        }
        scheme = cls(fields, merged.texts("secrets"))
        pairs.done()
        merged.done()
        if not scheme.secrets:
            raise table.error("secrets", "the name of a secret is missing: without one no signature can be verified")
        try:
            verify_webhook(json.dumps(scheme.row([])).encode(), [], b"", 0.0)
        except ValueError as bad:
            if str(bad).startswith("webhook."):  # of the scheme, not of this empty request
                raise table.error("signed", str(bad).partition(": ")[2]) from None
        return scheme

    def row(self, texts: Sequence[str]) -> dict[str, object]:
        """Return the fields of the scheme with the texts of its secrets."""
        return {**self.fields, "secrets": list(texts)}


def pack_scheme(name: str, folder: Path | None = None) -> WebhookScheme:
    """Return the scheme of a pack, such as `stripe`. Raises `ConfigError`."""
    return WebhookScheme.from_table(Table("webhook", {"extends": name, "secrets": ["-"]}), folder)


def verify(
    scheme: WebhookScheme,
    secrets: Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    now: float | None = None,
) -> None:
    """Check the signature of a request with the texts of secrets. Raises `SignatureRefused`.

    `body` is the body as it was sent: one that was parsed and written again does not fit its signature.
    """
    try:
        row = json.dumps(scheme.row(secrets)).encode()
        verify_webhook(row, list(headers.items()), body, time.time() if now is None else now)
    except ValueError as refused:
        raise SignatureRefused(str(refused)) from None
