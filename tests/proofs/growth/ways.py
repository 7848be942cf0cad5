"""Nodes that try to grow without end, each in another way."""

from __future__ import annotations

MANY = "range(0, 1000000)"

EXPRESSIONS: dict[str, tuple[str, str]] = {
    # The type of the result and the expression.
    "long texts": ("array<string>", f"[repeat('a', 10000000) FOR x IN {MANY}]"),
    "short texts": ("array<string>", f"[repeat('ab', 1000) FOR x IN {MANY}]"),
    "doubled texts": ("array<string>", f"[fold(t + t FOR y IN range(0, 22), t = 'ab') FOR x IN {MANY}]"),
    "texts of other planes": ("array<string>", f"[repeat('\U0001f600', 1000000) FOR x IN {MANY}]"),
    "padded texts": ("array<string>", f"[pad_start('a', 100000, 'b') FOR x IN {MANY}]"),
    "upper case": ("array<string>", f"[upper(repeat('a', 100000)) FOR x IN {MANY}]"),
    "replaced texts": ("array<string>", f"[replace(repeat('a', 1000), 'a', repeat('b', 1000)) FOR x IN {MANY}]"),
    "reversed texts": ("array<string>", f"[reverse(repeat('a', 1000000)) FOR x IN {MANY}]"),
    "joined texts": ("array<string>", f"[join([text(y) FOR y IN range(0, 1000)], ',') FOR x IN {MANY}]"),
    "split texts": ("array<array<string>>", f"[split(repeat('a,', 400000), ',') FOR x IN {MANY}]"),
    "words": ("array<array<string>>", f"[words(repeat('a ', 100000)) FOR x IN {MANY}]"),
    "code points": ("array<array<integer>>", f"[code_points(repeat('a', 100000)) FOR x IN {MANY}]"),
    "bytes of texts": ("array<bytes>", f"[utf8(repeat('a', 1000000)) FOR x IN {MANY}]"),
    "base64": ("array<string>", f"[base64(utf8(repeat('a', 1000000))) FOR x IN {MANY}]"),
    "matches of a pattern": ("array<array<string>>", f"[find_all(repeat('a1', 1000), '[0-9]') FOR x IN {MANY}]"),
    "ranges": ("array<array<integer>>", f"[range(0, 1000000) FOR x IN {MANY}]"),
    "loops in loops": ("array<array<integer>>", f"[[x * y FOR y IN range(0, 1000)] FOR x IN {MANY}]"),
    "decimals": ("array<array<decimal>>", f"[[x + 0.1 + y FOR y IN range(0, 1000)] FOR x IN {MANY}]"),
    "texts in loops": ("array<array<string>>", f"[[text(x * y) FOR y IN range(0, 1000)] FOR x IN {MANY}]"),
    "a product": ("array<array<integer>>", "flatten([[[x, y] FOR y IN range(0, 3000)] FOR x IN range(0, 3000)])"),
    "pairs": ("array<array<array<integer>>>", f"[[[x, y] FOR y IN range(0, 1000)] FOR x IN {MANY}]"),
    "copies": ("array<array<integer>>", f"[reverse(range(0, 100000)) FOR x IN {MANY}]"),
    "sorted copies": ("array<array<integer>>", f"[sort(range(0, 100000)) FOR x IN {MANY}]"),
    "chunks": ("array<array<array<integer>>>", f"[chunks(range(0, 100000), 1) FOR x IN {MANY}]"),
    "flattened": ("array<array<integer>>", f"[flatten([range(0, 1000) FOR y IN range(0, 100)]) FOR x IN {MANY}]"),
    "numbered": ("integer", f"length([enumerate(range(0, 100000)) FOR x IN {MANY}])"),
    "zipped": ("integer", f"length([zip(range(0, 100000), range(0, 100000)) FOR x IN {MANY}])"),
    "doubled arrays": (
        "array<array<integer>>",
        f"[fold(a + a FOR y IN range(0, 18), a = [1, 2]) FOR x IN {MANY}]",
    ),
    "appended": ("array<string>", f"fold(append(a, text(x)) FOR x IN {MANY}, a = ['a'])"),
    "appended long texts": ("array<string>", f"fold(append(a, repeat('a', 100000)) FOR x IN {MANY}, a = ['a'])"),
    "a growing text": ("array<string>", f"[fold(t + 'abcdef' FOR y IN range(0, 5000), t = '') FOR x IN {MANY}]"),
    "maps": ("array<map<string, integer>>", f"[index_by(text(y) FOR y IN range(0, 10000)) FOR x IN {MANY}]"),
    "maps of texts": (
        "array<map<integer, string>>",
        f"[{{y: repeat('a', 3000) FOR y IN range(0, 9)}} FOR x IN {MANY}]",
    ),
    "a growing map": ("map<integer, string>", f"fold(put(m, x, text(x)) FOR x IN {MANY}, m = {{0: 'a'}})"),
    "keys": ("array<array<integer>>", f"[keys({{y: y FOR y IN range(0, 10000)}}) FOR x IN {MANY}]"),
    "sets": ("array<set<string>>", f"[{{text(y) FOR y IN range(0, 10000)}} FOR x IN {MANY}]"),
    "groups": ("array<map<integer, array<integer>>>", f"[group_by(y FOR y IN range(0, 10000)) FOR x IN {MANY}]"),
    "counts": ("array<map<string, integer>>", f"[count_by(text(y) FOR y IN range(0, 10000)) FOR x IN {MANY}]"),
    "sorted by texts": ("array<integer>", f"sort_by(repeat(text(x), 600) FOR x IN {MANY})"),
    "json": ("array<json>", f"[parse_json('[' + repeat('1,', 10000) + '1]') FOR x IN {MANY}]"),
    "texts of json": ("array<string>", f"[text(parse_json('[' + repeat('1,', 1000) + '1]')) FOR x IN {MANY}]"),
    "temporary texts": ("integer", f"sum(length(repeat('a', 10000000)) FOR x IN {MANY})"),
    "temporary sorts": ("integer", f"sum(length(sort(range(0, 1000000))) FOR x IN {MANY})"),
}

FLOWS: dict[str, tuple[str, str]] = {
    # The type of the result and the steps before `return`.
    "a loop that collects": (
        "array<string>",
        """- step: made
  operation: loop
  over: x IN range(0, 1000000)
  collect: "repeat('a', 3000)"
- {step: result, operation: compute, value: made.collected}""",
    ),
    "loops that collect in one another": (
        "array<array<string>>",
        """- step: made
  operation: loop
  over: x IN range(0, 1000000)
  steps:
    - step: inner
      operation: loop
      over: y IN range(0, 1000)
      collect: "text(x * y)"
  collect: inner.collected
- {step: result, operation: compute, value: made.collected}""",
    ),
    "a state that grows": (
        "array<string>",
        """- step: made
  operation: loop
  while: 'true'
  max: 1000000
  state:
    found: {type: "array<string>", value: "[]"}
  next: {found: "append(found, repeat('a', 10000))"}
- {step: result, operation: compute, value: made.found}""",
    ),
    "many steps": (
        "integer",
        "\n".join(f"- {{step: s{place}, operation: compute, value: \"repeat('a', 9999999)\"}}" for place in range(40))
        + "\n- {step: result, operation: compute, value: length(s39)}",
    ),
}

WAYS = [*EXPRESSIONS, *FLOWS]


def write_node(way: str) -> str:
    """Return the text of a node that grows."""
    if way in EXPRESSIONS:
        type_, expression = EXPRESSIONS[way]
        steps = f"- step: result\n  operation: compute\n  type: '{type_}'\n  value: >-\n    {expression}"
    else:
        type_, steps = FLOWS[way]
    lines = [
        "node_id: growing_v1",
        "type: function",
        "intent: Grow",
        "inputs:",
        "  n: integer",
        "outputs:",
        "  success:",
        f"    result: '{type_}'",
        "flow:",
        *(f"  {line}" for line in steps.splitlines()),
        "  - {operation: return, success: [result]}",
        "",
    ]
    return "\n".join(lines)
