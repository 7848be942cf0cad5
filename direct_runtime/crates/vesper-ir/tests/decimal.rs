//! Tests of decimals against results computed by hand from docs/spec/values.md, and against arithmetic identities.
#![allow(
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use vesper_ir::decimal::{OverLimit, ParseDecimalError};
use vesper_ir::{Decimal, Value};

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

#[test]
fn text_is_read_and_written_in_plain_notation() {
    let max_digits = "9".repeat(1_000);
    let cases = [
        ("0", "0"),
        ("-0", "0"),
        ("-0.00", "0.00"),
        ("+1.10", "1.10"),
        ("007", "7"),
        ("1.", "1"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("1E+3", "1000"),
        ("1e3", "1000"),
        ("1.50E1", "15.0"),
        ("1.5E-3", "0.0015"),
        ("12.345e2", "1234.5"),
        ("0E+9", "0"),
        ("0E-3", "0.000"),
        ("0e99999999999999999999999", "0"),
        ("1e000000000000000000000000000001", "10"),
        (
            "170141183460469231731687303715884105727",
            "170141183460469231731687303715884105727",
        ),
        (
            "-170141183460469231731687303715884105728",
            "-170141183460469231731687303715884105728",
        ),
        (
            "170141183460469231731687303715884105728",
            "170141183460469231731687303715884105728",
        ),
        (
            "0.0000000000000000000000000000000000000001",
            "0.0000000000000000000000000000000000000001",
        ),
        (&max_digits, &max_digits),
    ];
    for (text, expected) in cases {
        assert_eq!(decimal(text).to_string(), expected, "{text}");
    }
}

#[test]
fn text_outside_the_grammar_is_malformed() {
    let cases = [
        "",
        " ",
        "+",
        "-",
        ".",
        "+.",
        "e5",
        ".e5",
        "1e",
        "1e+",
        "1 ",
        " 1",
        "1_0",
        "1,0",
        "--1",
        "+-1",
        "1.2.3",
        "0x1",
        "NaN",
        "Infinity",
        "-inf",
        "sNaN12",
        "١",
        "1\n",
        "1e5.0",
        "1e5 ",
        "\u{feff}1",
    ];
    for text in cases {
        assert_eq!(
            Decimal::parse(text).unwrap_err(),
            ParseDecimalError::Malformed,
            "{text:?}"
        );
    }
}

#[test]
fn limits_count_digits_and_places() {
    let in_range = [
        "1E+999",
        "1E-1000",
        "0E-1000",
        &"9".repeat(1_000),
        &format!("0.{}", "9".repeat(1_000)),
    ];
    for text in in_range {
        assert!(Decimal::parse(text).is_ok(), "{text}");
    }
    let out_of_range = [
        "1E+1000",
        "1E-1001",
        "0E-1001",
        "1e999999999",
        "-1e-99999999999999999999999999",
        &"9".repeat(1_001),
        &format!("1.{}", "0".repeat(1_000)),
        &format!("0.{}", "0".repeat(1_001)),
    ];
    for text in out_of_range {
        assert_eq!(
            Decimal::parse(text).unwrap_err(),
            ParseDecimalError::OutOfRange,
            "{text}"
        );
    }
    assert_eq!(
        decimal(&format!("{}1", "0".repeat(5_000))).to_string(),
        "1",
        "leading zeros do not count"
    );
}

#[test]
fn hostile_texts_take_one_pass() {
    let long = "7".repeat(1_000_000);
    let texts = [
        long.clone(),
        format!("0.{long}"),
        format!("1e{long}"),
        format!("1e-{long}"),
        format!("{}1", "0".repeat(1_000_000)),
        format!("{long}x"),
    ];
    let start = Instant::now();
    for text in &texts {
        let _ = Decimal::parse(text);
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn arithmetic_is_exact_and_keeps_the_scale() {
    let text = |result: Result<Decimal, OverLimit>| result.unwrap().to_string();
    assert_eq!(text(decimal("1.10").add(&decimal("2.2"))), "3.30");
    assert_eq!(text(decimal("-0.10").add(&decimal("0.1"))), "0.00");
    assert_eq!(text(decimal("5").subtract(&decimal("0.25"))), "4.75");
    assert_eq!(text(decimal("50.00").multiply(&decimal("0.029"))), "1.45000");
    assert_eq!(text(decimal("0.00").multiply(&decimal("-3"))), "0.00");
    let nines = decimal(&"9".repeat(38));
    assert_eq!(text(nines.add(&decimal("1"))), format!("1{}", "0".repeat(38)));
    assert_eq!(
        text(nines.multiply(&nines)),
        format!("{}8{}1", "9".repeat(37), "0".repeat(37))
    );
    // Far apart: only the slow path can align these.
    assert_eq!(
        text(decimal("1").add(&decimal("1E-999"))),
        format!("1.{}1", "0".repeat(998))
    );
    // From long to short: the form follows the coefficient.
    let long = decimal("170141183460469231731687303715884105728");
    assert_eq!(
        text(long.subtract(&decimal("1"))),
        "170141183460469231731687303715884105727"
    );
    assert_eq!(text(long.negate().negate().subtract(&long)), "0");
    assert_eq!(
        decimal("-170141183460469231731687303715884105728")
            .negate()
            .to_string(),
        long.to_string()
    );
    assert_eq!(
        long.negate().to_string(),
        "-170141183460469231731687303715884105728"
    );
}

#[test]
fn a_result_over_a_limit_fails() {
    assert!(decimal("9E+999").add(&decimal("9E+999")).is_err());
    assert!(decimal("1E+999").add(&decimal("0.0")).is_err());
    assert!(decimal("-9E+999").subtract(&decimal("9E+999")).is_err());
    assert!(decimal("1E-600").multiply(&decimal("1E-401")).is_err());
    assert!(decimal("0E-600").multiply(&decimal("0E-401")).is_err());
    assert!(decimal("1E+500").multiply(&decimal("1E+499")).is_ok());
    assert!(decimal("1E+500").multiply(&decimal("1E+500")).is_err());
    assert!(Decimal::new(1, 1_001).is_err());
}

#[test]
fn comparison_is_numeric() {
    let cases = [
        ("1.0", "1.00", Ordering::Equal),
        ("0", "0.00", Ordering::Equal),
        ("1.01", "1.1", Ordering::Less),
        ("-2", "-2.5", Ordering::Greater),
        ("-1", "1E-1000", Ordering::Less),
        ("1E+999", "1E-1000", Ordering::Greater),
        ("1E+999", "1E+998", Ordering::Greater),
        ("-1E+999", "0", Ordering::Less),
        ("1E-1000", "0", Ordering::Greater),
    ];
    for (left, right, expected) in cases {
        assert_eq!(decimal(left).compare(&decimal(right)), expected, "{left} {right}");
        assert_eq!(
            decimal(right).compare(&decimal(left)),
            expected.reverse(),
            "{right} {left}"
        );
    }
    assert!(!decimal("1.0").is_identical(&decimal("1.00")));
}

/// Compares the fast and the slow form by shifting both operands past 128 bits.
#[test]
fn small_and_big_forms_agree() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let unit = decimal("1E+60");
    for _ in 0..2_000 {
        let left = Decimal::new(
            i128::from(next().cast_signed()),
            u16::try_from(next() % 12).unwrap(),
        )
        .unwrap();
        let right = Decimal::new(
            i128::from(next().cast_signed()),
            u16::try_from(next() % 12).unwrap(),
        )
        .unwrap();
        let (big_left, big_right) = (left.multiply(&unit).unwrap(), right.multiply(&unit).unwrap());
        let same = |small: &Decimal, big: &Decimal| small.multiply(&unit).unwrap().is_identical(big);
        assert!(same(
            &left.add(&right).unwrap(),
            &big_left.add(&big_right).unwrap()
        ));
        assert!(same(
            &left.subtract(&right).unwrap(),
            &big_left.subtract(&big_right).unwrap()
        ));
        assert!(same(
            &left.multiply(&right).unwrap(),
            &big_left.multiply(&right).unwrap()
        ));
        assert_eq!(left.compare(&right), big_left.compare(&big_right));
        assert!(
            Decimal::parse(&big_left.to_string())
                .unwrap()
                .is_identical(&big_left)
        );
    }
}

#[test]
fn values_stay_small() {
    assert!(size_of::<Value>() <= 32, "{}", size_of::<Value>());
}
