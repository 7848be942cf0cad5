"""`make proof-openapi`: the document of the shipped handlers against the service that they are.

Schemathesis draws requests from `/openapi.json`, right and wrong ones: no answer is a 500, and every one is as the
document says. Then the clients that openapi-python-client and openapi-typescript generate from it call every operation
with its first example, after a type check of the second.

The tools are in `.venv-openapi` and, by npm, in `.proofs/openapi/node`; `make proof-openapi` installs them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import STATE, engine_hash, whole_hash, write_proof  # noqa: E402
from tests.proofs.serving.shop import HANDLERS, SECRETS, STRIPE_KEY, make_shop, rows  # noqa: E402
from tests.support.servers import Postgres, Redis  # noqa: E402
from tests.support.serving import Serving, vesper_serve  # noqa: E402
from tests.support.web import FakeStripe, Got, Web, Wire, message  # noqa: E402

NAME = "openapi"
EXAMPLES = 300
TOOLS = ROOT / ".venv-openapi" / "bin"
NODE_FOLDER = STATE / NAME / "node"
PACKAGES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20")
CLIENT = "shop_client"
_OPTIONS = ["--default-non-nullable", "false"]
"""An input with a default may be omitted, which is not how openapi-typescript reads it."""
# Answers to requests that fit the schema: declared errors and preconditions say more than a schema can, and a provider
# or a database may refuse (502) what the node does not: an order id with another amount, a text with U+0000.
_SCHEMATHESIS = """\
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 402, 404, 409, 422, 502]

[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 502]
"""


class Others(Web):
    """The bank and the gateway."""

    def answer(self, got: Got, wire: Wire) -> None:
        found = {"rate": "1.0855"} if got.path.startswith("/bank/") else {}
        wire.send(message(200, json.dumps(found).encode(), {"Content-Type": "application/json"}))


@contextmanager
def shop() -> Iterator[Serving]:
    """Serve all handlers, with rows that their examples name."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proof-openapi-")))
        stripe = stack.enter_context(FakeStripe(api_key=STRIPE_KEY))
        others = stack.enter_context(Others())
        postgres, redis = Postgres(), Redis()  # sums of decimals are none on SQLite
        stack.callback(postgres.remove)
        stack.callback(redis.remove)
        dsn = postgres.new_database()
        make_shop(folder, stripe.url, dsn, others.url, redis.url)
        rows(dsn, "INSERT INTO stock (sku, available) VALUES ('pen', 1000000)")
        rows(dsn, "INSERT INTO tickets (ticket_id, triaged) VALUES ('t1', FALSE)")
        server = stack.enter_context(Serving(vesper_serve(HANDLERS), "/readyz", folder, SECRETS))
        # The refund of the examples is of the first charge.
        status, found = server.post("/payments", {"order_id": "o1", "user_id": "u1", "amount": "100.00"})
        assert (status, found["transaction_id"]) == (201, "ch_1"), (status, found)
        yield server
        if code := server.stop():
            raise RuntimeError(f"the server ended with {code}:\n{server.text()[-2000:]}")


def calls_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a call of every operation, with the first example of each part."""
    found = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parameters: dict[str, dict[str, Any]] = {}
            for each in operation.get("parameters", ()):
                if "example" in each:
                    parameters.setdefault(each["in"], {})[each["name"]] = each["example"]
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            examples = [each["value"] for each in content.get("examples", {}).values()]
            call = {"id": operation["operationId"], "method": method.upper(), "path": path, "parameters": parameters}
            found.append({**call, "body": examples[0]} if examples else call)
    return found


def problems_of(name: str, calls: list[dict[str, Any]], statuses: dict[str, Any]) -> list[str]:
    """Return the calls of a generated client without a success."""
    return [
        f"{name}: {each['id']}: {statuses.get(each['id'], 'not called')}"
        for each in calls
        if statuses.get(each["id"]) not in (200, 201)
    ]


# -- the tools ------------------------------------------------------------------------------------


def schemathesis(server: Serving, folder: Path, examples: int, seed: int) -> tuple[int, str]:
    """Return exit code and report."""
    config = folder / "schemathesis.toml"
    config.write_text(_SCHEMATHESIS, encoding="utf-8")
    command: list[Any] = [TOOLS / "st", "--config-file", config, "run"]
    command += [f"http://127.0.0.1:{server.port}/openapi.json"]
    options: list[Any] = [
        "--checks",
        "all",
        "--max-examples",
        examples,
        "--seed",
        seed,
        "--phases",
        "examples,coverage,fuzzing",
    ]
    options += ["--suppress-health-check", "all", "--continue-on-failure", "--workers", "2", "--no-color"]
    done = _run(command + options, folder)
    return done.returncode, done.stdout + done.stderr


def python_client(server: Serving, folder: Path, document: Path, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Generate the client of openapi-python-client, and let it make the calls; return statuses by operation."""
    environment = {**os.environ, "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(folder)}
    generate: list[Any] = [TOOLS / "openapi-python-client", "generate", "--path", document, "--meta", "none"]
    done = _run([*generate, "--output-path", folder / CLIENT, "--fail-on-warning"], folder, environment)
    if done.returncode:
        return {"generator": done.stdout[-2000:]}
    script = Path(__file__).with_name("python_client.py")
    command = [TOOLS / "python", script, CLIENT, f"http://127.0.0.1:{server.port}"]
    return _statuses(_run(command, folder, environment, json.dumps(calls)))


def typescript_client(server: Serving, folder: Path, document: Path, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Generate the types of openapi-typescript, compile calls that use them, and run those."""
    tools = NODE_FOLDER / "node_modules"
    (folder / "node_modules").symlink_to(tools)
    (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    done = _run([tools / ".bin" / "openapi-typescript", document, "-o", folder / "api.d.ts", *_OPTIONS], folder)
    if done.returncode:
        return {"generator": done.stderr[-2000:]}
    (folder / "calls.ts").write_text(_typescript(calls), encoding="utf-8")
    options = ["--strict", "--target", "es2022", "--module", "nodenext", "--types", "node"]
    done = _run([tools / ".bin" / "tsc", *options, "calls.ts"], folder)
    if done.returncode:
        return {"compiler": done.stdout[-2000:]}
    return _statuses(_run(["node", "calls.js", f"http://127.0.0.1:{server.port}"], folder))


def _typescript(calls: list[dict[str, Any]]) -> str:
    lines = [
        'import createClient from "openapi-fetch";',
        'import type { paths } from "./api.js";',
        "const client = createClient<paths>({ baseUrl: process.argv[2] });",
        "const found: Record<string, number> = {};",
    ]
    for each in calls:
        given = {"params": each["parameters"], **({"body": each["body"]} if "body" in each else {})}
        call = f"client.{each['method']}({json.dumps(each['path'])}, {json.dumps(given)})"
        lines.append(f"found[{json.dumps(each['id'])}] = (await {call}).response.status;")
    return "\n".join([*lines, "console.log(JSON.stringify(found));", ""])


def _run(
    command: list[Any], folder: Path, environment: dict[str, str] | None = None, given: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(each) for each in command], check=False, input=given, cwd=folder, env=environment, capture_output=True,
        text=True,
    )  # fmt: skip


def _statuses(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    if done.returncode:
        return {"process": done.stderr[-2000:]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def install_packages() -> None:
    """Install the packages of npm that are not there."""
    if not (NODE_FOLDER / "node_modules" / ".bin" / "openapi-typescript").exists():
        NODE_FOLDER.mkdir(parents=True, exist_ok=True)
        (NODE_FOLDER / "package.json").write_text('{"private": true}', encoding="utf-8")
        subprocess.run(["npm", "install", "--silent", "--no-fund", *PACKAGES], check=True, cwd=NODE_FOLDER)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="fuzzed requests of each operation (300)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    begun = time.monotonic()
    install_packages()
    found: dict[str, Any] = {"source_hash": whole_hash(), "engine_hash": engine_hash(), "seed": given.seed}
    problems: list[str] = []
    calls: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="proof-openapi-tools-") as name:
        folder = Path(name)
        for client in (python_client, typescript_client):
            with shop() as server:
                document = folder / "openapi.json"
                document.write_bytes(server.request("GET", "/openapi.json")[2])
                calls = calls_of(json.loads(document.read_bytes()))
                statuses = client(server, folder, document, calls)
            print(f"{client.__name__}: {statuses}", flush=True)
            problems += problems_of(client.__name__, calls, statuses)
            found[client.__name__] = statuses
        with shop() as server:
            code, report = schemathesis(server, folder, given.examples, given.seed)
        (STATE / NAME / "schemathesis.txt").write_text(report, encoding="utf-8")
    print(report[-12_000:])
    if code:
        problems.append(f"schemathesis ended with {code}: .proofs/{NAME}/schemathesis.txt")
    summary = [line.strip() for line in report.splitlines() if "test cases" in line.lower() or "generated" in line]
    found |= {"operations": len(calls), "schemathesis": summary, "examples": given.examples}
    found["elapsed_seconds"] = round(time.monotonic() - begun, 1)
    for problem in problems:
        print(f"FAILED: {problem}")
    if not problems and given.examples >= EXAMPLES:
        write_proof(NAME, found)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
