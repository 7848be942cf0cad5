use vesper_ir::ErrorCode::{DecimalOverflow, DivisionByZero, IntegerOverflow, InvalidArgument, NotWhole};
use vesper_ir::{DecimalKernels, ErrorCode, IntegerKernels, RoundingMode, Value};
use vesper_kernels::Native;

use crate::{MODES, all_shown, decimal, quickly};

fn divide(left: &str, right: &str) -> Result<String, ErrorCode> {
    let quotient = Native.decimal_divide(&decimal(left), &decimal(right));
    quotient.map(|quotient| quotient.to_string())
}

fn pow(base: &str, exponent: i64) -> Result<String, ErrorCode> {
    let power = Native.decimal_pow(&decimal(base), exponent);
    power.map(|power| power.to_string())
}

fn round(value: &str, scale: i64, mode: RoundingMode) -> Result<String, ErrorCode> {
    let rounded = Native.decimal_round(&decimal(value), scale, mode);
    rounded.map(|rounded| rounded.to_string())
}

fn allocate(total: &str, weights: &[&str]) -> Result<String, ErrorCode> {
    let weights: Vec<Value> = weights.iter().map(|it| Value::Decimal(decimal(it))).collect();
    let parts = Native.decimal_allocate(&decimal(total), &weights);
    parts.map(|parts| all_shown(&parts))
}

#[test]
fn every_mode_rounds_ties_and_their_neighbours() {
    // half_even, half_up, half_down, up, down, floor, ceiling
    let table = [
        ("2.5", ["2", "3", "2", "3", "2", "2", "3"]),
        ("-2.5", ["-2", "-3", "-2", "-3", "-2", "-3", "-2"]),
        ("3.5", ["4", "4", "3", "4", "3", "3", "4"]),
        ("-3.5", ["-4", "-4", "-3", "-4", "-3", "-4", "-3"]),
        ("0.5", ["0", "1", "0", "1", "0", "0", "1"]),
        ("-0.5", ["0", "-1", "0", "-1", "0", "-1", "0"]),
        ("0.4999", ["0", "0", "0", "1", "0", "0", "1"]),
        ("-0.5001", ["-1", "-1", "-1", "-1", "0", "-1", "0"]),
        ("0.0", ["0", "0", "0", "0", "0", "0", "0"]),
        ("-7.00", ["-7", "-7", "-7", "-7", "-7", "-7", "-7"]),
        ("1E-1000", ["0", "0", "0", "1", "0", "0", "1"]),
        ("-1E-1000", ["0", "0", "0", "-1", "0", "-1", "0"]),
    ];
    for (value, expected) in table {
        for (mode, expected) in MODES.into_iter().zip(expected) {
            assert_eq!(round(value, 0, mode).as_deref(), Ok(expected), "{value} {mode:?}");
            let quotient = Native.decimal_div(&decimal(value), &decimal("1.00"), 0, mode);
            assert_eq!(quotient.unwrap().to_string(), expected, "{value} / 1 {mode:?}");
            // The same number with more digits than fit 128 bits.
            let long = Native.decimal_multiply(&decimal(value), &decimal(&format!("1.{}", "0".repeat(60))));
            if let Ok(long) = long {
                assert_eq!(
                    round(&long.to_string(), 0, mode).as_deref(),
                    Ok(expected),
                    "{value} {mode:?}"
                );
            }
        }
    }
}

#[test]
fn scales_of_rounding_end_at_a_thousand() {
    let half_even = RoundingMode::HalfEven;
    assert_eq!(round("1", 1_000, half_even), Err(DecimalOverflow));
    assert_eq!(round("0", 1_000, half_even).unwrap().len(), 1_002);
    assert_eq!(round("1", 999, half_even).unwrap().len(), 1_001);
    for scale in [1_001, -1_001, i64::MAX, i64::MIN, 70_000, 65_536, -65_536] {
        assert_eq!(round("1", scale, half_even), Err(InvalidArgument), "{scale}");
    }
    assert_eq!(round("5", -1_000, half_even).as_deref(), Ok("0"));
    assert_eq!(round("0.00", -3, half_even).as_deref(), Ok("0"));
    // A thousand digits and one.
    assert_eq!(round("5", -1_000, RoundingMode::Up), Err(DecimalOverflow));
    assert_eq!(round("9.5E+999", -999, half_even), Err(DecimalOverflow));
    assert_eq!(round("-1", -2, RoundingMode::Floor).as_deref(), Ok("-100"));
    assert_eq!(round("1250", -2, RoundingMode::HalfUp).as_deref(), Ok("1300"));

    let div = |scale| {
        Native
            .decimal_div(&decimal("1"), &decimal("0"), scale, half_even)
            .err()
    };
    assert_eq!(div(-1), Some(InvalidArgument));
    assert_eq!(div(1_001), Some(InvalidArgument));
    assert_eq!(div(1_000), Some(DivisionByZero));
}

#[test]
fn division_keeps_34_digits_and_no_more() {
    assert_eq!(divide("1", "3").unwrap(), format!("0.{}", "3".repeat(34)));
    assert_eq!(divide("-2", "3").unwrap(), format!("-0.{}7", "6".repeat(33)));
    assert_eq!(divide("1", "0.01").as_deref(), Ok("100"));
    assert_eq!(divide("100", "1").as_deref(), Ok("100"));
    assert_eq!(divide("6.00", "2").as_deref(), Ok("3.00"));
    assert_eq!(divide("0.000", "-5").as_deref(), Ok("0.000"));
    assert_eq!(divide("0", "0"), Err(DivisionByZero));
    // 35 digits: rounded, a tie to the even digit.
    assert_eq!(
        divide("12345678901234567890123456789012345", "10").as_deref(),
        Ok("1234567890123456789012345678901234"),
        "35 digits, and the tie goes to the even 4"
    );
    assert_eq!(
        divide("12345678901234567890123456789012355", "1").as_deref(),
        Ok("12345678901234567890123456789012360")
    );
    // 35 nines round up to one digit more; 34 of them stay.
    assert_eq!(
        divide(&"9".repeat(35), "1").unwrap(),
        format!("1{}", "0".repeat(35))
    );
    assert_eq!(
        divide(&format!("0.{}", "9".repeat(35)), "1").unwrap(),
        format!("1.{}", "0".repeat(33))
    );
    // A whole quotient with a scale that exceeds 34 digits.
    assert_eq!(divide("1E+40", "1").unwrap(), format!("1{}", "0".repeat(40)));
    assert_eq!(
        divide(&format!("10.{}", "0".repeat(40)), "1").unwrap(),
        format!("10.{}", "0".repeat(32))
    );
    assert_eq!(divide("1E-1000", "2"), Err(DecimalOverflow));
    assert_eq!(divide("1E-1000", "10"), Err(DecimalOverflow));
    assert_eq!(divide("1E+999", "1E-1"), Err(DecimalOverflow));
    assert_eq!(divide("1E+999", "1E-1000"), Err(DecimalOverflow));
    assert_eq!(
        Native.integer_divide(i64::MIN, -1).unwrap().to_string(),
        "9223372036854775808"
    );
}

#[test]
fn powers_are_rounded_once() {
    assert_eq!(pow("1.10", 2).as_deref(), Ok("1.2100"));
    assert_eq!(pow("-0.5", 3).as_deref(), Ok("-0.125"));
    assert_eq!(pow("-2", -3).as_deref(), Ok("-0.125"));
    assert_eq!(pow("0.00", 2).as_deref(), Ok("0.0000"));
    assert_eq!(pow("0.00", 501), Err(DecimalOverflow));
    assert_eq!(pow("0.00", -1), Err(DivisionByZero));
    assert_eq!(pow("0", i64::MIN), Err(DivisionByZero));
    assert_eq!(pow("9E+999", 0).as_deref(), Ok("1"));
    // As many trailing zeros as 34 digits permit.
    assert_eq!(
        pow("0.10", 600).unwrap(),
        format!("0.{}1{}", "0".repeat(599), "0".repeat(33))
    );
    assert_eq!(pow("10", 50).unwrap(), format!("1{}", "0".repeat(50)));
    assert_eq!(pow("10.0", 40).unwrap(), format!("1{}", "0".repeat(40)));
    assert_eq!(pow("10", -1_000).unwrap(), format!("0.{}1", "0".repeat(999)));
    assert_eq!(pow("10", -1_001), Err(DecimalOverflow));
    assert_eq!(pow("10", 999).unwrap().len(), 1_000);
    assert_eq!(pow("10", 1_000), Err(DecimalOverflow));
}

#[test]
fn hostile_numbers_are_decided_in_time() {
    for exponent in [i64::MAX, i64::MIN, 1_000_001, -1_000_001] {
        assert_eq!(pow("1.1", exponent), Err(DecimalOverflow));
        assert_eq!(pow("1", exponent), Err(DecimalOverflow), "by the count of digits");
    }
    quickly("9 to the million", || {
        assert_eq!(pow("9", 1_000_000), Err(DecimalOverflow));
        assert_eq!(pow("9", -1_000_000), Err(DecimalOverflow));
        assert_eq!(pow("1", 1_000_000).as_deref(), Ok("1"));
    });
    let rounded = quickly("a power of a million digits", || pow("1.0000000001", 90_909));
    assert_eq!(rounded.unwrap().len(), 35);
    let rounded = quickly("one by a power of a million digits", || {
        pow("1.0000000001", -90_909)
    });
    assert_eq!(rounded.unwrap().len(), 36);

    let long = format!("{}.{}", "7".repeat(500), "3".repeat(500));
    let small = format!("0.{}3", "0".repeat(999));
    quickly("long operands", || {
        for _ in 0..2_000 {
            assert!(divide(&long, "7").is_ok());
            assert_eq!(divide(&long, &small), Err(DecimalOverflow));
            assert!(round(&long, -400, RoundingMode::HalfEven).is_ok());
            assert!(
                Native
                    .decimal_div(&decimal(&small), &decimal(&long), 1_000, RoundingMode::Up)
                    .is_ok()
            );
        }
    });
}

#[test]
fn allocation_distributes_every_unit() {
    assert_eq!(
        allocate("0.05", &["50", "30", "20"]).as_deref(),
        Ok("[0.03, 0.01, 0.01]")
    );
    assert_eq!(allocate("-0.05", &["1", "1"]).as_deref(), Ok("[-0.03, -0.02]"));
    assert_eq!(allocate("0.00", &["1", "0"]).as_deref(), Ok("[0.00, 0.00]"));
    assert_eq!(
        allocate("1", &["0.5", "0.50", "1E-1000"]).as_deref(),
        Ok("[1, 0, 0]")
    );
    assert_eq!(allocate("10", &["0", "0.00"]), Err(InvalidArgument));
    assert_eq!(allocate("10", &["3", "-0.1"]), Err(InvalidArgument));
    assert_eq!(allocate("10", &[]), Err(InvalidArgument));
    // Remainders that differ only in late digits: the larger one is second.
    let more = format!("1.{}1", "0".repeat(900));
    assert_eq!(allocate("1", &["1", &more]).as_deref(), Ok("[0, 1]"));
    assert_eq!(allocate("2", &["1", &more, &more]).as_deref(), Ok("[0, 1, 1]"));

    let mut weights = vec![Value::Decimal(decimal("1")); 100_000];
    weights.push(Value::Decimal(decimal("1E-1000")));
    let total = decimal("1234567.89");
    let parts = quickly("many weights beside a tiny one", || {
        Native.decimal_allocate(&total, &weights)
    });
    let mut sum = decimal("0");
    for part in parts.unwrap().iter() {
        let Value::Decimal(part) = part else {
            panic!("{part:?}")
        };
        sum = sum.add(part).unwrap();
    }
    assert!(sum.is_identical(&total));
}

#[test]
fn only_whole_decimals_convert_to_integers() {
    let huge = decimal("9E+999");
    assert_eq!(Native.decimal_floor(&huge), Err(IntegerOverflow));
    assert_eq!(Native.decimal_to_integer(&huge), Err(IntegerOverflow));
    assert_eq!(Native.decimal_to_integer(&decimal("1E-1000")), Err(NotWhole));
    assert_eq!(
        Native.decimal_to_integer(&decimal(&format!("{}.5", "9".repeat(40)))),
        Err(NotWhole),
        "declared first"
    );
    assert_eq!(
        Native.decimal_to_integer(&decimal(&format!("7.{}", "0".repeat(900)))),
        Ok(7)
    );
    assert_eq!(
        Native.decimal_floor(&decimal("-9223372036854775807.5")),
        Ok(i64::MIN)
    );
    assert_eq!(
        Native.decimal_floor(&decimal("-9223372036854775808.5")),
        Err(IntegerOverflow)
    );
    assert_eq!(
        Native.decimal_trunc(&decimal("-9223372036854775808.9")),
        Ok(i64::MIN)
    );
    assert_eq!(
        Native.decimal_ceil(&decimal("9223372036854775807.1")),
        Err(IntegerOverflow)
    );
    assert_eq!(Native.decimal_ceil(&decimal("-0.9")), Ok(0));
    assert_eq!(
        Native
            .decimal_normalize(&decimal(&format!("7.{}", "0".repeat(900))))
            .to_string(),
        "7"
    );
    assert_eq!(Native.decimal_normalize(&decimal("1E+999")).scale(), 0);
}
