//! Damage to the shape: fields removed, added and renamed, values of other kinds, bytes lost and added.

use serde_json::{Value as Json, json};

use crate::base::{base, rejection};

/// Returns the paths of all values of a document, parents first.
fn paths(value: &Json, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    match value {
        Json::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                paths(item, &format!("{path}/{place}"), found);
            }
        }
        Json::Object(fields) => {
            for (name, field) in fields {
                paths(field, &format!("{path}/{name}"), found);
            }
        }
        _ => {}
    }
}

fn all_paths() -> Vec<String> {
    let mut found = Vec::new();
    paths(&base(), "", &mut found);
    // The spans are alike.
    found.retain(|path| !path.starts_with("/source/spans/") || path.starts_with("/source/spans/0"));
    found
}

/// Applies a damage to every value and returns the paths where the damaged document loads.
fn accepted(damage: impl Fn(&mut Json) -> bool) -> Vec<String> {
    let whole = base();
    let mut found = Vec::new();
    for path in all_paths() {
        let mut changed = whole.clone();
        if damage(changed.pointer_mut(&path).unwrap()) && changed != whole && rejection(&changed).is_none() {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_document_itself_loads() {
    assert_eq!(rejection(&base()), None);
}

/// Fields that a document may leave out where nothing else refers to them.
fn is_optional(path: &str) -> bool {
    let optional = [
        "/audit_fields",
        "/default",
        "/declassified",
        "/sensitive",
        "/policy/",
        "/taint",
        "/source/clauses/",
        "/source/steps/",
        "/fields",
        "/from",
        "/taint/outputs/",
        "/taint/errors/",
        "/taint/steps/",
    ];
    optional.iter().any(|part| path.contains(part))
}

#[test]
fn every_other_field_is_required() {
    let whole = base();
    for path in all_paths() {
        let Some((parent, name)) = path.rsplit_once('/') else {
            continue;
        };
        let mut changed = whole.clone();
        let Json::Object(fields) = changed.pointer_mut(parent).unwrap() else {
            continue;
        };
        fields.remove(name);
        match rejection(&changed) {
            None => assert!(is_optional(&path), "{path} may be left out"),
            Some(message) => assert!(!message.is_empty()),
        }
    }
}

#[test]
fn no_object_has_a_field_more() {
    // Objects with keys of their own choice.
    let is_open = |path: &str| {
        let open = ["/source/clauses", "/source/steps", "/declassified"];
        open.iter().any(|end| path.ends_with(end))
    };
    for name in ["A", "zz"] {
        let found = accepted(|value| match value {
            Json::Object(fields) => {
                fields.insert(name.to_owned(), json!("1"));
                true
            }
            _ => false,
        });
        let unexpected: Vec<_> = found.iter().filter(|path| !is_open(path)).collect();
        assert!(unexpected.is_empty(), "{unexpected:?}");
    }
}

#[test]
fn no_field_has_another_name() {
    let whole = base();
    for path in all_paths() {
        let Some((parent, name)) = path.rsplit_once('/') else {
            continue;
        };
        let mut changed = whole.clone();
        let Json::Object(fields) = changed.pointer_mut(parent).unwrap() else {
            continue;
        };
        let Some(value) = fields.remove(name) else {
            continue;
        };
        fields.insert(format!("{name}x"), value);
        let is_open = parent == "/source/steps";
        assert!(is_open || rejection(&changed).is_some(), "{path}");
    }
}

#[test]
fn values_of_other_kinds_are_refused() {
    let kinds = [
        json!(null),
        json!(true),
        json!([]),
        json!({}),
        json!(7),
        json!("zz"),
    ];
    let whole = base();
    for (place, path) in all_paths().iter().enumerate() {
        // Two other kinds for each value; neighbours have different ones.
        for other in [&kinds[place % 6], &kinds[(place + 2) % 6]] {
            let mut changed = whole.clone();
            let value = changed.pointer_mut(path).unwrap();
            if std::mem::discriminant(value) == std::mem::discriminant(other) {
                continue;
            }
            *value = other.clone();
            // A value that may be null or not, and a completion that is sensitive as a whole.
            let is_optional = match other {
                Json::Null => path.ends_with("/note") || path.contains("/constants/2/value/"),
                Json::Bool(true) => path.ends_with("/request/sensitive"),
                Json::Number(_) => path == "/semantics/constants/2/value/1",
                Json::String(_) => path.ends_with("/literal/value"),
                _ => false,
            };
            assert!(is_optional || rejection(&changed).is_some(), "{path}: {other}");
        }
    }
}

/// Numbers that may be another one: positions, values, and numbers that only the Host reads.
fn is_free_number(path: &str) -> bool {
    let free = [
        "/source/spans/",
        "/source/steps/",
        "/default",
        "/value",
        "/policy/",
        "/max",
        "/taint/values",
        "/taint/failures",
    ];
    free.iter().any(|part| path.contains(part)) && !path.contains("/semantics/body/")
        || path.contains("/literal/value")
        || path.ends_with("/max")
        || path.contains("/policy/")
        // Another local in scope, of the same type.
        || path.contains("/expressions/") && path.ends_with("/local")
}

#[test]
fn an_index_is_not_the_one_before_or_after() {
    for by in [-1, 1] {
        let found = accepted(|value| match value.as_i64() {
            Some(number) => {
                *value = json!(number + by);
                true
            }
            None => false,
        });
        let unexpected: Vec<_> = found.iter().filter(|path| !is_free_number(path)).collect();
        assert!(unexpected.is_empty(), "{by}: {unexpected:?}");
    }
}

#[test]
fn lists_have_their_items_once_and_in_order() {
    // Lists whose items stand for themselves.
    let is_free = |path: &str| {
        let free = [
            "/capabilities/denied",
            "/capabilities/required",
            "/semantics/sensitive",
            "/default",
            "/value",
            "/transitions",
            "/retry_on",
            "/spans",
            "/source/steps",
            "/request/sensitive",
        ];
        free.iter().any(|part| path.contains(part)) || path.ends_with("/locals") && path.contains("/source")
    };
    let twice = accepted(|value| match value {
        Json::Array(items) if !items.is_empty() => {
            let last = items[items.len() - 1].clone();
            items.push(last);
            true
        }
        _ => false,
    });
    let unexpected: Vec<_> = twice.iter().filter(|path| !is_free(path)).collect();
    assert!(unexpected.is_empty(), "twice: {unexpected:?}");
    let shorter = accepted(|value| match value {
        Json::Array(items) if !items.is_empty() => items.pop().is_some(),
        _ => false,
    });
    let may_lack = |path: &str| {
        is_free(path)
            || [
                "/states",
                "/enum",
                "/codes",
                "/taint",
                "/inputs",
                "/constants",
                "/machines",
            ]
            .iter()
            .any(|part| path.contains(part))
            || path.ends_with("/sensitive")
    };
    let unexpected: Vec<_> = shorter.iter().filter(|path| !may_lack(path)).collect();
    assert!(unexpected.is_empty(), "shorter: {unexpected:?}");
}

#[test]
fn lost_and_added_bytes_are_refused() {
    let bytes = base().to_string().into_bytes();
    for end in (0..bytes.len()).step_by(31).chain(bytes.len() - 20..bytes.len()) {
        assert!(vesper_ir::load(&bytes[..end]).is_err(), "the first {end} bytes");
    }
    // Outside of texts white space is not canonical.
    let is_between = |byte: u8| matches!(byte, b'{' | b'}' | b'[' | b']' | b':' | b',');
    for (place, byte) in bytes.iter().enumerate().step_by(11) {
        if !is_between(*byte) {
            continue;
        }
        for added in [b" ".as_slice(), b"\n", b",", b"\0", b"\xff"] {
            let changed = [&bytes[..=place], added, &bytes[place + 1..]].concat();
            assert!(vesper_ir::load(&changed).is_err(), "{added:?} after byte {place}");
        }
    }
    for added in [&b" "[..], b"\n", b"{}", b"\0"] {
        assert!(vesper_ir::load(&[&bytes, added].concat()).is_err());
        assert!(vesper_ir::load(&[added, &bytes].concat()).is_err());
    }
}
