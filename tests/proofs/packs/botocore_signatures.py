"""Signatures of botocore, for `run.py`: a request as a line of JSON in, its `Authorization` as a line out.

Runs in the environment of the proof, which has botocore.
"""

from __future__ import annotations

import json
import sys

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

for line in sys.stdin:
    given = json.loads(line)
    request = AWSRequest(given["method"], given["url"], given["headers"], given["body"].encode())
    request.context.update({"timestamp": given["moment"], "payload_signing_enabled": True})
    credentials = Credentials(given["id"], given["secret"], given["token"])
    kind = S3SigV4Auth if given["service"] == "s3" else SigV4Auth
    auth = kind(credentials, given["service"], given["region"])
    auth._modify_request_before_signing(request)
    text = auth.string_to_sign(request, auth.canonical_request(request))
    auth._inject_signature_to_request(request, auth.signature(text, request))
    print(request.headers["Authorization"], flush=True)
