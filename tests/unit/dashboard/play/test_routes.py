"""Endpoints of the playground: code, files and saving, for authors, inside the folder of nodes."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dashboard import TestClient, client_of
from vesper.dashboard.access.caller import Role
from vesper.dashboard.play import code
from vesper.dashboard.play.save import ChangedMeanwhile, save
from vesper.repository.starter import starter
from vesper.storage import write_file

TEXT = starter("fee_v1", "function")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def served(project: Path) -> Iterator[TestClient]:
    with client_of(project) as found:
        yield found


@pytest.fixture
def nodes(project: Path) -> Iterator[Path]:
    folder = project / "nodes"
    (folder / "pricing").mkdir(parents=True)
    (folder / "pricing" / "fee_v1.vsp").write_text(TEXT)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def client(served: TestClient, nodes: Path) -> TestClient:
    assert nodes.is_dir()
    return served


def send(client: TestClient, name: str, **body: object) -> tuple[int, dict[str, object]]:
    answer = client.post(f"/play/api/{name}", json={"path": "pricing/fee_v1.vsp", "text": TEXT, **body})
    found: dict[str, object] = answer.json()
    return answer.status_code, found


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# -- page -----------------------------------------------------------------------------------------


def test_the_page_opens_a_node_with_its_own_policy(client: TestClient) -> None:
    page = client.get("/play?node=fee_v1")
    assert page.status_code == 200
    assert '"path": "pricing/fee_v1.vsp"' in page.text
    policy = page.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "worker-src 'self'" in policy
    assert "unsafe-inline" not in client.get("/executions").headers["content-security-policy"]


def test_the_page_lists_nodes_and_starts_new_ones(client: TestClient, nodes: Path) -> None:
    assert "/play?node=fee_v1" in client.get("/play").text
    model = client.get("/api/play?new=tax").json()
    assert (model["opened"]["path"], model["opened"]["sha256"]) == ("tax_v1.vsp", None)
    assert model["opened"]["text"].startswith(("node_id: tax_v1", "# yaml-language-server"))
    assert not (nodes / "tax_v1.vsp").exists()
    assert client.get("/play?new=fee").status_code == 409
    assert client.get("/play?new=Fee").status_code == 400
    assert client.get("/play?node=absent_v1").status_code == 404


def test_a_viewer_gets_no_playground(project: Path, nodes: Path) -> None:
    with client_of(project, roles=[Role.VIEWER]) as viewer:
        assert viewer.get("/play?node=fee_v1").status_code == 403
        assert send(viewer, "save", sha256=sha256(TEXT))[0] == 403
    assert (nodes / "pricing" / "fee_v1.vsp").read_text() == TEXT


def test_hostile_text_stays_text_in_the_page(client: TestClient, nodes: Path) -> None:
    (nodes / "bad_v1.vsp").write_text("node_id: bad_v1\nintent: '</div><script>alert(1)</script>\"'\n")
    assert "<script>alert" not in client.get("/play?node=bad_v1").text


# -- run and code ---------------------------------------------------------------------------------


def test_run_returns_both_engines_and_the_flow(client: TestClient) -> None:
    status, answer = send(client, "run", inputs={"amount": "50.00"})
    assert status == 200
    engines = answer["engines"]
    assert isinstance(engines, list)
    assert [each["outcome"]["value"] for each in engines] == [{"fee": "5.0000"}] * 2
    assert str(answer["flow"]).startswith("<svg")


def test_run_on_one_engine_compares_nothing(client: TestClient) -> None:
    answer = send(client, "run", inputs={"amount": "50.00"}, engine="direct")[1]
    assert (str(answer["engines"]).count("5.0000"), answer["is_compared"]) == (1, False)
    assert send(client, "run", inputs={}, engine="jit2")[0] == 400


def test_a_faulty_text_is_a_problem_with_a_remedy(client: TestClient) -> None:
    status, answer = send(client, "run", text=TEXT.replace("amount * rate", "amount * rates"), inputs={})
    assert (status, answer["title"]) == (422, "The node has errors")
    assert "rates" in str(answer["detail"])
    assert answer["remedy"]


@pytest.mark.parametrize(
    "body",
    [
        {"text": 5},
        {"path": None},
        {"case": 5},
        {"answers": [1]},
        {"path": "../x.vsp"},
        {"path": "/etc/x.vsp"},
        {"path": "x.toml"},
    ],
)
def test_a_wrong_body_is_refused(client: TestClient, body: dict[str, object]) -> None:
    assert send(client, "run", **body)[0] == 400


@pytest.mark.parametrize("kind", ["python", "ir", "ir-optimized", "bytecode", "asm"])
def test_every_listing_has_a_text(client: TestClient, kind: str) -> None:
    status, answer = send(client, "code", kind=kind)
    assert status == 200
    assert len(str(answer["text"])) > 100


def test_listings_are_linked_to_lines_of_the_node(client: TestClient) -> None:
    step = TEXT.splitlines().index("  - step: fee") + 1
    for kind in ("python", "bytecode"):
        answer = send(client, "code", kind=kind)[1]
        links = answer["links"]
        assert isinstance(links, list)
        assert {source for _, source in links} & {step, step + 2}
    assert send(client, "code", kind="ir")[1]["links"] == []
    assert send(client, "code", kind="source")[0] == 400


def test_a_listing_that_is_too_long_is_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "MAX_CHARACTERS", 100)
    status, answer = send(client, "code", kind="python")
    assert status == 409
    assert "vesper compile --emit python" in str(answer["remedy"])


def test_the_flow_is_drawn_without_a_run(client: TestClient) -> None:
    assert str(send(client, "flow")[1]["svg"]).startswith("<svg")


# -- files ----------------------------------------------------------------------------------------


def test_other_files_are_opened_below_the_folder_only(client: TestClient, nodes: Path) -> None:
    uri = (nodes / "pricing" / "fee_v1.vsp").as_uri()
    assert send(client, "open", uri=uri)[1]["text"] == TEXT
    for other in ("file:///etc/passwd", uri.replace("pricing", "pricing/../../.."), "http://x/fee_v1.vsp"):
        assert send(client, "open", uri=other)[0] == 400


def test_save_shows_the_file_first_and_then_replaces_it(client: TestClient, nodes: Path) -> None:
    file = nodes / "pricing" / "fee_v1.vsp"
    changed = TEXT.replace("0.10", "0.20")
    status, preview = send(client, "save", preview=True, text=changed)
    assert (status, preview["text"], preview["sha256"]) == (200, TEXT, sha256(TEXT))
    assert file.read_text() == TEXT
    status, saved = send(client, "save", text=changed, sha256=preview["sha256"])
    assert (status, saved["sha256"]) == (200, sha256(changed))
    assert file.read_text() == changed


def test_save_refuses_a_file_that_changed_meanwhile(client: TestClient, nodes: Path) -> None:
    file = nodes / "pricing" / "fee_v1.vsp"
    file.write_text("node_id: other_v1\n")
    status, answer = send(client, "save", text="node_id: mine_v1\n", sha256=sha256(TEXT))
    assert status == 409
    assert answer["found"] == {
        "path": "pricing/fee_v1.vsp",
        "uri": file.as_uri(),
        "text": "node_id: other_v1\n",
        "sha256": sha256("node_id: other_v1\n"),
    }
    assert file.read_text() == "node_id: other_v1\n"


def test_two_saves_at_once_lose_no_text(nodes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second save of one text begins while the first one writes."""
    write = write_file._write_beside
    refused: list[str] = []
    threads: list[threading.Thread] = []

    def second() -> None:
        try:
            save(nodes, "pricing/fee_v1.vsp", TEXT + "# second\n", sha256(TEXT))
        except ChangedMeanwhile as problem:
            refused.append(problem.found.text)

    def write_slowly(target: Path, content: bytes, mode: int) -> Path:
        if not threads:
            threads.append(threading.Thread(target=second))
            threads[0].start()
            threads[0].join(0.05)
        return write(target, content, mode)

    monkeypatch.setattr(write_file, "_write_beside", write_slowly)
    save(nodes, "pricing/fee_v1.vsp", TEXT + "# first\n", sha256(TEXT))
    threads[0].join()
    assert refused == [TEXT + "# first\n"]
    assert (nodes / "pricing/fee_v1.vsp").read_text(encoding="utf-8") == TEXT + "# first\n"


def test_save_creates_a_new_file_and_never_replaces_one(client: TestClient, nodes: Path) -> None:
    assert send(client, "save", path="new/tax_v1.vsp", sha256=None)[0] == 200
    assert (nodes / "new" / "tax_v1.vsp").read_text() == TEXT
    assert send(client, "save", path="new/tax_v1.vsp", text="other", sha256=None)[0] == 409


def test_save_does_not_follow_links(client: TestClient, nodes: Path, tmp_path: Path) -> None:
    target = tmp_path / "outside.vsp"
    target.write_text(TEXT)
    (nodes / "link_v1.vsp").symlink_to(target)
    (nodes / "away").symlink_to(tmp_path)
    assert send(client, "save", path="link_v1.vsp", text="x", sha256=sha256(TEXT))[0] == 400
    assert send(client, "save", path="away/y_v1.vsp", text="x", sha256=None)[0] == 400
    assert target.read_text() == TEXT


def test_save_writes_no_hidden_file_and_no_half_character(client: TestClient, nodes: Path) -> None:
    for path in (".git/hooks_v1.vsp", "a/.b_v1.vsp"):
        assert send(client, "save", sha256=None, path=path)[0] == 400
    for text in (rb"\ud800", "\ud800".encode("utf-8", "surrogatepass")):
        body = b'{"path": "a_v1.vsp", "sha256": null, "text": "%b"}' % text
        assert client.post("/play/api/save", content=body).status_code == 400
    assert [each.name for each in nodes.iterdir()] == ["pricing"]


def test_save_needs_the_token(client: TestClient, nodes: Path) -> None:
    body = {"path": "a_v1.vsp", "text": TEXT, "sha256": None}
    assert client.post("/play/api/save", json=body, headers={"x-csrf": "wrong"}).status_code == 403
    assert not (nodes / "a_v1.vsp").exists()
