"""A page is served as HTML and as JSON from one dataclass; an action checks role and reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from openapi_spec_validator import validate

from tests.support.dashboard import client_of
from vesper.dashboard.access.caller import Role
from vesper.dashboard.action import Action, Done, Refused
from vesper.dashboard.app import Site
from vesper.dashboard.json_form import json_bytes
from vesper.dashboard.page import Context, NotFound, Page, Parameter, Topic

TEMPLATE = """{% extends "base.html" %}{% block main %}
<section data-live id="greeting"><h1>{{ model.name }}</h1>
{{ ui.badge("open", "bad") }} {{ ui.number(model.count, "runs") }}
{{ ui.action_form("rename", context) }}</section>{% endblock %}"""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a greeting."""

    text: str
    share: float


@dataclass(frozen=True, slots=True)
class Greeting:
    """A greeting."""

    name: str
    topic: Topic
    count: int | None
    parts: tuple[Part, ...] = (Part("a", 0.5),)


def read(context: Context) -> Greeting:
    if context.path["name"] == "absent":
        raise NotFound("there is no such name", "Use another.")
    return Greeting(context.path["name"], Topic.FILES, context.integer("count", 3, 0, 9))


def rename(context: Context, fields: Mapping[str, str]) -> Done:
    if fields["reason"] == "too late":
        raise Refused("hello_v1: the name is final", "Wait.")
    return Done(f"renamed by {context.caller.name}: {fields['reason']}", "/hello/x")


def site(folder: Path) -> Site:
    (folder / "hello.html").write_text(TEMPLATE)
    page = Page(
        "hello",
        "/hello/{name}",
        "Hello {name}",
        read,
        "hello.html",
        "Greets.",
        frozenset({Topic.FILES}),
        "Hello",
        (Parameter("count", "integer", "How often."),),
    )
    action = Action("rename", "/hello/{name}/rename", Role.OPERATOR, rename, "Renames.")
    return Site((page,), (action,), folders=(folder,))


def test_a_page_is_html_and_json_of_one_dataclass(tmp_path: Path) -> None:
    with client_of(tmp_path, site(tmp_path)) as client:
        html = client.get("/hello/%3Cb%3E?count=4")
        assert html.status_code == 200
        assert "<h1>&lt;b&gt;</h1>" in html.text
        assert "<title>Hello &lt;b&gt; · Vesper</title>" in html.text
        assert client.get("/api/hello/%3Cb%3E?count=4").json() == {
            "name": "<b>",
            "topic": "files",
            "count": 4,
            "parts": [{"text": "a", "share": 0.5}],
        }


def test_a_file_name_that_is_no_utf_8_has_json() -> None:
    assert json_bytes(Path("a\udcff")) == rb'"a\udcff"'


def test_problems_are_pages_and_rfc_9457(tmp_path: Path) -> None:
    with client_of(tmp_path, site(tmp_path)) as client:
        page = client.get("/hello/absent")
        assert page.status_code == 404
        assert "There is no such name." in page.text
        assert client.get(f"/api/hello/x?count={'0' * 20}99").status_code == 400
        problem = client.get("/api/hello/x?count=ten")
        assert problem.status_code == 400
        assert problem.headers["content-type"] == "application/problem+json"
        assert problem.json()["remedy"] == "Use a number from 0 to 9."
        assert client.get("/nothing").status_code == 404


def test_the_document_of_the_api_is_valid(tmp_path: Path) -> None:
    with client_of(tmp_path, site(tmp_path)) as client:
        document = client.get("/api/openapi.json").json()
    validate(document)
    assert document["components"]["schemas"]["Greeting"]["properties"]["parts"] == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/Part"},
    }


def test_an_action_needs_its_role_and_a_reason(tmp_path: Path) -> None:
    with client_of(tmp_path, site(tmp_path), (Role.VIEWER,)) as viewer:
        refused = viewer.post("/api/hello/x/rename", json={"reason": "a typo"})
        assert (refused.status_code, refused.json()["detail"]) == (403, "ann lacks the role `operator`")
        assert "needs the role operator" in viewer.get("/hello/x").text
    with client_of(tmp_path, site(tmp_path)) as client:
        assert client.post("/api/hello/x/rename", json={"reason": " "}).status_code == 400
        assert client.post("/api/hello/x/rename", json={"reason": "too late"}).status_code == 409
        final = client.post("/hello/x/rename", data={"reason": "too late"}, headers={"origin": "http://127.0.0.1:8001"})
        assert (final.status_code, '<p class="lead">hello_v1: the name is final.</p>' in final.text) == (409, True)
        half, kind = rb'{"reason": "a typo", "note": "\ud800"}', {"content-type": "application/json"}
        assert client.post("/api/hello/x/rename", content=half, headers=kind).status_code == 400
        done = client.post("/api/hello/x/rename", json={"reason": "a typo"}).json()
        assert done == {"message": "renamed by ann: a typo", "location": "/hello/x"}
