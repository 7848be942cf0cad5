"""Give the tasks to a model, with your own key: `make bench-authoring MODEL=NAME CONFIG=vesper.toml`.

Prints, for each task, whether it is solved, the attempts, tokens and cost, and the sums. The exit code is 1 where the
model could not be asked.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.bench.authoring.author import Author, lines_of
from tests.bench.authoring.tasks import load_tasks
from vesper.config.grants import Grant
from vesper.config.settings import Config, read_config
from vesper.host.host import Host
from vesper.values.vesper_error import VesperError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Give tasks to a model that writes nodes.")
    parser.add_argument("--model", required=True, help="a name of [models.NAME] in the settings")
    parser.add_argument("--config", type=Path, default=Path("vesper.toml"), help="the settings; vesper.toml by default")
    parser.add_argument("--tries", type=int, default=4, help="attempts for each task")
    parser.add_argument("--tasks", default="", help="names of tasks, with commas; all by default")
    given = parser.parse_args(arguments)
    if not given.model:
        parser.error("name a model of the settings: make bench-authoring MODEL=NAME")
    wanted = [each for each in given.tasks.split(",") if each]
    unknown = set(wanted) - {each.name for each in load_tasks()}
    if unknown:
        parser.error(f"no task is called {', '.join(sorted(unknown))}")
    tasks = [each for each in load_tasks() if not wanted or each.name in wanted]
    results = []
    try:
        with tempfile.TemporaryDirectory() as folder, Host(_granted(given.config, given.model)) as host:
            author = Author(host, given.model, Path(folder))
            for number, task in enumerate(tasks, start=1):
                print(f"{number} of {len(tasks)}: {task.name}", file=sys.stderr, flush=True)
                results.append(author.work(task, given.tries))
    except VesperError as problem:
        parser.error(str(problem))
    print("\n".join(lines_of(results)))
    return 1 if any(each.problem for each in results) else 0


def _granted(path: Path, model: str) -> Config:
    """Return the settings with the one grant that the tasks need. Raises `VesperError`."""
    config = read_config(path)
    grant = Grant(("author_turn_v1",), (f"models.call.{model}",), (), "tests.bench.authoring")
    return replace(config, grants=(*config.grants, grant))


if __name__ == "__main__":
    sys.exit(main())
