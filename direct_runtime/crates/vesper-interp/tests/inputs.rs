//! The two tables of docs/spec/values.md, "Inputs".
#![allow(
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use vesper_interp::inputs::ProblemKind::{Malformed, NotAMember, OutOfRange, WrongType};
use vesper_interp::inputs::{Given, ProblemKind, convert};
use vesper_ir::decode::decode_type;
use vesper_ir::{Decimal, Value};

fn problem(ty: &str, given: Given<'_>) -> Option<ProblemKind> {
    convert(&decode_type(ty).unwrap(), given).err()
}

#[test]
fn each_type_takes_its_forms_and_refuses_the_others() {
    let boolean = "\"boolean\"";
    assert_eq!(problem(boolean, Given::Boolean(true)), None);
    assert_eq!(problem(boolean, Given::Integer(1)), Some(WrongType));
    assert_eq!(problem(boolean, Given::Text("true")), Some(WrongType));

    let integer = "\"integer\"";
    assert_eq!(problem(integer, Given::Integer(i64::MIN)), None);
    assert_eq!(problem(integer, Given::WideInteger(None)), Some(OutOfRange));
    assert_eq!(problem(integer, Given::Boolean(true)), Some(WrongType));
    assert_eq!(problem(integer, Given::DecimalText("1")), Some(WrongType));
    assert_eq!(problem(integer, Given::Text("1")), Some(WrongType));
    assert_eq!(problem(integer, Given::BrokenText), Some(WrongType));

    let decimal = "\"decimal\"";
    assert_eq!(problem(decimal, Given::DecimalText("1E+3")), None);
    assert_eq!(problem(decimal, Given::Text("-0.0")), None);
    assert_eq!(problem(decimal, Given::Integer(7)), None);
    assert_eq!(
        problem(decimal, Given::WideInteger(Decimal::parse("1E+30").ok())),
        None
    );
    assert_eq!(problem(decimal, Given::WideInteger(None)), Some(OutOfRange));
    assert_eq!(problem(decimal, Given::DecimalText("1E+1000")), Some(OutOfRange));
    assert_eq!(problem(decimal, Given::DecimalText("NaN")), Some(Malformed));
    assert_eq!(problem(decimal, Given::DecimalText("-Infinity")), Some(Malformed));
    assert_eq!(problem(decimal, Given::Text(" 1")), Some(Malformed));
    assert_eq!(problem(decimal, Given::BrokenText), Some(Malformed));
    assert_eq!(problem(decimal, Given::Boolean(false)), Some(WrongType));
    assert_eq!(problem(decimal, Given::Other), Some(WrongType));

    let string = "\"string\"";
    assert_eq!(problem(string, Given::Text("")), None);
    assert_eq!(problem(string, Given::BrokenText), Some(Malformed));
    assert_eq!(problem(string, Given::Integer(1)), Some(WrongType));
    // The limit is one of code points, not of bytes.
    assert_eq!(problem(string, Given::Text(&"é".repeat(10_000_000))), None);
    assert_eq!(
        problem(string, Given::Text(&"é".repeat(10_000_001))),
        Some(OutOfRange)
    );

    let color = r#"{"enum":["red","green"]}"#;
    assert_eq!(problem(color, Given::Text("green")), None);
    assert_eq!(problem(color, Given::Text("blue")), Some(NotAMember));
    assert_eq!(problem(color, Given::BrokenText), Some(NotAMember));
    assert_eq!(problem(color, Given::Integer(0)), Some(WrongType));
}

#[test]
fn decimals_are_written_out() {
    let ty = decode_type("\"decimal\"").unwrap();
    for (text, expected) in [("1E+3", "1000"), ("-0.0", "0.0"), ("1.10", "1.10")] {
        match convert(&ty, Given::DecimalText(text)) {
            Ok(Value::Decimal(value)) => assert_eq!(value.to_string(), expected),
            other => panic!("{other:?}"),
        }
    }
}
