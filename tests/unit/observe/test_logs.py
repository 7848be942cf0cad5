"""Log lines as JSON: facts of the run, levels, and no secrets."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from vesper.observe import logs
from vesper.observe.context import CURRENT_RUN, CurrentRun


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root, before = logging.getLogger(), logging.getLogger().level
    yield io.StringIO()
    if logs._installed is not None:
        root.removeHandler(logs._installed)
    root.setLevel(before)
    logging.getLogger("vesper.host").setLevel(logging.NOTSET)


class Vault:
    def redact(self, text: str) -> str:
        return text.replace("hunter2", "[secret]")


def test_a_line_has_the_facts_of_its_run_and_no_secret(stream: io.StringIO) -> None:
    vault = Vault()
    logs.redact_with(vault.redact)
    logs.configure("json", stream=stream)
    token = CURRENT_RUN.set(CurrentRun("pay_v1", "run-1", f"00-{'a' * 32}-{'b' * 16}-01"))
    try:
        raise ValueError("hunter2")
    except ValueError:
        logging.getLogger("vesper.host").exception("it %s", "hunter2")
    finally:
        CURRENT_RUN.reset(token)
    found = json.loads(stream.getvalue())
    assert found.pop("time").endswith("Z")
    assert found.pop("exception").endswith("ValueError: [secret]")
    assert found == {
        "level": "error",
        "logger": "vesper.host",
        "message": "it [secret]",
        "node": "pay_v1",
        "execution": "run-1",
        "trace_id": "a" * 32,
        "span_id": "b" * 16,
    }


def test_levels_hold_for_packages(stream: io.StringIO) -> None:
    logs.configure("text", {"": "error", "vesper.host": "debug"}, stream)
    logging.getLogger("vesper.host.run").debug("seen")
    logging.getLogger("vesper.migration").warning("not seen")
    assert [line.partition(" DEBUG ")[2] for line in stream.getvalue().splitlines()] == ["vesper.host.run: seen"]


def test_a_new_configuration_replaces_the_earlier_one(stream: io.StringIO) -> None:
    logs.configure("text", stream=io.StringIO())
    logs.configure("json", stream=stream)
    logging.getLogger("vesper").info("once")
    assert len(stream.getvalue().splitlines()) == 1


def test_a_redactor_does_not_keep_its_object(stream: io.StringIO) -> None:
    vault = Vault()
    logs.redact_with(vault.redact)
    del vault
    logs.configure("text", stream=stream)
    logging.getLogger("vesper").info("hunter2")
    assert "hunter2" in stream.getvalue()


def test_a_line_about_a_request_has_its_node_and_trace(stream: io.StringIO) -> None:
    logs.configure("json", stream=stream)
    logging.getLogger("vesper.serve.access").info("GET / 200", extra={"node": "pay_v1", "trace_id": "c" * 32})
    logging.getLogger("vesper.serve.access").info("GET / 404", extra={"node": None, "trace_id": None})
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["node"], first["trace_id"]) == ("pay_v1", "c" * 32)
    assert not {"node", "trace_id"} & second.keys()
