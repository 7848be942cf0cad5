"""The page `/docs`: an OpenAPI document as one HTML file without scripts and without network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --line: light-dark(#d4d4d8, #3f3f46); --soft: light-dark(#f4f4f5, #27272a);
  --dim: light-dark(#52525b, #a1a1aa); --get: light-dark(#1d4ed8, #93c5fd); --write: light-dark(#15803d, #86efac);
  --drop: light-dark(#b91c1c, #fca5a5); }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 62rem; }
code, pre, .method { font-family: ui-monospace, monospace; font-size: .9em; }
pre { background: var(--soft); padding: .75rem; overflow-x: auto; border-radius: .25rem; }
summary { cursor: pointer; padding: .5rem; border-radius: .25rem; }
summary:hover { background: var(--soft); }
:focus-visible { outline: 2px solid var(--get); outline-offset: 2px; }
section > details { border: 1px solid var(--line); border-radius: .25rem; margin: .5rem 0; }
section > details > div { padding: 0 1rem 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; color: var(--write); }
.method.get { color: var(--get); } .method.delete { color: var(--drop); }
.dim { color: var(--dim); }
""".strip()
_BOUNDS = {
    "minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<", "minLength": "length ≥",
    "maxLength": "length ≤", "minItems": "items ≥", "maxItems": "items ≤", "minProperties": "keys ≥",
    "maxProperties": "keys ≤",
}  # fmt: skip
_REFERENCE = "#/components/schemas/"
_MAX_PATTERN = 80


def page(openapi: bytes) -> bytes:
    """Return the page of a document."""
    document = json.loads(openapi)
    title = escape(document["info"]["title"])
    operations = [
        _operation(method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = [_named_schema(name, schema) for name, schema in document["components"]["schemas"].items()]
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<header><h1>{title}</h1><p>{_words(document['info'].get('description', ''))}</p>",
        f'<p class="dim">Version {escape(document["info"]["version"])}. <a href="openapi.json">openapi.json</a></p>',
        f"</header><main><section><h2>Requests</h2>{''.join(operations)}</section>",
        f"<section><h2>Schemas</h2>{''.join(schemas)}</section></main></body></html>",
    ]
    return "".join(parts).encode()


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    parts = [f"<p>{_words(operation['summary'])}</p>"]
    if operation.get("security"):
        scopes = sorted({scope for each in operation["security"] for listed in each.values() for scope in listed})
        named = ", ".join(f"<code>{escape(each)}</code>" for each in scopes)
        parts.append(f"<p>Needs authentication{f' and the scopes {named}' if scopes else ''}.</p>")
    if operation.get("parameters"):
        rows = [
            (each["name"], f"{each['in']}{', required' if each.get('required') else ''}", _type(each["schema"]))
            for each in operation["parameters"]
        ]
        parts.append("<h4>Parameters</h4>" + _table(("name", "in", "type"), rows))
    if "requestBody" in operation:
        parts.append("<h4>Body</h4>" + "".join(_content(operation["requestBody"]["content"])))
    parts.append("<h4>Responses</h4>")
    for status, response in operation["responses"].items():
        shown = "".join(_content(response.get("content", {})))
        parts.append(f"<p><code>{escape(status)}</code> {_words(response['description'])}</p>{shown}")
    name = escape(operation["operationId"])
    return (
        f'<details id="{name}"><summary><span class="method {escape(method)}">{escape(method.upper())}</span>'
        f'<code>{escape(path)}</code> <span class="dim">{name}</span></summary><div>{"".join(parts)}</div></details>'
    )


def _content(content: Mapping[str, Any]) -> Iterator[str]:
    for kind, media in content.items():
        schema = media["schema"]
        yield f'<p class="dim">{escape(kind)}: {_type(schema)}</p>'
        for each in media.get("examples", {}).values():
            text = json.dumps(each["value"], ensure_ascii=False, indent=2)
            yield f"<details><summary>{_words(each['summary'])}</summary><pre>{escape(text)}</pre></details>"


def _named_schema(name: str, schema: Mapping[str, Any]) -> str:
    shown = f"<p>{_words(schema.get('description', ''))}</p>{_properties(schema)}"
    place = escape(name)
    return f'<details id="schema-{place}"><summary><code>{place}</code></summary><div>{shown}</div></details>'


def _properties(schema: Mapping[str, Any]) -> str:
    if "properties" not in schema:
        return f"<p>{_type(schema)}</p>"
    required = schema.get("required", ())
    rows = [(name, "required" if name in required else "", _type(each)) for name, each in schema["properties"].items()]
    return _table(("name", "", "type"), rows)


def _type(schema: Mapping[str, Any] | bool) -> str:
    """Return a schema in one line of HTML."""
    if isinstance(schema, bool) or not schema:
        return "any"
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(_REFERENCE))
        return f'<a href="#schema-{name}">{name}</a>'
    for word, between in (("anyOf", " or "), ("allOf", " and ")):
        if word in schema and "type" not in schema:
            return between.join(_type(each) for each in schema[word]) + _default(schema)
    if "enum" in schema:
        return "one of " + ", ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"]) + _default(schema)
    match schema.get("type"):
        case "array" if "items" in schema and schema["items"] is not False:
            shown = f"array of {_type(schema['items'])}"
        case "array":
            shown = f"[{', '.join(_type(each) for each in schema['prefixItems'])}]"
        case "object" if "properties" in schema:
            fields = ", ".join(f"{escape(name)}: {_type(each)}" for name, each in schema["properties"].items())
            shown = f"{{{fields}}}"
        case "object":
            shown = f"map of {_type(schema.get('additionalProperties', {}))}"
        case kind:
            shown = escape(str(schema.get("format", kind or "any")))
    facts = [f"{sign} {schema[name]}" for name, sign in _BOUNDS.items() if name in schema]
    if len(schema.get("pattern", "")) in range(1, _MAX_PATTERN):
        facts.append(f"<code>{escape(schema['pattern'])}</code>")
    return shown + (f' <span class="dim">{", ".join(facts)}</span>' if facts else "") + _default(schema)


def _default(schema: Mapping[str, Any]) -> str:
    if "default" not in schema:
        return ""
    return f' <span class="dim">default <code>{escape(json.dumps(schema["default"], ensure_ascii=False))}</code></span>'


def _words(text: str) -> str:
    """Return a text with the parts in backticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


def _table(heads: tuple[str, ...], rows: list[tuple[str, str, str]]) -> str:
    top = "".join(f'<th scope="col">{head}</th>' for head in heads)
    body = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(where)}</td><td>{shown}</td></tr>"
        for name, where, shown in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
