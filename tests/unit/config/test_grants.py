"""Who may do what: the words of grants, denials that win, and handles that nobody can make."""

from __future__ import annotations

import copy
import pickle
import tomllib
from pathlib import Path

import pytest

from vesper.config.grants import Grant, Handle, Mint, grant_from_table, judge, refuse_void
from vesper.config.settings import config_from
from vesper.effects.performer import EffectFailed, Performer
from vesper.effects.settings import ConfigError, Table
from vesper.host.performers import Performers
from vesper.language.diagnostics.capability_words import covers, denies

READ = "database.read.orders"


def grant(*allow: str, deny: tuple[str, ...] = (), nodes: tuple[str, ...] = ("*",)) -> Grant:
    return Grant(nodes, allow, deny, "grants[0]")


@pytest.mark.parametrize(
    "word, capability, expected",
    [
        (READ, READ, True),
        ("database.read.*", READ, True),
        ("database.*", READ, True),
        ("*", READ, True),
        ("database.read.order", READ, False),
        ("database.read", READ, False),
        ("database.rea*", READ, False),
        ("database.write.*", READ, False),
        ("network.http_client.api", "network.http_client.api.example", False),
    ],
)
def test_a_word_covers_itself_and_what_is_below_a_star(word: str, capability: str, expected: bool) -> None:
    assert covers(word, capability) is expected


@pytest.mark.parametrize(
    "word, expected",
    [(READ, True), ("database.read", True), ("database", True), ("database.*", True), ("*", True), ("data", False)],
)
def test_a_denied_prefix_denies_all_below(word: str, expected: bool) -> None:
    assert denies(word, READ) is expected


def test_nothing_is_granted_by_default() -> None:
    assert not judge(READ, "n_v1", [READ], [], []).is_allowed


def test_a_node_may_not_use_what_it_does_not_ask_for() -> None:
    found = judge(READ, "n_v1", [], [], [grant("*")])
    assert not found.is_allowed
    assert "does not ask for it" in found.why


def test_denials_win_whoever_says_them_and_wherever_they_stand() -> None:
    assert not judge(READ, "n_v1", [READ], ["database.read"], [grant("*")]).is_allowed
    later = [grant("*"), grant(deny=("database.*",))]
    assert not judge(READ, "n_v1", [READ], [], later).is_allowed
    assert judge(READ, "n_v1", [READ], [], [grant("*"), grant(deny=("database.*",), nodes=("other",))]).is_allowed


@pytest.mark.parametrize(
    "pattern, expected",
    [("pay_v1", True), ("pay", True), ("pa*", True), ("pay_v2", False), ("PAY", False), ("p", False)],
)
def test_a_grant_is_for_ids_names_and_patterns(pattern: str, expected: bool) -> None:
    assert grant(READ, nodes=(pattern,)).is_for("pay_v1") is expected


@pytest.mark.parametrize(
    "word", ["", "database", "database.read", "database.reed.x", "a.b.c", "database..x", "*.read.x"]
)
def test_a_grant_of_something_else_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match="no capability"):
        grant_from_table(Table("grants[0]", {"nodes": ["*"], "allow": [word]}))


def test_a_mint_recognizes_its_own_handles_alone() -> None:
    mint, other = Mint([grant("*")]), Mint([grant("*")])
    write = "database.write.orders"
    handles, refused = mint.handles("n_v1", ["database.*"], [], [READ, write])
    foreign, _ = other.handles("n_v1", ["database.*"], [], [READ])
    assert not refused
    looks_alike = object.__new__(Handle)
    object.__setattr__(looks_alike, "capability", READ)
    for attempt in (foreign[READ], looks_alike, handles[write], READ, None):
        assert not mint.opens(attempt, READ)
    assert mint.opens(handles[READ], READ)


def test_the_operator_is_told_once_of_what_nobody_can_perform(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: Performers, effect: str) -> Performer:
        raise ConfigError("providers", f"`{effect}` needs the package `h11`")

    monkeypatch.setattr(Performers, "__getitem__", missing)
    performers = Performers(config_from({}, Path()), {})
    for _ in range(2):
        with pytest.raises(EffectFailed) as failed:
            performers.performer_of("http_request")
        assert failed.value.code == "unavailable"
    assert [record.getMessage() for record in caplog.records] == [
        "an effect cannot be performed: providers: `http_request` needs the package `h11`",
    ]


def test_a_handle_cannot_be_made_copied_changed_or_sent() -> None:
    handles, _ = Mint([grant("*")]).handles("n_v1", [READ], [], [READ])
    handle = handles[READ]
    for attempt in (
        Handle,
        lambda: copy.copy(handle),
        lambda: copy.deepcopy(handle),
        lambda: pickle.dumps(handle),
        type("Sub", (Handle,), {}),
    ):
        with pytest.raises(TypeError):
            attempt()
    with pytest.raises(AttributeError):
        handle.capability = "database.write.orders"


def test_a_secret_needs_its_own_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_SECRET_ONE", "text of one")
    monkeypatch.setenv("VESPER_SECRET_TWO", "text of two")
    performers = Performers(config_from({}, Path()), {})
    assert performers.secret({"secrets.read.one"}, "one") == "text of one"
    with pytest.raises(EffectFailed, match=r"no handle for `secrets\.read\.two`"):
        performers.secret({"secrets.read.one"}, "two")


MISTYPED = tomllib.loads((Path(__file__).parent / "mistyped_grants.toml").read_text(encoding="utf-8"))


def test_there_are_sixty_mistyped_grants() -> None:
    assert len({word for word, _ in MISTYPED["words"]}) >= 60


@pytest.mark.parametrize("word, nearest", MISTYPED["words"], ids=[ascii(word) for word, _ in MISTYPED["words"]])
@pytest.mark.parametrize("name", ["allow", "deny"])
@pytest.mark.parametrize("nodes", ["*", "pay_v1"])
def test_a_word_that_matches_nothing_is_refused(word: str, nearest: str, name: str, nodes: str) -> None:
    def read() -> None:
        config = config_from({"grants": [{"nodes": [nodes], name: [word]}]}, Path())
        refuse_void("pay_v1", MISTYPED["declares"], config.grants)

    with pytest.raises(ConfigError) as found:
        read()
    assert found.value.where == f"grants[0].{name}"
    assert f"did you mean `{nearest}`?" in str(found.value)


@pytest.mark.parametrize("nodes", ["*", "pay_v1"])
@pytest.mark.parametrize("word", [*MISTYPED["declares"], "*", "database.*", "database.write.*", "exec.shell_command.*"])
def test_a_word_that_matches_is_accepted(word: str, nodes: str) -> None:
    config = config_from(
        {"grants": [{"nodes": [nodes], "allow": [word], "deny": ["exec.shell_command", word]}]}, Path()
    )
    refuse_void("pay_v1", MISTYPED["declares"], config.grants)


def test_a_word_for_another_node_is_accepted() -> None:
    several = [grant(deny=("database.write.audit_log",)), grant("database.read.customers", nodes=("pay", "other_v1"))]
    refuse_void("pay_v1", MISTYPED["declares"], several)
    refuse_void("pay_v1", MISTYPED["declares"], [grant("database.read.orders", "database.read.order")])
    refuse_void("other_v1", MISTYPED["declares"], [grant("database.read.x", nodes=("pay_v1",))])
    with pytest.raises(ConfigError, match=r"pay_v1 declares `cache\.read\.rates`"):
        refuse_void("pay_v1", MISTYPED["declares"], [grant("database.read.customers", nodes=("pay_v1",))])


def test_a_pattern_of_targets_that_a_node_declares_is_matched_by_its_targets() -> None:
    refuse_void("pay_v1", ["database.read.*"], [grant("database.read.orders", nodes=("pay_v1",))])


@pytest.mark.parametrize("pattern", ["Pay_v1", "pay_v1 ", "pay_v1\n", "", "pay/*", "pay.v1"])
def test_a_pattern_of_nodes_that_matches_none_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="can match no node"):
        config_from({"grants": [{"nodes": [pattern], "deny": ["database"]}]}, Path())


def test_a_denial_counts_in_either_case() -> None:
    assert denies("database.write.transactions", "database.write.Transactions")
    assert denies("database.write.Transactions", "database.write.transactions")
    assert not covers("database.write.transactions", "database.write.Transactions")
