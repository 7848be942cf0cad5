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
    assert_eq!(
        problem(integer, Given::Decimal(Decimal::parse("1"))),
        Some(WrongType)
    );
    assert_eq!(problem(integer, Given::Text("1")), Some(WrongType));
    assert_eq!(problem(integer, Given::BrokenText), Some(WrongType));

    let decimal = "\"decimal\"";
    assert_eq!(problem(decimal, Given::Decimal(Decimal::parse("1E+3"))), None);
    assert_eq!(problem(decimal, Given::Text("-0.0")), None);
    assert_eq!(problem(decimal, Given::Integer(7)), None);
    assert_eq!(
        problem(decimal, Given::WideInteger(Decimal::parse("1E+30").ok())),
        None
    );
    assert_eq!(problem(decimal, Given::WideInteger(None)), Some(OutOfRange));
    assert_eq!(
        problem(decimal, Given::Decimal(Decimal::parse("1E+1000"))),
        Some(OutOfRange)
    );
    assert_eq!(
        problem(decimal, Given::Decimal(Decimal::parse("NaN"))),
        Some(Malformed)
    );
    assert_eq!(
        problem(decimal, Given::Decimal(Decimal::parse("-Infinity"))),
        Some(Malformed)
    );
    assert_eq!(problem(decimal, Given::Text(" 1")), Some(Malformed));
    assert_eq!(problem(decimal, Given::BrokenText), Some(Malformed));
    assert_eq!(problem(decimal, Given::Boolean(false)), Some(WrongType));
    assert_eq!(problem(decimal, Given::Other), Some(WrongType));

    let string = "\"string\"";
    assert_eq!(problem(string, Given::Text("")), None);
    assert_eq!(problem(string, Given::BrokenText), Some(Malformed));
    assert_eq!(problem(string, Given::Integer(1)), Some(WrongType));
    // The limit counts code points, not bytes.
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
        match convert(&ty, Given::Decimal(Decimal::parse(text))) {
            Ok(Value::Decimal(value)) => assert_eq!(value.to_string(), expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn floats_bytes_and_times_take_their_forms() {
    let float = "\"float\"";
    assert_eq!(problem(float, Given::Float(f64::NAN)), None);
    assert_eq!(problem(float, Given::Integer(1 << 53)), None);
    assert_eq!(problem(float, Given::Integer((1 << 53) + 1)), Some(OutOfRange));
    assert_eq!(problem(float, Given::Integer(i64::MIN)), None);
    assert_eq!(problem(float, Given::Integer(i64::MAX)), Some(OutOfRange));
    assert_eq!(
        problem(float, Given::WideInteger(Decimal::parse("1E+22").ok())),
        None
    );
    assert_eq!(
        problem(float, Given::WideInteger(Decimal::parse("1E+23").ok())),
        Some(OutOfRange)
    );
    assert_eq!(
        problem(float, Given::WideInteger(Decimal::parse("1E+400").ok())),
        Some(OutOfRange)
    );
    assert_eq!(problem(float, Given::WideInteger(None)), Some(OutOfRange));
    assert_eq!(problem(float, Given::Text("-Infinity")), None);
    assert_eq!(problem(float, Given::Text("1.0")), Some(Malformed));
    assert_eq!(problem(float, Given::BrokenText), Some(Malformed));
    assert_eq!(problem(float, Given::Boolean(true)), Some(WrongType));
    assert_eq!(
        problem(float, Given::Decimal(Decimal::parse("1"))),
        Some(WrongType)
    );
    assert_eq!(problem("\"decimal\"", Given::Float(1.0)), Some(WrongType));
    assert_eq!(problem("\"integer\"", Given::Float(1.0)), Some(WrongType));

    let bytes = "\"bytes\"";
    assert_eq!(problem(bytes, Given::Bytes(b"")), None);
    assert_eq!(
        problem(bytes, Given::Bytes(&vec![0; 10_000_001])),
        Some(OutOfRange)
    );
    assert_eq!(problem(bytes, Given::Text("AP8=")), None);
    assert_eq!(problem(bytes, Given::Text("AP8")), Some(Malformed));
    assert_eq!(
        problem(bytes, Given::Text(&"AAAA".repeat(3_333_334))),
        Some(OutOfRange)
    );
    assert_eq!(problem(bytes, Given::BrokenText), Some(Malformed));
    assert_eq!(problem("\"string\"", Given::Bytes(b"")), Some(WrongType));

    let timestamp = "\"timestamp\"";
    assert_eq!(problem(timestamp, Given::Moment(-62_135_596_800_000_000)), None);
    assert_eq!(
        problem(timestamp, Given::Moment(-62_135_596_800_000_001)),
        Some(OutOfRange)
    );
    assert_eq!(
        problem(timestamp, Given::Moment(253_402_300_800_000_000)),
        Some(OutOfRange)
    );
    assert_eq!(problem(timestamp, Given::NaiveMoment), Some(Malformed));
    assert_eq!(problem(timestamp, Given::Day(0)), Some(WrongType));
    assert_eq!(problem(timestamp, Given::Integer(0)), Some(WrongType));
    assert_eq!(
        problem(timestamp, Given::Text("2024-01-01T00:00:00")),
        Some(Malformed)
    );
    assert_eq!(
        problem(timestamp, Given::Text("0001-01-01T00:00:00+01:00")),
        Some(OutOfRange)
    );

    let date = "\"date\"";
    assert_eq!(problem(date, Given::Day(0)), None);
    assert_eq!(problem(date, Given::Moment(0)), Some(WrongType));
    assert_eq!(problem(date, Given::NaiveMoment), Some(WrongType));
    assert_eq!(problem(date, Given::Text("2024-02-30")), Some(Malformed));

    let duration = "\"duration\"";
    assert_eq!(
        problem(duration, Given::Length(-3_652_059 * 86_400_000_000)),
        None
    );
    assert_eq!(
        problem(duration, Given::Length(3_652_059 * 86_400_000_000 + 1)),
        Some(OutOfRange)
    );
    assert_eq!(problem(duration, Given::Length(i128::MAX)), Some(OutOfRange));
    assert_eq!(problem(duration, Given::Text("1h30m")), None);
    assert_eq!(problem(duration, Given::Text("1M")), Some(Malformed));
    assert_eq!(problem(duration, Given::Text("4000000d")), Some(OutOfRange));
    assert_eq!(problem(duration, Given::Integer(1)), Some(WrongType));
}
