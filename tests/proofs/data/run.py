"""`make proof-data`: the same payments locally, in polars, in DuckDB and on Ray, with kills, have one result.

One of twenty rows has an error. The results are compared by the hash of their rows in canonical types, sorted by id. On
Ray a worker is killed with SIGKILL, and then the driver, which is resumed: the part files and the manifest are, byte
for byte, those of the local job. Finished places are not run again.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

import duckdb  # noqa: E402  # after the path is set
import polars as pl  # noqa: E402
import pyarrow as pa  # noqa: E402
from pyarrow import compute, dataset, ipc, parquet  # noqa: E402

import vesper  # noqa: E402
import vesper.integrations.duckdb as on_duckdb  # noqa: E402
import vesper.integrations.polars  # noqa: E402  # registers the namespace
from tests.bench.workloads import payments  # noqa: E402
from tests.proofs.robustness.proof import STATE, engine_hash, whole_hash, write_proof  # noqa: E402

ROWS = 10_000_000
FILES = 10
ROWS_A_GROUP = 131_072
ERROR_EVERY = 20
NODE = ROOT / "nodes" / "payments" / "payment_decision_v1.vsp"
NOW = "2026-11-18T00:00:00Z"
PAGE = ROOT / "docs" / "how-to" / "run-batches-on-a-cluster.md"
PARTS_BEFORE_A_KILL = 3
KILL_TIMEOUT_SECONDS = 900
_COLUMNS = ("id", "decision", "fee", "risk", "new_balance", "error")
_INPUTS = ("amount", "balance", "currency", "country", "user_age_days", "flagged")
_TYPES = {
    "id": pa.int64(),
    "decision": pa.string(),
    "fee": pa.decimal128(38, 5),
    "risk": pa.int64(),
    "new_balance": pa.decimal128(38, 5),
}


# -- the payments ---------------------------------------------------------------------------------


def given_rows(begin: int, end: int) -> pa.Table:
    """Return payments by their ids. One of `ERROR_EVERY` breaks a precondition or has no currency, in turns."""
    kinds = payments(4_096)
    rows = []
    for number in range(begin, end):
        row = {"id": number, **{name: kinds[number % len(kinds)].get(name) for name in _INPUTS}}
        if number % (2 * ERROR_EVERY) == 7:
            row["amount"] = Decimal("0.00")
        elif number % (2 * ERROR_EVERY) == 7 + ERROR_EVERY:
            row["currency"] = None
        rows.append(row)
    money, text = pa.decimal128(18, 2), pa.string()
    types = [pa.int64(), money, money, text, text, pa.int64(), pa.bool_()]
    return pa.Table.from_pylist(rows, pa.schema(list(zip(("id", *_INPUTS), types, strict=True))))


def write_given(folder: Path, rows: int, files: int) -> Path:
    """Write the payments as files of one folder; those that are there stay."""
    given = folder / "payments"
    given.mkdir(parents=True, exist_ok=True)
    size = -(-rows // files)
    for number in range(files):
        path = given / f"{number:03}.parquet"
        if path.exists():
            continue
        scratch = path.with_suffix(".new")
        with parquet.ParquetWriter(scratch, given_rows(0, 0).schema) as writer:
            for begin in range(number * size, min((number + 1) * size, rows), ROWS_A_GROUP):
                writer.write_table(given_rows(begin, min(begin + ROWS_A_GROUP, (number + 1) * size, rows)))
        scratch.replace(path)
    return given


def canonical_hash(folder: Path) -> tuple[str, int, int]:
    """Return the hash of the rows of Parquet files in order of their ids, and how many rows and errors there are."""
    table = dataset.dataset(sorted(map(str, folder.glob("*.parquet")))).to_table(columns=list(_COLUMNS))
    error = table.column("error")
    columns = {name: table.column(name).cast(type_) for name, type_ in _TYPES.items()}
    for name in ("kind", "code", "where", "message"):
        columns[f"error.{name}"] = compute.struct_field(error, name).cast(pa.string())
    errors = len(error) - columns["error.kind"].null_count
    for name, column in list(columns.items()):
        # Bytes below a null are anything.
        columns[f"{name} is null"] = column.is_null()
        empty = "" if pa.types.is_string(column.type) else 0
        columns[name] = column.fill_null(pa.scalar(empty).cast(column.type))
    rows = pa.table(columns).sort_by("id")
    digest = hashlib.sha256()
    for begin in range(0, rows.num_rows, ROWS_A_GROUP):
        (batch,) = rows.slice(begin, ROWS_A_GROUP).combine_chunks().to_batches()
        sink = pa.BufferOutputStream()
        with ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        digest.update(sink.getvalue())
    return digest.hexdigest(), rows.num_rows, errors


# -- the places -----------------------------------------------------------------------------------


def command(given: Path, out: Path, *words: str) -> list[str]:
    shared = ["--batch", str(given), "-o", str(out), "--keep", "id", "--engine", "jit", "--now", NOW]
    return [sys.executable, "-m", "vesper", "run", str(NODE), *shared, *words]


def run_command(given: Path, out: Path, *words: str) -> None:
    ended = subprocess.run(command(given, out, *words), capture_output=True, text=True, check=False, cwd=ROOT)
    if ended.returncode != 1 or ended.stderr:  # rows have errors
        raise SystemExit(f"{out.name}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")


def run_local(given: Path, out: Path) -> None:
    run_command(given, out)


def run_polars(given: Path, out: Path) -> None:
    out.mkdir()
    frame: Any = pl.scan_parquet(given / "*.parquet")
    node = vesper.load(NODE, engine="jit")
    frame.vesper.run(node, keep=["id"]).sink_parquet(out / "all.parquet", engine="streaming")


def run_duckdb(given: Path, out: Path) -> None:
    out.mkdir()
    names = ", ".join(_INPUTS)
    with duckdb.connect() as connection:
        payments_of_files = connection.read_parquet(str(given / "*.parquet"))
        on_duckdb.register(connection, NODE, "decide", like=payments_of_files.select(names))
        decided = payments_of_files.select(f"id, decide({names}) AS r").select("id, unnest(r)")
        decided.write_parquet(str(out / "all.parquet"))


def run_ray(given: Path, out: Path) -> None:
    run_command(given, out, "--on", "ray", "--threads", "2")


def run_ray_with_a_killed_worker(given: Path, out: Path) -> None:
    with _started(given, out) as driver:
        _wait_for_parts(out, driver)
        workers = [pid for pid, name in _processes(out) if name.startswith("ray::") and "_PartWorker" in name]
        if not workers:
            raise SystemExit("no worker of Ray was found to be killed")
        os.kill(workers[0], signal.SIGKILL)
        if driver.wait() != 1:
            raise SystemExit(f"the job did not survive the death of a worker: exit code {driver.returncode}")


def run_ray_with_a_killed_driver(given: Path, out: Path) -> None:
    with _started(given, out) as driver:
        _wait_for_parts(out, driver)
        driver.kill()
        driver.wait()
    head, *finished = (out / "_manifest.jsonl").read_text(encoding="utf-8").splitlines()
    deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
    while _processes(out):  # Ray ends what the driver had started
        if time.monotonic() > deadline:
            raise SystemExit(f"processes outlive a killed driver: {_processes(out)}")
        time.sleep(0.5)
    if len(finished) >= json.loads(head)["of"]["parts"]:
        raise SystemExit("the driver was killed too late: all parts were finished")
    run_command(given, out, "--on", "ray", "--threads", "2", "--resume")


def run_ray_dataset(given: Path, out: Path) -> None:
    """Run the example of the documentation for datasets."""
    text = PAGE.read_text(encoding="utf-8")
    blocks: list[str] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    script = next(each for each in blocks if "map_batches" in each)
    folder = given.parent / "dataset"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "payments").symlink_to(given.resolve())
    environment = {**os.environ, "VESPER_NODES": str(ROOT / "nodes"), "PYTHONPATH": str(ROOT)}
    environment |= {"RAY_USAGE_STATS_ENABLED": "0"}
    before = "import ray\nray.init(include_dashboard=False, _node_ip_address='127.0.0.1', log_to_driver=False)\n"
    subprocess.run([sys.executable, "-c", before + script], check=True, cwd=folder, env=environment)
    (folder / "decisions").rename(out)


@contextlib.contextmanager
def _started(given: Path, out: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "VESPER_PROOF": str(out)}
    words = command(given, out, "--on", "ray", "--threads", "2")
    with subprocess.Popen(words, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as driver:
        try:
            yield driver
        finally:
            driver.kill()


def _wait_for_parts(out: Path, driver: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
    path = out / "_manifest.jsonl"
    while not path.exists() or path.read_bytes().count(b"\n") <= PARTS_BEFORE_A_KILL:
        if driver.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the job ended before it was killed: exit code {driver.returncode}")
        time.sleep(0.05)


def _processes(out: Path) -> list[tuple[int, str]]:
    """Return the processes that inherited the mark of a job, with their names."""
    found = []
    for each in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if each.name.isdigit() and f"VESPER_PROOF={out}".encode() in (each / "environ").read_bytes():
                name = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found.append((int(each.name), name))
    return [(pid, name) for pid, name in found if name]


PLACES: dict[str, Callable[[Path, Path], None]] = {
    "local": run_local,
    "polars": run_polars,
    "duckdb": run_duckdb,
    "ray": run_ray,
    "ray, a worker killed": run_ray_with_a_killed_worker,
    "ray, the driver killed and resumed": run_ray_with_a_killed_driver,
    "ray dataset": run_ray_dataset,
}


def run_place(name: str, given: Path, folder: Path) -> dict[str, Any]:
    """Run a place, and return what its result is."""
    out = folder / re.sub(r"\W+", "-", name)
    shutil.rmtree(out, ignore_errors=True)
    began = time.perf_counter()
    PLACES[name](given, out)
    seconds = time.perf_counter() - began
    digest, rows, errors = canonical_hash(out)
    local = folder / "local"
    is_same_files = None
    if (out / "_manifest.jsonl").exists():
        is_same_files = {each.name: each.read_bytes() for each in out.iterdir()} == {
            each.name: each.read_bytes() for each in local.iterdir()
        }
    if out != local:
        shutil.rmtree(out)
    return {
        "hash": digest,
        "rows": rows,
        "errors": errors,
        "is_same_files": is_same_files,
        "seconds": round(seconds, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--places", nargs="*", choices=list(PLACES), default=list(PLACES))
    asked = parser.parse_args()
    folder = STATE / "data" / str(asked.rows)
    given = write_given(folder, asked.rows, asked.files)
    state = folder / "state.json"
    sources = {"vesper": whole_hash(), "engine": engine_hash()}
    found: dict[str, Any] = json.loads(state.read_text(encoding="utf-8")) if state.exists() else {}
    if found.get("sources") != sources:
        found = {"sources": sources, "places": {}}
    for name in asked.places:
        if name not in found["places"]:
            found["places"][name] = run_place(name, given, folder)
            state.write_text(json.dumps(found), encoding="utf-8")
        print(f"{name}: {found['places'][name]}", flush=True)
    places = found["places"]
    hashes = {each["hash"] for each in places.values()}
    is_same = len(hashes) == 1 and all(each["is_same_files"] is not False for each in places.values())
    counts = {(each["rows"], each["errors"]) for each in places.values()}
    is_right = counts == {(asked.rows, asked.rows // ERROR_EVERY)}
    summary = {
        "sources": sources,
        "rows": asked.rows,
        "errors": asked.rows // ERROR_EVERY,
        "hash": min(hashes),
        "is_same": is_same and is_right,
        "seconds": {name: each["seconds"] for name, each in places.items()},
        "same_files_as_local": [name for name, each in places.items() if each["is_same_files"]],
    }
    print(json.dumps(summary))
    if is_same and is_right and asked.rows == ROWS and set(places) == set(PLACES):
        write_proof("data", summary)
    return 0 if is_same and is_right else 1


if __name__ == "__main__":
    sys.exit(main())
