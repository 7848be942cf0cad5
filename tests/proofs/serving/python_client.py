"""Call operations through a client that openapi-python-client has generated: python_client.py PACKAGE URL <CALLS.

It runs in the environment of the generator and imports nothing of Vesper. Prints the statuses by operation as JSON.
"""

from __future__ import annotations

import enum
import importlib
import json
import sys
import typing
from typing import Any


def converted(hint: Any, value: Any) -> Any:
    """Return the value as the client takes it: a model, an enum, or itself."""
    for each in (hint, *typing.get_args(hint)):
        if isinstance(each, type) and issubclass(each, enum.Enum):
            return each(value)
        if hasattr(each, "from_dict"):
            return each.from_dict(value)
    return value


def main() -> None:
    package, url = sys.argv[1:]
    client = importlib.import_module(package).Client(base_url=url)
    found: dict[str, Any] = {}
    for call in json.load(sys.stdin):
        operation = importlib.import_module(f"{package}.api.default.{call['id']}").sync_detailed
        hints = typing.get_type_hints(operation)
        given = {name: value for part in call["parameters"].values() for name, value in part.items()}
        given |= {"body": call["body"]} if "body" in call else {}
        arguments = {name.lower().replace("-", "_"): value for name, value in given.items()}
        try:
            answer = operation(client=client, **{name: converted(hints[name], arguments[name]) for name in arguments})
        except Exception as problem:  # noqa: BLE001  # whatever the generated code raises is what is reported
            found[call["id"]] = f"{type(problem).__name__}: {problem}"
            continue
        # Reading the answer as its model is part of the call.
        is_read = answer.parsed is not None
        found[call["id"]] = int(answer.status_code) if is_read else f"{answer.status_code}, not read"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
