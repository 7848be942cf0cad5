"""HashiCorp Vault: the KV engine, version 2."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

from vesper.effects.secrets.managers.client import Credential, Manager, Reply, Server, Tokens, fill_name, text_of
from vesper.effects.settings import Table

_KUBERNETES_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # a path


class Vault(Manager):
    """Reads `MOUNT/data/PATH`; `{name}` of `path` and `field` is the name of the secret."""

    def __init__(self, table: Table, folder: Path | None, timeout: float) -> None:
        self._server = Server.from_table(table, "url", folder=folder, timeout=timeout)
        self._mount = table.text("mount", "secret").strip("/")
        self._path = table.text("path", "{name}").strip("/")
        self._field = table.text("field", "value")
        self._namespace = table.text("namespace", "")
        auth = table.table("auth")
        method = auth.choice("method", ("token", "approle", "kubernetes"), "token")
        self._login_path = f"/v1/auth/{quote(auth.text('mount', method).strip('/'))}/login"
        self._method = method
        self._role = "" if method == "token" else auth.text("role_id" if method == "approle" else "role")
        match method:
            case "token":
                self._credential = Credential.from_table(auth, "token", folder, "VAULT_TOKEN")
            case "approle":
                self._credential = Credential.from_table(auth, "secret_id", folder)
            case _:
                self._credential = Credential(None, Path(auth.text("jwt_file", _KUBERNETES_TOKEN)))
        auth.done()
        self._tokens = Tokens(self._log_in)
        self.place = f"Vault at {self._server.url}"

    def read(self, name: str) -> str | None:
        path = f"/v1/{quote(self._mount)}/data/{quote(fill_name(self._path, name))}"
        reply = self._tokens.send(lambda token: self._request("GET", path, {"X-Vault-Token": token}))
        if reply.status == 404:
            return None
        if reply.status != 200:
            why = f": the token may not read `{self._mount}/data/…`" if reply.status == 403 else ""
            raise self._server.refusal(reply, why)
        return text_of(reply.member("data", "data"), fill_name(self._field, name))

    def _log_in(self) -> tuple[str, float]:
        text = self._credential.text()
        if self._method == "token":
            return text, 0.0
        names = ("role_id", "secret_id") if self._method == "approle" else ("role", "jwt")
        body = json.dumps(dict(zip(names, (self._role, text), strict=True))).encode()
        reply = self._request("POST", self._login_path, {"Content-Type": "application/json"}, body)
        token, life = reply.member("auth", "client_token"), reply.member("auth", "lease_duration")
        if reply.status != 200 or not isinstance(token, str):
            raise self._server.refusal(reply, f" to the login by {self._method}")
        return token, float(life) if isinstance(life, int) else 0.0

    def _request(self, method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> Reply:
        namespace = {"X-Vault-Namespace": self._namespace} if self._namespace else {}
        return self._server.request(method, path, {**headers, **namespace}, body)
