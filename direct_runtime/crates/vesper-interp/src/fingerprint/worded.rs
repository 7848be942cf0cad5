//! The same hash over inputs that stand in words: what a run without a frame has read is hashed as if it had had one.
//!
//! Byte for byte as `Fingerprint::value`, so that nobody can tell by which way an execution was run.

use super::Fingerprint;
use crate::parts::Parts;
use crate::words::{Held, RowsHeld, Word, Words};

impl Fingerprint {
    /// As `add_input` of the same input as a value; nothing where it does not stand in these words.
    pub(crate) fn add_worded(&mut self, place: u32, words: &Words<'_>, parts: &Parts) -> Option<()> {
        self.tag(b'i');
        self.bytes(&place.to_le_bytes());
        match words.input(place as usize)? {
            Held::Word(word) => {
                self.word(word, parts);
                Some(())
            }
            Held::Rows(rows) => self.rows(&rows, parts),
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
                        self.word(rows.field(number, *field as usize)?, parts);
                    }
                }
                _ => {
                    self.tag(b'R');
                    self.length(rows.fields());
                    for field in 0..rows.fields() {
                        self.word(rows.field(number, field)?, &Parts::Whole);
                    }
                }
            }
        }
        Some(())
    }

    fn word(&mut self, word: Word<'_>, parts: &Parts) {
        if *parts == Parts::Outside {
            self.tag(b'1');
            return;
        }
        match word {
            Word::Boolean(value) => self.bytes(&[b'b', u8::from(value)]),
            Word::Integer(value) => self.number(b'i', value),
            Word::Float(value) => {
                let value = if value.is_nan() { f64::NAN } else { value };
                self.number(b'f', value.to_bits().cast_signed());
            }
            Word::Decimal(coefficient, scale) => {
                self.number(b'd', coefficient);
                self.bytes(&scale.to_le_bytes());
            }
            Word::Timestamp(value) => self.number(b's', value),
            Word::Date(value) => self.number(b'a', i64::from(value)),
            Word::Duration(value) => self.number(b'u', value),
            Word::Member(member) => self.member(member),
            Word::Text(text) => {
                self.tag(b't');
                self.text(text);
            }
        }
    }
}
