//! Outside names of types: what a document may say, and what they do not change.
#![expect(clippy::expect_used, reason = "a test")]

use std::sync::Arc;

use vesper_ir::decode::decode_type;
use vesper_ir::intern::Types;
use vesper_ir::types::Field;
use vesper_ir::{Member, Type};

fn record(fields: &str, rest: &str) -> String {
    format!(r#"{{"record":[{fields}]{rest}}}"#)
}

fn field(keys: &str, name: &str, ty: &str) -> String {
    format!(r#"{{{keys}"name":"{name}","type":{ty}}}"#)
}

fn refused(json: &str) -> String {
    decode_type(json).expect_err("is refused").to_string()
}

#[test]
fn names_are_found_by_key_and_hidden_fields_are_not() {
    let fields = [
        field(
            r#""absent":"no_a","as":"The A","#,
            "a",
            r#"{"optional":"string"}"#,
        ),
        field("", "no_a", r#""boolean""#),
        field("", "rest", r#"{"map":["string","json"]}"#),
    ];
    let ty = decode_type(&record(&fields.join(","), r#","rest":"rest""#)).expect("is a type");
    let of = match &ty {
        Type::Record(of) => Some(of),
        _ => None,
    };
    let of = of.expect("is a record");
    let outside = of.outside().expect("has outside names");
    assert_eq!(
        (of.key(0), of.place_of_key("The A"), of.place("a")),
        ("The A", Some(0), Some(0))
    );
    assert_eq!(
        (
            of.place_of_key("a"),
            of.place_of_key("no_a"),
            of.place_of_key("rest")
        ),
        (None, None, None)
    );
    assert_eq!(
        (outside.flag_of(0), outside.flagged(1), outside.rest()),
        (Some(1), Some(0), Some(2))
    );
    assert!(of.is_sparse() && !outside.is_simple());
}

#[test]
fn members_have_texts_outside() {
    let ty = decode_type(r#"{"as":{"b":"B, the second"},"enum":["a","b"]}"#).expect("is a type");
    let of = match &ty {
        Type::Enum(of) => Some(of),
        _ => None,
    };
    let of = of.expect("is an enum");
    assert_eq!(of.member("b"), Some(Member(1)));
    assert_eq!(of.member_of_text("b"), None);
    assert_eq!(of.member_of_text("B, the second"), Some(Member(1)));
    assert_eq!(of.text(Member(0)).map(AsRef::as_ref), Some("a"));
}

#[test]
fn outside_names_take_no_part_in_equality() {
    let plain = decode_type(&record(&field("", "a", r#"{"enum":["x"]}"#), "")).expect("is a type");
    let named = record(
        &field(r#""as":"A","#, "a", r#"{"as":{"x":"X"},"enum":["x"]}"#),
        "",
    );
    assert_eq!(plain, decode_type(&named).expect("is a type"));
    let other = record(&field(r#""as":"A","#, "b", r#"{"enum":["x"]}"#), "");
    assert_ne!(plain, decode_type(&other).expect("is a type"));
}

/// A comparison that descended into shared parts would take 2^30 steps.
#[test]
fn types_with_shared_parts_are_compared_at_once() {
    let mut types = Types::default();
    let members = || vec![Arc::from("a")];
    let mut plain = types.enumeration(members(), None).expect("is a type");
    let mut named = types
        .enumeration(members(), Some(vec![Arc::from("A")]))
        .expect("is a type");
    for _ in 0..30 {
        for ty in [&mut plain, &mut named] {
            let fields = ["x", "y"].map(|name| Field {
                name: Arc::from(name),
                ty: ty.clone(),
            });
            *ty = types.record(fields.to_vec()).expect("is a type");
        }
    }
    assert_eq!(plain, named);
    let other = types.array(&plain).expect("is a type");
    assert_ne!(named, other);
}

#[test]
fn malformed_outside_names_are_refused_by_name() {
    let long = "x".repeat(129);
    let integer = r#""integer""#;
    let two = |first: &str, second: &str| {
        record(
            &format!("{},{}", field(first, "a", integer), field(second, "b", integer)),
            "",
        )
    };
    for (json, what) in [
        (two(r#""as":"","#, ""), "`` is not an outside name".to_owned()),
        (
            two(r#""as":"a\tb","#, ""),
            r"`a\tb` is not an outside name".to_owned(),
        ),
        (
            two(&format!(r#""as":"{long}","#), ""),
            format!("`{long}` is not an outside name"),
        ),
        (
            two(r#""as":"a","#, ""),
            "field `a` is named itself outside".to_owned(),
        ),
        (
            two(r#""as":"b","#, ""),
            "two of the fields are `b` outside".to_owned(),
        ),
        (
            two(r#""as":"x","#, r#""as":"x","#),
            "two of the fields are `x` outside".to_owned(),
        ),
        (
            two(r#""absent":"b","#, ""),
            "field `a` has a flag and is integer".to_owned(),
        ),
        (two(r#""as":1,"#, ""), "expected".to_owned()),
    ] {
        let found = refused(&json);
        assert!(found.contains(&what), "{json}: {found}");
    }
    let optional = r#"{"optional":"integer"}"#;
    let flagged = field(r#""absent":"f","#, "a", optional);
    for (fields, rest, what) in [
        (
            format!("{flagged},{}", field("", "f", integer)),
            "",
            "the flag of `a`",
        ),
        (
            format!("{flagged},{}", field(r#""as":"g","#, "f", r#""boolean""#)),
            "",
            "the flag of `a`",
        ),
        (flagged.clone(), "", "the flag of `a`"),
        (
            format!(
                "{flagged},{},{}",
                field(r#""absent":"f","#, "b", optional),
                field("", "f", r#""boolean""#)
            ),
            "",
            "the flag of `b`",
        ),
        (field("", "a", integer), r#","rest":"a""#, "is not the last field"),
        (field("", "a", integer), r#","rest":"b""#, "is not the last field"),
        (
            format!(
                "{},{}",
                field("", "r", r#"{"map":["string","json"]}"#),
                field("", "a", integer)
            ),
            r#","rest":"r""#,
            "is not the last field",
        ),
    ] {
        let found = refused(&record(&fields, rest));
        assert!(found.contains(what), "{fields}: {found}");
    }
    for (json, what) in [
        (r#"{"as":{},"enum":["a"]}"#, "`as` of an enum is empty"),
        (r#"{"as":{"b":"c"},"enum":["a"]}"#, "which is no member"),
        (r#"{"as":{"a":"a"},"enum":["a"]}"#, "is named itself outside"),
        (
            r#"{"as":{"a":"b"},"enum":["a","b"]}"#,
            "two members of an enum are `b` outside",
        ),
        (r#"{"as":{"a":"b"},"record":[]}"#, "expected field `enum`"),
        (r#"{"as":{"a":"b"},"set":"integer"}"#, "expected field `enum`"),
    ] {
        let found = refused(json);
        assert!(found.contains(what), "{json}: {found}");
    }
}
