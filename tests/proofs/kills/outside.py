"""The world outside the processes that are killed: a provider with `/charge`, which knows keys, and `/notice`, which
does not. It counts what it did. `python -m tests.proofs.kills.outside` prints its port."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter

from tests.support.web import Got, Web, Wire, message


class Outside(Web):
    """What it answers is what it did: a thing that is done twice has two numbers."""

    def __init__(self, port: int = 0) -> None:
        self._counting = threading.Lock()
        self._answers: dict[str, bytes] = {}
        self.done: Counter[str] = Counter()
        super().__init__(port=port)

    def answer(self, got: Got, wire: Wire) -> None:
        if got.path == "/counts":
            with self._counting:
                return wire.send(message(200, json.dumps(self.done).encode()))
        event = json.loads(got.body)["event"]
        key = got.headers.get("idempotency-key")
        with self._counting:
            if key in self._answers:
                assert key is not None
                return wire.send(self._answers[key])
            name = f"{got.path} {event}"
            self.done[name] += 1
            text = json.dumps({"id": f"{event}-{self.done[name]}"}).encode()
            answer = message(200, text, {"Content-Type": "application/json"})
            if key is not None:
                self._answers[key] = answer
        return wire.send(answer)


def main() -> None:
    with Outside() as outside:
        print(outside.port, flush=True)
        sys.stdin.read()  # until whoever started it has gone


if __name__ == "__main__":
    main()
