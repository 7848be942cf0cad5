"""The `agent` section of a node, from YAML to AST."""

from __future__ import annotations

from vesper.language.diagnostics.codes import Code
from vesper.language.syntax import ast, shapes
from vesper.language.syntax.agents import agent_ast
from vesper.language.syntax.fields import Fields, expect_mapping, expect_scalar
from vesper.language.syntax.slots import CONFIGURED_NAME, TOOL_NAME
from vesper.language.syntax.steps_to_ast import StepReader
from vesper.language.syntax.template import as_text
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.values.node_id import split_node_id

_SETTINGS = ("temperature", "max_tokens", "max_turns", "repairs", "max_result", "thinking")
_ROLES = ("user", "assistant")


class AgentReader(StepReader):
    """Reads the section `agent`."""

    def _agent(self, mapping: Mapping | None) -> agent_ast.Agent | None:
        entry = self._fields(mapping, shapes.AGENT)
        if entry is None:
            return None
        model, system = entry.scalar("model"), self._template(entry.scalar("system"))
        settings = {key: scalar for key in _SETTINGS if (scalar := entry.scalar(key)) is not None}
        listed = entry.sequence("tools")
        tools = [self._tool(item) for item in (listed.items if listed else ())]
        messages = self._messages(entry.get("messages"))
        if model is None:
            return None
        return agent_ast.Agent(
            self._name(model, "a model", CONFIGURED_NAME),
            None if system is None else as_text(system),
            messages,
            tuple(each for each in tools if each is not None),
            settings,
            self._agent_session(entry.mapping("session")),
            {key: tree for key in shapes.POLICIES.optional if (tree := entry.get(key)) is not None},
            model.span,
        )

    def _agent_session(self, mapping: Mapping | None) -> agent_ast.Session | None:
        entry = self._fields(mapping, shapes.AGENT_SESSION)
        name, id_ = (None, None) if entry is None else (entry.scalar("name"), self._expression(entry.scalar("id")))
        if name is None or id_ is None:
            return None
        return agent_ast.Session(self._name(name, "a session", CONFIGURED_NAME), id_)

    def _messages(self, tree: Tree | None) -> tuple[agent_ast.Message, ...]:
        items = () if tree is None else tree.items if isinstance(tree, Sequence) else (tree,)
        if tree is not None and not items:
            expected = "at least one message"
            self._bag.error(Code.WRONG_KIND, tree.span, key="messages", expected=expected, found="none")
        found = [self._message(item) for item in items]
        return tuple(each for each in found if each is not None)

    def _message(self, tree: Tree) -> agent_ast.Message | None:
        """Read a message. A text becomes a user message, and a single hole may also hold a list of messages."""
        if isinstance(tree, Scalar):
            content = self._template(expect_scalar(tree, "messages", self._bag))
            return None if content is None else agent_ast.Message(None, content)
        entry = self._fields(expect_mapping(tree, "messages", self._bag), shapes.AGENT_MESSAGE)
        if entry is None:
            return None
        role, parts = self._word(entry.scalar("role"), "role", _ROLES), entry.get("content")
        content = self._json_tree(parts, "content")
        if role is None or content is None:
            return None
        return agent_ast.Message(role, as_text(content) if isinstance(parts, Scalar) else content)

    def _tool(self, tree: Tree) -> agent_ast.Tool | None:
        if isinstance(tree, Scalar):
            scalar = expect_scalar(tree, "tools", self._bag)
            return None if scalar is None else self._named_tool(scalar, None, None)
        entry = self._fields(expect_mapping(tree, "tools", self._bag), shapes.AGENT_TOOL)
        if entry is None:
            return None
        if entry.get("mcp") is not None:
            return self._mcp_tool(entry)
        for key in ("inputs", "effect"):
            if (found := entry.get(key)) is not None:
                help_ = "a node has its own"
                self._bag.error(Code.UNKNOWN_KEY, found.span, where="a tool that is a node", key=key, help=help_)
        node = entry.scalar("node")
        if entry.get("node") is None:
            self._bag.error(Code.MISSING_KEY, entry.span, where="a tool", key="node", help="or `mcp`")
        return None if node is None else self._named_tool(node, entry.scalar("name"), entry.scalar("description"))

    def _mcp_tool(self, entry: Fields) -> agent_ast.Tool | None:
        """Read a tool of an MCP server. Its description is required, because no node provides one."""
        scalar = entry.scalar("mcp")
        for key in ("node", "description"):
            if (entry.get(key) is None) == (key == "description"):
                code = Code.MISSING_KEY if key == "description" else Code.UNKNOWN_KEY
                self._bag.error(code, entry.span, where="a tool of an MCP server", key=key)
                return None
        server, _, tool = ("", "", "") if scalar is None else scalar.text.partition(".")
        if scalar is None or not CONFIGURED_NAME.fullmatch(server) or not TOOL_NAME.fullmatch(tool):
            if scalar is not None:
                self._bag.error(Code.BAD_LITERAL, scalar.span, text=scalar.text, expected="`SERVER.TOOL`")
            return None
        named = self._named_tool(Scalar(tool, "", scalar.span), entry.scalar("name"), entry.scalar("description"))
        name = named.name if entry.get("name") is not None else self._name(Scalar(tool, "", scalar.span), "a tool")
        inputs = self._read_each(entry.mapping("inputs"), self._field_type)
        effect = self._word(entry.scalar("effect"), "effect", ("read", "unsafe")) or ast.Word("unsafe", scalar.span)
        word = ast.Word(scalar.text, scalar.span)
        mcp = agent_ast.McpTool(ast.Word(server, scalar.span), ast.Word(tool, scalar.span), inputs, effect)
        return agent_ast.Tool(word, name, named.description, mcp)

    def _named_tool(self, node: Scalar, name: Scalar | None, description: Scalar | None) -> agent_ast.Tool:
        parts = split_node_id(node.text)
        shown = ast.Word(node.text if parts is None else parts[0], node.span)
        text = None if description is None else ast.Word(" ".join(description.text.split()), description.span)
        return agent_ast.Tool(
            ast.Word(node.text, node.span), shown if name is None else self._name(name, "a tool"), text
        )
