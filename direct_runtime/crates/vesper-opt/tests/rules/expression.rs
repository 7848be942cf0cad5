//! Parser of expressions in the spelling of listings, with the types of operations in angle brackets.

use serde_json::{Value as Json, json};

use crate::node::{COLORS, codes, is_constant, is_input};

/// Parses an expression to a tree for `flow::build`.
pub(crate) fn parse(text: &str) -> Json {
    let mut parser = Parser { rest: text };
    let tree = parser.expression();
    assert!(
        parser.rest.trim().is_empty(),
        "{:?} is left of {text:?}",
        parser.rest
    );
    tree
}

/// Parses the numbers of locals, such as `$0 $1`.
pub(crate) fn locals(text: &str) -> Vec<u32> {
    let numbers = text.split(['$', ',', ' ']).filter(|part| !part.is_empty());
    numbers.map(|number| number.parse().unwrap()).collect()
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn takes(&mut self, token: &str) -> bool {
        let Some(rest) = self.rest.trim_start().strip_prefix(token) else {
            return false;
        };
        let is_word = token.ends_with(char::is_alphabetic);
        if is_word && rest.starts_with(|next: char| next.is_alphanumeric() || next == '_') {
            return false;
        }
        self.rest = rest;
        true
    }

    fn expect(&mut self, token: &str) {
        assert!(self.takes(token), "expected {token:?} at {:?}", self.rest);
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let text = self.rest.trim_start();
        let end = text.find(|each| !is_part(each)).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        word
    }

    fn name(&mut self) -> &'a str {
        self.word(|each| each.is_alphanumeric() || each == '_')
    }

    fn local(&mut self) -> u32 {
        self.expect("$");
        self.word(char::is_numeric).parse().unwrap()
    }

    fn listed<T>(&mut self, end: &str, part: impl Fn(&mut Self) -> T) -> Vec<T> {
        let mut found = Vec::new();
        while !self.takes(end) {
            found.push(part(self));
            self.takes(",");
        }
        found
    }

    fn expression(&mut self) -> Json {
        let mut tree = self.primary();
        while self.takes(".") {
            tree = json!({"field": {"name": self.name(), "of": tree}});
        }
        tree
    }

    fn primary(&mut self) -> Json {
        if self.takes("if") {
            let condition = self.expression();
            self.expect("then");
            let then = self.expression();
            self.expect("else");
            return json!({"if": {"condition": condition, "then": then, "else": self.expression()}});
        }
        if self.takes("(") {
            let tree = self.parenthesized();
            self.expect(")");
            return tree;
        }
        if self.takes("[") {
            return json!({"array": {"items": self.listed("]", Self::expression), "of": "integer"}});
        }
        if self.takes("{") {
            let fields = self.listed("}", |own| {
                let name = own.name();
                own.expect(":");
                json!({"name": name, "value": own.expression()})
            });
            return json!({"record": {"fields": fields}});
        }
        match self.rest.trim_start().chars().next().unwrap() {
            '$' => json!({"local": self.local()}),
            '"' => {
                self.expect("\"");
                let text = self.word(|each| each != '"');
                self.expect("\"");
                literal("string", json!(text))
            }
            first if first == '-' || first.is_numeric() => self.number(),
            _ => self.reference(),
        }
    }

    fn number(&mut self) -> Json {
        let text = self.word(|each| each == '-' || each == '.' || each.is_numeric());
        if self.takes("d") {
            literal("decimal", json!(text))
        } else if text.contains('.') {
            literal("float", json!(text))
        } else {
            literal("integer", json!(text.parse::<i64>().unwrap()))
        }
    }

    fn reference(&mut self) -> Json {
        let name = self.name();
        match name {
            "true" | "false" => return literal("boolean", json!(name == "true")),
            "null" => return json!({"literal": {"type": {"optional": "integer"}, "value": null}}),
            "now" => return json!({"now": "timestamp"}),
            "output" | "error" => {
                self.expect(".");
                return json!({name: self.name()});
            }
            _ if COLORS.contains(&name) => {
                return json!({"literal": {"type": {"enum": COLORS}, "value": name}});
            }
            "closed" | "late" => return json!({"literal": {"type": codes(), "value": name}}),
            _ if is_input(name) => return json!({"input": name}),
            _ if is_constant(name) => return json!({"constant": name}),
            _ => {}
        }
        let is_operation = self.rest.starts_with('.')
            && self.rest[1..].starts_with(char::is_alphabetic)
            && self.rest.find(['(', '<']).is_some_and(|end| {
                self.rest[1..end]
                    .chars()
                    .all(|each| each.is_alphanumeric() || each == '_')
            });
        if !is_operation {
            return json!({"step": name});
        }
        self.expect(".");
        let op = format!("{name}.{}", self.name());
        let of = self.takes("<").then(|| self.listed(">", Self::ty));
        self.expect("(");
        let mut fields = json!({"op": op, "args": self.listed(")", Self::expression)});
        if let Some(of) = of {
            fields["of"] = json!(of);
        }
        json!({"call": fields})
    }

    fn ty(&mut self) -> Json {
        match self.name() {
            "color" => json!({"enum": COLORS}),
            "code" => codes(),
            name => json!(name),
        }
    }

    fn parenthesized(&mut self) -> Json {
        if self.takes("let") {
            let local = self.local();
            self.expect("=");
            let value = self.expression();
            self.expect("in");
            return json!({"let": {"local": local, "value": value, "body": self.expression()}});
        }
        let start = self.rest;
        let kind = self.name();
        if self.rest.trim_start().starts_with('$') {
            return self.comprehension(kind);
        }
        self.rest = start;
        let left = self.expression();
        let joint = if self.takes("and") {
            "and"
        } else {
            self.expect("or");
            "or"
        };
        json!({joint: [left, self.expression()]})
    }

    fn comprehension(&mut self, kind: &str) -> Json {
        let mut fields = json!({"kind": kind, "locals": []});
        let mut numbers = Vec::new();
        while !self.takes("in") {
            numbers.push(self.local());
        }
        fields["locals"] = json!(numbers);
        fields["over"] = self.expression();
        for word in ["with", "where", "key"] {
            if self.takes(word) {
                fields[word] = self.expression();
            }
        }
        self.expect(":");
        fields["value"] = self.expression();
        json!({"for": fields})
    }
}

fn literal(ty: &str, value: Json) -> Json {
    json!({"literal": {"type": ty, "value": value}})
}
