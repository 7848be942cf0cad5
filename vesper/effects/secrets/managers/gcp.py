"""Google Cloud Secret Manager, with the token of the machine's service account."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import quote

from vesper.effects.secrets.managers.client import Manager, Server, Tokens, fill_name, text_of
from vesper.effects.settings import Table

_METADATA = "http://metadata.google.internal"
_TOKEN_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"  # a path


class GcpSecrets(Manager):
    """Reads `secret` of `project`, by default its latest version."""

    def __init__(self, table: Table, folder: Path | None, timeout: float) -> None:
        self._server = Server.from_table(table, "url", "https://secretmanager.googleapis.com", folder, timeout)
        self._metadata = Server.from_table(table, "metadata_url", _METADATA, None, timeout)
        self._project = table.text("project")
        self._secret = table.text("secret", "{name}")
        self._version = table.text("version", "latest")
        self._field = table.text("field") if "field" in table else None
        self._tokens = Tokens(self._log_in)
        self.place = f"Google Secret Manager of {self._project}"

    def read(self, name: str) -> str | None:
        parts = (self._project, fill_name(self._secret, name), self._version)
        project, secret, version = (quote(each, safe="") for each in parts)
        path = f"/v1/projects/{project}/secrets/{secret}/versions/{version}:access"
        reply = self._tokens.send(lambda token: self._server.request("GET", path, {"Authorization": f"Bearer {token}"}))
        if reply.status == 404:
            return None
        if reply.status != 200:
            why = ": the service account needs the role Secret Manager Secret Accessor" if reply.status == 403 else ""
            raise self._server.refusal(reply, why)
        try:
            text = base64.b64decode(reply.member("payload", "data") or "", validate=True).decode()
        except (ValueError, TypeError):
            return None
        return text_of(text, None if self._field is None else fill_name(self._field, name))

    def _log_in(self) -> tuple[str, float]:
        reply = self._metadata.request("GET", _TOKEN_PATH, {"Metadata-Flavor": "Google"})
        token, life = reply.member("access_token"), reply.member("expires_in")
        if reply.status != 200 or not isinstance(token, str):
            raise self._metadata.refusal(reply, " to the request for a token")
        return token, float(life) if isinstance(life, int) else 0.0
