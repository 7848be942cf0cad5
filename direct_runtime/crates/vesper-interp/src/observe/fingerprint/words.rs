//! Fingerprints of inputs in words, equal to those of the same inputs as values.
//!
//! SEMANTICS: the bytes equal those of `Fingerprint::value`, so a fingerprint does not depend on how a run was
//! executed. Every compared run is hashed, so the encoding of each input (its prefix and kind) is planned once per
//! form.

use super::{Fingerprint, Piece};
use crate::inputs::parts::Parts;
use crate::inputs::reads::Source;
use crate::tier::words::{Form, Given, RowsView, Shape, Words};

/// How one input in words is hashed.
#[derive(Debug)]
pub(crate) struct HashPlan {
    /// The position of its words; for records, the index of the input.
    at: usize,
    /// The prefix: the input tag, the index of the input and the tag of its type.
    before: u64,
    kind: Kind,
}

/// The bytes of the prefix.
const BEFORE: u64 = 6;

/// The encoding of the value after the prefix.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// No bytes: only the presence is read.
    Nothing,
    Boolean,
    /// The word unchanged.
    Word,
    Float,
    Decimal,
    Member,
    Text,
    Rows,
}

impl Kind {
    /// Returns the kind and the tag of a form.
    #[inline]
    fn of(form: Form, parts: &Parts) -> (Self, u8) {
        if *parts == Parts::Outside {
            return (Self::Nothing, b'1');
        }
        match form {
            Form::Boolean => (Self::Boolean, b'b'),
            Form::Integer => (Self::Word, b'i'),
            Form::Float => (Self::Float, b'f'),
            Form::Decimal => (Self::Decimal, b'd'),
            Form::Timestamp => (Self::Word, b's'),
            Form::Date => (Self::Word, b'a'),
            Form::Duration => (Self::Word, b'u'),
            Form::Member => (Self::Member, b'm'),
            Form::Text => (Self::Text, b't'),
        }
    }
}

impl HashPlan {
    /// Plans the hashes of these inputs, or returns `None` if a source is no input.
    pub(crate) fn all_of(sources: &[Source], shape: &Shape, parts: &[Parts]) -> Option<Box<[Self]>> {
        (sources.iter())
            .map(|source| match source {
                Source::Input(place) => Self::of(*place, shape, parts),
                Source::Now => None,
            })
            .collect()
    }

    fn of(place: u32, shape: &Shape, parts: &[Parts]) -> Option<Self> {
        let input = place as usize;
        let (at, (kind, tag)) = match shape.inputs.get(input)? {
            Given::Value { form, at } => (*at, Kind::of(*form, parts_of(parts, input))),
            Given::Rows(_) => (input, (Kind::Rows, b'A')),
        };
        Some(Self {
            at,
            before: u64::from(b'i') | u64::from(place) << 8 | u64::from(tag) << 40,
            kind,
        })
    }
}

fn parts_of(parts: &[Parts], input: usize) -> &Parts {
    parts.get(input).unwrap_or(&Parts::Whole)
}

impl Fingerprint {
    /// Adds inputs in words, like `add_input` for each. Returns `None` if an input is not in these words.
    ///
    /// Passes the state by value here and below, so that it stays in registers.
    #[inline]
    pub(crate) fn with_words(
        mut self,
        hashed: &[HashPlan],
        words: &Words<'_>,
        parts: &[Parts],
    ) -> Option<Self> {
        let bits = words.input_words();
        for HashPlan { at, before, kind } in hashed {
            if let Kind::Rows = kind {
                self = self.with_rows(*before, words, &words.rows_of(*at)?, parts_of(parts, *at))?;
                continue;
            }
            let (piece, mut text) = piece::<BEFORE>(*before, *kind, words, bits, *at)?;
            self.0.put(piece);
            while !text.is_empty() {
                let piece;
                (piece, text) = Piece::first_of(text);
                self.0.put(piece);
            }
        }
        Some(self)
    }

    #[inline(never)]
    fn with_rows(
        mut self,
        before: u64,
        words: &Words<'_>,
        rows: &RowsView<'_>,
        parts: &Parts,
    ) -> Option<Self> {
        self.0.put(Piece {
            low: before,
            high: 0,
            length: BEFORE,
        });
        self.length(rows.count());
        let of_each = match parts {
            Parts::Outside => return Some(self),
            Parts::Items(of_each) => of_each,
            _ => &Parts::Whole,
        };
        for number in 0..rows.count() {
            match of_each {
                Parts::Outside => self.tag(b'1'),
                Parts::Fields(read) => {
                    self.tag(b'R');
                    for (field, parts) in read {
                        self.field(words, rows.field(number, *field as usize)?, parts)?;
                    }
                }
                _ => {
                    self.tag(b'R');
                    self.length(rows.fields());
                    for field in 0..rows.fields() {
                        self.field(words, rows.field(number, field)?, &Parts::Whole)?;
                    }
                }
            }
        }
        Some(self)
    }

    #[inline]
    fn field(&mut self, words: &Words<'_>, (form, bits): (Form, &[u64]), parts: &Parts) -> Option<()> {
        let (kind, tag) = Kind::of(form, parts);
        let (piece, text) = piece::<1>(u64::from(tag), kind, words, bits, 0)?;
        self.0.put(piece);
        self.0.bytes(text);
        Some(())
    }
}

/// Encodes a value with its prefix. Also returns the rest of a text after the first piece. Returns `None` for invalid
/// words. Decodes words directly, because constructing a `Word` first would double the cost.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "one for inputs and one for fields, and a call costs as much as a value"
)]
fn piece<'w, const BEFORE: u64>(
    before: u64,
    kind: Kind,
    words: &'w Words<'_>,
    bits: &[u64],
    at: usize,
) -> Option<(Piece, &'w [u8])> {
    let first = *bits.get(at)?;
    let with = |number: u64, bytes: u64| Piece {
        low: before | number << (8 * BEFORE),
        high: number >> (64 - 8 * BEFORE),
        length: BEFORE + bytes,
    };
    // Appends two bytes after the word.
    let with_more = |number: u64, two: u16| Piece {
        high: number >> (64 - 8 * BEFORE) | u64::from(two) << (8 * BEFORE),
        ..with(number, 10)
    };
    let piece = match kind {
        Kind::Nothing => with(0, 0),
        Kind::Boolean => with(u64::from(first != 0), 1),
        Kind::Word => with(first, 8),
        Kind::Float => {
            let value = f64::from_bits(first);
            with(if value.is_nan() { f64::NAN } else { value }.to_bits(), 8)
        }
        Kind::Decimal => with_more(first, u16::try_from(*bits.get(at + 1)?).ok()?),
        Kind::Member => with(u64::from(u32::try_from(first).ok()?), 4),
        Kind::Text => {
            let text = words.text(first)?.as_bytes();
            let length = text.len() as u64;
            // Short texts, such as country codes, fit the same piece.
            return Some(match text.split_first_chunk() {
                Some((two, behind)) => (with_more(length, u16::from_le_bytes(*two)), behind),
                None => (with(length, 8), text),
            });
        }
        Kind::Rows => return None,
    };
    Some((piece, &[]))
}
