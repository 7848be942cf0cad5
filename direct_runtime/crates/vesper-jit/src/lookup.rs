//! Perfect hash tables over the texts of a constant set or map.
//!
//! A table hashes length and two bytes of a text, or packs short texts into numbers. It is built at compile time
//! without collisions, so a lookup compares at most one text.

use std::sync::Arc;

use vesper_ir::Set;

/// A collision-free table of texts, hashed by length and two bytes.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    /// The text and its index at each hash place.
    table: Vec<Option<(Box<str>, u32)>>,
    /// Two factors that avoid collisions.
    factors: (usize, usize),
}

/// The maximum texts; larger constants are searched as sets.
const MAX_TEXTS: usize = 64;
/// The maximum hash places per text.
const MAX_PLACES_PER_TEXT: usize = 16;
const FACTORS: [usize; 8] = [1, 3, 5, 7, 11, 13, 17, 31];

/// Packs a text of up to eight bytes into a number. It is unique among texts of its length.
#[inline]
pub(crate) fn pack(text: &[u8]) -> Option<u64> {
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        // The two chunks overlap and cover the whole text.
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return (text.len() <= 8).then(|| u64::from(first) | u64::from(last) << 32);
    }
    let (Some(first), Some(middle), Some(last)) = (text.first(), text.get(text.len() / 2), text.last())
    else {
        return Some(0);
    };
    Some(u64::from(*first) | u64::from(*middle) << 8 | u64::from(*last) << 16)
}

/// A collision-free table of texts of up to eight bytes.
#[derive(Clone, Debug)]
pub(crate) struct ShortTexts {
    /// The number, length and index of each text; an empty place has an impossible length.
    table: Vec<(u64, usize, u32)>,
    /// The multiplier that avoids collisions in the upper bits of the product.
    factor: u64,
    /// The number of lower bits to discard.
    below: u32,
}

/// Returns one of many odd factors with well-mixed bits.
fn factor(number: u64) -> u64 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d) | 1
}

impl ShortTexts {
    /// Builds the table. Returns `None` if a text is long, there are too many, or no factor works.
    pub(crate) fn new(keys: &Set) -> Option<Self> {
        let Set::Text(texts) = keys else {
            return None;
        };
        if texts.is_empty() || texts.len() > MAX_TEXTS {
            return None;
        }
        let numbers: Option<Vec<u64>> = texts.iter().map(|text| pack(text.as_bytes())).collect();
        let numbers = numbers?;
        let size = (texts.len() * 4).next_power_of_two();
        let below = u64::BITS - size.ilog2();
        (1..=64)
            .map(factor)
            .find_map(|factor| Self::with_factor(texts, &numbers, size, factor, below))
    }

    fn with_factor(
        texts: &[Arc<str>],
        numbers: &[u64],
        size: usize,
        factor: u64,
        below: u32,
    ) -> Option<Self> {
        let mut short = Self {
            table: vec![(0, usize::MAX, 0); size],
            factor,
            below,
        };
        for ((place, text), number) in (0_u32..).zip(texts).zip(numbers) {
            let at = short.at(*number);
            match short.table.get_mut(at) {
                Some(free) if free.1 == usize::MAX => *free = (*number, text.len(), place),
                _ => return None,
            }
        }
        Some(short)
    }

    #[inline]
    fn at(&self, number: u64) -> usize {
        usize::try_from(number.wrapping_mul(self.factor) >> self.below).unwrap_or(usize::MAX)
    }

    /// Returns the index of a text.
    #[inline]
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        let number = pack(text.as_bytes())?;
        let (known, length, place) = *self.table.get(self.at(number))?;
        let is_it = known == number && length == text.len();
        is_it.then_some(place as usize)
    }
}

/// Hashes a text.
#[inline]
fn number(text: &[u8], (first, last): (usize, usize)) -> usize {
    match text {
        [start, .., end] => text.len() + usize::from(*start) * first + usize::from(*end) * last,
        [only] => 1 + usize::from(*only) * first,
        [] => 0,
    }
}

impl Lookup {
    /// Builds the table. Returns `None` if there are too many texts or no factors work.
    pub(crate) fn new(keys: &Set) -> Option<Self> {
        let Set::Text(texts) = keys else {
            return None;
        };
        if texts.is_empty() || texts.len() > MAX_TEXTS {
            return None;
        }
        let least = texts.len().next_power_of_two() * 2;
        let sizes = std::iter::successors(Some(least), |size| Some(size * 2));
        let sizes = sizes.take_while(|size| *size <= texts.len().next_power_of_two() * MAX_PLACES_PER_TEXT);
        for size in sizes {
            for first in FACTORS {
                for last in FACTORS {
                    let factors = (first, last);
                    let mut table = vec![None; size];
                    let mut is_apart = true;
                    for (place, text) in (0_u32..).zip(texts) {
                        match table.get_mut(number(text.as_bytes(), factors) & (size - 1)) {
                            Some(free @ None) => *free = Some((Box::from(&**text), place)),
                            _ => is_apart = false,
                        }
                    }
                    if is_apart {
                        return Some(Self { table, factors });
                    }
                }
            }
        }
        None
    }

    /// Returns the index of a text.
    #[inline]
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        let at = number(text.as_bytes(), self.factors) & (self.table.len() - 1);
        match self.table.get(at)? {
            Some((known, place)) if **known == *text => Some(*place as usize),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::Arc;

    use super::*;

    fn texts(all: &[&str]) -> Set {
        let mut all: Vec<Arc<str>> = all.iter().map(|text| Arc::from(*text)).collect();
        all.sort();
        Set::Text(all)
    }

    #[test]
    fn each_is_found_at_its_place_and_nothing_else_is() {
        let known = texts(&["", "a", "food", "book", "toy", "tool", "other", "straße", "日本"]);
        let lookup = Lookup::new(&known).unwrap();
        for (place, text) in known.iter().enumerate() {
            let vesper_ir::Value::Text(text) = text else {
                continue;
            };
            assert_eq!(lookup.find(&text), Some(place), "{text}");
        }
        for other in ["b", "foot", "fxxd", "boook", "oth", "strasse", "日", "tooL"] {
            assert_eq!(lookup.find(other), None, "{other}");
        }
    }

    #[test]
    fn short_texts_are_found_at_their_places_and_nothing_else_is() {
        let known = texts(&["", "a", "ab", "abc", "abcd", "abcdefgh", "NG", "straße", "日本"]);
        let short = ShortTexts::new(&known).unwrap();
        for (place, text) in known.iter().enumerate() {
            let vesper_ir::Value::Text(text) = text else {
                continue;
            };
            assert_eq!(short.find(&text), Some(place), "{text:?}");
        }
        for other in [
            "b",
            "aa",
            "aaa",
            "abcde",
            "abcdefg",
            "abcdefghi",
            "GN",
            "N",
            "\0",
            "日",
            "strasse",
        ] {
            assert_eq!(short.find(other), None, "{other:?}");
        }
        // Equal numbers that differ only in length.
        assert!(ShortTexts::new(&texts(&["a", "aaa"])).is_none());
    }

    #[test]
    fn many_alike_are_kept_apart() {
        let all: Vec<String> = (0..64).map(|number| format!("k{number}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let known = texts(&all);
        if let Some(short) = ShortTexts::new(&known) {
            for (place, text) in known.iter().enumerate() {
                let vesper_ir::Value::Text(text) = text else {
                    continue;
                };
                assert_eq!(short.find(&text), Some(place), "{text}");
            }
        }
        assert!(ShortTexts::new(&texts(&["ninebytes"])).is_none());
        assert!(ShortTexts::new(&texts(&[])).is_none());
    }

    #[test]
    fn texts_that_nothing_keeps_apart_have_no_table() {
        assert!(Lookup::new(&texts(&["axb", "ayb"])).is_none());
        assert!(Lookup::new(&texts(&[])).is_none());
    }
}
