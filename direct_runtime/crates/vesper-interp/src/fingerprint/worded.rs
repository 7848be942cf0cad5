//! The same hash over inputs that stand in words: what a run without a frame has read is hashed as if it had had one.
//!
//! Byte for byte as `Fingerprint::value`, so that nobody can tell by which way an execution was run. What comes before an
//! input and the input itself are put together as one number, and copied at once.

use vesper_ir::Member;

use super::Fingerprint;
use crate::parts::Parts;
use crate::words::{Held, RowsHeld, Word, Words};

impl Fingerprint {
    /// As `add_input` of the same input as a value; nothing where it does not stand in these words.
    pub(crate) fn add_worded(&mut self, place: u32, words: &Words<'_>, parts: &Parts) -> Option<()> {
        let before = u64::from(b'i') | u64::from(place) << 8;
        match words.input(place as usize)? {
            Held::Word(word) => {
                self.word::<5>(before, word, parts);
                Some(())
            }
            Held::Rows(rows) => {
                self.put(u128::from(before), 5);
                self.rows(&rows, parts)
            }
        }
    }

    fn rows(&mut self, rows: &RowsHeld<'_>, parts: &Parts) -> Option<()> {
        self.tag(b'A');
        self.length(rows.count());
        let of_each = match parts {
            Parts::Outside => return Some(()),
            Parts::Items(of_each) => of_each,
            _ => &Parts::Whole,
        };
        for number in 0..rows.count() {
            match of_each {
                Parts::Outside => self.tag(b'1'),
                Parts::Fields(read) => {
                    self.tag(b'R');
                    for (field, parts) in read {
                        self.word::<0>(0, rows.field(number, *field as usize)?, parts);
                    }
                }
                _ => {
                    self.tag(b'R');
                    self.length(rows.fields());
                    for field in 0..rows.fields() {
                        self.word::<0>(0, rows.field(number, field)?, &Parts::Whole);
                    }
                }
            }
        }
        Some(())
    }

    /// A value, and in front of it so many bytes, which are the lowest of `before`.
    #[inline]
    fn word<const BEFORE: usize>(&mut self, before: u64, word: Word<'_>, parts: &Parts) {
        let all = |tag: u8, number: u64| {
            u128::from(before) | (u128::from(tag) | u128::from(number) << 8) << (8 * BEFORE)
        };
        if *parts == Parts::Outside {
            self.put(all(b'1', 0), BEFORE + 1);
            return;
        }
        match word {
            Word::Boolean(value) => self.put(all(b'b', u64::from(value)), BEFORE + 2),
            Word::Integer(value) => self.put(all(b'i', value.cast_unsigned()), BEFORE + 9),
            Word::Float(value) => {
                let value = if value.is_nan() { f64::NAN } else { value };
                self.put(all(b'f', value.to_bits()), BEFORE + 9);
            }
            Word::Decimal(coefficient, scale) => {
                let scale = u128::from(scale) << (8 * (BEFORE + 9));
                self.put(all(b'd', coefficient.cast_unsigned()) | scale, BEFORE + 11);
            }
            Word::Timestamp(value) => self.put(all(b's', value.cast_unsigned()), BEFORE + 9),
            Word::Date(value) => self.put(all(b'a', i64::from(value).cast_unsigned()), BEFORE + 9),
            Word::Duration(value) => self.put(all(b'u', value.cast_unsigned()), BEFORE + 9),
            Word::Member(Member(member)) => self.put(all(b'm', u64::from(member)), BEFORE + 5),
            Word::Text(text) => {
                self.put(all(b't', text.len() as u64), BEFORE + 9);
                self.bytes(text.as_bytes());
            }
        }
    }

    /// So many bytes, at most sixteen, the lowest first. All sixteen are copied where there is room: those behind are
    /// written over by what follows.
    #[inline]
    fn put(&mut self, bytes: u128, length: usize) {
        let bytes = bytes.to_le_bytes();
        match self.pending.get_mut(self.used..self.used + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(&bytes);
                self.used += length;
            }
            None => self.bytes(bytes.get(..length).unwrap_or_default()),
        }
    }
}
