"""The table of habits: spellings that authors bring from other languages, and their translation.

Each row is data. `forms.py` translates expressions by WORDS, SIGNS and FORMS, `type_forms.py` types by TYPES; the
checker looks up FUNCTIONS, NAMES and FIELDS where it finds a name unknown.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """A form of another language and its translation, token by token.

    `$a` is a hole. The letter after its name gives its extent: `o` one operand, `m` factors, `s` a sum, `e` all between
    commas and brackets, `*` anything between brackets, also nothing. In the translation `$a!` is put in parentheses
    unless it is one operand.
    """

    source: str
    """The languages that have it, for the documentation."""
    pattern: str
    translation: str
    is_certain: bool = True
    """False where the types of the operands decide; the check then takes nothing for granted."""
    binds_right: bool = False
    is_whole: bool = False
    """True where the form is a whole expression."""
    shown: tuple[str, str] | None = None
    """The two spellings for a message, where the pattern itself is no good one."""
    is_cased: bool = False
    """True where the case of the first fixed element matters: `ROUND` is Excel's, `round` is Vesper's."""
    note: str = ""
    """What the translation changes, for the help."""


WORDS_AFTER_VALUE = frozenset(
    [
        "AND",
        "OR",
        "IN",
        "IS",
        "CONTAINS",
        "THEN",
        "ELSE",
        "SATISFIES",
        "FOR",
        "WHERE",
        "WITH",
        "AS",
        "NOT",
        "IF",
        "WHEN",
        "END",
        "BETWEEN",
    ]
)
"""Words that follow a value, where no name can be. They are upper-case."""
WORDS_BEFORE_VALUE = frozenset(
    [
        "NOT",
        "IF",
        "LET",
        "FORALL",
        "EXISTS",
        "THEN",
        "ELSE",
        "IN",
        "WHERE",
        "SATISFIES",
        "AND",
        "OR",
        "FOR",
        "CASE",
        "WHEN",
    ]
)
"""Words that a value follows."""

WORDS = {"every": "FORALL", "some": "EXISTS", "elif": "ELSE IF", "elsif": "ELSE IF", "elseif": "ELSE IF", "xor": "!="}
"""Other words for words of the language (FEEL, Python, Ruby)."""

SIGNS = {
    "&&": "AND", "||": "OR", "&": "AND", "|": "OR", "!": "NOT", "=": "==", "===": "==", "!==": "!=", "<>": "!=",
    "=<": "<=", "≤": "<=", "≥": ">=", "≠": "!=", "×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "¬": "NOT",
    "∧": "AND", "∨": "OR", "~": "NOT", "?:": "??",
}  # fmt: skip
"""Signs of JavaScript, C, SQL, Excel and of mathematics."""
TEXT_SIGNS = {"&": "+", "||": "+"}
"""Signs that join texts in Excel and SQL; read so beside a string."""

FORMS = (
    Form("Excel", "= $a:e", "$a", is_whole=True, shown=("=a", "a")),
    Form("C, SQL", "$a:e ;", "$a", is_whole=True, shown=("a;", "a")),
    Form("Python", "return $a:e", "$a", is_whole=True),
    Form("C", "+ $a:e", "$a", is_whole=True, shown=("+a", "a")),
    Form("JavaScript", "LET $x:o = $a:e ; $b:e", "LET $x = $a IN $b", shown=("let x = a; b", "LET x = a IN b")),
    Form("C", "$a:o ++", "$a + 1", is_certain=False, shown=("a++", "a + 1")),
    Form("C", "$a:o += $b:e", "$a + $b", is_certain=False, shown=("a += b", "a + b")),
    Form("C", "$a:o -= $b:e", "$a - $b", is_certain=False, shown=("a -= b", "a - b")),
    Form("English", "$a:s $p:c $b:s AND $q:c $c:s", "$a $p $b AND $a $q $c",
         shown=("a > b AND < c", "a > b AND a < c")),
    Form("Jinja, Mustache", "{ { $a:e } }", "$a", is_whole=True, shown=("{{ a }}", "a")),
    Form("JavaScript, shell", "$ { $a:e }", "$a", shown=("${a}", "a")),
    Form("JavaScript, shell", "$ $a:o", "$a", shown=("$a", "a")),
    Form("Python", "{ $a:e }", "$a", is_certain=False, is_whole=True, shown=("{a}", "a")),
    Form("Python", "FOR $x:o IN $xs:e IF $c:e", "FOR $x IN $xs WHERE $c",
         shown=("for x in xs if c", "FOR x IN xs WHERE c")),
    Form("Python", "FOR $k:o , $v:o IN $m:e IF $c:e", "FOR $k , $v IN $m WHERE $c",
         shown=("for k, v in m if c", "FOR k, v IN m WHERE c")),
    Form("SQL", "CASE WHEN $c:e THEN $a:e WHEN", "IF $c THEN $a ELSE CASE WHEN",
         shown=("CASE WHEN c THEN a … END", "IF c THEN a ELSE …")),
    Form("SQL", "CASE WHEN $c:e THEN $a:e ELSE $b:e END", "IF $c THEN $a ELSE $b"),
    Form("Python", "$a:e IF $c:e ELSE $b:e", "IF $c THEN $a ELSE $b", shown=("a if c else b", "IF c THEN a ELSE b")),
    Form("JavaScript, C", "$c:e ? $a:e : $b:e", "IF $c THEN $a ELSE $b", binds_right=True),
    Form("Excel", "IF ( $c:e , $a:e , $b:e )", "IF $c THEN $a ELSE $b", shown=("IF(c, a, b)", "IF c THEN a ELSE b")),
    Form("SQL", "$x:s NOT BETWEEN $a:s AND $b:s", "$x NOT IN [ $a .. $b ]",
         shown=("x NOT BETWEEN a AND b", "x NOT IN [a..b]")),
    Form("SQL", "$x:s BETWEEN $a:s AND $b:s", "$x IN [ $a .. $b ]", shown=("x BETWEEN a AND b", "x IN [a..b]")),
    Form("SQL", "IN ( $a:* )", "IN [ $a ]", shown=("IN (a, b)", "IN [a, b]")),
    Form("SQL, FEEL", "MIN ( $a:e , $b:* )", "min ( $a , $b )", shown=("MIN(a, b)", "min(a, b)")),
    Form("SQL, FEEL", "MAX ( $a:e , $b:* )", "max ( $a , $b )", shown=("MAX(a, b)", "max(a, b)")),
    Form("SQL", "COUNT ( * )", "length ( items )", is_certain=False, shown=("COUNT(*)", "length(items)")),
    Form("Python", "$a:o ** $b:o", "pow ( $a , $b )", binds_right=True, shown=("a ** b", "pow(a, b)")),
    Form("Excel, R", "$a:o ^ $b:o", "pow ( $a , $b )", shown=("a ^ b", "pow(a, b)")),
    Form("Python", "$a:m // $b:o", "div_floor ( $a , $b )", shown=("a // b", "div_floor(a, b)")),
    Form("Python, C", "$a:m % $b:o", "mod ( $a , $b )", shown=("a % b", "mod(a, b)")),
    Form("Basic", "$a:m mod $b:o", "mod ( $a , $b )", shown=("a mod b", "mod(a, b)")),
    Form("Basic", "$a:m div $b:o", "div_floor ( $a , $b )", shown=("a div b", "div_floor(a, b)")),
    Form("JavaScript", "$xs:o . map ( $x:o => $a:e )", "[ $a FOR $x IN $xs ]",
         shown=("xs.map(x => a)", "[a FOR x IN xs]")),
    Form("JavaScript", "$xs:o . filter ( $x:o => $a:e )", "[ $x FOR $x IN $xs WHERE $a ]",
         shown=("xs.filter(x => a)", "[x FOR x IN xs WHERE a]")),
    Form("JavaScript", "$xs:o . some ( $x:o => $a:e )", "EXISTS $x IN $xs SATISFIES $a",
         shown=("xs.some(x => a)", "EXISTS x IN xs SATISFIES a")),
    Form("JavaScript", "$xs:o . every ( $x:o => $a:e )", "FORALL $x IN $xs SATISFIES $a",
         shown=("xs.every(x => a)", "FORALL x IN xs SATISFIES a")),
    Form("C#", "$xs:o . any ( $x:o => $a:e )", "EXISTS $x IN $xs SATISFIES $a",
         shown=("xs.any(x => a)", "EXISTS x IN xs SATISFIES a")),
    Form("C#", "$xs:o . all ( $x:o => $a:e )", "FORALL $x IN $xs SATISFIES $a",
         shown=("xs.all(x => a)", "FORALL x IN xs SATISFIES a")),
    Form("Python", "$m:o . get ( $k:e , $d:e )", "get ( $m , $k ) ?? $d!", shown=("m.get(k, d)", "get(m, k) ?? d")),
    Form("JavaScript", "$xs:o [ $i:e ] ? . $f:o ?? $d:e", "IF length ( $xs ) > $i THEN $xs [ $i ] . $f ELSE $d",
         shown=("xs[i]?.f ?? d", "IF length(xs) > i THEN xs[i].f ELSE d")),
    Form("JavaScript", "$xs:o [ $i:e ] ? . $f:o", "IF length ( $xs ) > $i THEN $xs [ $i ] . $f ELSE null",
         is_certain=False, shown=("xs[i]?.f", "IF length(xs) > i THEN xs[i].f ELSE null")),
    Form("JavaScript", "$a:o ? . $f:o ?? $d:e", "IF $a IS NOT NULL THEN $a . $f ELSE $d",
         shown=("a?.f ?? d", "IF a IS NOT NULL THEN a.f ELSE d")),
    Form("JavaScript", "$a:o ? . $f:o", "IF $a IS NOT NULL THEN $a . $f ELSE null", is_certain=False,
         shown=("a?.f", "IF a IS NOT NULL THEN a.f ELSE null")),
    Form("Excel", "ROUND ( $a:e , $n:e )", "round ( $a , $n , half_up )", is_cased=True,
         shown=("ROUND(a, n)", "round(a, n, half_up)"), note="Excel rounds a tie away from zero, which is `half_up`"),
    Form("Ruby, Perl", "$a:o =~ $b:o", "matches ( $a , $b )", shown=("a =~ b", "matches(a, b)")),
    Form("Ruby, Perl", "$a:o ~ $b:o", "matches ( $a , $b )", is_certain=False, shown=("a ~ b", "matches(a, b)")),
    Form("CEL", "$a:o matches $b:o", "matches ( $a , $b )", shown=("a matches b", "matches(a, b)")),
    Form("English", "$a:o starts WITH $b:o", "starts_with ( $a , $b )", shown=("a starts with b", "starts_with(a, b)")),
    Form("English", "$a:o ends WITH $b:o", "ends_with ( $a , $b )", shown=("a ends with b", "ends_with(a, b)")),
    Form("CEL", "$xs:o . exists ( $x:o , $a:e )", "EXISTS $x IN $xs SATISFIES $a",
         shown=("xs.exists(x, a)", "EXISTS x IN xs SATISFIES a")),
    Form("CEL", "$xs:o . all ( $x:o , $a:e )", "FORALL $x IN $xs SATISFIES $a",
         shown=("xs.all(x, a)", "FORALL x IN xs SATISFIES a")),
    Form("Python", "$a:o [ $i:e : $j:e ]", "slice ( $a , $i , $j )", shown=("a[i:j]", "slice(a, i, j)")),
    Form("Python", "$a:o [ : $j:e ]", "slice ( $a , 0 , $j )", shown=("a[:j]", "slice(a, 0, j)")),
    Form("FEEL", "string length ( $a:e )", "length ( $a )"),
    Form("FEEL", "upper case ( $a:e )", "upper ( $a )"),
    Form("FEEL", "lower case ( $a:e )", "lower ( $a )"),
    Form("FEEL", "starts with ( $a:* )", "starts_with ( $a )"),
    Form("FEEL", "ends with ( $a:* )", "ends_with ( $a )"),
    Form("FEEL", "list contains ( $a:* )", "contains ( $a )"),
    Form("FEEL", "index of ( $a:* )", "index_of ( $a )"),
    Form("FEEL", "distinct values ( $a:e )", "distinct ( $a )"),
    Form("FEEL", "date and time ( $a:e )", "timestamp ( $a )"),
    Form("SQL", "COALESCE ( $a:e , $b:e )", "$a! ?? $b!", shown=("COALESCE(a, b)", "a ?? b")),
    Form("SQL", "IFNULL ( $a:e , $b:e )", "$a! ?? $b!", shown=("IFNULL(a, b)", "a ?? b")),
    Form("SQL", "NVL ( $a:e , $b:e )", "$a! ?? $b!", shown=("NVL(a, b)", "a ?? b")),
    Form("SQL", "ISNULL ( $a:e , $b:e )", "$a! ?? $b!", shown=("ISNULL(a, b)", "a ?? b")),
    Form("SQL, Excel", "ISNULL ( $a:e )", "$a! IS NULL", shown=("ISNULL(a)", "a IS NULL")),
    Form("SQL", "EXISTS ( $a:e )", "$a! IS NOT NULL", is_certain=False, shown=("exists(a)", "a IS NOT NULL")),
    Form("Excel, SQL", "IIF ( $c:e , $a:e , $b:e )", "IF $c THEN $a ELSE $b",
         shown=("IIF(c, a, b)", "IF c THEN a ELSE b")),
    Form("Excel", "ISBLANK ( $a:e )", "$a! IS NULL", shown=("ISBLANK(a)", "a IS NULL")),
    Form("Excel", "AND ( $a:e , $b:e )", "$a! AND $b!", shown=("AND(a, b)", "a AND b")),
    Form("Excel", "OR ( $a:e , $b:e )", "$a! OR $b!", shown=("OR(a, b)", "a OR b")),
    Form("Python", "any ( $a:e FOR $x:o IN $xs:e )", "EXISTS $x IN $xs SATISFIES $a",
         shown=("any(a for x in xs)", "EXISTS x IN xs SATISFIES a")),
    Form("Python", "all ( $a:e FOR $x:o IN $xs:e )", "FORALL $x IN $xs SATISFIES $a",
         shown=("all(a for x in xs)", "FORALL x IN xs SATISFIES a")),
    Form("Excel", "CONCATENATE ( $a:e , $b:e )", "$a! + $b!", shown=("CONCATENATE(a, b)", "a + b")),
    Form("SQL, Excel", "CONCAT ( $a:e , $b:e )", "$a! + $b!", shown=("CONCAT(a, b)", "a + b")),
    *(Form("SQL", f"DATEADD ( {unit} , $n:e , $x:e )", f"add_{unit}s ( $x , $n )",
           shown=(f"DATEADD({unit}, n, x)", f"add_{unit}s(x, n)")) for unit in ("day", "month", "year")),
    *(Form("SQL", f"DATEADD ( '{unit}' , $n:e , $x:e )", f"add_{unit}s ( $x , $n )",
           shown=(f"DATEADD('{unit}', n, x)", f"add_{unit}s(x, n)")) for unit in ("day", "month", "year")),
    Form("SQL", "DATEADD ( $x:e , $n:e )", "add_days ( $x , $n )", shown=("DATEADD(x, n)", "add_days(x, n)")),
    Form("Excel, SQL", "LEFT ( $a:e , $n:e )", "slice ( $a , 0 , $n )", shown=("LEFT(s, n)", "slice(s, 0, n)")),
)  # fmt: skip
"""Forms, in the order in which they are tried."""

FUNCTIONS: dict[str, tuple[str, ...]] = {
    "not": ("NOT",), "len": ("length",), "size": ("length",), "strlen": ("length",), "char_length": ("length",),
    "count": ("length",), "string_length": ("length",), "cardinality": ("length",),
    "str": ("text",), "string": ("text",), "tostring": ("text",), "to_string": ("text",), "to_text": ("text",),
    "to_char": ("text",), "repr": ("text",),
    "int": ("parse_integer", "to_integer"), "integer": ("parse_integer", "to_integer"),
    "parseint": ("parse_integer", "to_integer"), "to_int": ("parse_integer", "to_integer"),
    "to_number": ("parse_decimal", "to_decimal"), "decimal": ("parse_decimal", "to_decimal"),
    "number": ("parse_decimal", "to_decimal"), "float": ("parse_float", "to_float"),
    "parsefloat": ("parse_float", "to_float"), "double": ("parse_float", "to_float"), "bool": ("parse_boolean",),
    "touppercase": ("upper",), "uppercase": ("upper",), "upper_case": ("upper",), "ucase": ("upper",),
    "tolowercase": ("lower",), "lowercase": ("lower",), "lower_case": ("lower",), "lcase": ("lower",),
    "strip": ("trim",), "lstrip": ("trim_start",), "rstrip": ("trim_end",), "ltrim": ("trim_start",),
    "rtrim": ("trim_end",), "trimstart": ("trim_start",), "trimend": ("trim_end",), "padstart": ("pad_start",),
    "lpad": ("pad_start",), "rjust": ("pad_start",), "zfill": ("pad_start",), "padend": ("pad_end",),
    "rpad": ("pad_end",), "ljust": ("pad_end",), "startswith": ("starts_with",), "endswith": ("ends_with",),
    "includes": ("contains",), "indexof": ("index_of",), "instr": ("index_of",), "charindex": ("index_of",),
    "substr": ("slice",), "substring": ("slice",), "mid": ("slice",), "replaceall": ("replace",), "sub": ("replace",),
    "substitute": ("replace",), "regex": ("matches",),
    "match": ("matches",), "regex_match": ("matches",), "regexp_like": ("matches",),
    "ceiling": ("ceil",), "truncate": ("trunc",), "power": ("pow",), "modulo": ("mod",), "log": ("ln",),
    "average": ("avg",), "mean": ("avg",), "stdev": ("stddev",), "unique": ("distinct",), "uniq": ("distinct",),
    "distinct_values": ("distinct",), "sorted": ("sort",), "order": ("sort",), "reversed": ("reverse",),
    "list": ("to_array",), "array": ("to_array",), "set": ("to_set",), "head": ("first",), "tail": ("drop",),
    "push": ("append",), "add": ("append",), "limit": ("take",), "skip": ("drop",), "flatmap": ("flatten",),
    "getkeys": ("keys",), "items": ("entries",), "strptime": ("parse_date", "parse_timestamp"),
    "to_datetime": ("parse_timestamp",), "datetime": ("parse_timestamp",), "strftime": ("format_date",),
    "date_add": ("add_days",), "datediff": ("days_between",), "date_diff": ("days_between",),
    "dayofweek": ("weekday",), "day_of_week": ("weekday",), "eomonth": ("end_of_month",), "edate": ("add_months",),
    "json": ("parse_json",),
    "loads": ("parse_json",), "dumps": ("to_json",), "sequence": ("range",), "seq": ("range",),
    "uppercased": ("upper",), "absolute": ("abs",), "sgn": ("sign",), "isnan": ("is_nan",), "isdigit": ("is_digits",),
    "isnumeric": ("is_digits",), "rounded": ("round",), "fixed": ("round",), "tofixed": ("round",),
}  # fmt: skip
"""Functions and methods of Python, JavaScript, SQL, Excel, FEEL and CEL in lower case, and ours. Of several ones the
types decide."""

FUNCTION_NOTES = {
    "today": "a function node has no clock: take the day as an input of type `date`; elsewhere write `to_date(now())`",
    "format": 'write a step with `operation: string_template` and `template: "… {name} …"`',
    "print": "a node has no output but its `outputs`; every run is in its trace",
    "switch": "write a step with `operation: match`, or `IF c THEN a ELSE IF d THEN b ELSE e`",
    "filter": "write `[x FOR x IN items WHERE x > 0]`",
    "map": "write `[x * 2 FOR x IN items]`",
    "cast": "convert with `to_integer(…)`, `to_decimal(…)`, `parse_integer(…)` or `text(…)`; CAST reads a json",
    "type": "types are known when a node is checked; the kind of a json is `kind(…)`",
    "isinstance": "types are known when a node is checked; the kind of a json is `kind(…)`",
    "random": "write a step with `operation: random`",
    "uuid": "write a step with `operation: uuid`",
    "uuid4": "write a step with `operation: uuid`",
    "vlookup": "write `prices[sku]` on a `map`, or a step with `operation: decision_table`",
    "iferror": "write `on_error` in the step that can fail",
    "quantize": "write `round(x, 2, half_up)`: the number of places, then the mode, `half_even` by default",
    "sumif": "write `SUM(x.amount FOR x IN items WHERE x.kind == 'a')`",
    "countif": "write `COUNT(x FOR x IN items WHERE x > 0)`",
}
"""Functions without one of ours, and what to write."""

MODULES = frozenset(["Math", "math", "str", "String", "string", "Number", "np", "datetime", "decimal", "statistics"])
"""Modules and classes before a function: `Math.round(x)`."""

NAMES = {
    "inputs": "input", "outputs": "output",
    "None": "null", "nil": "null", "undefined": "null", "Null": "null", "none": "null", "True": "true", "TRUE": "true",
    "yes": "true", "Yes": "true", "False": "false", "FALSE": "false", "no": "false", "No": "false",
}  # fmt: skip
"""Words for null, true and false."""

TYPES = {
    "int": "integer", "Integer": "integer", "long": "integer", "bigint": "integer", "int64": "integer",
    "INT": "integer", "i64": "integer", "number": "decimal", "Number": "decimal", "numeric": "decimal",
    "Decimal": "decimal", "money": "decimal", "currency": "decimal", "str": "string", "String": "string",
    "text": "string", "Text": "string", "varchar": "string", "char": "string", "uuid": "string",
    "bool": "boolean", "Boolean": "boolean",
    "double": "float",
    "Float": "float", "real": "float", "datetime": "timestamp", "DateTime": "timestamp", "Timestamp": "timestamp",
    "Date": "date", "time": "time_of_day", "Time": "time_of_day", "timedelta": "duration", "interval": "duration",
    "blob": "bytes", "binary": "bytes", "list": "array", "List": "array", "Array": "array", "Sequence": "array",
    "vector": "array", "dict": "map", "Dict": "map", "Map": "map", "Record": "map", "hash": "map", "Set": "set",
    "frozenset": "set", "Optional": "optional", "option": "optional", "Option": "optional", "nullable": "optional",
    "maybe": "optional", "Enum": "enum", "Literal": "enum", "any": "json", "Any": "json", "object": "json",
    "Object": "json", "JSON": "json",
}  # fmt: skip
"""Names of types."""

FIELDS: dict[str, dict[str, str]] = {
    "a node": {
        "id": "node_id", "name": "node_id", "node": "node_id", "kind": "type", "node_type": "type",
        "description": "intent", "purpose": "intent", "doc": "intent", "summary": "intent", "title": "intent",
        "steps": "flow", "step": "flow", "workflow": "flow", "body": "flow", "logic": "flow",
        "input": "inputs", "params": "inputs", "arguments": "inputs", "args": "inputs", "output": "outputs",
        "returns": "outputs", "result": "outputs", "results": "outputs", "consts": "constants",
        "variables": "constants", "tests": "testing", "test": "testing",
        "imports": "use", "import": "use", "definitions": "types", "schemas": "types",
    },
    "a step": {
        "name": "step", "id": "step", "type": "operation", "op": "operation", "action": "operation",
        "kind": "operation",
    },
    "a conditional": {"if": "condition", "test": "condition", "otherwise": "else", "default": "else"},
    "an API call": {"path": "endpoint", "route": "endpoint", "http_method": "method", "verb": "method", "json": "body",
                    "data": "body", "payload": "body", "params": "query", "response": "expect", "api": "provider",
                    "service": "provider", "client": "provider"},
    "a database query": {"sql": "query", "select": "query", "params": "bind", "args": "bind", "values": "bind"},
    "a return": {"value": "success", "result": "success", "outputs": "success", "output": "success"},
    "the last row": {"else": "otherwise", "default": "otherwise"},
    "a row": {"if": "when", "condition": "when", "case": "when", "else": "otherwise", "default": "otherwise",
              "result": "then", "value": "then", "output": "then"},
    "contracts": {"pre": "preconditions", "requires": "preconditions", "require": "preconditions",
                  "post": "postconditions", "ensures": "postconditions", "ensure": "postconditions"},
    "a test case": {"input": "inputs", "given": "inputs", "expected": "expect", "output": "expect", "outputs": "expect",
                    "then": "expect", "description": "name", "title": "name"},
    "security": {"capabilities": "capabilities_required", "requires": "capabilities_required",
                 "permissions": "capabilities_required", "required": "capabilities_required"},
    "a function": {"parameters": "params", "inputs": "params", "args": "params", "arguments": "params",
                   "return": "returns", "type": "returns", "output": "returns", "body": "value", "expression": "value"},
}  # fmt: skip
"""Fields by the mapping they are in."""

FIELD_NOTES = {
    "preconditions": "put it below `contracts:`",
    "postconditions": "put it below `contracts:`",
    "invariants": "put it below `contracts:`",
    "success": "put it below `outputs:`",
    "test_cases": "put it below `testing:`",
    "capabilities": "write `security:`, and below it `capabilities_required:` with the list",
    "capabilities_required": "put it below `security:`",
    "permissions": "write `security:`, and below it `capabilities_required:` with the list",
    "retry": "put it below `policies:`",
    "timeout": "put it below `policies:`",
    "author": "put it below `metadata:`",
    "tags": "put it below `metadata:`",
    "version": "the version is a part of the id: `node_id: name_v1`",
    "rules": "write a step with `operation: decision_table` below `flow:`",
}
"""Fields of a node that have another place."""

MISSING_FIELDS = {
    ("a node", "node_id"): "begin with `node_id: name_v1`",
    ("a node", "type"): "write `type: function` for a node that only computes",
    ("a node", "intent"): "write `intent: …`, one sentence about what the node decides",
    ("a node", "outputs"): "write `outputs:`, below it `success:`, and below that `name: type`, one on each line",
    ("a node", "flow"): "write `flow:` and below it the steps; the last one is `- operation: return`",
    ("a return", "success"): "write `success: [name]` with the names of the outputs",
    ("a test case", "inputs"): "write `inputs: {name: value}`; for a node without inputs `inputs: {}`",
    ("a test case", "expect"): "write `expect: {name: value}` with the outputs",
    ("a constant", "type"): "write `{type: decimal, value: 0.05}`",
    ("a constant", "value"): "write `{type: decimal, value: 0.05}`",
}
"""What to write for a field that is missing."""

OPERATIONS = {
    "calculate": "compute", "assign": "compute", "set": "compute", "let": "compute", "expression": "compute",
    "eval": "compute", "if": "conditional", "branch": "conditional", "condition": "conditional", "switch": "match",
    "case": "match", "for": "loop", "foreach": "loop", "for_each": "loop", "while": "loop", "map": "data_transform",
    "filter": "data_transform", "transform": "data_transform", "output": "return", "end": "return", "result": "return",
    "error": "raise", "throw": "raise", "fail": "raise", "assert": "validation", "check": "validation",
    "validate": "validation", "table": "decision_table", "decision": "decision_table", "template": "string_template",
    "format": "string_template", "call": "call_node", "invoke": "call_node", "http": "external_api_call",
    "http_request": "external_api_call", "request": "external_api_call", "api_call": "external_api_call",
    "external_api": "external_api_call", "fetch": "external_api_call", "query": "database_query",
    "sql": "database_query", "select": "database_query", "insert": "database_write", "update": "database_update",
    "publish": "event_publish", "emit": "event_publish", "now": "clock",
    "delay": "sleep", "pause": "sleep", "timer": "sleep", "wait": "sleep", "wait_for_signal": "wait_for",
    "wait_for_event": "wait_for", "signal": "wait_for", "approval": "interrupt", "human_input": "interrupt",
    "llm": "ask_model", "llm_call": "ask_model", "model_call": "ask_model", "prompt": "ask_model", "chat": "ask_model",
    "completion": "ask_model",
}  # fmt: skip
"""Operations of steps."""


def respelt_function(name: str, known: frozenset[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Return Vesper's functions for a foreign name. The table has most; others differ only in case and underscores."""
    lower = name.lower()
    if name != lower and lower in known:
        return (lower,)
    found = FUNCTIONS.get(lower) or FUNCTIONS.get(lower.replace("_", ""), ())
    snake = "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")
    return found or ((snake,) if snake != name and snake in known else ())
