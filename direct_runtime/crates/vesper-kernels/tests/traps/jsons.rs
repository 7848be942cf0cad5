//! Tests of strict JSON parsing, and of casts.

use std::sync::Arc;

use vesper_ir::decode::decode_type;
use vesper_ir::{ErrorCode, Json, JsonKernels, Value, json};
use vesper_kernels::Native;

use crate::{decimal, quickly, shown};

fn parsed(text: &str) -> Arc<Json> {
    Native
        .json_parse(text)
        .unwrap_or_else(|code| panic!("{text}: {code:?}"))
}

fn cast(json: &str, ty: &str) -> Result<Value, ErrorCode> {
    Native.json_cast(&parsed(json), &decode_type(ty).unwrap())
}

fn formed(value: &Value, ty: &str) -> Result<String, ErrorCode> {
    let json = Native.json_from_value(value, &decode_type(ty).unwrap())?;
    Ok(json.text())
}

#[test]
fn the_reader_is_strict() {
    for text in [
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "NaN",
        "-",
        "+1",
        "01",
        "-01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "1_0",
        "Infinity",
        "-Infinity",
        "'a'",
        "\"a",
        "\"\t\"",
        "\"\u{0}\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u+123\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800\\ud800\"",
        "[",
        "]",
        "[1",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "{}}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1,\"a\":1}",
        "{\"a\":1,\"\\u0061\":2}",
        "1 2",
        "// x\n1",
        "\u{feff}1",
        "\u{a0}1",
        "1\u{c}",
        "[1}",
        "{\"a\":[}",
        "1e1000",
        "1e-1001",
        "1e99999999999999999999999",
    ] {
        assert_eq!(
            Native.json_parse(text).err(),
            Some(ErrorCode::BadFormat),
            "{text:?}"
        );
    }
}

#[test]
fn parsed_json_is_written_canonically() {
    for (text, expected) in [
        (" [ ] ", "[]"),
        ("\t{\r\n}\n", "{}"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("1.50", "1.5"),
        ("1e3", "1000"),
        ("1E-3", "0.001"),
        ("1000.000", "1000"),
        (
            "123456789012345678901234567890.5",
            "123456789012345678901234567890.5",
        ),
        (
            "\"\\/\\u00e9\\ud83d\\ude00\\u0000\\u001F\\b\\f\\n\\r\\t\\\"\\\\\"",
            "\"/é😀\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\\"",
        ),
        ("\"\u{7f}\u{2028}\"", "\"\u{7f}\u{2028}\""),
        (
            "{\"b\":1,\"a\":[{\"é\":null,\"z\":true}]}",
            "{\"a\":[{\"z\":true,\"é\":null}],\"b\":1}",
        ),
        // By code point, not by UTF-16 unit.
        (
            "{\"\\ud83d\\ude00\":1,\"\\uffff\":2}",
            "{\"\u{ffff}\":2,\"😀\":1}",
        ),
    ] {
        assert_eq!(Native.json_text(&parsed(text)).as_deref(), Ok(expected));
    }
    // In the IR numbers keep their scale.
    assert_eq!(parsed("[1.50,1e3,-0.0]").literal_text(), "[1.50,1000,0.0]");
}

#[test]
fn the_first_problem_of_a_json_text_counts() {
    let nested = |depth: usize, inside: &str| format!("{}{inside}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(parsed(&nested(128, "")).depth(), 128);
    assert_eq!(
        Native.json_parse(&nested(129, "")).err(),
        Some(ErrorCode::TooLarge)
    );
    assert_eq!(
        Native.json_parse(&nested(129, "x")).err(),
        Some(ErrorCode::TooLarge)
    );
    let twice = format!("{{\"a\":1,\"a\":{}", "[".repeat(200));
    assert_eq!(Native.json_parse(&twice).err(), Some(ErrorCode::BadFormat));
    quickly("deep and long texts", || {
        assert_eq!(
            Native.json_parse(&nested(4_000_000, "")).err(),
            Some(ErrorCode::TooLarge)
        );
        assert_eq!(
            Native.json_parse(&"[".repeat(8_000_000)).err(),
            Some(ErrorCode::TooLarge)
        );
        assert_eq!(
            Native.json_parse(&"{\"a\":".repeat(1_000_000)).err(),
            Some(ErrorCode::TooLarge)
        );
        let zeros = format!("[{}0]", "0,".repeat(1_000_000));
        assert_eq!(Native.json_parse(&zeros).err(), Some(ErrorCode::TooLarge));
        assert_eq!(
            Native.json_parse(&"9".repeat(9_000_000)).err(),
            Some(ErrorCode::BadFormat)
        );
    });
}

#[test]
fn paths_are_those_of_rfc_6901() {
    let json = parsed(r#"{"":{"":1},"a/b":2,"m~n":3,"~1":4,"0":{"00":5},"x":[10,[11],null],"é":6}"#);
    let get = |path: &str| match Native.json_get(&json, path) {
        Ok(Some(Value::Json(found))) => found.text(),
        Ok(None) => "nowhere".to_owned(),
        Ok(other) => panic!("{other:?}"),
        Err(code) => code.name().to_owned(),
    };
    for (path, expected) in [
        ("/", r#"{"":1}"#),
        ("//", "1"),
        ("/a~1b", "2"),
        ("/m~0n", "3"),
        ("/~01", "4"),
        ("/0/00", "5"),
        ("/x/0", "10"),
        ("/x/1/0", "11"),
        ("/x/2", "null"),
        ("/x/00", "nowhere"),
        ("/x/+0", "nowhere"),
        ("/x/-", "nowhere"),
        ("/x/-1", "nowhere"),
        ("/x/", "nowhere"),
        ("/x/3", "nowhere"),
        ("/x/99999999999999999999999999", "nowhere"),
        ("/x/0/0", "nowhere"),
        ("/é", "6"),
        ("a", "invalid_argument"),
        ("/~", "invalid_argument"),
        ("/~2", "invalid_argument"),
        ("/nowhere/at/all/~", "invalid_argument"),
    ] {
        assert_eq!(get(path), expected, "{path}");
    }
    assert_eq!(Native.json_has(&json, "/x/2"), Ok(true));
}

#[test]
fn casts_take_the_forms_of_an_input() {
    let taken =
        |json: &str, ty: &str| cast(json, ty).unwrap_or_else(|code| panic!("{json} as {ty}: {code:?}"));
    assert_eq!(
        shown(&taken("9223372036854775807.00", "\"integer\"")),
        "9223372036854775807"
    );
    assert_eq!(shown(&taken("1.50", "\"decimal\"")), "1.50");
    assert_eq!(shown(&taken("\"1e2\"", "\"decimal\"")), "100");
    assert!(taken("1e-400", "\"float\"").is_identical(&Value::Float(0.0)));
    assert!(taken("\"NaN\"", "\"float\"").is_identical(&Value::Float(f64::NAN)));
    assert!(
        taken("\"2024-02-29T00:00:00+01:00\"", "\"timestamp\"")
            .is_identical(&Value::Timestamp(1_709_161_200_000_000))
    );
    assert!(taken("\"90s\"", "\"duration\"").is_identical(&Value::Duration(90_000_000)));
    assert!(taken("\"1970-01-02\"", "\"date\"").is_identical(&Value::Date(1)));
    assert!(matches!(taken("null", r#"{"optional":"json"}"#), Value::Null));
    assert!(matches!(taken("null", "\"json\""), Value::Json(json) if matches!(*json, Json::Null)));
    let record =
        r#"{"record":[{"name":"b","type":{"optional":"integer"}},{"name":"a","type":{"enum":["y","x"]}}]}"#;
    let expected = Value::Record([Value::Null, Value::Member(vesper_ir::Member(1))].into());
    assert!(taken(r#"{"a":"x","c":0}"#, record).is_identical(&expected));
    for (json, ty) in [
        ("true", "\"integer\""),
        ("1", "\"boolean\""),
        ("\"1\"", "\"integer\""),
        ("9223372036854775808", "\"integer\""),
        ("1e309", "\"float\""),
        ("\"1.0\"", "\"float\""),
        ("\"nan\"", "\"float\""),
        ("\" 1\"", "\"decimal\""),
        ("1", "\"string\""),
        ("null", "\"string\""),
        ("\"AB==\"", "\"bytes\""),
        ("\"2023-02-29\"", "\"date\""),
        ("\"2024-01-01T00:00:00\"", "\"timestamp\""),
        ("\"0001-01-01T00:00:00+01:00\"", "\"timestamp\""),
        ("\"4000000d\"", "\"duration\""),
        ("\"z\"", r#"{"enum":["y","x"]}"#),
        ("{}", r#"{"array":"integer"}"#),
        ("[1,1.0]", r#"{"set":"integer"}"#),
        (r#"[["a",1]]"#, r#"{"map":["string","integer"]}"#),
        (r#"{"1":1}"#, r#"{"map":["integer","integer"]}"#),
        ("[[1,1],[1,2]]", r#"{"map":["integer","integer"]}"#),
        ("[[1,1,1]]", r#"{"map":["integer","integer"]}"#),
        ("[1]", r#"{"map":["integer","integer"]}"#),
        (r#"{"z":1}"#, r#"{"map":[{"enum":["y","x"]},"integer"]}"#),
        (r#"{"b":1}"#, record),
        (r#"{"a":null}"#, record),
        ("[]", record),
    ] {
        assert_eq!(cast(json, ty).err(), Some(ErrorCode::BadCast), "{json} as {ty}");
    }
}

#[test]
fn forms_round_trip() {
    let map = |key: &str| format!(r#"{{"map":[{key},{{"array":"float"}}]}}"#);
    for (json, ty) in [
        (
            r#"{"a":[1.5,"NaN","-Infinity"],"b":[]}"#.to_owned(),
            map("\"string\""),
        ),
        (r#"{"x":[0.1]}"#.to_owned(), map(r#"{"enum":["y","x"]}"#)),
        ("[[1,[0.1]],[2,[]]]".to_owned(), map("\"integer\"")),
        (
            r#"[["2024-02-29",[10000000000000000]]]"#.to_owned(),
            map("\"date\""),
        ),
        (
            r#"[["2024-02-29T00:00:00.000001Z",[]]]"#.to_owned(),
            map("\"timestamp\""),
        ),
        (r#"[["+/8=",[]]]"#.to_owned(), map("\"bytes\"")),
        (
            r#"["-P1DT0.5S","PT0S"]"#.to_owned(),
            r#"{"array":"duration"}"#.to_owned(),
        ),
        (
            r#"["1.50",null]"#.to_owned(),
            r#"{"array":{"optional":"decimal"}}"#.to_owned(),
        ),
        (
            r#"{"a":[1],"b":null}"#.to_owned(),
            r#"{"record":[{"name":"b","type":{"optional":"json"}},{"name":"a","type":"json"}]}"#.to_owned(),
        ),
    ] {
        let value = cast(&json, &ty).unwrap_or_else(|code| panic!("{json} as {ty}: {code:?}"));
        assert_eq!(formed(&value, &ty), Ok(json));
    }
    // A float is written as its text, with that scale.
    let float = Native
        .json_from_value(&Value::Float(1.0), &decode_type("\"float\"").unwrap())
        .unwrap();
    assert!(float.is_identical(&Json::Number(decimal("1.0"))));
    // The order of an enum is not that of its members' names.
    let members = Value::Map(Arc::new(
        vesper_ir::Map::from_entries(
            vesper_ir::KeyKind::Member,
            vec![
                (
                    vesper_ir::OwnedKey::Member(vesper_ir::Member(0)),
                    Value::Integer(1),
                ),
                (
                    vesper_ir::OwnedKey::Member(vesper_ir::Member(1)),
                    Value::Integer(2),
                ),
            ],
        )
        .unwrap(),
    ));
    assert_eq!(
        formed(&members, r#"{"map":[{"enum":["y","x"]},"integer"]}"#),
        Ok(r#"{"x":2,"y":1}"#.to_owned())
    );
}

#[test]
fn forms_that_would_be_too_large_fail() {
    let deep = Value::Json(Arc::new(
        json::parse(&format!("{}{}", "[".repeat(127), "]".repeat(127))).unwrap(),
    ));
    let one = Value::Array([deep.clone()].into());
    assert!(formed(&one, r#"{"array":"json"}"#).is_ok());
    let two = Value::Array([one].into());
    assert_eq!(
        formed(&two, r#"{"array":{"array":"json"}}"#),
        Err(ErrorCode::TooLarge)
    );
    let long = Value::Bytes(vec![0; 7_500_001].into());
    assert_eq!(formed(&long, "\"bytes\""), Err(ErrorCode::TooLarge));
}

#[test]
fn equality_is_by_kind_and_value() {
    let equal = |left: &str, right: &str| Native.json_equal(&parsed(left), &parsed(right));
    assert!(equal("[1,{\"a\":2.0,\"b\":[]}]", "[1.0,{\"b\":[],\"a\":2}]"));
    assert!(equal("0", "-0.00"));
    assert!(!equal("1", "true") && !equal("0", "false") && !equal("null", "false") && !equal("[]", "{}"));
    assert!(!equal("\"é\"", "\"e\u{301}\""));
    assert!(!equal("{\"a\":null}", "{}"));
}
