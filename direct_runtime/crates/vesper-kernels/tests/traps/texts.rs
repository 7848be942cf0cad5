use std::sync::Arc;

use vesper_ir::ErrorCode::{IndexOutOfRange, InvalidArgument, TooLarge};
use vesper_ir::{ErrorCode, TextKernels, Value};
use vesper_kernels::Native;

use crate::{all_shown, integers, quickly, text};

const LIMIT: i64 = 10_000_000;

fn plain(result: Result<Arc<str>, ErrorCode>) -> Result<String, ErrorCode> {
    result.map(|text| text.to_string())
}

fn length(result: Result<Arc<str>, ErrorCode>) -> Result<usize, ErrorCode> {
    result.map(|text| text.chars().count())
}

#[test]
fn positions_are_code_points() {
    let value = "a\u{1f600}e\u{301}z";
    assert_eq!(plain(Native.text_at(value, 1)).as_deref(), Ok("\u{1f600}"));
    assert_eq!(plain(Native.text_at(value, 4)).as_deref(), Ok("z"));
    assert_eq!(plain(Native.text_at(value, 5)), Err(IndexOutOfRange));
    assert_eq!(plain(Native.text_at(value, i64::MIN)), Err(IndexOutOfRange));
    assert_eq!(plain(Native.text_slice(value, 1, 3)).as_deref(), Ok("\u{1f600}e"));
    assert_eq!(plain(Native.text_slice(value, 4, i64::MAX)).as_deref(), Ok("z"));
    assert_eq!(plain(Native.text_slice(value, 9, 2)).as_deref(), Ok(""));
    assert_eq!(
        plain(Native.text_slice(value, i64::MAX, i64::MAX)).as_deref(),
        Ok("")
    );
    assert_eq!(plain(Native.text_slice(value, 0, -1)), Err(InvalidArgument));
    assert_eq!(plain(Native.text_slice(value, 9, i64::MIN)), Err(InvalidArgument));
    assert!(matches!(
        Native.text_index_of(value, "z"),
        Some(Value::Integer(4))
    ));
    assert!(matches!(Native.text_index_of("", ""), Some(Value::Integer(0))));
    assert_eq!(&*Native.text_reverse(value), "z\u{301}e\u{1f600}a");
    assert_eq!(length(Native.text_pad_start("\u{1f600}", 3, "\u{e9}")), Ok(3));
}

#[test]
fn white_space_is_the_property_of_unicode() {
    let spaces =
        "\t\n\u{b}\u{c}\r \u{85}\u{a0}\u{1680}\u{2000}\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}";
    assert_eq!(&*Native.text_trim(spaces), "");
    assert_eq!(&*Native.text_trim(&format!("{spaces}a b{spaces}")), "a b");
    assert_eq!(
        all_shown(&Native.text_words(&format!("{spaces}a{spaces}b")).unwrap()),
        "[a, b]"
    );
    for other in [
        "\u{1c}", "\u{1d}", "\u{1e}", "\u{1f}", "\u{200b}", "\u{feff}", "\u{180e}", "\u{2060}",
    ] {
        assert_eq!(&*Native.text_trim(other), other, "{other:?}");
        assert_eq!(&*Native.text_trim_start(other), other);
        assert_eq!(&*Native.text_trim_end(other), other);
    }
    // Every code point: this release of Rust has the same property.
    for char in (0..=0x0010_ffff).filter_map(char::from_u32) {
        let is_trimmed = Native.text_trim(char.encode_utf8(&mut [0; 4])).is_empty();
        assert_eq!(is_trimmed, char.is_whitespace(), "{char:?}");
    }
}

#[test]
fn operations_accept_empty_strings_as_specified() {
    assert_eq!(Native.text_split("", ",").unwrap().len(), 1);
    assert_eq!(Native.text_split(",,", ",").unwrap().len(), 3);
    assert_eq!(Native.text_split("", "").err(), Some(InvalidArgument));
    assert_eq!(plain(Native.text_replace("", "", "")), Err(InvalidArgument));
    assert_eq!(plain(Native.text_replace("aaaa", "aa", "")).as_deref(), Ok(""));
    assert_eq!(plain(Native.text_join(&[], ", ")).as_deref(), Ok(""));
    assert_eq!(
        plain(Native.text_join(&[text(""), text("")], "-")).as_deref(),
        Ok("-")
    );
    assert_eq!(plain(Native.text_repeat("", i64::MAX)).as_deref(), Ok(""));
    assert_eq!(plain(Native.text_repeat("", -1)), Err(InvalidArgument));
    assert_eq!(plain(Native.text_repeat("ab", 0)).as_deref(), Ok(""));
    assert!(Native.text_starts_with("", "") && Native.text_ends_with("", "") && Native.text_contains("", ""));
    assert_eq!(plain(Native.text_pad_end("abc", 1, "")), Err(InvalidArgument));
    assert_eq!(
        plain(Native.text_pad_end("abc", 1, "e\u{301}")),
        Err(InvalidArgument)
    );
    assert_eq!(
        plain(Native.text_pad_end("", 2, "\u{1f600}")).as_deref(),
        Ok("\u{1f600}\u{1f600}")
    );
}

#[test]
fn code_points_are_numbers_without_surrogates() {
    for number in [-1, 0xd800, 0xdfff, 0x11_0000, i64::MAX, i64::MIN, 0x1_0000_0041] {
        assert_eq!(
            plain(Native.text_from_code_point(number)),
            Err(InvalidArgument),
            "{number}"
        );
    }
    for number in [0, 0xd7ff, 0xe000, 0xffff, 0x10_ffff] {
        let text = Native.text_from_code_point(number).unwrap();
        assert_eq!(Native.text_code_point(&text), Ok(number));
    }
    let points = Native.text_code_points("\u{0}\u{1f600}").unwrap();
    assert_eq!(all_shown(&points), all_shown(&integers(&[0, 128_512])));
}

#[test]
fn sizes_at_the_limit() {
    let count = usize::try_from(LIMIT).unwrap();
    assert_eq!(length(Native.text_repeat("\u{e9}", LIMIT)), Ok(count));
    assert_eq!(plain(Native.text_repeat("\u{e9}", LIMIT + 1)), Err(TooLarge));
    let full = "\u{e9}".repeat(count);
    assert_eq!(length(Native.text_concat(&full, "")), Ok(count));
    assert_eq!(plain(Native.text_concat(&full, "a")), Err(TooLarge));
    assert_eq!(length(Native.text_pad_start("a", LIMIT, "\u{1f600}")), Ok(count));
    assert_eq!(plain(Native.text_pad_start("a", LIMIT + 1, " ")), Err(TooLarge));
    assert_eq!(plain(Native.text_pad_end(&full, LIMIT + 1, " ")), Err(TooLarge));
    assert_eq!(length(Native.text_pad_end(&full, LIMIT, " ")), Ok(count));
    assert_eq!(length(Native.text_replace(&full, "\u{e9}", "z")), Ok(count));
    assert_eq!(plain(Native.text_replace(&full, "\u{e9}", "zz")), Err(TooLarge));
    assert_eq!(
        Native.text_split(&",".repeat(999_999), ",").unwrap().len(),
        1_000_000
    );
    assert_eq!(
        Native.text_split(&",".repeat(1_000_000), ",").err(),
        Some(TooLarge)
    );
    assert_eq!(
        Native.text_words(&"a ".repeat(1_000_000)).unwrap().len(),
        1_000_000
    );
    assert_eq!(Native.text_words(&"a ".repeat(1_000_001)).err(), Some(TooLarge));
    assert_eq!(Native.text_code_points(&full).err(), Some(TooLarge));
}

#[test]
fn hostile_sizes_fail_before_allocation() {
    let full = "\u{e9}".repeat(10_000_000);
    quickly("what would not fit any memory", || {
        assert_eq!(plain(Native.text_repeat(&full, i64::MAX)), Err(TooLarge));
        assert_eq!(
            plain(Native.text_pad_end("", i64::MAX, "\u{1f600}")),
            Err(TooLarge)
        );
        assert_eq!(plain(Native.text_pad_start("", i64::MIN, " ")).as_deref(), Ok(""));
        assert_eq!(plain(Native.text_replace(&full, "\u{e9}", &full)), Err(TooLarge));
        let many = vec![text(&full); 1_000_000];
        assert_eq!(plain(Native.text_join(&many, "")), Err(TooLarge));
        assert_eq!(
            plain(Native.text_join(&vec![text(""); 1_000_000], &full)),
            Err(TooLarge)
        );
    });
    // A needle that is quadratic for a naive search.
    let (haystack, needle) = ("a".repeat(10_000_000), format!("{}b", "a".repeat(1_000_000)));
    quickly("a search", || {
        assert!(!Native.text_contains(&haystack, &needle));
        assert!(Native.text_index_of(&haystack, &needle).is_none());
        assert_eq!(Native.text_split(&haystack, &needle).unwrap().len(), 1);
        assert_eq!(
            length(Native.text_replace(&haystack, &needle, "")),
            Ok(10_000_000)
        );
    });
}

#[test]
fn white_space_is_that_of_the_extract() {
    let extract = include_str!("../../../../unicode/extract.txt");
    let code = |digits: &str| u32::from_str_radix(digits, 16).unwrap();
    let ranges: Vec<_> = extract
        .lines()
        .filter_map(|line| line.strip_prefix("white_space ")?.split_once(' '))
        .map(|(first, last)| code(first)..=code(last))
        .collect();
    assert_eq!(ranges.iter().cloned().flatten().count(), 25);
    for char in '\0'..=char::MAX {
        let is_space = ranges.iter().any(|range| range.contains(&u32::from(char)));
        let trimmed = Native.text_trim(char.encode_utf8(&mut [0; 4]));
        assert_eq!(trimmed.is_empty(), is_space, "{char:?}");
    }
}

#[test]
fn case_may_make_a_text_too_long() {
    // Three code points for one.
    let longest = "\u{390}".repeat(10_000_000 / 3);
    assert_eq!(Native.text_upper(&longest).unwrap().chars().count(), 9_999_999);
    assert_eq!(Native.text_upper(&(longest + "\u{390}")), Err(TooLarge));
    assert_eq!(Native.text_lower("ΑΣ Σ").unwrap().as_ref(), "ασ σ");
    assert_eq!(
        Native.text_upper("ŉǰ\u{1c5}").unwrap().as_ref(),
        "\u{2bc}NJ\u{30c}\u{1c4}"
    );
}
