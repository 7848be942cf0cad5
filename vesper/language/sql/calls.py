"""Functions, types and operators that a statement uses, read from its tokens.

Reading tokens instead of a syntax tree fails closed: PostgreSQL and SQLite call a function only by a name before `(`, a
cast, a typed literal, an operator or one of a few words, so a name that is none of these cannot be called.

A node does not know the dialect of its database. Its SQL must therefore divide into the same strings, names and
comments in both, and a listed name must be pure in every dialect that ships it (schemas/sql_functions.toml).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from vesper.language.sql.tokens import SqlRefused, Token, tokens_of
from vesper.values.generated.sql_functions import (
    FUNCTIONS,
    LEAST_ARGUMENTS,
    OPERATORS,
    SYNTAX_FUNCTIONS,
    TYPES,
    VALUE_WORDS,
    WORDS_BEFORE_PARENTHESIS,
    WORDS_BEFORE_STRING,
)

_PURE = frozenset().union(*FUNCTIONS.values(), *TYPES.values(), SYNTAX_FUNCTIONS)
_PURE_TYPES = frozenset().union(*TYPES.values())
_KNOWN_OPERATORS = frozenset().union(*OPERATORS.values())
_STRINGS = ("string", "escape", "dollar")
_OPERATOR_SIGNS = frozenset("+-*/<>=~!@#%^&|?")
_ENDS_IN_SIGN = frozenset("~!@#%^&|?")
_PLAIN_SPACE = re.compile(r"[ \t\n\r\f]*")
_CLOCK_TEXT = re.compile(r"(?:[eE]?'|\$[^$]*\$)\s*(?:now|today|tomorrow|yesterday)\s*['$].*", re.IGNORECASE | re.DOTALL)
_MAX_SHOWN = 40


def code_of(sql: str) -> list[Token]:
    """Return the tokens without spaces and comments. Refuses text that the two dialects would divide differently."""
    code: list[Token] = []
    closing: set[int] = set()
    for token in tokens_of(sql, "postgres"):
        _check_token(token, sql)
        if token.text == "]":
            closing.add(token.start)
        if token.kind not in ("space", "line", "block"):
            code.append(token)
    _check_operators(code)
    if closing:
        for token in tokens_of(sql, "sqlite"):
            if token.kind == "bracket" and token.start + len(token.text) - 1 not in closing:
                raise SqlRefused(
                    f"has `{token.text[:_MAX_SHOWN]}`, which SQLite reads as a name; bind the text instead"
                )
    return code


def _check_token(token: Token, sql: str) -> None:
    kind, text, start = token
    if kind == "space":
        if not _PLAIN_SPACE.fullmatch(text):
            raise SqlRefused(f"has the space {text!a}, which databases do not take for one; write a plain space")
    elif kind == "block":
        if "/*" in text[2:]:
            raise SqlRefused("has a comment inside a comment, which SQLite does not know")
    elif kind == "line":
        rest = sql[start + len(text) :]
        if rest.startswith("\r") and not rest.startswith("\r\n"):
            raise SqlRefused(
                "has a comment that ends in a carriage return, which SQLite reads on; end it with a newline"
            )
    elif kind == "escape":
        if "\\'" in text:
            raise SqlRefused("has `\\'` in a string, where SQLite ends it; write `''`")
    elif kind == "hidden_name" or (kind == "word" and text in ("u", "U") and sql[start + 1 : start + 3] == "&'"):
        raise SqlRefused("has a text with U&\"…\" or U&'…'; write its letters")
    elif kind in ("word", "other") and (not text.isascii() or text in "{}`\\" or not text.isprintable()):
        raise SqlRefused(f"has {text!a} outside of quotes; quote a name that has such a sign")


def outside_names(code: Sequence[Token], columns: Counter[str]) -> list[str]:
    """Return the names that need a capability, in order of first use.

    `columns` counts the tables and aliases that a list of columns follows, such as the target of an INSERT.
    """
    found: list[str] = []
    left = Counter(columns)
    for name, is_call in _used_names(code):
        if is_call and left[name] > 0:
            left[name] -= 1
        else:
            found.append(name)
    return list(dict.fromkeys(found))


@lru_cache(maxsize=4096)
def called_names(sql: str) -> frozenset[str]:
    """Return the words before a parenthesis, in lower case. Every function of the statement is among them."""
    code = [token for token in tokens_of(sql, "postgres") if token.kind not in ("space", "line", "block")]
    pairs = pairwise(code)
    return frozenset(_name(token) for token, after in pairs if after.text == "(" and token.kind in ("word", "name"))


def _used_names(code: Sequence[Token]) -> Iterator[tuple[str, bool]]:
    """Yield each name that is not listed as pure, and whether a parenthesis follows it."""
    opened: list[str] = []
    for index, token in enumerate(code):
        before = code[index - 1] if index else None
        after = code[index + 1] if index + 1 < len(code) else None
        if token.kind == "other":
            if token.text == "(":
                opened.append(_name(before) if before is not None and before.kind in ("word", "name") else "")
            elif token.text == ")" and opened:
                opened.pop()
        elif token.kind == "cast":
            if _is_clock_text(code[index - 1 : index]):
                yield "now", False
            yield from _type_at(code, index + 1)
        elif token.kind in ("word", "name"):
            follows = "" if after is None else "(" if after.text == "(" else after.kind
            yield from _names_of_word(code, index, token, before, follows, opened[-1] if opened else "")


def _names_of_word(
    code: Sequence[Token], index: int, token: Token, before: Token | None, follows: str, inside: str
) -> Iterator[tuple[str, bool]]:
    name, is_word = _name(token), token.kind == "word"
    is_qualified = before is not None and before.text == "."
    if follows == "(":
        if is_qualified:
            raise SqlRefused(f"calls `{name}` with its schema; write the name alone")
        if is_word and name == "operator":
            raise SqlRefused("has OPERATOR(…); write the operator alone")
        if is_word and name == "cast":
            if _is_clock_text(code[index + 2 : index + 3]):
                yield "now", False
            yield from _type_at(code, _index_after_as(code, index + 1))
        elif not (is_word and name in WORDS_BEFORE_PARENTHESIS) and not _is_pure_call(code, index, name):
            yield name, True
    elif follows in _STRINGS:
        is_prefix = name in ("b", "x", "n") and token.start + 1 == code[index + 1].start
        if is_qualified:
            raise SqlRefused(f"has a literal of the type `{name}` with its schema; write the type alone")
        if name in _PURE_TYPES and _is_clock_text(code[index + 1 : index + 2]):
            yield "now", False
        if not (is_word and (name in WORDS_BEFORE_STRING or is_prefix)) and name not in _PURE_TYPES:
            yield name, False
    elif is_word and name in VALUE_WORDS and not is_qualified and not _is_column(code, index, before, inside):
        yield name, False
    elif is_word and name == "returning" and inside.startswith("json"):
        yield from _type_at(code, index + 1)
    elif is_word and name == "in" and inside != "position":
        raise SqlRefused("has IN without parentheses, which names a table in SQLite; write IN (…)")


def _is_column(code: Sequence[Token], index: int, before: Token | None, inside: str) -> bool:
    """Return whether a word such as `user` names a column.

    It does as an alias, after SET, or in the list of an INSERT.
    """
    if before is not None and before.text.lower() in ("as", "set"):
        return True
    opening = next((at for at in range(index, 0, -1) if code[at].text in ("(", ")")), 0)
    return bool(inside) and code[opening].text == "(" and opening > 1 and code[opening - 2].text.lower() == "into"


def _type_at(code: Sequence[Token], index: int) -> Iterator[tuple[str, bool]]:
    """Yield the name of the type at an index, unless the type is pure."""
    token = code[index] if index < len(code) else None
    if token is None or token.kind not in ("word", "name"):
        raise SqlRefused("has a cast without a type")
    if index + 1 < len(code) and code[index + 1].text == ".":
        raise SqlRefused(f"casts to a type of the schema `{_name(token)}`; write the type alone")
    if _name(token) not in _PURE_TYPES and not (index + 1 < len(code) and code[index + 1].text == "("):
        yield _name(token), False  # a type with a parenthesis is yielded as a call


def _index_after_as(code: Sequence[Token], opening: int) -> int:
    """Return the index after the AS of a CAST."""
    depth, found = 0, len(code)
    for index in range(opening, len(code)):
        token = code[index]
        if token.text == "(" and token.kind == "other":
            depth += 1
        elif token.text == ")" and token.kind == "other":
            depth -= 1
            if not depth:
                break
        elif depth == 1 and token.kind == "word" and token.text.lower() == "as":
            found = index + 1
    return found


def _is_pure_call(code: Sequence[Token], index: int, name: str) -> bool:
    least = LEAST_ARGUMENTS.get(name)
    return name in _PURE and (least is None or not _reads_clock(code, index, least))


def _reads_clock(code: Sequence[Token], index: int, least: int) -> bool:
    """Return whether a call reads the clock. It does if it lacks an argument, or has the text `now` as one."""
    depth, commas, is_empty = 0, 0, True
    for token in code[index + 1 :]:
        if token.kind == "other" and token.text in "()":
            depth += 1 if token.text == "(" else -1
            if not depth:
                break
        is_empty = is_empty and (token.text == "(" and depth == 1)
        commas += token.text == "," and depth == 1
        if _is_clock_text((token,)):
            return True
    return (0 if is_empty else commas + 1) < least


def _is_clock_text(tokens: Sequence[Token]) -> bool:
    """Return whether this is a text that databases read as a time of the clock."""
    return bool(tokens) and tokens[0].kind in _STRINGS and _CLOCK_TEXT.fullmatch(tokens[0].text) is not None


def _check_operators(code: Sequence[Token]) -> None:
    run, end = "", -1
    for token in (*code, Token("end", ";", -2)):
        is_sign = token.kind in ("other", "position") and token.text in _OPERATOR_SIGNS
        if run and not (is_sign and token.start == end):
            _check_operator(run)
            run = ""
        if is_sign:
            run, end = run + token.text, token.start + 1


def _check_operator(run: str) -> None:
    """Refuse an operator that no database ships. The sign of a number may follow it, and `*` may mean all columns."""
    if not _ENDS_IN_SIGN.intersection(run):
        run = run[:1] + run[1:].rstrip("+-")
    if run not in _KNOWN_OPERATORS:
        raise SqlRefused(f"has the operator `{run}`, which neither PostgreSQL nor SQLite ships; call its function")


def _name(token: Token) -> str:
    """Return a name as PostgreSQL stores it: without quotes, or in lower case."""
    return token.text[1:-1].replace('""', '"') if token.kind == "name" else token.text.lower()
