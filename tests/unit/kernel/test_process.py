"""The kernel's program, started from Python and by its command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.nodes import ROOT
from vesper.config.settings import config_from
from vesper.effects.settings import ConfigError
from vesper.kernel import Client, Kernel, KernelNotStarted, program, v1

SUBMIT = v1.SubmitRequest(process=v1.CreateProcessRequest(request_id="r-1"))


def test_a_store_survives_an_orderly_end_and_a_kill(tmp_path: Path) -> None:
    kernel = Kernel(f"sqlite:{tmp_path / 'a' / 'kernel.db'}")
    with kernel:
        assert kernel.client.submit(SUBMIT).created
    kernel.start()
    assert not kernel.client.submit(SUBMIT).created
    kernel.kill()
    with kernel:
        assert kernel.client.get_process_counts(v1.GetProcessCountsRequest()).total == 1
    with pytest.raises(KernelNotStarted, match="has not been started"):
        kernel.client  # noqa: B018  # a property


def test_a_kernel_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = f"sqlite:{tmp_path / 'kernel.db'}"
    with Kernel(store), pytest.raises(KernelNotStarted, match="did not start"):
        Kernel(store).start()
    monkeypatch.setattr(program, "_PROGRAM", tmp_path / "vesper-kernel")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KernelNotStarted, match="`make setup`"):
        Kernel().start()


def test_the_command_becomes_the_program_and_ends_by_its_signal(tmp_path: Path) -> None:
    settings = '[kernel]\nport = 0\nstore = "sqlite:state/k.db"\n[kernel.quota]\nllm_calls = 3\n'
    (tmp_path / "vesper.toml").write_text(settings, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "vesper", "kernel", "serve"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process, process.stdout:
        address = process.stdout.readline().removeprefix("listening on ").strip()
        with Client(address) as client:
            assert client.submit(SUBMIT).process.quota.max_llm_calls == 3
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert (tmp_path / "state" / "k.db").exists()


def test_settings_become_variables_of_the_program(tmp_path: Path) -> None:
    given = {
        "host": "::1",
        "port": 7000,
        "store": "memory",
        "metrics": "127.0.0.1:9464",
        "otlp": "http://127.0.0.1:4318",
        "sample": "50 %",
        "max_message": "1 MiB",
        "drain": "2s",
        "retention": "1h",
        "tls": {"certificate": "c.pem", "key": "k.pem", "client_ca": "ca.pem"},
        "jwt": [{"issuer": "https://id.example", "audience": "kernel", "jwks": "keys.json", "refresh": "1m"}],
        "rate": {"burst": 1, "per_minute": 2, "per_hour": 3},
        "quota": {"agent_hops": 4, "timeout": "5m"},
    }
    issuer = {
        "issuer": "https://id.example",
        "audience": "kernel",
        "jwks": str(tmp_path / "keys.json"),
        "algorithms": ["RS256", "ES256", "EdDSA"],
        "subject_claim": "sub",
        "refresh": 60,
    }
    assert config_from({"kernel": given}, tmp_path).kernel.environment() == {
        "VESPER_KERNEL_LISTEN": "[::1]:7000",
        "VESPER_KERNEL_STORE": "memory",
        "VESPER_KERNEL_METRICS": "127.0.0.1:9464",
        "VESPER_KERNEL_OTLP": "http://127.0.0.1:4318",
        "VESPER_KERNEL_SAMPLE": "0.5",
        "VESPER_KERNEL_MAX_MESSAGE_BYTES": str(1 << 20),
        "VESPER_KERNEL_DRAIN_SECONDS": "2",
        "VESPER_KERNEL_RETENTION_SECONDS": "3600",
        "VESPER_KERNEL_TLS_CERT": str(tmp_path / "c.pem"),
        "VESPER_KERNEL_TLS_KEY": str(tmp_path / "k.pem"),
        "VESPER_KERNEL_TLS_CLIENT_CA": str(tmp_path / "ca.pem"),
        "VESPER_KERNEL_JWT": json.dumps([issuer]),
        "VESPER_KERNEL_RATE_BURST": "1",
        "VESPER_KERNEL_RATE_PER_MINUTE": "2",
        "VESPER_KERNEL_RATE_PER_HOUR": "3",
        "VESPER_KERNEL_MAX_AGENT_HOPS": "4",
        "VESPER_KERNEL_TIMEOUT_SECONDS": "300",
    }


@pytest.mark.parametrize(
    "given, problem",
    [
        ({"store": "mysql://x"}, "is expected, not another URL"),
        ({"host": "a b"}, "a name or an address"),
        ({"drain": "500ms"}, "whole seconds"),
        ({"max_message": "1 B"}, "1 KiB at least"),
        ({"otlp": "https://collector.example"}, "without TLS is expected"),
        ({"sample": "200 %"}, "from .0 %"),
        ({"tokens": "x"}, "no such setting"),
        ({"tls": {"certificate": "c.pem"}}, "`key` is missing"),
        ({"tls": {"client_ca": "c.pem"}}, "`certificate` is missing"),
        ({"jwt": [{"issuer": "i", "audience": "a", "jwks": "https://id.example/keys"}]}, "from a file only"),
        ({"jwt": [{"issuer": "i", "audience": "a", "jwks": "k", "algorithms": ["none"]}]}, "not `none`"),
        ({"jwt": [{"issuer": "i", "audience": "a", "jwks": "k", "scope_claim": "s"}]}, "no tenants and scopes"),
        ({"jwt": [{"issuer": "i", "audience": "a", "jwks": "k"}] * 2}, "`i` is there twice"),
        ({"keys": [{"name": "k", "secret": "s", "scopes": ["all"]}]}, "no tenants and scopes"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, given: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        config_from({"kernel": given}, tmp_path)
