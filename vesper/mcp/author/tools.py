"""The tools of an author: what each is for, its arguments, and the function that does it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vesper.mcp.author.commands import Ran, command_path, run_command
from vesper.mcp.author.project import AuthorError, Project
from vesper.mcp.author.search import MAX_CHARACTERS, guide, search

_RUN_SECONDS: Final = 10
_COMPARE_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class AuthorTool:
    """One tool."""

    name: str
    about: str
    arguments: Mapping[str, str]
    """Descriptions of arguments by name; all are texts and required, unless the name ends with `?`."""
    work: Callable[[Project, Mapping[str, Any]], Awaitable[Ran]]
    changes: bool = False

    def schema(self) -> dict[str, Any]:
        kinds = {name: {"type": "object"} if name == "inputs" else {"type": "string"} for name in self.names()}
        described = {
            name: {**kinds[name], "description": about}
            for name, about in zip(self.names(), self.arguments.values(), strict=True)
        }
        required = [each for each in self.arguments if not each.endswith("?")]
        return {"type": "object", "properties": described, "required": required, "additionalProperties": False}

    def names(self) -> list[str]:
        return [each.rstrip("?") for each in self.arguments]

    def checked(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of a call. Raises `AuthorError` for those that do not fit the schema."""
        unknown = [each for each in given if each not in self.names()]
        missing = [each for each in self.arguments if not each.endswith("?") and each not in given]
        if unknown or missing:
            listed = ", ".join(f"`{each}`" for each in self.arguments) or "none"
            raise AuthorError(f"the arguments of `{self.name}` are {listed} (with `?`: optional)")
        for name, value in given.items():
            wanted = dict if name == "inputs" else str
            if not isinstance(value, wanted):
                raise AuthorError(f"`{name}` of `{self.name}` is {'an object' if wanted is dict else 'a text'}")
        return given


async def _guide(_project: Project, _given: Mapping[str, Any]) -> Ran:
    return Ran(0, guide())


async def _list(project: Project, _given: Mapping[str, Any]) -> Ran:
    return await run_command(project, "nodes", "list", "--nodes", ".")


async def _read(project: Project, given: Mapping[str, Any]) -> Ran:
    return Ran(0, project.read(given["node"]))


async def _write(project: Project, given: Mapping[str, Any]) -> Ran:
    path = project.write(given["path"], given["text"])
    return await run_command(project, "check", "--nodes", ".", "--", command_path(project, path))


async def _check(project: Project, given: Mapping[str, Any]) -> Ran:
    return await run_command(project, "check", "--nodes", ".", *_one(project, given))


async def _fix(project: Project, given: Mapping[str, Any]) -> Ran:
    return await run_command(project, "check", "--fix", "--nodes", ".", *_one(project, given))


async def _explain(project: Project, given: Mapping[str, Any]) -> Ran:
    return await run_command(project, "explain", "--", given["code"])


async def _test(project: Project, given: Mapping[str, Any]) -> Ran:
    return await run_command(project, "test", "--nodes", ".", "--engine", "both", *_one(project, given))


async def _run(project: Project, given: Mapping[str, Any]) -> Ran:
    path = command_path(project, project.existing(given["node"]))
    options = ["--json", "-", "--format", "json", "--seconds", str(_RUN_SECONDS), "--config", str(project.run_config)]
    options += ["--now", given["now"]] if "now" in given else []
    inputs = json.dumps(given["inputs"], ensure_ascii=False)
    return await run_command(project, "run", "--nodes", ".", *options, "--", path, given=inputs)


async def _compare(project: Project, given: Mapping[str, Any]) -> Ran:
    paths = [command_path(project, project.existing(given[each])) for each in ("before", "after")]
    return await run_command(project, "compare", "--nodes", ".", "--seconds", str(_COMPARE_SECONDS), "--", *paths)


async def _search(_project: Project, given: Mapping[str, Any]) -> Ran:
    found = search(given["query"])
    parts = [f"## {each.title} ({each.where})\n\n{each.text[:MAX_CHARACTERS]}" for each in found]
    return Ran(0, "\n\n".join(parts) or "no section has these words: try the name of a field, an operation or a code")


def _one(project: Project, given: Mapping[str, Any]) -> list[str]:
    return ["--", command_path(project, project.existing(given["node"]))] if "node" in given else []


_NODE: Final = "A path below the folder of nodes, an id such as price_v1, or a name without its version."
TOOLS: Final = (
    AuthorTool("guide", "Return the page that teaches the language. Read it before you write a node.", {}, _guide),
    AuthorTool("list_nodes", "List every node with its intent, inputs and outputs.", {}, _list),
    AuthorTool("read_node", "Return the text of a node.", {"node": _NODE}, _read),
    AuthorTool(
        "write_node",
        "Write a .vsp file whole, new or not, and check it.",
        {"path": "A path below the folder of nodes that ends with .vsp.", "text": "The whole text."},
        _write,
        changes=True,
    ),
    AuthorTool("check", "Report errors in a node, by default in all nodes.", {"node?": _NODE}, _check),
    AuthorTool("fix", "Apply unambiguous fixes to a node and report what is left.", {"node": _NODE}, _fix, True),
    AuthorTool("explain", "Explain a diagnostic, with an example.", {"code": "A code such as VSP1102."}, _explain),
    AuthorTool(
        "test",
        "Run the cases of a node, by default of all nodes, on both engines, and check contracts on generated inputs. "
        "Effects get the answers that the cases list.",
        {"node?": _NODE},
        _test,
    ),
    AuthorTool(
        "run",
        "Run a node with inputs and return its outcome.",
        {"node": _NODE, "inputs": "The inputs by name; decimals as texts.", "now?": "Start: 2026-11-15T12:00:00Z."},
        _run,
    ),
    AuthorTool(
        "compare",
        "Show inputs on which two versions of a node differ.",
        {"before": _NODE, "after": _NODE},
        _compare,
    ),
    AuthorTool("search", "Search the documentation.", {"query": "A few words: fields, operations, codes."}, _search),
)
