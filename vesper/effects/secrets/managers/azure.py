"""Azure Key Vault, with client credentials of Microsoft Entra."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlencode

from vesper.effects.secrets.managers.client import Credential, Manager, Server, Tokens, fill_name, text_of
from vesper.effects.settings import Table

_API = "7.4"


class AzureSecrets(Manager):
    """Reads the current version of a secret. The vault has no `_` and `.` in names: they become `-`."""

    def __init__(self, table: Table, folder: Path | None, timeout: float) -> None:
        self._server = Server.from_table(table, "url", folder=folder, timeout=timeout)
        self._login_server = Server.from_table(table, "login_url", "https://login.microsoftonline.com", None, timeout)
        self._tenant = table.text("tenant")
        self._client_id = table.text("client_id")
        self._client_secret = Credential.from_table(table, "client_secret", folder, "AZURE_CLIENT_SECRET")
        self._scope = table.text("scope", "https://vault.azure.net/.default")
        self._secret = table.text("secret", "{name}")
        self._tokens = Tokens(self._log_in)
        self.place = f"Azure Key Vault at {self._server.url}"

    def read(self, name: str) -> str | None:
        secret = fill_name(self._secret, name).replace("_", "-").replace(".", "-")
        path = f"/secrets/{quote(secret, safe='')}?api-version={_API}"
        reply = self._tokens.send(lambda token: self._server.request("GET", path, {"Authorization": f"Bearer {token}"}))
        if reply.status == 404:
            return None
        if reply.status != 200:
            why = ": the client needs the right to get secrets" if reply.status == 403 else ""
            raise self._server.refusal(reply, why)
        return text_of(reply.member("value"))

    def _log_in(self) -> tuple[str, float]:
        form = {
            "grant_type": "client_credentials",
            "client_id": self._client_id,
            "client_secret": self._client_secret.text(),
            "scope": self._scope,
        }
        path = f"/{quote(self._tenant, safe='')}/oauth2/v2.0/token"
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        reply = self._login_server.request("POST", path, headers, urlencode(form).encode())
        token, life = reply.member("access_token"), reply.member("expires_in")
        if reply.status != 200 or not isinstance(token, str):
            raise self._login_server.refusal(reply, " to the request for a token")
        return token, float(life) if isinstance(life, int) else 0.0
