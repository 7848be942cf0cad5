"""The table of endpoints, by which the native part of a server reads requests and writes answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vesper.api.spelled_declarations import spelled_declarations
from vesper.config.grants import matches_node
from vesper.config.serve import ANSWER_PATH, PAGES, CorsSettings, ServeSettings
from vesper.effects.settings import ConfigError, close_to
from vesper.host.plans import plans_of
from vesper.language.ir import nodes as ir
from vesper.serve.runs.endpoints import ENDPOINTS
from vesper.values.json_forms import has_names
from vesper.values.types import DECIMAL, ArrayOf, MapOf, OptionalOf, Record, SetOf, Type

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.language.http_binding import HttpBinding, HttpInput

_VERSION = 1


def build_table(
    nodes: Sequence[Node],
    settings: ServeSettings,
    auth: Mapping[str, object],
    builtins: Sequence[str] = PAGES,
    has_runs: bool = False,
) -> bytes:
    """Return the table of these nodes, in their order, then the endpoints of runs (docs/spec/serving.md).

    `auth` has the credentials. Raises `ConfigError` for webhooks of an unserved node, and for interrupts that every
    caller could answer.
    """
    served = [each.id for each in nodes]
    for node in settings.webhooks:
        if node not in served:
            hint = close_to(node, served) or f"; served are {', '.join(served)}"
            raise ConfigError(f"serve.webhooks.{node}", f"no node `{node}` is served, so nothing is verified{hint}")
    if has_runs:
        _require_answering_scope(nodes, settings)
    table = {
        "version": _VERSION,
        "decimals": settings.decimals,
        "max_body_bytes": settings.limits.max_body_bytes,
        "cors": None if settings.cors is None else _cors(settings.cors),
        "auth": auth,
        "endpoints": [
            *(_endpoint(each, settings) for each in nodes),
            *(each.row(settings) for each in ENDPOINTS if has_runs),
        ],
        "builtins": [{"path": each, "scopes": list(settings.scopes.get(each, ()))} for each in builtins],
    }
    return json.dumps(table, separators=(",", ":")).encode()


def _cors(settings: CorsSettings) -> dict[str, object]:
    return {
        "origins": list(settings.origins),
        "headers": list(settings.headers),
        "has_credentials": settings.has_credentials,
        "max_age": int(settings.max_age),
    }


def _require_answering_scope(nodes: Sequence[Node], settings: ServeSettings) -> None:
    """Raise `ConfigError` if the callers that begin a run could approve it themselves."""
    if not settings.has_auth or settings.scopes.get(ANSWER_PATH):
        return
    for node in nodes:
        requests = plans_of(node._compiled).requests
        steps = [path for path, plan in requests.items() if plan.effect == "interrupt"]
        if steps and node.id not in settings.webhooks:
            raise ConfigError(
                "serve.scopes",
                f"callers of {node.id} could answer its interrupt `{steps[0]}` themselves: write "
                f'"{ANSWER_PATH}" = ["approve"] here, and give this scope to the callers that may answer',
            )


def _endpoint(node: Node, settings: ServeSettings) -> dict[str, Any]:
    http = node._compiled.http
    found: dict[str, Any] = {
        "node": node.id,
        "is_pure": node._entries is not None,
        "has_now": node._takes_now,
        "scopes": scopes_of(node, settings),
    }
    if settings.decimals == "number":
        found["outputs"] = _decimals_of(node._compiled.node.outputs)
        found["errors"] = _decimals_of(node._compiled.node.errors)
    return found | (_function(node) if http is None else _handler(http))


def scopes_of(node: Node, settings: ServeSettings) -> list[str]:
    """Return the scopes that callers of a node need."""
    http = node._compiled.http
    needed = [
        scope for pattern, scopes in settings.scopes.items() if matches_node((pattern,), node.id) for scope in scopes
    ]
    return list(dict.fromkeys([*(() if http is None else http.scopes), *needed]))


def _function(node: Node) -> dict[str, Any]:
    """Return the route of a node without `http`: all inputs come from the body."""
    return {
        "method": "POST",
        "path": f"/nodes/{node.served_as}",
        "inputs": [],
        "body": "object",
        "success_status": 200,
        "statuses": {},
        "response_headers": {},
    }


def _handler(http: HttpBinding) -> dict[str, Any]:
    fields = {each.name: each.field for each in http.inputs}
    return {
        "method": http.method,
        "path": http.path,
        "inputs": [_input(each) for each in http.inputs if each.source != "body"],
        "body": fields.get(http.body, http.body) if http.body not in ("object", "none") else http.body,
        "success_status": http.status,
        "statuses": dict(http.errors),
        "response_headers": dict(http.response_headers),
    }


def _input(each: HttpInput) -> dict[str, str]:
    return {"name": each.field, "from": each.source, "key": each.key, "form": each.form}


def _decimals_of(declared: tuple[ir.Output, ...]) -> object:
    """Return the places of decimals in outputs or error fields, by outside name."""
    return _decimals(spelled_declarations(declared)[1])


def _decimals(type_: Type) -> object:
    """Return the number of places of decimals in the JSON of a type. None if it has none."""
    match type_:
        case OptionalOf(inner):
            return _decimals(inner)
        case ArrayOf(element) | SetOf(element):
            found = _decimals(element)
            return None if found is None else {"array": found}
        case MapOf(key, value) if has_names(key):
            found = _decimals(value)
            return None if found is None else {"values": found}
        case MapOf(key, value):
            pair = [_decimals(key), _decimals(value)]
            return None if pair == [None, None] else {"pairs": pair}
        case Record(fields):
            places = {name: found for name, of in fields if (found := _decimals(of)) is not None}
            return {"fields": places} if places else None
    return "number" if type_ == DECIMAL else None
