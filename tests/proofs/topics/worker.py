"""A process that consumes until it is ended. The controls break one promise each."""

from __future__ import annotations

import dataclasses
import logging
import signal
import sys
import threading
import uuid
from pathlib import Path

import vesper
from vesper.language import work_bindings
from vesper.topics import consumers
from vesper.topics.message import Message


def main(folder: Path, control: str) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(process)d %(name)s %(message)s")
    if control == "keys":  # each delivery is a run of its own
        Message.run_key = lambda self, attempt: f"{self.id} {uuid.uuid4()} {attempt}"  # type: ignore[method-assign]
    if control == "order":  # messages of one key run side by side
        read = work_bindings.events_of

        def unordered(compiled: object) -> work_bindings.EventsField | None:
            field = read(compiled)  # type: ignore[arg-type]
            return None if field is None else dataclasses.replace(field, is_ordered=False)

        consumers.events_of = unordered  # type: ignore[attr-defined]
    host = vesper.Host.from_file(folder / "vesper.toml")
    node = vesper.load(folder / "ledger_v1.vsp", host=host)
    work = consumers.TopicConsumers(host, [node])
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    host.start()
    work.start()
    print("started", flush=True)
    ended.wait()
    work.stop(30)
    host.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
