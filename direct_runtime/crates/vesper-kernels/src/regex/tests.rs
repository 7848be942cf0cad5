//! Tests of docs/spec/regex.md, and a slow search for comparison.
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fmt::Write as _;

use super::*;

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn format_value(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{text}'"),
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(format_value).collect::<Vec<_>>().join(", ")
        ),
        Value::Null => "null".to_owned(),
        other => format!("{other:?}"),
    }
}

fn all(value: &str, of: &str) -> String {
    find_all(value, &pattern(of)).map_or("too large".to_owned(), |found| format_value(&Value::Array(found)))
}

fn first(value: &str, of: &str) -> String {
    format_value(&Value::from_optional(find(value, &pattern(of))))
}

fn format_groups(value: &str, of: &str) -> String {
    format_value(&Value::from_optional(groups(value, &pattern(of))))
}

#[test]
fn the_examples_of_the_specification() {
    assert!(matches("ord_12", &pattern("^ord_[0-9]+$")));
    assert!(matches("x ord_12 y", &pattern("ord_[0-9]+")));
    assert_eq!(first("abcd", "a|ab"), "'a'");
    assert_eq!(first("abc", "x"), "null");
    assert_eq!(all("a1b22", "[0-9]+"), "['1', '22']");
    assert_eq!(all("baac", "a*"), "['', 'aa', '']");
    assert_eq!(
        format_groups("2026-11", "([0-9]+)-([0-9]+)"),
        "['2026-11', '2026', '11']"
    );
    assert_eq!(format_groups("b", "(a)|b"), "['b', null]");
    assert_eq!(replace("a1b22", &pattern("[0-9]+"), "#").as_deref(), Ok("a#b#"));
    assert_eq!(replace("abc", &pattern("b"), "$0").as_deref(), Ok("a$0c"));
    assert_eq!(replace("baac", &pattern("a*"), "-").as_deref(), Ok("-b-c-"));
    let parts = split("a, b;c", &pattern("[,;] *")).map(|parts| format_value(&Value::Array(parts)));
    assert_eq!(parts, Ok("['a', 'b', 'c']".to_owned()));
}

#[test]
fn anchors_are_about_the_whole_text() {
    assert!(!matches("a\n", &pattern("^a$")));
    assert!(!matches("b\na", &pattern("^a")));
    assert_eq!(all("aaa", "^a"), "['a']");
    assert_eq!(all("foo bar", r"\b"), "['', '', '', '']");
    assert_eq!(all("foo bar", r"\bb"), "['b']");
    assert_eq!(all("é", r"\b"), "[]");
    assert_eq!(all("é", r"\B"), "['', '']");
    assert_eq!(all("ab", r"a|^b|$"), "['a', '']");
}

#[test]
fn empty_matches() {
    assert_eq!(all("ab", ""), "['', '', '']");
    assert_eq!(all("aa", "a*?"), "['', '', '']");
    assert_eq!(all("aa", "|a"), "['', '', '']");
    assert_eq!(all("é😀", ""), "['', '', '']");
    assert_eq!(split("abc", &pattern("")).map_or(0, |parts| parts.len()), 5);
}

#[test]
fn greed_and_groups() {
    assert_eq!(format_groups("aaa", "(a+?)(a*)"), "['aaa', 'a', 'aa']");
    assert_eq!(format_groups("ab", "(?:(a)|b)+"), "['ab', 'a']");
    assert_eq!(format_groups("aab", "(a{1,2}?)(a?)b"), "['aab', 'a', 'a']");
    assert_eq!(format_groups("ab", "(a)|(b)"), "['a', 'a', null]");
    assert_eq!(format_groups("b", "(a){0}(b)"), "['b', null, 'b']");
    assert_eq!(format_groups("b", "(b)(a){0}"), "['b', 'b', null]");
    assert_eq!(format_groups("aaaa", "(a|){1,3}"), "['aaa', 'a']");
    assert_eq!(format_groups("xay", "(|a)(y?)"), "['', '', '']");
    assert_eq!(first("aaaa", "a{2}"), "'aa'");
    assert_eq!(first("aaaa", "a{3,}"), "'aaaa'");
    assert_eq!(first("aaaa", "a{2,}?"), "'aa'");
    assert_eq!(first("a\nb", "a.b"), "null");
    assert_eq!(first("a\nb", "(?s)a.b"), "'a\nb'");
}

#[test]
fn classes_and_case() {
    assert!(!matches("٣", &pattern(r"\d")));
    assert!(matches("\u{212a}", &pattern("(?i)k")));
    assert!(matches("K", &pattern("(?i)[j-l]")));
    assert!(!matches("K", &pattern("(?i)[^k]")));
    assert!(!matches("\u{212a}", &pattern(r"(?i)^\w")));
    assert!(!matches("\u{212a}", &pattern(r"(?i)^[\w]")));
    assert!(!matches("a", &pattern(r"(?i)\p{Lu}")));
    assert!(matches("ß", &pattern("(?i)ẞ")));
    assert!(!matches("ss", &pattern("(?i)ß")));
    assert!(matches("σ", &pattern("(?i)ς")));
    assert!(matches("é", &pattern(r"^\p{L}$")) && matches("Ǆ", &pattern(r"\p{Lu}")));
    assert!(matches("\u{378}", &pattern(r"\p{Cn}")) && matches("\u{378}", &pattern(r"\P{L}")));
    assert!(
        matches("-", &pattern("[a-]")) && matches("-", &pattern("[-a]")) && matches("]", &pattern(r"[\]]"))
    );
    assert!(matches("\u{b}", &pattern(r"[\s]")) && !matches("\u{85}", &pattern(r"\s")));
    assert!(matches("😀", &pattern(r"\u{1f600}")) && matches("é", &pattern(r"\xe9")));
}

#[test]
fn wrong_patterns() {
    let long = "a".repeat(1_001);
    let deep = "(?:".repeat(51) + &")".repeat(51);
    let wrong = [
        "(a*)*",
        "(a|)+",
        r"(\b)*",
        "(?:a?){2,}",
        "*",
        "a**",
        "a{2}{3}",
        "^*",
        "a{2,1}",
        "a{1001}",
        "a{,3}",
        "a{",
        "(",
        ")",
        "(?=a)",
        "(?P<n>a)",
        "a(?i)b",
        "(?ii)a",
        "(?)a",
        "(?x)a",
        r"\1",
        r"\A",
        r"\Z",
        r"\q",
        "[",
        "[]",
        "[^]",
        "[[:alpha:]]",
        "[a",
        "[b-a]",
        r"[\d-a]",
        r"[a-\d]",
        "[a-b-c]",
        "]",
        "}",
        r"\p{X}",
        r"\p{LC}",
        r"\pL",
        r"\p{}",
        r"\u{}",
        r"\u{d800}",
        r"\u{110000}",
        r"\u{ffffffffff}",
        r"\x1",
        "\\",
        "((a{100}){100}){2}",
        &long,
        &deep,
    ];
    for text in wrong {
        assert!(Pattern::new(text).is_err(), "{text}");
    }
    let groups = "()".repeat(100);
    for text in [
        "",
        "a|",
        "()",
        "(?:)",
        "(?is)a",
        "(a{99}){99}",
        r"\-\.\{",
        "[a^]",
        "[.$]",
        "[--a]",
        &groups,
    ] {
        assert!(Pattern::new(text).is_ok(), "{text}");
    }
}

#[test]
fn no_pattern_is_slow() {
    let text = "a".repeat(5_000);
    for of in [
        "(a+)+b",
        "(?:a?){30}a{30}b",
        "(a|aa)+$",
        "(?:a|a)+b",
        "([a-z]+)*x|b",
    ] {
        if let Ok(of) = Pattern::new(of) {
            matches(&text, &of);
        }
    }
}

#[test]
fn matcher_takes_over_when_the_automaton_is_full() {
    // Every text of a's and b's of this length leads to a distinct state.
    let of = pattern("a[ab]{900}c");
    let mut dice = Dice(77);
    let text: String = (0..3_000).map(|_| ['a', 'b'][dice.roll(2) as usize]).collect();
    let (found, not) = (format!("{text}c"), format!("{text}d"));
    let expected = text.chars().rev().nth(900) == Some('a');
    assert_eq!(of.matches(&found), None);
    assert_eq!(matches(&found, &of), expected);
    assert!(!matches(&not, &of));
}

/// Backtracking search, for patterns without loops over the empty string.
mod backtracking {
    use vesper_ir::pattern::{Instruction, Program};

    pub(super) struct Slow<'a> {
        pub(super) program: &'a Program,
        pub(super) text: Vec<char>,
        pub(super) steps: usize,
    }

    impl Slow<'_> {
        pub(super) fn run(
            &mut self,
            place: usize,
            at: usize,
            notes: &mut Vec<Option<usize>>,
        ) -> Option<usize> {
            self.steps += 1;
            if self.steps > 200_000 {
                return None;
            }
            let here = self.text.get(at).copied();
            let before = at.checked_sub(1).and_then(|place| self.text.get(place).copied());
            match self.program.instructions[place] {
                Instruction::Char(char) if here == Some(char) => self.run(place + 1, at + 1, notes),
                Instruction::Class(class)
                    if here.is_some_and(|char| self.program.classes[class as usize].contains(char)) =>
                {
                    self.run(place + 1, at + 1, notes)
                }
                Instruction::Anchor(anchor) if anchor.holds(before, here) => self.run(place + 1, at, notes),
                Instruction::Char(_) | Instruction::Class(_) | Instruction::Anchor(_) => None,
                Instruction::Split { first, second } => {
                    let found = self.run(first as usize, at, notes);
                    if found.is_some() {
                        found
                    } else {
                        self.run(second as usize, at, notes)
                    }
                }
                Instruction::Jump(to) => self.run(to as usize, at, notes),
                Instruction::Save(slot) => {
                    let kept = notes[slot as usize].replace(at);
                    let found = self.run(place + 1, at, notes);
                    if found.is_none() {
                        notes[slot as usize] = kept;
                    }
                    found
                }
                Instruction::Match => Some(at),
            }
        }
    }
}

/// Deterministic pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn pattern(&mut self, depth: u64, onto: &mut String) {
        for _ in 0..=self.roll(3) {
            match self.roll(if depth == 0 { 6 } else { 9 }) {
                0 | 1 => onto.push('a'),
                2 => onto.push_str(["b", ".", "[ab]", "[^a]", "é"][self.roll(5) as usize]),
                3 => onto.push_str(["^", "$", r"\b", r"\B"][self.roll(4) as usize]),
                4 => onto.push_str(["a*", "b?", "a+", "b{1,2}", "a??", "b+?", "a*?"][self.roll(7) as usize]),
                5 => onto.push('b'),
                6 => {
                    onto.push('(');
                    self.pattern(depth - 1, onto);
                    onto.push('|');
                    self.pattern(depth - 1, onto);
                    onto.push(')');
                }
                _ => {
                    onto.push_str(["(", "(?:"][self.roll(2) as usize]);
                    self.pattern(depth - 1, onto);
                    onto.push(')');
                    onto.push_str(["", "*", "+", "?", "{2}", "{0,2}", "*?", "{1,}"][self.roll(8) as usize]);
                }
            }
        }
    }
}

#[test]
fn agrees_with_a_backtracking_search() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut compared = 0;
    for _ in 0..10_000 {
        let mut text = String::new();
        dice.pattern(3, &mut text);
        let Ok(of) = Pattern::new(&text) else {
            continue;
        };
        let value: String = (0..dice.roll(9))
            .map(|_| ['a', 'b', ' ', 'é'][dice.roll(4) as usize])
            .collect();
        let mut slow = backtracking::Slow {
            program: of.program(),
            text: value.chars().collect(),
            steps: 0,
        };
        let mut expected = "null".to_owned();
        for start in 0..=slow.text.len() {
            let mut notes = vec![None; 2 * (of.groups() + 1)];
            if let Some(end) = slow.run(0, start, &mut notes) {
                (notes[0], notes[1]) = (Some(start), Some(end));
                expected = String::from("[");
                for pair in notes.chunks(2) {
                    let part = match (pair[0], pair[1]) {
                        (Some(from), Some(to)) => {
                            format!("'{}'", slow.text[from..to].iter().collect::<String>())
                        }
                        _ => "null".to_owned(),
                    };
                    let comma = if expected.len() > 1 { ", " } else { "" };
                    let _ = write!(expected, "{comma}{part}");
                }
                expected.push(']');
                break;
            }
        }
        if slow.steps > 200_000 {
            continue;
        }
        compared += 1;
        assert_eq!(
            format_groups(&value, &text),
            expected,
            "groups('{value}', '{text}')"
        );
        assert_eq!(
            matches(&value, &of),
            expected != "null",
            "matches('{value}', '{text}')"
        );
    }
    assert!(compared > 3_000, "{compared}");
}
