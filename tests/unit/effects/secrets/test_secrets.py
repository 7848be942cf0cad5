"""Secrets: three sources, rotation, and that no form of a text gets through `redact`."""

from __future__ import annotations

import base64
import json
import logging
import multiprocessing
import os
import re
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.effects.ask_of import ask_of, failure, table
from vesper._direct import SecretStore
from vesper.effects.performer import EffectFailed
from vesper.effects.secrets.encoded_forms import forms_of
from vesper.effects.secrets.settings import SecretSettings
from vesper.effects.secrets.store import open_secrets
from vesper.effects.settings import ConfigError
from vesper.storage.sources import Sources

TEXT = 'sk_live/51+"Ü %&\\x'


def settings(base: Path | None = None, **values: object) -> SecretSettings:
    return SecretSettings.from_table("secrets", table("secrets", **values), base)


def refused(secrets: SecretStore, name: str) -> EffectFailed:
    return failure("secret_read", lambda: secrets.text(name))


# -- sources --------------------------------------------------------------------------------------


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_SECRET_STRIPE_KEY", TEXT)
    monkeypatch.setenv("APP_STRIPE_LIVE_KEY", "other-text")
    assert open_secrets(settings()).text("stripe_key") == TEXT
    assert open_secrets(settings(prefix="APP_")).text("stripe.live-key") == "other-text"
    failed = refused(open_secrets(settings()), "none")
    assert (failed.code, failed.message) == (
        "not_found",
        "there is no secret `none`: the variable VESPER_SECRET_NONE is not set",
    )


def _file(folder: Path, name: str, content: bytes, mode: int = 0o400) -> Path:
    path = folder / name
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_from_files(tmp_path: Path) -> None:
    secrets = open_secrets(settings(source="file", path=str(tmp_path)))
    _file(tmp_path, "key", f"{TEXT}\n".encode())
    _file(tmp_path, "windows", b"letmein\r\n", 0o600)
    _file(tmp_path, "two-lines", b"one\ntwo\n\n")
    assert secrets.text("key") == TEXT
    assert secrets.text("windows") == "letmein"
    assert secrets.text("two-lines") == "one\ntwo\n"
    assert refused(secrets, "none").code == "not_found"


@pytest.mark.parametrize("mode", [0o440, 0o404, 0o444, 0o644, 0o420, 0o402, 0o410])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = _file(tmp_path, "key", b"sk_live_1234", mode)
    failed = refused(open_secrets(settings(source="file", path=str(tmp_path))), "key")
    assert failed.code == "unavailable"
    assert failed.message == f"the secret `key`: others may use {path} (mode {mode:04o}): chmod 0400 {path}"


def test_files_that_are_no_secrets(tmp_path: Path) -> None:
    secrets = open_secrets(settings(source="file", path=str(tmp_path)))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo", 0o600)
    _file(tmp_path, "bytes", b"\xff\xfe\xff\xfe")
    _file(tmp_path, "large", b"x" * 70_000)
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("folder", "fifo", "bytes", "large"):
        failed = refused(secrets, name)
        assert failed.code == "unavailable"
        assert name in failed.message
    assert refused(secrets, "link").code == "not_found"


def test_a_mounted_secret_is_a_link_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    _file(tmp_path / "..2026", "key", b"mounted-text")
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "key").symlink_to("..data/key")
    assert open_secrets(settings(source="file", path=str(tmp_path))).text("key") == "mounted-text"


@pytest.mark.parametrize("name", ["", "..", "../key", "a/b", "/etc/passwd", "a\0b", "a b", "x" * 200, "é", "-x", "a\n"])
def test_names_that_no_secret_has(tmp_path: Path, name: str) -> None:
    _file(tmp_path, "key", b"sk_live_1234")
    (tmp_path / "inner").mkdir()
    for secrets in (open_secrets(settings()), open_secrets(settings(source="file", path=str(tmp_path / "inner")))):
        assert refused(secrets, name).code == "not_found"


@pytest.fixture
def vault() -> Iterator[types.ModuleType]:
    module = types.ModuleType("vault_of_tests")
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def python(timeout: str = "30s") -> SecretStore:
    return open_secrets(settings(source="python", function="vault_of_tests:fetch", timeout=timeout))


def test_from_a_function(vault: types.ModuleType) -> None:
    texts = {"key": TEXT, "number": 5}
    vault.fetch = texts.get  # type: ignore[attr-defined]
    assert python().text("key") == TEXT
    assert refused(python(), "none").code == "not_found"
    assert "gave int, and a str or None is expected" in refused(python(), "number").message


def test_a_function_that_fails_tells_its_class_alone(vault: types.ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    def fetch(name: str) -> str:
        raise PermissionError("token hvs.very-secret was refused")

    vault.fetch = fetch  # type: ignore[attr-defined]
    with caplog.at_level(logging.ERROR, "vesper.effects.secrets.store"):
        failed = refused(python(), "key")
    assert (failed.code, failed.message) == (
        "unavailable",
        "the secret `key`: vault_of_tests:fetch raised PermissionError",
    )
    assert failed.__cause__ is None
    assert "hvs" not in caplog.text
    assert f"PermissionError at {__file__}" in caplog.text


def test_a_function_that_is_not_there(vault: types.ModuleType) -> None:
    said = refused(python(), "key").message
    assert said == ("the secret `key`: vault_of_tests:fetch is not there: the module `vault_of_tests` has no `fetch`")
    missing = open_secrets(settings(source="python", function="no_such_module_at_all:fetch"))
    assert "is not there: No module named 'no_such_module_at_all'" in refused(missing, "key").message


def test_a_function_that_hangs_is_a_timeout(vault: types.ModuleType) -> None:
    goes_on = threading.Event()
    vault.fetch = lambda _: goes_on.wait(60)  # type: ignore[attr-defined]
    begun = time.monotonic()
    failed = refused(python(timeout="50ms"), "key")
    assert (failed.code, time.monotonic() - begun < 20) == ("timeout", True)
    goes_on.set()


def test_a_short_secret_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_SECRET_PIN", "123")
    secrets = open_secrets(settings())
    failed = refused(secrets, "pin")
    assert failed.code == "unavailable"
    assert "has fewer than 4 characters: it could not be kept out of messages" in failed.message
    assert secrets.redact("123") == "123"


def test_the_source_is_asked_once_for_all_who_wait(vault: types.ModuleType) -> None:
    asked: list[str] = []
    goes_on = threading.Event()

    def fetch(name: str) -> str:
        asked.append(name)
        assert goes_on.wait(30)
        return f"text of {name}"

    vault.fetch = fetch  # type: ignore[attr-defined]
    secrets = python()
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(secrets.text("key"))) for _ in range(100)]
    for thread in threads:
        thread.start()
    goes_on.set()
    for thread in threads:
        thread.join()
    assert found == ["text of key"] * 100
    assert asked == ["key"]


# -- rotation -------------------------------------------------------------------------------------


def test_a_new_text_is_picked_up_and_the_old_one_stays_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    secrets = open_secrets(settings(ttl="60s"), Sources(monotonic_ns=lambda: int(now[0] * 1_000_000_000)))
    monkeypatch.setenv("VESPER_SECRET_KEY", "first-text")
    assert secrets.text("key") == "first-text"
    monkeypatch.setenv("VESPER_SECRET_KEY", "second-text")
    now[0] = 59.9
    assert secrets.text("key") == "first-text"
    now[0] = 60.0
    assert secrets.text("key") == "second-text"
    assert secrets.redact("first-text, second-text") == "secret:key, secret:key"
    monkeypatch.delenv("VESPER_SECRET_KEY")
    now[0] = 120.0
    assert refused(secrets, "key").code == "not_found"


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    secrets = open_secrets(settings(ttl="1s"), Sources(monotonic_ns=lambda: int(now[0] * 1_000_000_000)))
    for number in range(40):
        now[0] += 2
        monkeypatch.setenv("VESPER_SECRET_KEY", f"text-{number:02}")
        secrets.text("key")
    assert secrets.redact("text-39 text-24 text-23") == "secret:key secret:key text-23"


# -- redaction ------------------------------------------------------------------------------------


def _base64_pieces(encoded: str) -> list[str]:
    return [encoded[start : start + 8] for start in range(len(encoded) - 7)]


ENCODERS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "in a sentence": lambda text: f"the key is {text}.",
    "twice": lambda text: f"{text}{text}",
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 without padding": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "percent": lambda text: quote(text, safe=""),
    "percent in a path": quote,
    "percent, lower case": lambda text: re.sub("%..", lambda escape: escape[0].lower(), quote(text, safe="")),
    "form": quote_plus,
    "query": lambda text: urlencode({"key": text}),
    "JSON": json.dumps,
    "JSON with letters": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON with slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "repr": repr,
    "repr of bytes": lambda text: repr(text.encode()),
    "hex": lambda text: text.encode().hex(),
}


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_form_is_redacted(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_SECRET_KEY", TEXT)
    secrets = open_secrets(settings())
    encoded = ENCODERS[encoder](TEXT)
    assert secrets.redact(encoded) == encoded  # nobody has it
    secrets.text("key")
    found = secrets.redact(encoded)
    assert "secret:key" in found
    for part in ("sk_live", "51", "live%2F", base64.b64encode(TEXT.encode()).decode()[:6], TEXT.encode().hex()[:8]):
        assert part not in found


@pytest.mark.parametrize("user", ["", "a", "ab", "abc", "abcd"])
def test_a_secret_inside_of_base64_is_redacted(user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `Authorization: Basic …`, where the name comes first."""
    monkeypatch.setenv("VESPER_SECRET_KEY", "correct horse battery")
    secrets = open_secrets(settings())
    secrets.text("key")
    for after in ("", "!", "!!"):
        header = base64.b64encode(f"{user}:correct horse battery{after}".encode()).decode()
        found = secrets.redact(f"Authorization: Basic {header}")
        assert "secret:key" in found
        left = found.split("Basic ")[1].replace("secret:key", "")
        assert len(left) <= len(user) * 2 + 8
        whole = base64.b64encode(b"correct horse battery").decode()
        assert not any(piece in found for piece in _base64_pieces(whole))


@given(
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=4, max_size=30),
    before=st.binary(max_size=5),
    after=st.binary(max_size=5),
)
def test_base64_around_any_secret_holds_one_of_its_forms(text: str, before: bytes, after: bytes) -> None:
    encoded = base64.b64encode(before + text.encode() + after).decode()
    assert any(form in encoded for form in forms_of(text))


def test_several_secrets_of_which_one_is_a_part_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_SECRET_A", "horse")
    monkeypatch.setenv("VESPER_SECRET_B", "horse-battery")
    secrets = open_secrets(settings())
    secrets.text("a")
    secrets.text("b")
    assert secrets.redact("horse-battery horse") == "secret:b secret:a"


def test_a_secret_with_signs_of_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_SECRET_A", "(.*)+[")
    secrets = open_secrets(settings())
    secrets.text("a")
    assert secrets.redact("x (.*)+[ y") == "x secret:a y"


def test_redaction_of_a_long_text_takes_no_long_time(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = open_secrets(settings())
    for number in range(50):
        monkeypatch.setenv(f"VESPER_SECRET_S{number}", "a" * 40 + str(number))
        secrets.text(f"s{number}")
    begun = time.monotonic()
    assert secrets.redact("a" * 100_000) == "a" * 100_000
    assert time.monotonic() - begun < 20


# -- performer ------------------------------------------------------------------------------------


def test_a_node_gets_the_reference_and_never_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_SECRET_KEY", TEXT)
    performer = open_secrets(settings()).performer(None)
    given = [performer.perform(ask_of("secret_read", {"name": "key"})) for _ in range(2)]
    assert all(re.fullmatch(r"secret:key:[0-9a-f]{32}", str(each)) for each in given)
    assert given[0] != given[1]
    failed = failure("secret_read", lambda: performer.perform(ask_of("secret_read", {"name": "none"})))
    assert failed.code == "not_found"


def test_a_forked_process_redacts_what_its_parent_gave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_SECRET_KEY", "of the parent")
    monkeypatch.setenv("VESPER_SECRET_OTHER", "of the child")
    secrets = open_secrets(settings())
    secrets.text("key")
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()

    def child() -> None:
        secrets.text("other")
        results.put(secrets.redact("of the parent, of the child"))

    process = fork.Process(target=child)
    process.start()
    assert results.get(timeout=30) == "secret:key, secret:other"
    process.join()


def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent(vault: types.ModuleType) -> None:
    asked, is_over = threading.Event(), threading.Event()

    def fetch(name: str) -> str:
        if multiprocessing.parent_process() is None:
            asked.set()
            is_over.wait(30)
        return f"text of {name}"

    vault.fetch = fetch  # type: ignore[attr-defined]
    secrets = python()
    thread = threading.Thread(target=lambda: secrets.text("key"))
    thread.start()
    assert asked.wait(30)
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    process = fork.Process(target=lambda: results.put(secrets.text("key")))
    process.start()
    assert results.get(timeout=25) == "text of key"
    process.join()
    is_over.set()
    thread.join()


def test_threads_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"s{number}" for number in range(20)]
    for name in names:
        monkeypatch.setenv(f"VESPER_SECRET_{name.upper()}", f"text of {name};")
    secrets = open_secrets(settings())
    threads = [threading.Thread(target=lambda: [secrets.text(name) for name in names]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in names:
        assert secrets.redact(f"text of {name};") == f"secret:{name}"


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values, says",
    [
        ({"source": "volt"}, "one of environment, file, python, vault, aws, gcp, azure is expected, not `volt`"),
        ({"source": "file"}, "`path` is missing"),
        ({"source": "file", "path": "secrets"}, "an absolute path is expected"),
        ({"source": "file", "path": "/no/such/folder"}, "there is no folder"),
        ({"source": "python"}, "`function` is missing"),
        ({"source": "python", "function": "os.system"}, "`module:function` is expected"),
        ({"prefix": "X_", "path": "/tmp"}, 'only `source = "file"` and `source = "vault"` have this setting'),
        ({"source": "file", "path": "/tmp", "prefix": "X_"}, 'only `source = "environment"` has this setting'),
        ({"tll": "5s"}, "did you mean `ttl`?"),
    ],
)
def test_settings_that_cannot_be_used(values: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError) as error:
        settings(**values)  # type: ignore[arg-type]
    assert says in str(error.value)


def test_a_relative_folder_is_below_that_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    assert settings(tmp_path, source="file", path="inner").path == tmp_path / "inner"
