"""Kernels, workers and a pipeline whose stages write a line for each time that they are performed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.support.nodes import ROOT

CONFIG = """
[databases.main]
dsn = "sqlite:done.db"
create = true

[journal]
lease = "2s"

[recovery]
every = "1s"

[[grants]]
nodes = ["*"]
allow = ["database.read.done", "database.write.done", "interrupts.raise.confirmation"]
"""
_WRITE = """\
  - step: write
    operation: database_write
    table: done
    data: {{request: event_id, stage: "'{stage}'"}}
"""
_NODE = """\
node_id: {stage}_v1
type: event_handler
intent: Perform the stage {stage}
inputs: {{event_id: string}}
outputs: {{success: {{stage: string}}}}
flow:
{before}{write}  - operation: return
    success: {{stage: "'{stage}'"}}
security:
  capabilities_required: [{asks}database.write.done]
"""
_ASK = """\
  - step: approval
    operation: interrupt
    kind: confirmation
    message: "Publish {event_id}?"
    ttl: 1h
    returns: {approved: boolean}
  - operation: return
    when: NOT approval.approved
    success: {stage: "'refused'"}
"""
_REVIEW = """\
node_id: review_v1
type: event_handler
intent: Accept what has been drafted often enough
inputs: {event_id: string, drafts_needed: integer}
outputs: {success: {accepted: boolean}}
types:
  Count:
    fields: {drafts: integer}
flow:
  - step: found
    operation: database_query
    query: SELECT count(*) AS drafts FROM done WHERE request = :request AND stage = 'draft'
    bind: {request: event_id}
    returns: Count
  - step: write
    operation: database_write
    table: done
    data: {request: event_id, stage: "'review'"}
  - operation: return
    success: {accepted: found.drafts >= drafts_needed}
security:
  capabilities_required: [database.read.done, database.write.done]
"""
PIPELINE = """\
pipeline: publication
stages:
  draft: {node: draft, service: desk, routes: [{to: review}]}
  review:
    node: review
    service: desk
    routes:
      - when: CAST(outputs["review"]["accepted"] AS boolean)
        to: [legal, finance]
        join: publish
      - to: draft
  legal: {node: legal, service: desk, routes: [{to: publish}]}
  finance: {node: finance, service: desk, routes: [{to: publish}]}
  publish: {node: publish, service: desk}
edge_limits:
  - {from: review, to: draft, max: 3}
"""


def write_project(folder: Path) -> Path:
    """Write nodes, settings, database and pipeline; return the file of the pipeline."""
    nodes = folder / "nodes"
    nodes.mkdir(parents=True)
    (folder / "vesper.toml").write_text(CONFIG, encoding="utf-8")
    for stage in ("draft", "legal", "finance", "publish"):
        is_asking = stage == "publish"
        before, asks = (_ASK, "interrupts.raise.confirmation, ") if is_asking else ("", "")
        text = _NODE.format(stage=stage, before=before, asks=asks, write=_WRITE.format(stage=stage))
        (nodes / f"{stage}_v1.vsp").write_text(text, encoding="utf-8")
    (nodes / "review_v1.vsp").write_text(_REVIEW, encoding="utf-8")
    with closing(sqlite3.connect(folder / "done.db")) as database:
        database.execute("CREATE TABLE done (request TEXT NOT NULL, stage TEXT NOT NULL)")
        database.commit()
    path = folder / "publication.pipeline.yaml"
    path.write_text(PIPELINE, encoding="utf-8")
    return path


def performed(folder: Path, request: str) -> Counter[str]:
    """Return how often each stage of a request was performed."""
    with closing(sqlite3.connect(folder / "done.db", timeout=30)) as database:
        return Counter(each for (each,) in database.execute("SELECT stage FROM done WHERE request = ?", [request]))


def start_command(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start `vesper kernel …` in a folder, in a process group of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "vesper", "kernel", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def worker(folder: Path, address: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run a worker of the service `desk`; the block may kill it."""
    process = start_command(folder, "worker", "nodes", "--service", "desk", "--address", address, *options)
    try:
        assert process.stderr is not None
        begun = ""
        while "working on" not in begun:  # a warning about the folder may come before
            begun = process.stderr.readline()
            assert begun, "the worker ended"
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
