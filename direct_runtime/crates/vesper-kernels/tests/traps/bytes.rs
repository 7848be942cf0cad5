//! Tests of strict decoders, where those of Rust and Python are more lenient.

use vesper_ir::limits::BYTES_LENGTH;
use vesper_ir::{ArrayKernels, BytesKernels, ErrorCode, SortOrder, Value};
use vesper_kernels::Native;

#[test]
fn decoders_are_strict() {
    for text in [
        "A", "AA", "AAA", "AA=", "A===", "====", "=", "AA==AA==", "AB==", "AAB=", "AA=A", "AA==\n", " AA==",
        "AA-_", "A A=", "AAAA=", "AAAA====", "é===",
    ] {
        assert_eq!(
            Native.bytes_parse_base64(text),
            Err(ErrorCode::BadFormat),
            "{text:?}"
        );
    }
    for text in ["0", "0x", "00 ", " 00", "0g", "00ff0", "é", "+0", "00:ff"] {
        assert_eq!(
            Native.bytes_parse_hex(text),
            Err(ErrorCode::BadFormat),
            "{text:?}"
        );
    }
    for hex in [
        "80", "c080", "e0809f", "eda080", "f4908080", "f8888080", "c3", "61ff",
    ] {
        let bytes = Native.bytes_parse_hex(hex).unwrap();
        assert_eq!(
            Native.bytes_parse_utf8(&bytes),
            Err(ErrorCode::BadFormat),
            "{hex}"
        );
    }
}

#[test]
fn every_length_round_trips() {
    let all: Vec<u8> = (0..=255).collect();
    for length in 0..=all.len() {
        let bytes = &all[..length];
        let text = Native.bytes_base64(bytes).unwrap();
        assert_eq!(text.len(), length.div_ceil(3) * 4);
        assert_eq!(&*Native.bytes_parse_base64(&text).unwrap(), bytes);
        let text = Native.bytes_hex(bytes).unwrap();
        assert_eq!(&*Native.bytes_parse_hex(&text.to_uppercase()).unwrap(), bytes);
    }
}

#[test]
fn positions_past_the_end_mean_the_end() {
    let slice = |start, end| {
        Native
            .bytes_slice(b"abcd", start, end)
            .map(|bytes| bytes.to_vec())
    };
    assert_eq!(slice(1, i64::MAX), Ok(b"bcd".to_vec()));
    assert_eq!(slice(i64::MAX, i64::MAX), Ok(Vec::new()));
    assert_eq!(slice(3, 1), Ok(Vec::new()));
    assert_eq!(slice(0, -1), Err(ErrorCode::InvalidArgument));
    assert_eq!(slice(i64::MIN, 0), Err(ErrorCode::InvalidArgument));
    assert_eq!(Native.bytes_at(b"a", i64::MIN), Err(ErrorCode::IndexOutOfRange));
}

#[test]
fn sizes_at_the_limit() {
    let longest = vec![0; BYTES_LENGTH];
    assert_eq!(Native.bytes_concat(&longest, b""), Ok(longest.clone().into()));
    assert_eq!(Native.bytes_concat(&longest, b"a"), Err(ErrorCode::TooLarge));
    assert_eq!(Native.bytes_hex(&longest[1..]), Err(ErrorCode::TooLarge));
    assert_eq!(
        Native.bytes_hex(&longest[..BYTES_LENGTH / 2]).unwrap().len(),
        BYTES_LENGTH
    );
    assert_eq!(
        Native.bytes_base64(&longest[..7_500_000]).unwrap().len(),
        BYTES_LENGTH
    );
    assert_eq!(
        Native.bytes_base64(&longest[..7_500_001]),
        Err(ErrorCode::TooLarge)
    );
    assert_eq!(
        Native.bytes_utf8(&"é".repeat(5_000_001)),
        Err(ErrorCode::TooLarge)
    );
}

#[test]
fn bytes_are_ordered_as_unsigned_numbers() {
    let bytes = |bytes: &[u8]| Value::Bytes(bytes.into());
    let values = [
        bytes(&[255]),
        bytes(&[127, 0]),
        bytes(&[]),
        bytes(&[127]),
        bytes(&[0, 255]),
    ];
    let sorted = Native.array_sort(&values, SortOrder::Ascending);
    let expected = [
        bytes(&[]),
        bytes(&[0, 255]),
        bytes(&[127]),
        bytes(&[127, 0]),
        bytes(&[255]),
    ];
    assert!(
        sorted
            .iter()
            .zip(&expected)
            .all(|(left, right)| left.is_equal(right))
    );
    assert_eq!(
        Native
            .array_to_set(&[values.to_vec(), values.to_vec()].concat())
            .len(),
        5
    );
}
