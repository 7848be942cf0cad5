"""An independent reading of AWS Signature Version 4, for servers that verify requests."""

from __future__ import annotations

import hashlib
import hmac
import re
from urllib.parse import quote, unquote

from tests.support.web import Got

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(\w+)/(\d{8})/([\w-]+)/([\w-]+)/aws4_request, "
    r"SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})"
)


def is_signed(got: Got, key_id: str, secret: str) -> bool:
    """Whether a request has the signature of these credentials."""
    found = _AUTHORIZATION.fullmatch(got.headers.get("authorization", ""))
    if found is None or found[1] != key_id or not got.headers["x-amz-date"].startswith(found[2]):
        return False
    _, day, region, service, names, signature = found.groups()
    payload = hashlib.sha256(got.body).hexdigest()
    if not {"host", "x-amz-date"} <= set(names.split(";")) or sorted(names.split(";")) != names.split(";"):
        return False
    if service == "s3" and got.headers["x-amz-content-sha256"] != payload:
        return False
    path, _, query = got.target.partition("?")
    pairs = [pair.partition("=")[::2] for pair in query.split("&") if pair]
    encoded = sorted((quote(unquote(name), "-_.~"), quote(unquote(value), "-_.~")) for name, value in pairs)
    canonical = [
        got.method,
        quote(unquote(path), "/-_.~") if service == "s3" else quote(path, "/-_.~"),
        "&".join(f"{name}={value}" for name, value in encoded),
        *(f"{name}:{' '.join(got.headers[name].split())}" for name in names.split(";")),
        "",
        names,
        payload,
    ]
    scope = f"{day}/{region}/{service}/aws4_request"
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{got.headers['x-amz-date']}\n{scope}\n{digest}"
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex() == signature
