"""The OpenAPI 3.1 document of the API, derived from pages, actions and their dataclasses."""

from __future__ import annotations

import re
import typing
from collections.abc import Sequence
from typing import Any

from vesper import __version__
from vesper.dashboard.action import MAX_REASON_CHARACTERS, MIN_REASON_CHARACTERS, Action
from vesper.dashboard.json_form import Schemas
from vesper.dashboard.page import Page, Parameter

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_KINDS = {"text": "string", "integer": "integer", "boolean": "boolean"}


def api_document(pages: Sequence[Page[Any]], actions: Sequence[Action]) -> dict[str, object]:
    """Return the document. Raises `TypeError` for a model without a schema."""
    schemas = Schemas()
    paths: dict[str, dict[str, object]] = {}
    for page in pages:
        model = typing.get_type_hints(page.read)["return"]
        paths.setdefault(_api_path(page.path), {})["get"] = {
            "operationId": page.name,
            "summary": page.summary,
            "parameters": [*_path_parameters(page.path), *map(_query_parameter, page.parameters)],
            "responses": {
                "200": {"description": page.summary, "content": _json_content(schemas.of(model))},
                "default": {"$ref": "#/components/responses/Problem"},
            },
        }
    for action in actions:
        paths.setdefault(_api_path(action.path), {})["post"] = {
            "operationId": f"do_{action.name}",
            "summary": action.summary,
            "description": f"Needs the role `{action.role.value}`.",
            "parameters": _path_parameters(action.path),
            "requestBody": {"required": action.needs_reason, "content": _json_content(_body_schema(action))},
            "responses": {
                "200": {"description": "Done.", "content": _json_content({"$ref": "#/components/schemas/Done"})},
                "default": {"$ref": "#/components/responses/Problem"},
            },
        }
    texts = {"type": "string"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Vesper dashboard", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {
                **schemas.components,
                "Done": {
                    "type": "object",
                    "properties": {"message": texts, "location": texts},
                    "required": ["message", "location"],
                },
                "Problem": {
                    "type": "object",
                    "description": "A problem as in RFC 9457.",
                    "properties": {
                        **dict.fromkeys(("type", "title", "detail", "remedy"), texts),
                        "status": {"type": "integer"},
                    },
                    "required": ["type", "title", "status", "detail"],
                },
            },
            "responses": {
                "Problem": {
                    "description": "What is wrong, and what to do.",
                    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "An API key or a token of the service."}
            },
        },
        "security": [{"bearer": []}, {}],
    }


def _api_path(path: str) -> str:
    return "/api" + _PARAMETER.sub(r"{\1}", path)


def _json_content(schema: dict[str, object]) -> dict[str, object]:
    return {"application/json": {"schema": schema}}


def _path_parameters(path: str) -> list[dict[str, object]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(path)
    ]


def _query_parameter(parameter: Parameter) -> dict[str, object]:
    schema: dict[str, object] = {"type": _KINDS[parameter.kind]}
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    return {"name": parameter.name, "in": "query", "description": parameter.description, "schema": schema}


def _body_schema(action: Action) -> dict[str, object]:
    reason = {"type": "string", "minLength": MIN_REASON_CHARACTERS, "maxLength": MAX_REASON_CHARACTERS}
    return {
        "type": "object",
        "properties": {"reason": reason} if action.needs_reason else {},
        "required": ["reason"] if action.needs_reason else [],
        "additionalProperties": {"type": "string"},
    }
