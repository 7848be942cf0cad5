"""The page about the kernel, run as written: kernel, worker and a pipeline that a person answers."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from pathlib import Path

from tests.support.console import ROOT, check_printed, markdown_files, parse_session
from tests.support.waiting import eventually
from tests.support.work.kernel import start_command
from vesper.kernel import Client, v1

PATH = ROOT / "docs" / "how-to" / "run-a-kernel.md"


def test_the_sessions(tmp_path: Path) -> None:
    page = PATH.read_text(encoding="utf-8")
    for name, body in markdown_files(PATH).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(body, encoding="utf-8")
    first, second = re.findall(r"^```console \w+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    serve, worker, run = parse_session(first)
    listing, answering = parse_session(second)

    def start(command: str, *options: str) -> subprocess.Popen[str]:
        return start_command(tmp_path, *shlex.split(command)[2:], *options)

    kernel = start(serve.text, "--port", "0")
    processes = [kernel]
    try:
        assert kernel.stdout is not None
        line = kernel.stdout.readline()
        address = line.removeprefix("listening on ").strip()
        check_printed(serve, line.replace(address.rpartition(":")[2], "7443"), 0)
        processes.append(start(worker.text, "--address", address))
        with Client(address) as client:
            eventually(lambda: any(each.workers for each in client.list_services(v1.ListServicesRequest()).services))
            submitted = start(run.text, "--address", address)
            pending = v1.ListInterruptsRequest(status="INTERRUPT_STATUS_PENDING")
            eventually(lambda: len(client.list_interrupts(pending).interrupts) == 1)
        for each in (listing, answering):
            done = start(each.text, "--address", address)
            check_printed(each, done.communicate(timeout=60)[0], done.returncode)
        printed, events = submitted.communicate(timeout=60)
        check_printed(run, "".join(line for line in events.splitlines(True) if line.startswith("p2:")) + printed, 0)
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)
            assert process.returncode == 0, said
