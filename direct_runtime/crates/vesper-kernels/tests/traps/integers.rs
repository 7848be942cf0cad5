use vesper_ir::ErrorCode::{BadFormat, DivisionByZero, IntegerOverflow, InvalidArgument};
use vesper_ir::IntegerKernels;
use vesper_kernels::Native;

#[test]
fn both_divisions_reconstruct_the_operand() {
    let edges = [
        i64::MIN,
        i64::MIN + 1,
        -8,
        -7,
        -2,
        -1,
        0,
        1,
        2,
        7,
        8,
        i64::MAX - 1,
        i64::MAX,
    ];
    for left in edges {
        for right in edges {
            if right == 0 {
                assert_eq!(Native.integer_quot(left, right), Err(DivisionByZero));
                assert_eq!(Native.integer_rem(left, right), Err(DivisionByZero));
                assert_eq!(Native.integer_div_floor(left, right), Err(DivisionByZero));
                assert_eq!(Native.integer_mod(left, right), Err(DivisionByZero));
                assert_eq!(Native.integer_divide(left, right).err(), Some(DivisionByZero));
                continue;
            }
            let (rem, modulo) = (
                Native.integer_rem(left, right).unwrap(),
                Native.integer_mod(left, right).unwrap(),
            );
            assert!(rem == 0 || (rem < 0) == (left < 0), "{left} rem {right}");
            assert!(modulo == 0 || (modulo < 0) == (right < 0), "{left} mod {right}");
            let quotients = [
                (Native.integer_quot(left, right), rem),
                (Native.integer_div_floor(left, right), modulo),
            ];
            for (quotient, remainder) in quotients {
                if (left, right) == (i64::MIN, -1) {
                    assert_eq!((quotient, remainder), (Err(IntegerOverflow), 0));
                } else {
                    let product = i128::from(quotient.unwrap()) * i128::from(right);
                    assert_eq!(product + i128::from(remainder), i128::from(left));
                    assert!(i128::from(remainder).abs() < i128::from(right).abs());
                }
            }
        }
    }
}

#[test]
fn powers_beyond_64_bits_fail() {
    assert_eq!(Native.integer_pow(-2, 63), Ok(i64::MIN));
    assert_eq!(Native.integer_pow(-2, 64), Err(IntegerOverflow));
    assert_eq!(Native.integer_pow(2, i64::MAX), Err(IntegerOverflow));
    assert_eq!(Native.integer_pow(0, i64::MAX), Ok(0));
    assert_eq!(Native.integer_pow(1, i64::MAX), Ok(1));
    assert_eq!(Native.integer_pow(-1, i64::MAX), Ok(-1));
    assert_eq!(Native.integer_pow(-1, i64::MAX - 1), Ok(1));
    assert_eq!(Native.integer_pow(0, i64::MIN), Err(InvalidArgument));
    assert_eq!(Native.integer_pow(i64::MIN, 1), Ok(i64::MIN));
    assert_eq!(Native.integer_pow(i64::MIN, 0), Ok(1));
}

#[test]
fn shifts_lose_no_bits_and_end_at_63() {
    assert_eq!(Native.integer_shift_left(-1, 63), Ok(i64::MIN));
    assert_eq!(Native.integer_shift_left(-2, 63), Err(IntegerOverflow));
    assert_eq!(Native.integer_shift_left(0, 63), Ok(0));
    assert_eq!(Native.integer_shift_left(0, 64), Err(InvalidArgument));
    assert_eq!(Native.integer_shift_left(1, i64::MAX), Err(InvalidArgument));
    assert_eq!(Native.integer_shift_right(i64::MIN, 63), Ok(-1));
    assert_eq!(Native.integer_shift_right(-1, 63), Ok(-1));
    assert_eq!(Native.integer_shift_right(1, i64::MIN), Err(InvalidArgument));
}

#[test]
fn integer_parsing_is_strict() {
    assert_eq!(Native.integer_parse("-9223372036854775808"), Ok(i64::MIN));
    assert_eq!(Native.integer_parse("-9223372036854775809"), Err(IntegerOverflow));
    assert_eq!(Native.integer_parse("9223372036854775807"), Ok(i64::MAX));
    assert_eq!(Native.integer_parse("-0"), Ok(0));
    for malformed in [
        "+",
        "-",
        "+-1",
        "--1",
        "1 ",
        "1.0",
        "1e3",
        "0x1",
        "\u{ff11}",
        "\u{2212}1",
    ] {
        assert_eq!(Native.integer_parse(malformed), Err(BadFormat), "{malformed}");
    }
    let zeros = "0".repeat(1_000_000);
    assert_eq!(Native.integer_parse(&format!("{zeros}7")), Ok(7));
    let nines = "9".repeat(1_000_000);
    assert_eq!(Native.integer_parse(&nines), Err(IntegerOverflow));
    // The format is checked first: `bad_format` is declared before `integer_overflow`.
    assert_eq!(Native.integer_parse(&format!("{nines}x")), Err(BadFormat));
}
