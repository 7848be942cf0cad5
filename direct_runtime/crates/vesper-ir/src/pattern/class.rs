//! Class: the set of code points that an atom of a pattern matches.

use crate::unicode::{Category, categories, fold, folding_to, foldings};

/// Set of code points. INVARIANT: the ranges are in order, with a gap between any two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// One bit for each ASCII character, which most lookups concern.
    ascii: u128,
    ranges: Box<[(u32, u32)]>,
}

impl Class {
    /// Returns true for members.
    #[inline]
    pub fn contains(&self, char: char) -> bool {
        let code = u32::from(char);
        if code < 128 {
            return self.ascii >> code & 1 == 1;
        }
        is_within(&self.ranges, code)
    }

    /// Returns first and last code point of each range, in order.
    pub(super) fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Returns the ASCII members, one bit for each.
    pub fn ascii(&self) -> u128 {
        self.ascii
    }

    /// Returns true when a member is not ASCII.
    pub fn has_non_ascii(&self) -> bool {
        self.ranges.last().is_some_and(|(_, last)| *last >= 128)
    }
}

fn is_within(ranges: &[(u32, u32)], code: u32) -> bool {
    let place = ranges.partition_point(|(_, last)| *last < code);
    ranges.get(place).is_some_and(|(first, _)| *first <= code)
}

/// Class under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    pub(super) fn add(&mut self, first: char, last: char) {
        self.0.push((u32::from(first), u32::from(last)));
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Creates the code points of some categories.
    pub(super) fn of_categories(is_wanted: impl Fn(Category) -> bool) -> Self {
        let wanted = categories().filter(|(_, _, category)| is_wanted(*category));
        Self(wanted.map(|(first, last, _)| (first, last)).collect())
    }

    /// Sorts the ranges and merges those that touch.
    fn merge(mut self) -> Vec<(u32, u32)> {
        self.0.sort_unstable();
        let mut result: Vec<(u32, u32)> = Vec::with_capacity(self.0.len());
        for (first, last) in self.0 {
            match result.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => result.push((first, last)),
            }
        }
        result
    }

    /// Returns the complement.
    pub(super) fn complement(self) -> Self {
        let mut result = Vec::new();
        let mut start = 0;
        for (first, last) in self.merge() {
            if start < first {
                result.push((start, first - 1));
            }
            start = last.saturating_add(1);
        }
        if start <= u32::from(char::MAX) {
            result.push((start, u32::from(char::MAX)));
        }
        Self(result)
    }

    /// Returns all code points with the same folding as a member.
    pub(super) fn fold_case(self) -> Self {
        let ranges = self.merge();
        let has = |ranges: &[(u32, u32)], char: char| is_within(ranges, u32::from(char));
        // Foldings of the members; code points that fold to themselves are present already.
        let targets = foldings().iter().filter(|(_, from)| has(&ranges, *from));
        let mut result = Self(targets.map(|(to, _)| (u32::from(*to), u32::from(*to))).collect());
        result.0.extend(ranges);
        let ranges = result.merge();
        let sources = foldings().iter().filter(|(to, _)| has(&ranges, *to));
        let mut result = Self(
            sources
                .map(|(_, from)| (u32::from(*from), u32::from(*from)))
                .collect(),
        );
        result.0.extend(ranges);
        result
    }

    /// Returns the code points with the folding of this one, or `None` without others.
    pub(super) fn of_case(char: char) -> Option<Self> {
        let folded = fold(char);
        let mut result = Self::default();
        for other in folding_to(folded) {
            result.add(other, other);
        }
        result.add(folded, folded);
        (result.0.len() > 1).then_some(result)
    }

    pub(super) fn into_class(self) -> Class {
        let ranges = self.merge();
        let ascii = (0..128).filter(|code| is_within(&ranges, *code));
        Class {
            ascii: ascii.fold(0, |bits, code| bits | 1 << code),
            ranges: ranges.into_boxed_slice(),
        }
    }
}
