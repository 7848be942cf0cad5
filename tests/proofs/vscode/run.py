"""`make proof-vscode`: the packed extension of VS Code, its grammar and the JSON Schema in the programs that read them.

    python -m tests.proofs.vscode.run

The grammar is read by the engine of VS Code (vscode-textmate), the schema by yaml-language-server, and the extension is
unpacked from its `.vsix` and driven by a script over a stand-in for the module `vscode`, with the real language client,
`vesper lsp`, `vesper debug` and `vesper test`. VS Code itself does not run here. Writes `docs/proofs/vscode.json`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from tests.proofs.robustness.proof import PROOFS, hash_of, write_json
from tests.proofs.vscode.pack import BUILD, ROOT, SOURCE, pack
from vesper.repository.editor_schema import SCHEMA_FILE, schema_text, with_modeline
from vesper.repository.starter import starter

HERE = Path(__file__).parent
TIMEOUT_SECONDS = 500
BROKEN = ("- amount > 0", "- ammount > 0")
MISTYPED = {"contracts:": "contract:", "value: amount * rate": "vaule: amount * rate", "fee: decimal": "fee: [decimal]"}
"""Changes of a starter that the schema must report, each on the line of the change."""
MORE_TESTS = """\
    - name: wrong on purpose
      inputs: {amount: 50.00}
      expect: {fee: 6}
  properties:
    - name: a higher rate never lowers the fee
      twice: {same except: [rate]}
      where: first.input.rate <= second.input.rate
      holds: first.fee <= second.fee
"""


def main() -> int:
    archive = pack()
    nodes = sorted((ROOT / "nodes").rglob("*.vsp"))
    grammar = _node("grammar.js", str(BUILD), *map(str, nodes))
    with tempfile.TemporaryDirectory() as folder:
        extension, project, schemas = (Path(folder).resolve() / name for name in ("unpacked", "project", "schemas"))
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(extension)
        (project / "nodes").mkdir(parents=True)
        text = starter("fee_v1", "function") + MORE_TESTS
        (project / "nodes" / "fee_v1.vsp").write_text(text, encoding="utf-8")
        broken = text.replace("fee_v1", "broken_v1").replace(*BROKEN)
        (project / "nodes" / "broken_v1.vsp").write_text(broken, encoding="utf-8")
        parts = _node("client.js", str(BUILD), str(extension / "extension"), str(project))
        schema = _judge_schema(schemas, nodes)
    found = {
        "source_hash": hash_of(
            [path for folder in (SOURCE, HERE) for path in folder.rglob("*.*") if path.suffix != ".pyc"]
        ),
        "grammar": {key: grammar[key] for key in ("expectations", "files", "tokens")},
        "extension": {"archive_kib": archive.stat().st_size // 1024, "parts": parts},
        "yaml_language_server": schema,
        "not_run": "VS Code and code-server: neither can be installed from the package registries alone",
    }
    write_json(PROOFS / "vscode.json", found)
    print(json.dumps(found, indent=2))
    return 0


def _judge_schema(folder: Path, nodes: list[Path]) -> dict[str, Any]:
    """Open every node in yaml-language-server; none may have a problem, and each mistyped one exactly at its line."""
    folder.mkdir()
    (folder / SCHEMA_FILE).write_text(schema_text(), encoding="utf-8")
    new = starter("fee_v1", "function")
    texts = {path.name: path.read_text(encoding="utf-8") for path in nodes} | {"fee_v1.vsp": new}
    lines = {}
    for number, (right, wrong) in enumerate(MISTYPED.items()):
        name, text = f"mistyped{number}_v1.vsp", new.replace(right, wrong)
        texts[name] = text
        lines[name] = text[: text.index(wrong)].count("\n") + 2  # below the modeline
    for name, text in texts.items():
        (folder / name).write_text(with_modeline(text, folder), encoding="utf-8")
    said = _node("yaml_server.js", str(BUILD), str(folder))
    refused = {name: found for name, found in said["found"].items() if found and name not in lines}
    assert refused == {}, json.dumps(refused, indent=1)
    for name, line in lines.items():
        assert any(each.startswith(f"{line}: ") for each in said["found"][name]), (name, line, said["found"][name])
    assert "The kind of node" in said["hover"], said["hover"]
    assert {"constants", "functions"} <= set(said["completion"]), said["completion"]
    return {
        "nodes_without_problems": len(texts) - len(lines),
        "mistyped": {name: said["found"][name] for name in lines},
    }


def _node(script: str, *arguments: str) -> Any:
    """Run a script and return the JSON that it prints."""
    environment = {**os.environ, "VESPER": str(Path(sys.executable).with_name("vesper"))}
    command = ["node", str(HERE / script), *arguments]
    ran = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=False, timeout=TIMEOUT_SECONDS)
    if ran.returncode:
        raise SystemExit(f"{script} failed\n{ran.stdout.decode()}")
    return json.loads(ran.stdout)


if __name__ == "__main__":
    sys.exit(main())
