//! Unicode 15.0.0 properties of code points: case, case folding, general category.
//!
//! Rust's tables follow the version of its release and are not used. `direct_runtime/unicode/generate.py` generates
//! `tables`.

use std::sync::LazyLock;

mod normal;
mod tables;

pub use normal::normalize;

use tables::{CATEGORIES, FOLD, LOWER, LOWER_FULL, UPPER, UPPER_FULL};

/// Run of code points: first, last, step, and the offset that maps each of them.
#[derive(Clone, Copy, Debug)]
struct Run(u32, u32, u32, i32);

/// General category of a code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    Lu,
    Ll,
    Lt,
    Lm,
    Lo,
    Mn,
    Mc,
    Me,
    Nd,
    Nl,
    No,
    Pc,
    Pd,
    Ps,
    Pe,
    Pi,
    Pf,
    Po,
    Sm,
    Sc,
    Sk,
    So,
    Zs,
    Zl,
    Zp,
    Cc,
    Cf,
    Cs,
    Co,
    Cn,
}

impl Category {
    /// All categories.
    pub const ALL: &[Category] = &[
        Self::Lu,
        Self::Ll,
        Self::Lt,
        Self::Lm,
        Self::Lo,
        Self::Mn,
        Self::Mc,
        Self::Me,
        Self::Nd,
        Self::Nl,
        Self::No,
        Self::Pc,
        Self::Pd,
        Self::Ps,
        Self::Pe,
        Self::Pi,
        Self::Pf,
        Self::Po,
        Self::Sm,
        Self::Sc,
        Self::Sk,
        Self::So,
        Self::Zs,
        Self::Zl,
        Self::Zp,
        Self::Cc,
        Self::Cf,
        Self::Cs,
        Self::Co,
        Self::Cn,
    ];

    /// Returns the two-letter name of the category.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lu => "Lu",
            Self::Ll => "Ll",
            Self::Lt => "Lt",
            Self::Lm => "Lm",
            Self::Lo => "Lo",
            Self::Mn => "Mn",
            Self::Mc => "Mc",
            Self::Me => "Me",
            Self::Nd => "Nd",
            Self::Nl => "Nl",
            Self::No => "No",
            Self::Pc => "Pc",
            Self::Pd => "Pd",
            Self::Ps => "Ps",
            Self::Pe => "Pe",
            Self::Pi => "Pi",
            Self::Pf => "Pf",
            Self::Po => "Po",
            Self::Sm => "Sm",
            Self::Sc => "Sc",
            Self::Sk => "Sk",
            Self::So => "So",
            Self::Zs => "Zs",
            Self::Zl => "Zl",
            Self::Zp => "Zp",
            Self::Cc => "Cc",
            Self::Cf => "Cf",
            Self::Cs => "Cs",
            Self::Co => "Co",
            Self::Cn => "Cn",
        }
    }
}

/// Iterates over the ranges of one category: first and last code point. The ranges are in order and cover every code
/// point.
pub fn categories() -> impl Iterator<Item = (u32, u32, Category)> {
    let ends = CATEGORIES
        .iter()
        .skip(1)
        .map(|(start, _)| start.saturating_sub(1));
    let starts = CATEGORIES.iter().zip(ends.chain([u32::from(char::MAX)]));
    starts.map(|((start, category), end)| (*start, end, *category))
}

/// Appends the lower case of a code point to a text.
pub fn push_lower(char: char, onto: &mut String) {
    if char.is_ascii() {
        onto.push(char.to_ascii_lowercase());
    } else {
        push_mapped(char, LOWER, LOWER_FULL, onto);
    }
}

/// Appends the upper case of a code point to a text.
pub fn push_upper(char: char, onto: &mut String) {
    if char.is_ascii() {
        onto.push(char.to_ascii_uppercase());
    } else {
        push_mapped(char, UPPER, UPPER_FULL, onto);
    }
}

fn push_mapped(char: char, runs: &[Run], full: &[(char, &str)], onto: &mut String) {
    if let Ok(place) = full.binary_search_by_key(&char, |(of, _)| *of)
        && let Some((_, mapping)) = full.get(place)
    {
        onto.push_str(mapping);
    } else {
        onto.push(map_char(char, runs));
    }
}

/// Returns the simple case folding. Code points that differ only in case have equal foldings.
pub fn fold(char: char) -> char {
    map_char(char, FOLD)
}

/// Returns pairs of a folding and a code point with that folding, in order. Code points that fold to themselves are
/// absent.
pub fn foldings() -> &'static [(char, char)] {
    static FOLDINGS: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
        let codes = |Run(first, last, step, _): &Run| (*first..=*last).step_by(*step as usize);
        let chars = FOLD.iter().flat_map(codes).filter_map(char::from_u32);
        let mut pairs: Vec<(char, char)> = chars.map(|char| (fold(char), char)).collect();
        pairs.sort_unstable();
        pairs
    });
    &FOLDINGS
}

/// Returns the code points that fold to `folded`, without itself. INVARIANT: `folded` folds to itself.
pub fn folding_to(folded: char) -> impl Iterator<Item = char> {
    let start = foldings().partition_point(|(to, _)| *to < folded);
    let rest = foldings().get(start..).unwrap_or(&[]).iter();
    rest.take_while(move |(to, _)| *to == folded)
        .map(|(_, from)| *from)
}

fn map_char(char: char, runs: &[Run]) -> char {
    let code = u32::from(char);
    let place = runs.partition_point(|Run(first, ..)| *first <= code);
    let Some(Run(first, last, step, delta)) = place.checked_sub(1).and_then(|place| runs.get(place)) else {
        return char;
    };
    if code > *last || !(code - first).is_multiple_of(*step) {
        return char;
    }
    // Every mapping is a valid code point; a test checks all of them.
    code.checked_add_signed(*delta)
        .and_then(char::from_u32)
        .unwrap_or(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same lines from which the tables are generated, parsed independently.
    const EXTRACT: &str = include_str!("../../../unicode/extract.txt");

    fn rows(kind: &str) -> impl Iterator<Item = (u32, Vec<&'static str>)> {
        EXTRACT.lines().filter_map(move |line| {
            let mut words = line.strip_prefix(kind)?.strip_prefix(' ')?.split(' ');
            let code = u32::from_str_radix(words.next()?, 16).ok()?;
            Some((code, words.collect()))
        })
    }

    fn text(codes: &[&str]) -> String {
        let chars = codes
            .iter()
            .filter_map(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?));
        chars.collect()
    }

    fn every_char_is(kind: &str, push: impl Fn(char, &mut String)) {
        let expected: std::collections::HashMap<u32, String> =
            rows(kind).map(|(code, to)| (code, text(&to))).collect();
        assert!(expected.len() > 1_000);
        for char in '\0'..=char::MAX {
            let mut found = String::new();
            push(char, &mut found);
            let own = char.to_string();
            assert_eq!(
                &found,
                expected.get(&u32::from(char)).unwrap_or(&own),
                "{kind} of {char:?}"
            );
        }
    }

    #[test]
    fn every_code_point_has_the_case_of_the_extract() {
        every_char_is("lower", push_lower);
        every_char_is("upper", push_upper);
        every_char_is("fold", |char, onto| onto.push(fold(char)));
    }

    #[test]
    fn every_code_point_has_the_category_of_the_extract() {
        let mut expected = vec!["Cn"; 0x11_0000];
        for (first, rest) in rows("gc") {
            if let [last, name] = rest.as_slice() {
                let last = u32::from_str_radix(last, 16).unwrap_or(0);
                for code in first..=last {
                    if let Some(of) = expected.get_mut(code as usize) {
                        *of = name;
                    }
                }
            }
        }
        let mut found = Vec::new();
        for (first, last, category) in categories() {
            assert_eq!(found.len(), first as usize);
            found.resize(last as usize + 1, category.name());
        }
        assert!(found == expected);
        assert_eq!(Category::ALL.len(), 30);
    }

    #[test]
    fn foldings_lists_every_change() {
        assert_eq!(foldings().len(), rows("fold").count());
        assert!(
            foldings()
                .iter()
                .all(|(to, from)| from != to && fold(*from) == *to && fold(*to) == *to)
        );
        assert_eq!(folding_to('k').collect::<String>(), "K\u{212a}");
    }
}
