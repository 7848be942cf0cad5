//! Nodes written as their listings, with the declarations that all tests share.

use serde_json::{Value as Json, json};
use vesper_ir::Node;
use vesper_opt::{Rule, Rules, listing, optimise};

use crate::document::document;
use crate::expression::{locals, parse};
use crate::flow::build;

pub(crate) const COLORS: [&str; 4] = ["red", "green", "blue", "white"];

/// Inputs of every node, by type.
const INPUTS: [(&str, &[&str]); 10] = [
    ("integer", &["x", "y", "z"]),
    ("decimal", &["d", "e"]),
    ("float", &["f", "g"]),
    ("string", &["s", "t"]),
    ("bytes", &["h"]),
    ("boolean", &["b", "c"]),
    ("color", &["k", "l"]),
    ("integers", &["xs", "ys"]),
    ("optional", &["o"]),
    ("point", &["p"]),
];

pub(crate) fn is_input(name: &str) -> bool {
    INPUTS.iter().any(|(_, names)| names.contains(&name)) || name == "m"
}

const CONSTANTS: [&str; 14] = [
    "ten", "rate", "origin", "long_64", "long_65", "items_64", "items_65", "texts", "primes", "many",
    "map_64", "map_65", "notes", "prices",
];

pub(crate) fn is_constant(name: &str) -> bool {
    CONSTANTS.contains(&name)
}

/// Returns the declaration of a constant.
fn constant(name: &str) -> Json {
    let long = |count: usize| "a".repeat(count);
    let entries = |count: usize| -> Vec<Json> {
        (0..count)
            .map(|number| json!([format!("k{number:02}"), number]))
            .collect()
    };
    let (ty, value) = match name {
        "ten" => (json!("integer"), json!(10)),
        "rate" => (json!("decimal"), json!("0.10")),
        "origin" => (point(), json!({"n": 3, "r": "1.5"})),
        "long_64" => (json!("string"), json!(long(64))),
        "long_65" => (json!("string"), json!(long(65))),
        "items_64" => (json!({"array": "integer"}), json!(vec![1; 64])),
        "items_65" => (json!({"array": "integer"}), json!(vec![1; 65])),
        "texts" => (json!({"array": "string"}), json!(["a", long(65)])),
        "primes" => (json!({"set": "integer"}), json!([2, 3, 5])),
        "many" => (json!({"set": "integer"}), json!((0..65).collect::<Vec<i64>>())),
        "map_64" => (json!({"map": ["string", "integer"]}), json!(entries(64))),
        "map_65" => (json!({"map": ["string", "integer"]}), json!(entries(65))),
        "notes" => (
            json!({"map": ["string", "string"]}),
            json!([["a", "a"], ["b", long(65)]]),
        ),
        "prices" => (json!({"map": ["string", "integer"]}), json!([["a", 1], ["b", 2]])),
        _ => panic!("no constant {name}"),
    };
    json!({"name": name, "type": ty, "value": value})
}

fn point() -> Json {
    json!({"record": [{"name": "n", "type": "integer"}, {"name": "r", "type": "decimal"}]})
}

fn type_of(word: &str) -> Json {
    match word {
        "color" => json!({"enum": COLORS}),
        "integers" => json!({"array": "integer"}),
        "optional" => json!({"optional": "integer"}),
        "point" => point(),
        other => json!(other),
    }
}

fn inputs() -> Vec<Json> {
    let named = INPUTS.iter().flat_map(|(ty, names)| {
        names
            .iter()
            .map(move |name| json!({"name": name, "type": type_of(ty)}))
    });
    let map = json!({"name": "m", "type": {"map": ["string", "integer"]}});
    named.chain([map]).collect()
}

/// Line of a node: its depth and its text.
type Line<'a> = (usize, &'a str);

/// Returns the semantics of a node. Lines before the body are `constraint`, `precondition`, `postcondition`,
/// `invariant` and `output NAME TYPE`; the output `result` is an integer by default.
fn semantics(text: &str) -> Json {
    let lines: Vec<Line> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| (line.len() - line.trim_start().len(), line.trim()))
        .collect();
    let base = lines.first().map_or(0, |(depth, _)| *depth);
    let constants = CONSTANTS.iter().filter(|name| text.contains(**name));
    let constants: Vec<Json> = constants.map(|name| constant(name)).collect();
    let mut node = json!({
        "type": "workflow", "inputs": inputs(), "constants": constants,
        "outputs": {"success": [], "error": []},
        "constraints": [], "preconditions": [], "postconditions": [], "invariants": [],
    });
    let mut body = Vec::new();
    for (depth, line) in lines {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let list = |phase: &str| format!("{phase}s");
        match word {
            "output" => {
                let (name, ty) = rest.split_once(' ').unwrap();
                let output = json!({"name": name, "type": type_of(ty)});
                node["outputs"]["success"].as_array_mut().unwrap().push(output);
            }
            "constraint" => {
                let (input, holds) = rest.split_once(": ").unwrap();
                let clause = json!({"input": input, "holds": parse(holds)});
                node[list(word)].as_array_mut().unwrap().push(clause);
            }
            "precondition" | "postcondition" | "invariant" => {
                let clause = json!({"holds": parse(rest)});
                node[list(word)].as_array_mut().unwrap().push(clause);
            }
            _ => body.push((depth - base, line)),
        }
    }
    if node["outputs"]["success"] == json!([]) {
        node["outputs"]["success"] = json!([{"name": "result", "type": "integer"}]);
    }
    if text.contains("raise ") || text.contains("error.") {
        node["outputs"]["error"] = json!([{"name": "error_code", "type": codes()}]);
    }
    let mut rest = body.as_slice();
    node["body"] = json!(block(&mut rest, 0).statements);
    assert!(rest.is_empty(), "left: {rest:?}");
    if text.contains(" = call") {
        node["calls"] = json!([called()]);
    }
    node
}

/// Type of `error_code`.
pub(crate) fn codes() -> Json {
    json!({"enum": ["closed", "late"]})
}

fn called() -> Json {
    json!({
        "node": "double_v1", "hash": "0".repeat(64), "success": [{"name": "twice", "type": "integer"}], "error": [],
        "inputs": [{"name": "x", "type": "integer", "optional": false}],
    })
}

/// Statements of a block, with the parts that belong to the statement around it.
#[derive(Default)]
struct Parts {
    statements: Vec<Json>,
    /// Value of an arm, and `where`, `while`, `collect`, `stop_when` of a loop.
    named: Vec<(&'static str, Json)>,
    next: Vec<Json>,
}

impl Parts {
    fn add_to(self, fields: &mut Json) {
        for (name, value) in self.named {
            fields[name] = value;
        }
    }
}

fn block(lines: &mut &[Line], depth: usize) -> Parts {
    let mut parts = Parts::default();
    while let Some((own, line)) = lines.first().copied() {
        if own < depth {
            break;
        }
        assert_eq!(own, depth, "{line}");
        let part = [
            ("= ", "value"),
            ("where ", "where"),
            ("while ", "while"),
            ("collect ", "collect"),
            ("stop when ", "stop_when"),
        ];
        let part = part
            .iter()
            .find_map(|(word, name)| Some((*name, line.strip_prefix(word)?)));
        if let Some((name, text)) = part {
            parts.named.push((name, parse(text)));
            *lines = &lines[1..];
        } else if let Some((local, value)) =
            line.strip_prefix("next ").and_then(|next| next.split_once(" = "))
        {
            let next = json!({"local": locals(local)[0], "value": parse(value)});
            parts.next.push(next);
            *lines = &lines[1..];
        } else if line.starts_with("when ") || line == "else" || line.starts_with("on ") {
            break;
        } else {
            parts.statements.push(statement(lines, depth));
        }
    }
    parts
}

fn statement(lines: &mut &[Line], depth: usize) -> Json {
    let (_, line) = lines[0];
    *lines = &lines[1..];
    let (kind, mut fields) = first_line(line);
    if kind == "branch" {
        let mut arms = Vec::new();
        while let Some(when) = lines.first().and_then(|(_, line)| line.strip_prefix("when ")) {
            *lines = &lines[1..];
            let parts = block(lines, depth + 2);
            let mut arm = json!({"when": parse(when), "body": parts.statements});
            Parts {
                statements: Vec::new(),
                ..parts
            }
            .add_to(&mut arm);
            arms.push(arm);
        }
        fields["arms"] = json!(arms);
        if lines.first() == Some(&(depth, "else")) {
            *lines = &lines[1..];
            let mut parts = block(lines, depth + 2);
            fields["else"] = json!(std::mem::take(&mut parts.statements));
            if let Some((_, value)) = parts.named.pop() {
                fields["otherwise"] = value;
            }
        }
    }
    if kind == "loop" {
        let mut parts = block(lines, depth + 2);
        fields["body"] = json!(std::mem::take(&mut parts.statements));
        fields["next"] = json!(std::mem::take(&mut parts.next));
        parts.add_to(&mut fields);
    }
    let mut handlers = Vec::new();
    while let Some((own, line)) = lines.first().copied()
        && own == depth
        && let Some(code) = line.strip_prefix("on ")
    {
        *lines = &lines[1..];
        let mut parts = block(lines, depth + 2);
        let mut handler = json!({"codes": [code], "body": std::mem::take(&mut parts.statements)});
        parts.add_to(&mut handler);
        handlers.push(handler);
    }
    if !handlers.is_empty() {
        fields["handlers"] = json!(handlers);
    }
    json!({kind: fields})
}

/// Parses the first line of a statement to its kind and fields.
fn first_line(line: &str) -> (&'static str, Json) {
    if let Some(values) = line.strip_prefix("return ") {
        let values = values.split("; ").map(named_value).collect::<Vec<_>>();
        return ("return", json!({"success": values}));
    }
    if let Some(code) = line.strip_prefix("raise ") {
        return (
            "raise",
            json!({"error": [{"name": "error_code", "value": parse(code)}]}),
        );
    }
    if let Some(holds) = line.strip_prefix("require ") {
        return ("require", json!({"holds": parse(holds)}));
    }
    let (name, rest) = line.split_once(" = ").unwrap_or_else(|| panic!("{line}"));
    if rest == "branch" {
        return ("branch", json!({"name": name}));
    }
    if let Some(text) = rest.strip_prefix("loop") {
        return ("loop", loop_fields(name, text));
    }
    if let Some(value) = rest.strip_prefix("call ") {
        let result = json!({"result": {"record": [{"name": "twice", "type": "integer"}]}});
        let inputs = [named_value(value)];
        return (
            "call",
            json!({"name": name, "node": "double_v1", "inputs": inputs, "result": result}),
        );
    }
    if let Some(parts) = rest.strip_prefix("request") {
        let mut fields = json!({
            "name": name, "effect": "custom", "class": "read", "fixed": {"name": "thing"},
            "result": {"result": "integer"},
        });
        if let Some((key, endpoint)) = parts.split_once("; ") {
            fields = json!({
                "name": name, "effect": "http_request", "class": "keyed", "fixed": {"method": "GET", "provider": "p"},
                "key": parse(key), "arguments": [{"name": "endpoint", "value": parse(endpoint)}],
                "result": {"result": "integer"},
            });
        }
        return ("request", fields);
    }
    ("step", json!({"name": name, "value": parse(rest)}))
}

/// Parses `$0 over E max N with $1 n: E; $2 m: E`; each part may be left out.
fn loop_fields(name: &str, text: &str) -> Json {
    let mut fields = json!({"name": name});
    let (head, state) = text.split_once(" with ").unwrap_or((text, ""));
    let (head, max) = head.split_once(" max ").unwrap_or((head, "1000"));
    fields["max"] = json!(max.parse::<i64>().unwrap());
    if let Some((items, over)) = head.split_once(" over ") {
        fields["locals"] = json!(locals(items));
        fields["over"] = parse(over);
    }
    let state = state.split("; ").filter(|each| !each.is_empty()).map(|each| {
        let (local, rest) = each.split_once(' ').unwrap();
        let mut variable = named_value(rest);
        variable["local"] = json!(locals(local)[0]);
        variable
    });
    fields["state"] = json!(state.collect::<Vec<_>>());
    fields
}

fn named_value(text: &str) -> Json {
    let (name, value) = text.split_once(": ").unwrap_or_else(|| panic!("{text}"));
    json!({"name": name, "value": parse(value)})
}

/// Returns the verified node of a text.
pub(crate) fn load(text: &str) -> Node {
    let bytes = document(&build(&semantics(text)));
    vesper_ir::load(&bytes).unwrap_or_else(|rejected| panic!("{rejected}\n{text}"))
}

/// Returns the listing of a node after these rules, without its first line and its margin.
pub(crate) fn optimised(rules: Rules, text: &str) -> String {
    let listing = listing(&optimise(&load(text), rules));
    listing.split_once('\n').unwrap().1.to_owned()
}

/// Returns the rules of a list.
pub(crate) fn rules(of: &[Rule]) -> Rules {
    of.iter().fold(Rules::NONE, |rules, rule| rules.with(*rule))
}

/// Checks the listing of a node after these rules.
#[track_caller]
pub(crate) fn check(of: &[Rule], text: &str, expected: &str) {
    let lines: Vec<&str> = expected.lines().filter(|line| !line.trim().is_empty()).collect();
    let margin = lines
        .first()
        .map_or(0, |line| line.len() - line.trim_start().len());
    let expected: Vec<&str> = lines.iter().map(|line| line[margin..].trim_end()).collect();
    let found = optimised(rules(of), text);
    let found: Vec<&str> = found.lines().map(str::trim_end).collect();
    assert_eq!(found, expected, "\n{}\n", found.join("\n"));
}

/// Checks what these rules make of an expression under preconditions.
#[track_caller]
pub(crate) fn check_under(of: &[Rule], preconditions: &[&str], expression: &str, expected: &str) {
    let clauses: Vec<String> = preconditions
        .iter()
        .map(|each| format!("precondition {each}\n"))
        .collect();
    let text = format!("{}step = {expression}\nreturn result: 0", clauses.concat());
    let found = optimised(rules(of), &text);
    let line = found.lines().find_map(|line| line.strip_prefix("step = "));
    assert_eq!(line, Some(expected), "{preconditions:?} {expression}");
}

/// Checks what these rules make of an expression.
#[track_caller]
pub(crate) fn check_expression(of: &[Rule], expression: &str, expected: &str) {
    check_under(of, &[], expression, expected);
}
