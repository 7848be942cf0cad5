//! Tests of floats where text, order or arithmetic of Rust or Python differ.

use vesper_ir::{ArrayKernels, float};
use vesper_ir::{DecimalKernels, ErrorCode, FloatKernels, IntegerKernels, SortOrder, Value, ValueKernels};
use vesper_kernels::Native;

use crate::{decimal, quickly};

#[test]
fn text_is_the_shortest_that_reads_back() {
    for (value, expected) in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1e15, "1000000000000000.0"),
        (9_999_999_999_999_998.0, "9999999999999998.0"),
        (1e16, "1e+16"),
        (1.5e16, "1.5e+16"),
        (0.0001, "0.0001"),
        (0.000_123, "0.000123"),
        (0.000_099, "9.9e-05"),
        (1.5e-7, "1.5e-07"),
        (1e100, "1e+100"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        // Of two equally short and near texts, the even one.
        (-8_527_362_451_852_517.0 / 4.0, "-2131840612963129.2"),
        (8_527_362_451_852_519.0 / 4.0, "2131840612963129.8"),
        // The nearest text with as few digits is another float: below a power of two floats are closer.
        (9_007_199_254_740_992.0, "9007199254740992.0"),
        (f64::NEG_INFINITY, "-Infinity"),
    ] {
        assert_eq!(&*Native.float_text(value), expected);
        let read = Native.float_parse(expected).unwrap();
        assert!(float::is_identical(read, value), "{expected} was read as {read}");
    }
    assert_eq!(&*Native.float_text(-f64::NAN), "NaN");
}

#[test]
fn text_parsing_is_strict() {
    for text in [
        "",
        "+",
        ".",
        "e5",
        "1e",
        "1e+",
        " 1",
        "1 ",
        "1_0",
        "nan",
        "inf",
        "infinity",
        "+NaN",
        "+Infinity",
        "-NaN",
        "0x1",
        "1.5f",
        "١",
        "1e1.5",
        "--1",
    ] {
        assert_eq!(Native.float_parse(text), Err(ErrorCode::BadFormat), "{text}");
    }
    for (text, expected) in [
        ("+1", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("1E+3", 1000.0),
        ("-0", -0.0),
        ("-1e-400", -0.0),
        ("-1e400", f64::NEG_INFINITY),
        // Slightly above the midpoint between two floats, by the last of its digits.
        (
            "9007199254740993.00000000000000000000000000000000000001",
            9_007_199_254_740_994.0,
        ),
        ("9007199254740993", 9_007_199_254_740_992.0),
        ("1.7976931348623158079e308", f64::MAX),
        ("1.797693134862315808e308", f64::INFINITY),
    ] {
        let read = Native.float_parse(text).unwrap();
        assert!(float::is_identical(read, expected), "{text} was read as {read}");
    }
}

#[test]
fn long_texts_are_read_exactly_and_in_time() {
    quickly("long numbers", || {
        let zeros = "0".repeat(5_000_000);
        // Rust's parser fails on exponents with so many digits.
        assert_eq!(Native.float_parse(&format!("0.{zeros}1e5000001")), Ok(1.0));
        assert_eq!(Native.float_parse(&format!("1{zeros}e-5000000")), Ok(1.0));
        assert_eq!(
            Native.float_parse(&format!("1e{}", "9".repeat(5_000_000))),
            Ok(f64::INFINITY)
        );
        assert_eq!(
            Native.float_parse(&format!("0e{}", "9".repeat(5_000_000))),
            Ok(0.0)
        );
        assert_eq!(
            Native.float_parse(&format!("0.{}", "3".repeat(5_000_000))),
            Ok(1.0 / 3.0)
        );
    });
}

#[test]
fn only_finite_floats_in_range_convert_to_integers() {
    assert_eq!(Native.float_floor(-0.5), Ok(-1));
    assert_eq!(Native.float_ceil(-0.5), Ok(0));
    assert_eq!(Native.float_trunc(-9_223_372_036_854_775_808.0), Ok(i64::MIN));
    assert_eq!(
        Native.float_trunc(9_223_372_036_854_774_784.0),
        Ok(9_223_372_036_854_774_784)
    );
    assert_eq!(
        Native.float_trunc(9_223_372_036_854_775_808.0),
        Err(ErrorCode::IntegerOverflow)
    );
    assert_eq!(
        Native.float_floor(-9_223_372_036_854_777_856.0),
        Err(ErrorCode::IntegerOverflow)
    );
    assert_eq!(Native.float_to_integer(f64::INFINITY), Err(ErrorCode::NotFinite));
    assert_eq!(Native.float_to_integer(0.5), Err(ErrorCode::NotWhole));
    assert!(float::is_identical(
        Native.integer_to_float(i64::MAX),
        9_223_372_036_854_775_808.0
    ));
    assert!(float::is_identical(
        Native.integer_to_float(-9_007_199_254_740_993),
        -9_007_199_254_740_992.0
    ));
}

#[test]
fn decimals_and_floats_convert_both_ways() {
    for (value, expected) in [
        (0.1, "0.1"),
        (1e16, "10000000000000000"),
        (1.5e16, "15000000000000000"),
        (1.5e-7, "0.00000015"),
        (-0.0, "0.0"),
        (100.0, "100.0"),
    ] {
        assert_eq!(Native.float_to_decimal(value).unwrap().to_string(), expected);
    }
    let smallest = Native.float_to_decimal(5e-324).unwrap();
    assert_eq!(smallest.scale(), 324);
    assert!(float::is_identical(Native.decimal_to_float(&smallest), 5e-324));
    let large = format!("1{}", "0".repeat(999));
    assert!(Native.decimal_to_float(&decimal(&large)).is_infinite());
    // Rounded once: rounding to fewer digits first would be a tie and select the other neighbour.
    let beside = format!("9007199254740993.{}1", "0".repeat(900));
    assert!(float::is_identical(
        Native.decimal_to_float(&decimal(&beside)),
        9_007_199_254_740_994.0
    ));
}

#[test]
fn the_order_is_total_and_equality_is_not() {
    let values: Vec<Value> = [
        f64::NAN,
        1.0,
        -0.0,
        f64::INFINITY,
        0.0,
        f64::NEG_INFINITY,
        -f64::NAN,
        -1.0,
    ]
    .map(Value::Float)
    .to_vec();
    let texts = |values: &[Value]| {
        let texts: Vec<String> = values
            .iter()
            .map(|value| match value {
                Value::Float(value) => float::text(*value),
                other => panic!("{other:?}"),
            })
            .collect();
        texts.join(" ")
    };
    assert_eq!(
        texts(&Native.array_sort(&values, SortOrder::Ascending)),
        "-Infinity -1.0 -0.0 0.0 1.0 Infinity NaN NaN"
    );
    assert_eq!(
        texts(&Native.array_sort(&values, SortOrder::Descending)),
        "NaN NaN Infinity 1.0 0.0 -0.0 -1.0 -Infinity"
    );
    let (zero, minus) = (Value::Float(0.0), Value::Float(-0.0));
    assert_eq!(texts(&[Native.value_min(&zero, &minus)]), "-0.0");
    assert_eq!(texts(&[Native.value_max(&minus, &zero)]), "0.0");
    assert!(zero.is_equal(&minus) && !zero.is_identical(&minus));

    // NaN equals no value, at any index; the two zeros are one number.
    assert_eq!(
        texts(&Native.array_distinct(&values)),
        "NaN 1.0 -0.0 Infinity -Infinity NaN -1.0"
    );
    let inside = Value::Array([Value::Float(f64::NAN)].into());
    assert!(!inside.is_equal(&inside) && inside.is_identical(&inside));
    assert_eq!(Native.array_distinct(&[inside.clone(), inside.clone()]).len(), 2);
    assert!(!Native.array_contains(std::slice::from_ref(&inside), &inside));
    assert!(Native.array_contains(&[minus], &zero));
}

#[test]
fn sums_are_rounded_at_each_step() {
    let floats = |values: &[f64]| values.iter().copied().map(Value::Float).collect::<Vec<_>>();
    assert!(float::is_identical(Native.float_sum(&floats(&[-0.0, -0.0])), 0.0));
    assert!(float::is_identical(
        Native.float_sum(&floats(&[0.1; 10])),
        0.999_999_999_999_999_9
    ));
    assert!(
        Native
            .float_avg(&floats(&[f64::INFINITY, f64::NEG_INFINITY]))
            .unwrap()
            .is_nan()
    );
    assert_eq!(Native.float_avg(&[]), Err(ErrorCode::EmptyCollection));
}
