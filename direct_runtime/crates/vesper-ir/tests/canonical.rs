//! Tests that the reader rejects every spelling except the canonical one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use vesper_ir::canonical::Reader;

#[test]
fn integers_have_one_spelling() {
    for (text, expected) in [
        ("0", 0),
        ("-1", -1),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
    ] {
        let mut reader = Reader::new(text);
        assert_eq!(reader.integer().unwrap(), expected);
        reader.end().unwrap();
    }
    let refused = [
        "",
        "-",
        "-0",
        "+1",
        "01",
        "-01",
        "1.0",
        "1e2",
        "1E2",
        ".5",
        "9223372036854775808",
        "-9223372036854775809",
        "NaN",
        " 1",
        "1111111111111111111111111111111111111",
    ];
    for text in refused {
        let mut reader = Reader::new(text);
        let found = reader.integer().and_then(|_| reader.end());
        assert!(found.is_err(), "{text}");
    }
}

#[test]
fn strings_have_one_spelling() {
    let cases = [
        (r#""""#, ""),
        (r#""a/é😀""#, "a/é😀"),
        (r#""\"\\\b\t\n\f\r""#, "\"\\\u{8}\t\n\u{c}\r"),
        (r#""\u0000\u001f\u000b""#, "\0\u{1f}\u{b}"),
        ("\"\u{7f}\u{2028}\"", "\u{7f}\u{2028}"),
        (r#""x\ny""#, "x\ny"),
    ];
    for (text, expected) in cases {
        let mut reader = Reader::new(text);
        assert_eq!(reader.string(100).unwrap(), expected, "{text}");
        reader.end().unwrap();
    }
    let refused = [
        "",
        "\"",
        "\"a",
        "\"\n\"",
        "\"\u{0}\"",
        r#""\/""#,
        r#""\u0041""#,
        r#""\u000A""#,
        r#""\u000a""#,
        r#""\u001F""#,
        r#""\u0020""#,
        r#""\ud800""#,
        r#""\u00e9""#,
        r#""\""#,
        r#""\u00""#,
        r#""\x""#,
        "'a'",
    ];
    for text in refused {
        let mut reader = Reader::new(text);
        let found = reader.string(100).and_then(|_| reader.end());
        assert!(found.is_err(), "{text}");
    }
}

#[test]
fn string_limits_apply_after_unescaping() {
    assert!(Reader::new(r#""\n\n\n""#).string(3).is_ok());
    assert!(Reader::new(r#""\n\n\nx""#).string(3).is_err());
    assert!(Reader::new(r#""abcd""#).string(3).is_err());
}

#[test]
fn lists_and_maps_have_no_white_space_and_no_stray_commas() {
    for text in ["[]", "[1]", "[1,2]"] {
        assert!(Reader::new(text).list(2, Reader::integer).is_ok(), "{text}");
    }
    for text in [
        "[1,2,3]", "[1,]", "[,1]", "[1 ,2]", "[1, 2]", "[ 1]", "[1", "[", "", "{}",
    ] {
        assert!(Reader::new(text).list(2, Reader::integer).is_err(), "{text}");
    }
    let read = |text: &'static str| Reader::new(text).map(2, |reader, _| reader.integer());
    for text in [
        "{}",
        r#"{"a":1}"#,
        r#"{"a":1,"b":2}"#,
        r#"{"B":1,"a":2}"#,
        r#"{"":1}"#,
    ] {
        assert!(read(text).is_ok(), "{text}");
    }
    for text in [
        r#"{"b":1,"a":2}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,}"#,
        r#"{"a": 1}"#,
        r#"{"a":1,"b":2,"c":3}"#,
        "{",
        r#"{"a"}"#,
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn other_spellings_of_the_same_document_are_refused() {
    let refused = |bytes: &[u8]| assert!(vesper_ir::load(bytes).is_err());
    let text = include_str!("../../../fixtures/payment_decision_v1.json");
    let spellings = [
        format!(" {text}"),
        format!("{text}\n"),
        format!("\u{feff}{text}"),
        text.replacen(':', ": ", 1),
        text.replacen("\"ir_version\":2", "\"ir_version\":2.0", 1),
        text.replacen("\"ir_version\":2", "\"ir_version\":02", 1),
        text.replacen("\"ir_version\":2", "\"ir_version\":1", 1),
        text.replacen("\"ir_version\":2", "\"ir_version\":2,\"ir_version\":2", 1),
        text.replacen("amount", "\\u0061mount", 1),
    ];
    for bytes in spellings {
        refused(bytes.as_bytes());
    }
    // Nesting costs no stack.
    refused("[".repeat(1_000_000).as_bytes());
    refused(
        text.replacen("{\"set\":\"string\"}", &"{\"set\":".repeat(1_000_000), 1)
            .as_bytes(),
    );
}
