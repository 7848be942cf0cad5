"""The endpoints of runs, as rows of the table and as operations of the OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from vesper.config.serve import RUN_PATHS, ServeSettings
from vesper.journal.journal import Status

Name = Literal["start", "list", "show", "signal", "answer", "cancel"]
PAGE_RUNS: Final = 100
"""Runs of the journal that a page covers: all that one request reads."""
MAX_PAGES: Final = 100
MAX_WAIT_SECONDS: Final = 60
_TEXT: Final = {"type": "string"}
_STATUS: Final = {"type": "string", "enum": [each.value for each in Status]}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation on runs."""

    name: Name
    method: Literal["GET", "POST"]
    path: str
    summary: str
    parameters: tuple[tuple[str, str, str], ...] = ()
    """Name, source (`path`, `query`, `header`) and key of each parameter."""
    body: Literal["none", "object", "value"] = "none"
    success: int = 200

    def scopes(self, settings: ServeSettings) -> list[str]:
        """Return the scopes that callers need in addition to those of the node."""
        return list(dict.fromkeys([*settings.scopes.get(RUN_PATHS[0], ()), *settings.scopes.get(self.path, ())]))

    def row(self, settings: ServeSettings) -> dict[str, Any]:
        """Return the endpoint as a row of the table."""
        return {
            "node": self.path,
            "method": self.method,
            "path": self.path,
            "inputs": [
                {"name": name, "from": source, "key": key, "form": "text"} for name, source, key in self.parameters
            ],
            "body": self.body,
            "success_status": self.success,
            "statuses": {},
            "response_headers": {},
            "is_pure": False,
            "has_now": False,
            "scopes": self.scopes(settings),
        }


_ID = ("id", "path", "id")
_QUERIES = tuple((name, "query", name) for name in ("node", "status", "page"))
_SHOWN = (("wait", "query", "wait"), ("accept", "header", "accept"), ("last_event_id", "header", "last-event-id"))
ENDPOINTS: Final = (
    Endpoint("start", "POST", RUN_PATHS[0], "Queue a run of a node", body="object", success=202),
    Endpoint("list", "GET", RUN_PATHS[0], "List runs, newest first", _QUERIES),
    Endpoint("show", "GET", RUN_PATHS[1], "Show a run, wait for its next change, or follow it", (_ID, *_SHOWN)),
    Endpoint("signal", "POST", RUN_PATHS[2], "Send a signal to a run", (_ID, ("name", "path", "name")), "value", 202),
    Endpoint("answer", "POST", RUN_PATHS[3], "Answer the pending interrupt of a run", (_ID,), "value", 202),
    Endpoint("cancel", "POST", RUN_PATHS[4], "Cancel a run that waits or is queued", (_ID,), "object", 202),
)

# -- OpenAPI --------------------------------------------------------------------------------------

_MOMENT: Final = {"type": "string", "format": "date-time"}
_SUMMARY: Final[dict[str, Any]] = {
    "execution": _TEXT,
    "node": _TEXT,
    "status": _STATUS,
    "started": _MOMENT,
    "updated": _MOMENT,
}
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}


def _record(properties: dict[str, Any], kind: str | list[str] = "object") -> dict[str, Any]:
    """Return the schema of an object with all of these members."""
    return {"type": kind, "properties": properties, "required": list(properties)}


_WAIT: Final = {"kind": _TEXT, "name": _TEXT, "step": _TEXT, "until": _TEXT_OR_NULL, "message": _TEXT_OR_NULL}
_RUN: Final = _record(
    {
        **_SUMMARY,
        "next_attempt": {
            **_TEXT_OR_NULL,
            "description": "The execution that goes on in place of a failed one; status and outcome are its own.",
        },
        "outcome": {"type": ["object", "null"], "description": "Kind and values of a run that has ended."},
        "waits_for": {
            **_record(_WAIT, ["object", "null"]),
            "description": "The sleep, signal or interrupt that a waiting run is at.",
        },
    }
)
_LISTED: Final = _record(
    {"runs": {"type": "array", "items": _record(_SUMMARY)}, "next": {"type": ["integer", "null"]}},
)
_SIGNALLED: Final = _record({"execution": _TEXT, "is_kept": {"type": "boolean"}, "is_repeat": {"type": "boolean"}})
_START: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "node": {"type": "string", "description": "The id of a served node with effects."},
        "inputs": {"type": "object"},
        "key": {"type": "string", "description": "As `Idempotency-Key`: one run for each key."},
        "delay": {"type": "number", "minimum": 0, "description": "Seconds until the run may begin."},
        "priority": {"type": "integer", "description": "Higher ones run first."},
    },
    "required": ["node"],
    "additionalProperties": False,
}
_CANCEL: Final = {
    "type": "object",
    "properties": {"reason": {"type": "string", "minLength": 3, "maxLength": 500}},
    "required": ["reason"],
}
_ABOUT: Final = {
    "node": "Only runs of this node.",
    "status": "Only runs in this status.",
    "page": f"A page covers {PAGE_RUNS} runs and has those that the caller may see; the first is 1.",
    "wait": f"Seconds to wait for a change of the run, at most {MAX_WAIT_SECONDS}.",
}


def openapi_paths(settings: ServeSettings, schemes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the paths of runs and the schemas that they use."""
    paths: dict[str, dict[str, Any]] = {}
    run = {"$ref": "#/components/schemas/Run"}
    answers = {
        "list": {"$ref": "#/components/schemas/RunList"},
        "signal": {"$ref": "#/components/schemas/SignalSent"},
    }
    for each in ENDPOINTS:
        content: dict[str, Any] = {"application/json": {"schema": answers.get(each.name, run)}}
        if each.name == "show":
            content["text/event-stream"] = {"schema": _TEXT}
        found: dict[str, Any] = {
            "operationId": f"runs_{each.name}",
            "summary": each.summary,
            "parameters": [
                {
                    "name": key,
                    "in": source,
                    "required": source == "path",
                    "description": _ABOUT.get(key, ""),
                    "schema": _TEXT,
                }
                for _, source, key in each.parameters
                if source != "header"
            ],
            "responses": {
                str(each.success): {"description": each.summary, "content": content},
                "default": {"description": "A problem.", "content": {"application/problem+json": {"schema": _PROBLEM}}},
            },
        }
        if each.body != "none":
            schema = {"start": _START, "cancel": _CANCEL}.get(each.name, {"description": "As the step declares it."})
            found["requestBody"] = {
                "required": each.body == "object",
                "content": {"application/json": {"schema": schema}},
            }
        if each.name in ("start", "signal"):
            found["parameters"].append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": _TEXT})
        if schemes:
            found["security"] = [{name: sorted(each.scopes(settings))} for name in schemes]
        paths.setdefault(each.path, {})[each.method.lower()] = found
    return paths, {"Run": _RUN, "RunList": _LISTED, "SignalSent": _SIGNALLED}


_PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}
