"""AWS Secrets Manager."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from vesper._direct import sign_aws_request
from vesper.effects.secrets.managers.client import Credential, Manager, Server, fill_name, text_of
from vesper.effects.settings import Table

_SERVICE = "secretsmanager"
_KEY_VARIABLE = "AWS_ACCESS_KEY_ID"
_SESSION_VARIABLE = "AWS_SESSION_TOKEN"


class AwsSecrets(Manager):
    """Reads the current version of `secret_id`; with `field` a field of a secret that is a JSON object."""

    def __init__(self, table: Table, folder: Path | None, timeout: float) -> None:
        self._region = table.text("region")
        default = f"https://{_SERVICE}.{self._region}.amazonaws.com"
        self._server = Server.from_table(table, "url", default, folder, timeout)
        self._secret_id = table.text("secret_id", "{name}")
        self._field = table.text("field") if "field" in table else None
        self._key_id, self._key = (
            Credential.from_table(table, name, folder, f"AWS_{name.upper()}")
            for name in ("access_key_id", "secret_access_key")
        )
        self._session = None
        if "session_token" in table or (self._key_id.env == _KEY_VARIABLE and os.environ.get(_SESSION_VARIABLE)):
            self._session = Credential.from_table(table, "session_token", folder, _SESSION_VARIABLE)
        self.place = f"AWS Secrets Manager in {self._region}"

    def read(self, name: str) -> str | None:
        body = json.dumps({"SecretId": fill_name(self._secret_id, name)}).encode()
        headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": f"{_SERVICE}.GetSecretValue"}
        session = None if self._session is None else self._session.text()
        signed = sign_aws_request(
            "POST",
            f"{self._server.url}/",
            list(headers.items()),
            body,
            self._region,
            _SERVICE,
            self._key_id.text(),
            self._key.text(),
            session,
            time.time_ns() // 1000,
        )
        reply = self._server.request("POST", "/", {**headers, **dict(signed)}, body)
        kind = str(reply.member("__type") or "").rpartition("#")[2]
        if reply.status == 400 and kind == "ResourceNotFoundException":
            return None
        if reply.status != 200:
            raise self._server.refusal(reply, f" ({kind})" if kind.isalnum() else "")
        return text_of(reply.member("SecretString"), None if self._field is None else fill_name(self._field, name))
