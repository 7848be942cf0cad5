"""The OpenAPI 3.1 document of a service, from types, constraints, errors and cases of its nodes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from vesper.api.json_calls import declared_text, json_value
from vesper.config.grants import matches_node
from vesper.config.serve import ServeSettings
from vesper.language.http_binding import HttpBinding, HttpInput
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.language.json_schema.facts import find_facts
from vesper.language.json_schema.schemas import Components, Schema, SchemaWriter
from vesper.serve.runs.endpoints import openapi_paths
from vesper.values.outside_names import spelled_type
from vesper.values.types import DECIMAL, STRING, ArrayOf, Enum, MapOf, OptionalOf, Record, SetOf, Type

if TYPE_CHECKING:
    from vesper.compiler import Compiled

OTHER_STATUS = 422
"""Status of declared errors without one, of inputs that do not fit, and of broken preconditions."""
_MAX_EXAMPLES = 3
_IDEMPOTENCY_KEY = "Idempotency-Key"
_PRINTABLE = "^([!-~]([ -~]*[!-~])?)?$"
"""Texts that a header carries unchanged."""
_KEY: Schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"}
_PROBLEM: Schema = {
    "type": "object",
    "description": "An error (RFC 9457).",
    "properties": {
        "type": {"type": "string", "description": "`urn:vesper:problem:` and the kind of the problem."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "trace_id": {"type": "string", "description": "The trace of the request."},
        "execution": {"type": "string", "description": "The run in the journal."},
        "code": {"type": "string", "description": "The code of a failure of the node."},
        "problems": {
            "type": "array",
            "description": "Every problem of the inputs.",
            "items": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "kind": {"type": "string"}, "message": {"type": "string"}},
                "required": ["path", "kind"],
            },
        },
        "clause": {"type": "object", "description": "The contract that does not hold."},
    },
    "required": ["type", "title", "status", "detail"],
}
_DESCRIPTION = {
    "text": 'Decimals are texts in answers, such as `"1.50"`; requests may have texts or numbers.',
    "number": "Decimals are JSON numbers in answers; requests may have texts or numbers.",
}


def openapi_json(
    nodes: Iterable[Compiled], settings: ServeSettings, title: str = "Nodes", has_runs: bool = False
) -> bytes:
    """Return the document of the served nodes. A node without `http` is a function at `POST /nodes/ID`."""
    return json.dumps(build_document(list(nodes), settings, title, has_runs), ensure_ascii=False, indent=1).encode()


def build_document(
    nodes: Sequence[Compiled], settings: ServeSettings, title: str, has_runs: bool = False
) -> dict[str, Any]:
    """Return the document as JSON values; `has_runs` adds the endpoints of runs."""
    components = Components()
    components.schemas["Problem"] = _PROBLEM
    paths: dict[str, dict[str, Any]] = {}
    digest = hashlib.sha256()
    for each in sorted(nodes, key=lambda each: each.node.node_id):
        operation = _Operation(each, components, settings)
        paths.setdefault(operation.http.path, {})[operation.http.method.lower()] = operation.write()
        digest.update(f"{each.semantic_hash}{operation.http}".encode())
    schemes = _security_schemes(settings)
    if has_runs:
        added, schemas = openapi_paths(settings, schemes)
        paths |= added
        components.schemas |= schemas
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": digest.hexdigest()[:12],
            "description": f"{_DESCRIPTION[settings.decimals]} `Vesper-Timeout` limits a request in seconds.",
        },
        "servers": [{"url": "/"}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(components.schemas.items())),
            **({"securitySchemes": schemes} if schemes else {}),
        },
    }


def _security_schemes(settings: ServeSettings) -> dict[str, Schema]:
    found: dict[str, Schema] = {}
    if settings.keys:
        found["key"] = {"type": "apiKey", "in": "header", "name": "X-API-Key"}
    if settings.jwt:
        found["token"] = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    if settings.tls is not None and settings.tls.client_ca is not None:
        found["certificate"] = {"type": "mutualTLS"}
    return found


def _default_binding(node: ir.Node) -> HttpBinding:
    hidden = node.flagged
    inputs = tuple(
        HttpInput(each.name, field, "body", field, "json")
        for each in node.inputs
        if each.name not in hidden and (field := each.outside or each.name)
    )
    return HttpBinding("POST", f"/nodes/{node.node_id}", inputs, "object" if inputs else "none", 200, (), (), ())


class _Operation:
    """The request and responses of one node."""

    def __init__(self, compiled: Compiled, components: Components, settings: ServeSettings) -> None:
        node = self._node = compiled.node
        self._compiled = compiled
        self._components = components
        self._settings = settings
        self.http = compiled.http or _default_binding(node)
        names = ([each.name for each in part] for part in (node.inputs, node.outputs, node.errors))
        types = compiled.declared or (
            tuple(each.type for each in node.inputs),
            tuple(each.type for each in node.outputs),
            tuple(each.type for each in node.errors),
        )
        self._types = [dict(zip(part, of, strict=True)) for part, of in zip(names, types, strict=True)]
        has_numbers = settings.decimals == "number"
        asked = find_facts((*node.constraints, *node.preconditions), "input")
        answered = find_facts(node.postconditions, "output")
        self._reader = SchemaWriter(components, asked, is_input=True, has_numbers=has_numbers)
        self._writer = SchemaWriter(components, answered, is_input=False, has_numbers=has_numbers)
        self._errors = SchemaWriter(components, {}, is_input=False, has_numbers=has_numbers)
        self._defaults = {
            each.name: self._default(each)
            for each in node.inputs
            if each.default is not None and each.name not in node.flagged
        }
        self._name = "".join(part.capitalize() for part in node.node_id.split("_"))

    def write(self) -> dict[str, Any]:
        """Return the operation object."""
        parameters = [self._parameter(each) for each in self.http.inputs if each.source != "body"]
        if not self._node.is_pure() and not any(each["name"].lower() == "idempotency-key" for each in parameters):
            about = "The key of this request: sent again with it, the request is not done again."
            parameters.append({"name": _IDEMPOTENCY_KEY, "in": "header", "description": about, "schema": _KEY})
        body = self._body()
        return {
            "operationId": self._node.node_id,
            "summary": self._node.source.intent,
            **({"parameters": parameters} if parameters else {}),
            **({} if body is None else {"requestBody": body}),
            "responses": self._responses(),
            **self._security(),
        }

    def _security(self) -> dict[str, Any]:
        schemes = _security_schemes(self._settings)
        if not schemes:
            return {}
        if self._node.node_id in self._settings.webhooks:
            return {"security": []}  # the signature is the credential, and OpenAPI has no form for it
        scopes = set(self.http.scopes)
        for pattern, listed in self._settings.scopes.items():
            if matches_node((pattern,), self._node.node_id):
                scopes.update(listed)
        return {"security": [{name: sorted(scopes)} for name in schemes]}

    # -- the request ------------------------------------------------------------------------------

    def _default(self, declared: ir.Input) -> Any:
        return json_value(declared.type, declared.default)

    def _is_required(self, name: str) -> bool:
        return name not in self._defaults and not isinstance(self._types[0][name], OptionalOf)

    def _parameter(self, each: HttpInput) -> dict[str, Any]:
        schema = self._reader.value(self._types[0][each.name], (each.name,), is_text=True)
        if each.source == "path":
            schema = _non_empty_schema(schema)
        if each.source == "header" and schema.get("type") == "string" and not schema.keys() & {"pattern", "enum"}:
            is_key = each.key.lower() == _IDEMPOTENCY_KEY.lower()
            lengths = {name: bound for name, bound in schema.items() if name in ("minLength", "maxLength")}
            schema = _strictest_schema(_KEY, lengths) if is_key else {**schema, "pattern": _PRINTABLE}
        if schema.get("type") == "array":
            schema = {"minItems": 1, **schema}
        if each.name in self._defaults and each.source != "path":
            schema = {**schema, "default": self._defaults[each.name]}
        found: dict[str, Any] = {"name": each.key, "in": each.source}
        found["required"] = each.source == "path" or self._is_required(each.name)
        found["schema"] = schema
        examples = [case.inputs[each.name] for case in self._compiled.cases if case.inputs.get(each.name) is not None]
        if examples:
            found["example"] = of_caller(self._node.inputs, {each.name: examples[0]})[each.field]
        return found

    def _body(self) -> dict[str, Any] | None:
        if self.http.body == "none":
            return None
        names = [each.name for each in self.http.inputs if each.source == "body"]
        if self.http.body == "object":
            hidden = self._node.flagged
            record = ir.record_of(
                each for each in self._node.inputs if each.name in names or hidden.get(each.name) in names
            )
            fields = tuple((name, self._types[0][name]) for name, _ in record.fields)
            schema = self._reader.record(fields, record.outside, (), self._defaults)
            schema = self._components.add(f"{self._name}Request", schema, True)
        else:
            schema = self._reader.value(self._types[0][self.http.body], (self.http.body,))
        content: dict[str, Any] = {"schema": schema}
        examples: dict[str, Any] = {}
        for case in self._compiled.cases:
            if (case.expect is not None or case.error is not None) and len(examples) < _MAX_EXAMPLES:
                given = {name: value for name, value in case.inputs.items() if name in names}
                value: Any = of_caller(self._node.inputs, given)
                if self.http.body != "object" and given:
                    (value,) = value.values()
                examples[f"case_{len(examples) + 1}"] = {"summary": case.name, "value": value}
        if examples:
            content["examples"] = examples
        return {"required": any(map(self._is_required, names)), "content": {"application/json": content}}

    # -- responses --------------------------------------------------------------------------------

    def _responses(self) -> dict[str, Any]:
        record = ir.record_of(self._node.outputs)
        fields = tuple(self._types[1].items())
        schema = self._components.add(f"{self._name}Result", self._writer.record(fields, record.outside), False)
        success: dict[str, Any] = {
            "description": self._node.source.intent,
            "content": {"application/json": {"schema": schema}},
        }
        headers = {name: {"schema": {"type": "string"}} for name, _ in self.http.response_headers}
        if headers:
            success["headers"] = headers
        examples = self._answers()
        if examples:
            success["content"]["application/json"]["examples"] = examples
        found: dict[str, Any] = {str(self.http.status): success}
        if self.http.status != 202 and _may_wait(self._compiled):
            found["202"] = {"description": "The run waits, and goes on by itself: `execution`, `waits_for`."}
        for status, codes in sorted(self._codes().items()):
            found[str(status)] = self._declared_response(codes)
        found.setdefault(str(OTHER_STATUS), _problem("The inputs do not fit, or a precondition does not hold."))
        if self._settings.has_auth:
            found.setdefault("401", _problem("The caller is not authenticated."))
            found.setdefault("403", _problem("The caller lacks a scope."))
        if self.http.method == "GET" and self._node.is_pure():
            found["304"] = {"description": "The answer has not changed."}
        found["default"] = _problem("Another problem.")
        return found

    def _answers(self) -> dict[str, Any]:
        complete = [
            case
            for case in self._compiled.cases
            if case.expect is not None and case.expect.keys() == {each.name for each in self._node.outputs}
        ]
        found = {}
        for number, case in enumerate(complete[:_MAX_EXAMPLES], start=1):
            value = of_caller(self._node.outputs, case.expect or {})
            if self._settings.decimals == "number":
                value = _with_numbers(spelled_type(ir.record_of(self._node.outputs)), value)
            found[f"case_{number}"] = {"summary": case.name, "value": value}
        return found

    def _codes(self) -> dict[int, list[str]]:
        """Return the declared error codes by status."""
        codes = self._node.errors[0].type if self._node.errors else None
        statuses = dict(self.http.errors)
        found: dict[int, list[str]] = {}
        for code in codes.members if isinstance(codes, Enum) else ():
            found.setdefault(statuses.get(code, OTHER_STATUS), []).append(code)
        return found

    def _declared_response(self, codes: list[str]) -> dict[str, Any]:
        """Return the response of declared errors. The server itself may also answer with their status."""
        first = self._node.errors[0]
        assert isinstance(first.type, Enum)
        texts = dict(zip(first.type.members, first.type.outside or first.type.members, strict=True))
        record = ir.record_of(self._node.errors)
        error = self._errors.record(tuple(self._types[2].items()), record.outside)
        error["properties"][first.outside or first.name] = {"type": "string", "enum": [texts[code] for code in codes]}
        schema = {"allOf": [_PROBLEM_REF, {"type": "object", "properties": {"error": error}}]}
        return {"description": ", ".join(codes), "content": {"application/problem+json": {"schema": schema}}}


def _may_wait(compiled: Compiled) -> bool:
    """Return whether a run of the node, or of one that it calls, may wait."""
    requests = (each for each in all_statements(compiled.node.body) if isinstance(each, ir.Request))
    return any(each.effect_class == "wait" for each in requests) or any(map(_may_wait, compiled.callees))


_PROBLEM_REF: Schema = {"$ref": "#/components/schemas/Problem"}


def _problem(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/problem+json": {"schema": _PROBLEM_REF}}}


def _non_empty_schema(schema: Schema) -> Schema:
    """Return the schema of a part of the path, which is never empty."""
    is_free = schema.get("type") == "string" and "enum" not in schema and not schema.get("minLength")
    return {**schema, "minLength": 1} if is_free else schema


def _strictest_schema(schema: Schema, lengths: Schema) -> Schema:
    found = {**schema, **lengths}
    found["minLength"] = max(schema["minLength"], found["minLength"])
    found["maxLength"] = min(schema["maxLength"], found["maxLength"])
    return found


# -- JSON values of cases and defaults ------------------------------------------------------------


def of_caller(declared: tuple[ir.Input, ...] | tuple[ir.Output, ...], values: dict[str, Any]) -> dict[str, Any]:
    """Return values as callers pass them in JSON, by outside names."""
    found: dict[str, Any] = json.loads(declared_text(declared, values))  # type: ignore[arg-type]  # both are declared
    return found


def _with_numbers(type_: Type, value: Any) -> Any:
    """Return a JSON value with its decimals as numbers."""
    match type_:
        case OptionalOf(inner):
            return None if value is None else _with_numbers(inner, value)
        case ArrayOf(inner) | SetOf(inner):
            return [_with_numbers(inner, each) for each in value]
        case MapOf(key, inner) if key == STRING or isinstance(key, Enum):
            return {name: _with_numbers(inner, each) for name, each in value.items()}
        case MapOf(_, inner):
            return [[name, _with_numbers(inner, each)] for name, each in value]
        case Record(fields):
            types = dict(fields)
            return {name: _with_numbers(types[name], each) if name in types else each for name, each in value.items()}
        case _:
            return float(value) if type_ == DECIMAL else value
