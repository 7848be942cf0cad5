"""`make proof-spark`: the Spark example of docs/how-to/run-batches-on-a-cluster.md on a local Spark, as written.

pyspark is a download of several hundred MB and needs Java 17, so it is installed into a folder of its own and never in
CI. The rows of a batch and those of Spark must be equal.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.unit.batch.given import payments  # noqa: E402  # after the path is set

PAGE = ROOT / "docs" / "how-to" / "run-batches-on-a-cluster.md"
PACKAGES = ROOT / ".proofs" / "data" / "pyspark"
VERSION = "4.2.0"
ROWS = 20_000


def install() -> None:
    """Install pyspark beside the tests, once."""
    if not (PACKAGES / "pyspark").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(PACKAGES)]
        subprocess.run([*pip, "--no-deps", f"pyspark=={VERSION}", "py4j"], check=True)
    sys.path.insert(0, str(PACKAGES))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(PACKAGES), os.environ.get("PYTHONPATH", "")])


def example() -> dict[str, Any]:
    """Run the block of the page that has `mapInArrow`, and return its names."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found: dict[str, Any] = {}
    exec(next(each for each in blocks if "mapInArrow" in each), found)  # as a reader would run it
    return found


def main() -> int:
    install()
    os.chdir(ROOT)
    import pyarrow as pa
    from pyspark.sql import SparkSession

    import vesper

    given = payments(ROWS).append_column("id", pa.array(range(ROWS), pa.int64()))
    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.sql.warehouse.dir", folder)
        session = builder.getOrCreate()
        try:
            version = session.version
            frame = session.createDataFrame(given).repartition(4)
            answer = example()["decided"](frame).toArrow().sort_by("id")
        finally:
            session.stop()
    expected = vesper.load("payment_decision", engine="interp").run_batch(given, keep=["id"])
    is_same = answer.to_pylist() == expected.to_pylist()
    errors = expected.num_rows - expected.column("error").null_count
    print(json.dumps({"spark": version, "rows": answer.num_rows, "errors": errors, "is_same": is_same}))
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
