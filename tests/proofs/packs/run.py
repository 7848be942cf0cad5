"""`make proof-packs`: AWS by the packs `aws-s3` and `aws-sqs`, against botocore and a moto server.

    $ python -m tests.proofs.packs.run

Thousands of random requests have the signature that botocore gives them. Then a node keeps a document in S3 and sends
and receives it by SQS, on both engines, and the store of secrets reads one from Secrets Manager, all of a moto server.
botocore and moto are in `.venv-packs`; `make proof-packs` installs them.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import vesper
from tests.proofs.robustness.proof import ROOT, whole_hash, write_proof
from vesper._direct import sign_aws_request
from vesper.effects.secrets.settings import SecretSettings
from vesper.effects.secrets.store import open_secrets
from vesper.effects.settings import Table

_TOOLS = ROOT / ".venv-packs" / "bin"
_REQUESTS = 5_000
_DOCUMENTS = 50
_START_SECONDS = 60
_KEY = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
_ALPHABET = "abcXYZ019 -_.~/+&=%?#:;,@!$'()*äß€語"
_NODE = (Path(__file__).parent / "keep_document.vsp").read_text(encoding="utf-8")
_SETTINGS = """\
[[grants]]
nodes = ["keep_document_v1"]
allow = ["network.http_client.*"]

[providers.reports]
extends = "aws-s3"
base_url = "{url}/reports"
allow_private_addresses = true
auth = {{region = "us-east-1"}}

[providers.queue]
extends = "aws-sqs"
base_url = "{url}"
allow_private_addresses = true
auth = {{region = "us-east-1"}}
"""


def sign_random_requests(count: int, seed: int) -> int:
    """Return the number of random requests whose signature differs from botocore's."""
    drawn = random.Random(seed)

    def text(most: int) -> str:
        return "".join(drawn.choices(_ALPHABET, k=drawn.randrange(most)))

    process = subprocess.Popen(
        [_TOOLS / "python", str(Path(__file__).parent / "botocore_signatures.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    differences = 0
    for number in range(count):
        # Vesper refuses segments of dots and escapes within escapes; `/` separates segments for S3 in any encoding.
        segments = (re.sub("[%/]", "", text(12)).strip(".") or "x" for _ in range(drawn.randrange(4)))
        path = "/".join(quote(each, safe="") for each in segments)
        query = "&".join(f"{quote(text(8), safe='')}={quote(text(8), safe='')}" for _ in range(drawn.randrange(4)))
        headers = {"Content-Type": "application/json", "X-Amz-Target": f"A.B{number}", "X-Words": f"a  {number}   b"}
        seconds = drawn.randrange(4_000_000_000)
        service = drawn.choice(["s3", "sqs", "secretsmanager", "execute-api"])
        given: dict[str, Any] = {
            "method": drawn.choice(["GET", "PUT", "POST", "DELETE"]),
            "url": f"https://{service}.example.com/{path}{'?' if query else ''}{query}",
            "headers": dict(drawn.sample(sorted(headers.items()), drawn.randrange(4))),
            "body": text(40),
            "region": drawn.choice(["us-east-1", "eu-central-1"]),
            "service": service,
            "id": _KEY[0],
            "secret": text(40),
            "token": drawn.choice([None, "session-token"]),
            "moment": datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%dT%H%M%SZ"),
        }
        process.stdin.write(json.dumps(given) + "\n")
        process.stdin.flush()
        signed = sign_aws_request(
            given["method"],
            given["url"],
            list(given["headers"].items()),
            given["body"].encode(),
            given["region"],
            given["service"],
            given["id"],
            given["secret"],
            given["token"],
            seconds * 1_000_000,
        )
        if process.stdout.readline().strip() != dict(signed)["authorization"]:
            differences += 1
            print(f"difference: {json.dumps(given)}", file=sys.stderr)
        if number % 1_000 == 0:
            print(f"signed {number:,} of {count:,}", flush=True)
    process.stdin.close()
    process.wait()
    return differences


@contextmanager
def moto() -> Iterator[str]:
    """Start a moto server; give its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([_TOOLS / "moto_server", "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def send_aws(url: str, service: str, method: str, path: str, target: str = "", body: bytes = b"") -> Any:
    """Send a signed request of our own, to prepare the server."""
    headers = {"Content-Type": "application/x-amz-json-1.1", **({"X-Amz-Target": target} if target else {})}
    now_us = time.time_ns() // 1000
    signed = sign_aws_request(
        method, f"{url}{path}", list(headers.items()), body, "us-east-1", service, *_KEY, None, now_us
    )
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    connection.request(method, path, body, {**headers, **dict(signed)})
    data = connection.getresponse().read()
    connection.close()
    return json.loads(data) if data.startswith(b"{") else None


def keep_documents(url: str, count: int) -> dict[str, int]:
    """Return how many documents each engine has kept, sent and received unchanged."""
    send_aws(url, "s3", "PUT", "/reports")
    queue = send_aws(url, "sqs", "POST", "/", "AmazonSQS.CreateQueue", b'{"QueueName": "documents"}')["QueueUrl"]
    found = {}
    with tempfile.TemporaryDirectory(prefix="proof-packs-") as name:
        folder = Path(name)
        (folder / "keep_document_v1.vsp").write_text(_NODE)
        (folder / "vesper.toml").write_text(_SETTINGS.format(url=url))
        host = vesper.Host.from_file(folder / "vesper.toml")
        for engine in ("python", "interp"):
            node = vesper.load("keep_document", nodes=folder, engine=engine, host=host)
            found[engine] = 0
            for number in range(count):
                document = f"{engine} {number} äß€ / +"
                outputs = node(name=f"{engine} {number}/ä.json", text=document, queue=queue)
                found[engine] += (outputs["kept"], outputs["received"]) == (document, document)
        host.close()
    return found


def read_secret(url: str) -> str:
    """Return the secret that the server keeps, as the store of secrets reads it."""
    body = json.dumps({"Name": "shop/stripe_key", "SecretString": "sk_live_4eC39H", "ClientRequestToken": "x" * 32})
    send_aws(url, "secretsmanager", "POST", "/", "secretsmanager.CreateSecret", body.encode())
    given = {"source": "aws", "region": "us-east-1", "url": url, "secret_id": "shop/{name}"}
    return open_secrets(SecretSettings.from_table("secrets", Table("secrets", given))).text("stripe_key")


def main() -> None:
    os.environ |= {"AWS_ACCESS_KEY_ID": _KEY[0], "AWS_SECRET_ACCESS_KEY": _KEY[1]}
    os.environ |= {"VESPER_SECRET_AWS_ACCESS_KEY_ID": _KEY[0], "VESPER_SECRET_AWS_SECRET_ACCESS_KEY": _KEY[1]}
    begun = time.monotonic()
    seed = 20261118
    differences = sign_random_requests(_REQUESTS, seed)
    with moto() as url:
        kept = keep_documents(url, _DOCUMENTS)
        is_read = read_secret(url) == "sk_live_4eC39H"
    found = {
        "source_hash": whole_hash(),
        "seed": seed,
        "signed_requests": _REQUESTS,
        "differences_from_botocore": differences,
        "documents_by_engine": kept,
        "secret_read": is_read,
        "elapsed_seconds": round(time.monotonic() - begun, 1),
    }
    print(json.dumps(found))
    if differences or kept != {"python": _DOCUMENTS, "interp": _DOCUMENTS} or not is_read:
        raise SystemExit(1)
    write_proof("packs", found)


if __name__ == "__main__":
    main()
