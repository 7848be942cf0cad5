//! Members of bodies, and the limit of a value's text. Python tests compare the texts of values of every type.

use std::sync::Arc;

use vesper_host::journal::ErrorKind;
use vesper_host::typed_json::{member, read_value, text_member, write_value};
use vesper_ir::{Type, Value};

#[test]
fn members_are_found_at_the_top_level_only() {
    let body =
        r#"{"a":{"code":"inner"},"b":"},\"code\":1","c\"":[1,{"x":2}],"code":"http_500","message":"tab\té"}"#;
    assert_eq!(member(body, "code"), Some("\"http_500\""));
    assert_eq!(member(body, "a"), Some(r#"{"code":"inner"}"#));
    assert_eq!(member(body, "c\""), Some(r#"[1,{"x":2}]"#));
    assert_eq!(member(body, "x"), None);
    assert_eq!(text_member(body, "message").as_deref(), Some("tab\té"));
    assert_eq!(text_member(body, "a"), None);
    assert_eq!(
        member("{\"not_done\":true,\"why\":\"\"}", "not_done"),
        Some("true")
    );
}

#[test]
fn damaged_bodies_have_no_members() {
    for body in [
        "",
        "{",
        "{}",
        "[1]",
        "null",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\" 1}",
        "{:1}",
        "{\"a\":}",
        "}",
    ] {
        assert_eq!(member(body, "a"), None, "{body}");
    }
    let deep = format!("{{\"b\":{},\"a\":1}}", "[".repeat(1_000_000));
    assert_eq!(member(&deep, "a"), None);
}

#[test]
fn a_value_whose_shared_parts_fill_memory_is_refused() {
    let mut ty = Type::Text;
    let mut value = Value::Text(Arc::from("x".repeat(1000)));
    for _ in 0..25 {
        ty = Type::Array(Arc::new(ty));
        value = Value::Array(Arc::from(vec![value.clone(), value]));
    }
    let error = write_value(&mut String::new(), &ty, &value).map_err(|error| error.kind);
    assert_eq!(error, Err(ErrorKind::TooLarge));
}

#[test]
fn a_value_of_another_type_is_refused() {
    let mut out = String::new();
    assert!(write_value(&mut out, &Type::Text, &Value::Integer(1)).is_err());
    assert!(write_value(&mut out, &Type::Text, &Value::Null).is_err());
}

#[test]
fn a_deep_text_is_refused() {
    let text = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert!(read_value(&text, &Type::Json).is_err());
    let text = format!("{}1{}", "[".repeat(128), "]".repeat(128));
    assert!(read_value(&text, &Type::Json).is_ok());
}
