"""Help for keys and values in the forms of other languages: `net_of(amount):`, `title?:`, `raise: Problem(…)`."""

from __future__ import annotations

import re

from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.expression_slot import quote_scalar
from vesper.language.syntax.habits.type_forms import respell_type
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Tree

_SIGNATURE = re.compile(r"(?:def |function |fn )? *(?P<name>[A-Za-z_]\w*) *\((?P<params>[^()]*)\)", re.ASCII)
_CODES = re.compile(r"\berror_code: *['\"]?enum\[(?P<codes>[^\]]*)\]")


def signature_help(key: str, value: Tree) -> tuple[str, str] | None:
    """Return the name of a function whose key holds its parameters, and the help."""
    found = _SIGNATURE.fullmatch(key)
    if found is None:
        return None
    params = [re.split(r"[:= ]", each.strip())[0] for each in found["params"].split(",") if each.strip()]
    listed = ", ".join(f"{each}: decimal" for each in params)
    body = value.text if isinstance(value, Scalar) and value.text else "…"
    body = quote_scalar(body) if set(body) & set(",[]{}:#'\"") else body
    shown = f"`{found['name']}: {{params: {{{listed}}}, returns: decimal, value: {body}}}`"
    return found["name"], f"the parameters of a function stand under `params`: {shown}"


def optional_help(key: str, value: Tree) -> str | None:
    """Return the help for a name with a question mark, which declares an optional value elsewhere."""
    type_ = value
    if isinstance(value, Mapping):
        type_ = next((each for name, each in value.entries if name.text == "type"), value)
    if re.fullmatch(r"[a-z][a-z0-9_]*\?", key) is None or not isinstance(type_, Scalar) or not type_.text:
        return None
    meant = respell_type(type_.text) or type_.text
    meant = meant if meant.startswith("optional<") else f"optional<{meant}>"
    if isinstance(value, Mapping):
        return f"declare `{key[:-1]}` with `type: {meant}`: a value that may be missing has an optional type"
    return f"write `{key[:-1]}: {meant}`: a value that may be missing has an optional type"


def written_key(source: SourceFile, tree: Tree, key: str) -> str:
    """Return the key before a value, where it is another spelling of `key`: `raise` of `error`."""
    line, column = source.position(tree.span.start)
    found = re.search(r"(\w+) *: *$", source.line_text(line)[: column - 1])
    return found[1] if found is not None and found[1] in ("raise", "return", "return_error") else key


def raised_help(source: SourceFile, key: str, text: str) -> str:
    """Return the help for an exception of another language in the place of an error's fields."""
    declared = _CODES.search(source.text)
    codes = [] if declared is None else [each.strip(" '\"") for each in declared["codes"].split(",")]
    inner = re.search(r"(['\"])(?P<message>[^'\"]*)\1", text)
    message = inner["message"] if inner is not None else text if " " in text and "(" not in text else ""
    words = "_".join(re.findall(r"[a-z0-9]+", f"{text} {message}".lower()))
    code = next((each for each in codes if each.lower() in words), codes[0] if codes else "…")
    fields = f"error_code: {code}"
    if re.search(r"^ +message:", source.text, re.MULTILINE):
        is_plain = re.fullmatch(r"[\w .-]+", message) is not None
        fields += f", message: {message if is_plain else quote_scalar(message) if message else '…'}"
    return f"`{key}` takes the fields of the declared error: `{key}: {{{fields}}}`"
