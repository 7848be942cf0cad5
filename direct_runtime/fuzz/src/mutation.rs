//! Structure-aware mutation: replaces, copies, moves and removes whole JSON values.
//!
//! The result is still well spelled and passes the reader. The targets add mutations of plain bytes.

use vesper_ir::Op;

use crate::Random;

/// Replacements for any value: IR types, numbers at limits, texts of every family.
const PIECES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "2",
    "63",
    "64",
    "255",
    "4096",
    "65536",
    "1000000",
    "1000001",
    "2147483648",
    "4294967295",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551616",
    "0.1",
    "-0.0",
    "1.50",
    "1e3",
    "1E-400",
    "1e309",
    "5e-324",
    "1e999999999999",
    "\"\"",
    "\"0\"",
    "\"-0\"",
    "\"1e1000\"",
    "\"1E-1000\"",
    "\"9E+999\"",
    "\"NaN\"",
    "\"Infinity\"",
    "\"-Infinity\"",
    "\"2024-02-29\"",
    "\"0001-01-01\"",
    "\"9999-12-31\"",
    "\"2024-02-29T23:59:59.999999Z\"",
    "\"2024-01-01T00:00:00+14:00\"",
    "\"P1D\"",
    "\"-PT0.000001S\"",
    "\"P3652059D\"",
    "\"AP8=\"",
    "\"AA==\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"\u{10ffff}\"",
    "\"a\u{301}\u{df}\u{130}\"",
    "\"(a*)*b\"",
    "\"[^\\\\w\\\\s]{0,1000}\"",
    "\"(?i)x|y\"",
    "[]",
    "{}",
    "[[]]",
    "[0]",
    "[0,0]",
    "[[0,0]]",
    "[null]",
    "\"boolean\"",
    "\"integer\"",
    "\"decimal\"",
    "\"float\"",
    "\"string\"",
    "\"bytes\"",
    "\"timestamp\"",
    "\"date\"",
    "\"duration\"",
    "\"json\"",
    "{\"array\":\"integer\"}",
    "{\"array\":{\"array\":\"string\"}}",
    "{\"set\":\"string\"}",
    "{\"set\":\"decimal\"}",
    "{\"map\":[\"string\",\"integer\"]}",
    "{\"map\":[\"integer\",\"json\"]}",
    "{\"map\":[\"decimal\",{\"optional\":\"date\"}]}",
    "{\"optional\":\"json\"}",
    "{\"optional\":\"decimal\"}",
    "{\"enum\":[\"a\",\"b\"]}",
    "{\"record\":[{\"name\":\"a\",\"type\":\"integer\"}]}",
    "{\"record\":[{\"name\":\"b\",\"type\":{\"optional\":\"float\"}},{\"name\":\"a\",\"type\":\"bytes\"}]}",
];

/// Characters with a meaning for one of the parsers.
const CHARACTERS: &[&str] = &[
    "0",
    "9",
    "-",
    "+",
    ".",
    "e",
    "E",
    ":",
    "T",
    "Z",
    "P",
    "\\\\",
    "\\n",
    "\\u0000",
    "\\ud800",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "*",
    "?",
    "|",
    "^",
    "$",
    " ",
    "\u{e9}",
    "\u{1f600}",
    "=",
    "/",
    "_",
];

/// Value inside a text: start, end, and whether it is an item of an array.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: usize,
    to: usize,
    is_item: bool,
}

/// Returns the values of a text that is JSON, or nearly.
fn spans(text: &[u8]) -> Vec<Span> {
    let mut found = Vec::new();
    let mut open: Vec<Span> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let from = at;
        // An item is inside brackets, whose kind is that of their first byte.
        let is_item = open.last().is_some_and(|outer| text[outer.from] == b'[');
        match text[at] {
            b'{' | b'[' => open.push(Span {
                from,
                to: from,
                is_item,
            }),
            b'}' | b']' => {
                if let Some(outer) = open.pop() {
                    found.push(Span { to: at + 1, ..outer });
                }
            }
            b'"' => {
                at += 1;
                while at < text.len() && text[at] != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
                let to = (at + 1).min(text.len());
                if text.get(to) != Some(&b':') {
                    found.push(Span { from, to, is_item });
                }
            }
            b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-+.".contains(byte);
                at += text[at..].iter().take_while(|byte| is_word(byte)).count() - 1;
                found.push(Span {
                    from,
                    to: at + 1,
                    is_item,
                });
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn replace_span(text: &[u8], span: Span, by: &[u8]) -> Vec<u8> {
    [&text[..span.from], by, &text[span.to..]].concat()
}

/// Changes one value of a text. A replacement is appended to a text without values.
pub fn mutate_value(text: &[u8], random: &mut Random) -> Vec<u8> {
    let all = spans(text);
    if all.is_empty() {
        return [text, random.pick(PIECES).as_bytes()].concat();
    }
    let span = *random.pick(&all);
    let own = &text[span.from..span.to];
    let items: Vec<Span> = all.iter().copied().filter(|span| span.is_item).collect();
    match random.below(10) {
        0 | 1 => replace_span(text, span, random.pick(PIECES).as_bytes()),
        2 => {
            let other = *random.pick(&all);
            replace_span(text, span, &text[other.from..other.to])
        }
        // A value of the same kind is more often valid.
        3 => {
            let alike: Vec<&Span> = all.iter().filter(|other| text[other.from] == own[0]).collect();
            let other = **random.pick(&alike);
            replace_span(text, span, &text[other.from..other.to])
        }
        4 | 5 => {
            let numbers: Vec<Span> = all
                .iter()
                .copied()
                .filter(|span| is_integer(text, *span))
                .collect();
            if numbers.is_empty() {
                return replace_span(text, span, random.pick(PIECES).as_bytes());
            }
            let span = *random.pick(&numbers);
            replace_span(
                text,
                span,
                nearby_number(&text[span.from..span.to], random).as_bytes(),
            )
        }
        6 if !items.is_empty() => {
            let item = *random.pick(&items);
            let again = &text[item.from..item.to];
            let times = [1, 1, 1, 2, 40][random.below(5)];
            replace_span(
                text,
                Span {
                    to: item.from,
                    ..item
                },
                &[again, b","].concat().repeat(times),
            )
        }
        7 if !items.is_empty() => {
            let item = *random.pick(&items);
            let from = if item.from > 0 && text[item.from - 1] == b',' {
                item.from - 1
            } else {
                item.from
            };
            let to = if from == item.from && text.get(item.to) == Some(&b',') {
                item.to + 1
            } else {
                item.to
            };
            replace_span(text, Span { from, to, ..item }, b"")
        }
        8 => {
            let is_operation =
                |span: &&Span| text[span.from] == b'"' && text[span.from..span.to].contains(&b'.');
            let operations: Vec<&Span> = all.iter().filter(is_operation).collect();
            if operations.is_empty() {
                return replace_span(
                    text,
                    span,
                    format!("[{}]", String::from_utf8_lossy(own)).as_bytes(),
                );
            }
            let span = **random.pick(&operations);
            replace_span(
                text,
                span,
                format!("\"{}\"", random.pick(Op::ALL).name()).as_bytes(),
            )
        }
        _ => {
            let at = span.from + usize::from(own[0] == b'"') + random.below(own.len().max(2) - 1);
            let at = at.min(span.to);
            let to = (at + random.below(2)).min(span.to.saturating_sub(1)).max(at);
            replace_span(
                text,
                Span { from: at, to, ..span },
                random.pick(CHARACTERS).as_bytes(),
            )
        }
    }
}

fn is_integer(text: &[u8], span: Span) -> bool {
    matches!(text[span.from], b'-' | b'0'..=b'9')
}

fn nearby_number(number: &[u8], random: &mut Random) -> String {
    let number: i64 = std::str::from_utf8(number)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let step = [1, 1, 1, 2, 3, 10, 1000][random.below(7)];
    match random.below(5) {
        0 => random.below(8).to_string(),
        1 | 2 => number.wrapping_sub(step).to_string(),
        _ => number.wrapping_add(step).to_string(),
    }
}

/// Replaces one value of the first text by one of the second.
pub fn cross(first: &[u8], second: &[u8], random: &mut Random) -> Vec<u8> {
    let (here, there) = (spans(first), spans(second));
    if here.is_empty() || there.is_empty() {
        return second.to_vec();
    }
    let (into, from) = (*random.pick(&here), *random.pick(&there));
    replace_span(first, into, &second[from.from..from.to])
}

/// Mutates `data[..size]` in place a few times and returns the new size. `plain` is libFuzzer's own mutation.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    most: usize,
    seed: u32,
    plain: fn(&mut [u8], usize, usize) -> usize,
) -> usize {
    let mut random = Random::new(u64::from(seed));
    if random.below(6) == 0 {
        return plain(data, size, most);
    }
    let mut text = data[..size].to_vec();
    for _ in 0..=random.below(3) {
        let next = mutate_value(&text, &mut random);
        if next.len() <= most {
            text = next;
        }
    }
    data[..text.len()].copy_from_slice(&text);
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_and_keys_are_not() {
        let text = br#"{"a":[1,"b\"c",{"d":null}],"e":-2}"#;
        let mut found: Vec<&str> = spans(text)
            .iter()
            .map(|span| std::str::from_utf8(&text[span.from..span.to]).unwrap())
            .collect();
        found.sort_unstable();
        let whole = std::str::from_utf8(text).unwrap();
        assert_eq!(
            found,
            [
                "\"b\\\"c\"",
                "-2",
                "1",
                "[1,\"b\\\"c\",{\"d\":null}]",
                "null",
                whole,
                "{\"d\":null}"
            ]
        );
    }

    #[test]
    fn any_text_can_be_mutated() {
        let mut random = Random::new(1);
        for text in [
            &b""[..],
            b"\"",
            b"\"\\",
            b"[",
            b"]",
            b"}{",
            b"\xff",
            b"{\"a\":",
            b"[1,2,3]",
            b"a.b",
            b"-",
            b"\"\"",
            b"\"a\\\"",
        ] {
            for _ in 0..2_000 {
                let once = mutate_value(text, &mut random);
                mutate_value(&once, &mut random);
                cross(text, &once, &mut random);
            }
        }
    }
}
