"""Rules of the YAML profile, with help: valid YAML 1.2 that nodes must not use."""

from __future__ import annotations

from enum import Enum

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span

_WRITE_OUT = "write the value itself at each place: a node contains no references"


class ProfileRule(Enum):
    """A rule by its name in diagnostics and in docs/spec/yaml.md, with its help."""

    REFERENCES = ("references", _WRITE_OUT)
    TAGS = ("tags", "remove the tag: the declared type decides how a value is read")
    MERGE_KEYS = ("merge-keys", "list the fields themselves")
    DIRECTIVES = ("directives", "remove the line: every node is YAML 1.2, without tags")
    ONE_DOCUMENT = (
        "one-document",
        "a file holds one node: take the `---` out, or put the rest into a file of its own",
    )
    EXPLICIT_KEYS = ("explicit-keys", "write `key: value` on one line, without the `?`")
    SCALAR_KEYS = (
        "scalar-keys",
        "a key is one word; an expression that starts with `{` or `[` is put in quotes",
    )
    EMPTY_KEYS = ("empty-keys", "write the key before the colon; an empty text is `''`")
    TEXT_DIRECTION = (
        "text-direction",
        "remove it: editors would show another text than YAML reads; in quoted YAML text write `\\u…`",
    )
    CONTROL_CHARACTERS = ("control-characters", "remove it; in double-quoted YAML text write `\\u…`")

    @property
    def rule_name(self) -> str:
        return self.value[0]

    @property
    def help(self) -> str:
        return self.value[1]


def refuse(rule: ProfileRule, feature: str, span: Span, bag: DiagnosticBag, help_: str | None = None) -> None:
    """Report YAML outside the profile."""
    bag.error(Code.YAML_FEATURE, span, feature=feature, rule=rule.rule_name, help=help_ or rule.help)
