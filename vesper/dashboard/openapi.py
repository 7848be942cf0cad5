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
        paths.setdefault(_address(page.path), {})["get"] = {
            "operationId": page.name,
            "summary": page.summary,
            "parameters": [*_of_path(page.path), *map(_of_query, page.parameters)],
            "responses": {
                "200": {"description": page.summary, "content": _json(schemas.of(model))},
                "default": {"$ref": "#/components/responses/Problem"},
            },
        }
    for action in actions:
        paths.setdefault(_address(action.path), {})["post"] = {
            "operationId": f"do_{action.name}",
            "summary": action.summary,
            "description": f"Needs the role `{action.role.value}`.",
            "parameters": _of_path(action.path),
            "requestBody": {"required": action.needs_reason, "content": _json(_fields(action))},
            "responses": {
                "200": {"description": "Done.", "content": _json({"$ref": "#/components/schemas/Done"})},
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


def _address(path: str) -> str:
    return "/api" + _PARAMETER.sub(r"{\1}", path)


def _json(schema: dict[str, object]) -> dict[str, object]:
    return {"application/json": {"schema": schema}}


def _of_path(path: str) -> list[dict[str, object]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(path)
    ]


def _of_query(parameter: Parameter) -> dict[str, object]:
    schema: dict[str, object] = {"type": _KINDS[parameter.kind]}
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    return {"name": parameter.name, "in": "query", "description": parameter.description, "schema": schema}


def _fields(action: Action) -> dict[str, object]:
    reason = {"type": "string", "minLength": MIN_REASON_CHARACTERS, "maxLength": MAX_REASON_CHARACTERS}
    return {
        "type": "object",
        "properties": {"reason": reason} if action.needs_reason else {},
        "required": ["reason"] if action.needs_reason else [],
        "additionalProperties": {"type": "string"},
    }
