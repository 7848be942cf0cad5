//! Texts of a constant set, or keys of a constant map, looked up by their length and two of their bytes.
//!
//! A table is made once, when a node is compiled, in which no two of them come to the same place. A text that is looked up
//! is then compared with one of them at most.

use vesper_ir::Set;

/// Where each text stands among all of them, by a number that is made of it.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    /// The texts, each at the place of its number; what is not there is nothing.
    table: Vec<Option<(Box<str>, u32)>>,
    /// Two factors that keep the texts apart.
    factors: (usize, usize),
}

/// Larger constants are searched as sets are.
const MOST: usize = 64;
/// A table has at most so many places for each text.
const ROOM: usize = 16;
const FACTORS: [usize; 8] = [1, 3, 5, 7, 11, 13, 17, 31];

/// The number of a text.
#[inline]
fn number(text: &[u8], (first, last): (usize, usize)) -> usize {
    match text {
        [start, .., end] => text.len() + usize::from(*start) * first + usize::from(*end) * last,
        [only] => 1 + usize::from(*only) * first,
        [] => 0,
    }
}

impl Lookup {
    /// A table for these texts; nothing where there are many, or none keeps them apart.
    pub(crate) fn new(keys: &Set) -> Option<Self> {
        let Set::Text(texts) = keys else {
            return None;
        };
        if texts.is_empty() || texts.len() > MOST {
            return None;
        }
        let least = texts.len().next_power_of_two() * 2;
        let sizes = std::iter::successors(Some(least), |size| Some(size * 2));
        let sizes = sizes.take_while(|size| *size <= texts.len().next_power_of_two() * ROOM);
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

    /// The place of a text among all.
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
    fn texts_that_nothing_keeps_apart_have_no_table() {
        assert!(Lookup::new(&texts(&["axb", "ayb"])).is_none());
        assert!(Lookup::new(&texts(&[])).is_none());
    }
}
