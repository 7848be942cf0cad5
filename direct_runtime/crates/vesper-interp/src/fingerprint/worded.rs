//! The same hash over inputs that stand in words: what a run without a frame has read is hashed as if it had had one.
//!
//! Byte for byte as `Fingerprint::value`, so that nobody can tell by which way an execution was run. What comes before an
//! input and the input itself are put together as one number, and copied at once.

use super::Fingerprint;
use crate::parts::Parts;
use crate::words::{Form, Held, RowsHeld, Words};

impl Fingerprint {
    /// As `add_input` of the same input as a value; nothing where it does not stand in these words.
    pub(crate) fn add_worded(&mut self, place: u32, words: &Words<'_>, parts: &Parts) -> Option<()> {
        let before = u64::from(b'i') | u64::from(place) << 8;
        match words.input(place as usize)? {
            Held::Value(form, bits) => self.scalar::<5>(before, words, (form, bits), parts),
            Held::Rows(rows) => {
                self.put(u128::from(before), 5);
                self.rows(words, &rows, parts)
            }
        }
    }

    fn rows(&mut self, words: &Words<'_>, rows: &RowsHeld<'_>, parts: &Parts) -> Option<()> {
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
                        self.scalar::<0>(0, words, rows.field(number, *field as usize)?, parts)?;
                    }
                }
                _ => {
                    self.tag(b'R');
                    self.length(rows.fields());
                    for field in 0..rows.fields() {
                        self.scalar::<0>(0, words, rows.field(number, field)?, &Parts::Whole)?;
                    }
                }
            }
        }
        Some(())
    }

    /// A value, and in front of it so many bytes, which are the lowest of `before`; nothing where these are no words of such
    /// a value. Out of its words at once: to make a value of them only to ask which one it is costs as much again.
    #[inline]
    fn scalar<const BEFORE: usize>(
        &mut self,
        before: u64,
        words: &Words<'_>,
        (form, bits): (Form, &[u64]),
        parts: &Parts,
    ) -> Option<()> {
        let all = |tag: u8, number: u64| {
            u128::from(before) | (u128::from(tag) | u128::from(number) << 8) << (8 * BEFORE)
        };
        if *parts == Parts::Outside {
            self.put(all(b'1', 0), BEFORE + 1);
            return Some(());
        }
        let first = *bits.first()?;
        match form {
            Form::Boolean => self.put(all(b'b', u64::from(first != 0)), BEFORE + 2),
            Form::Integer => self.put(all(b'i', first), BEFORE + 9),
            Form::Float => {
                let value = f64::from_bits(first);
                let value = if value.is_nan() { f64::NAN } else { value };
                self.put(all(b'f', value.to_bits()), BEFORE + 9);
            }
            Form::Decimal => {
                let scale = u16::try_from(*bits.get(1)?).ok()?;
                let scale = u128::from(scale) << (8 * (BEFORE + 9));
                self.put(all(b'd', first) | scale, BEFORE + 11);
            }
            Form::Timestamp => self.put(all(b's', first), BEFORE + 9),
            Form::Date => self.put(all(b'a', first), BEFORE + 9),
            Form::Duration => self.put(all(b'u', first), BEFORE + 9),
            Form::Member => self.put(all(b'm', u64::from(u32::try_from(first).ok()?)), BEFORE + 5),
            Form::Text => {
                let text = words.text(first)?;
                self.put(all(b't', text.len() as u64), BEFORE + 9);
                self.bytes(text.as_bytes());
            }
        }
        Some(())
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
