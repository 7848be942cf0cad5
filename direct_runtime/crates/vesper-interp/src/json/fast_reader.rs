//! The fast reader: JSON text of usual form directly to the inputs of a run.
//!
//! It accepts declared keys without escapes, numbers of moderate length and types of simple form. It rejects nothing:
//! on anything else it gives up, and `reader` starts again, which implements all rules and finds every problem.

use std::sync::Arc;

use vesper_ir::limits::ITEMS;
use vesper_ir::types::Outside;
use vesper_ir::{Decimal, Member, Node, RecordType, Type, Value};

use super::reader::number;
use crate::inputs::{Given, convert, is_too_long};

/// The maximum digits that always fit 64 bits.
const MAX_DIGITS: usize = 18;
/// The maximum names, because a 64-bit mask records which were given.
const MAX_NAMES: usize = 64;
const MAX_SCANNED_MEMBERS: usize = 8;

/// Writes the inputs of a text to their empty places. Returns `None` to give up.
pub(super) fn inputs(node: &Node, text: &[u8], places: &mut [Value]) -> Option<()> {
    if !node.outside_inputs.as_ref().is_none_or(Outside::is_simple) {
        return None;
    }
    let declared = &node.inputs;
    let mut reader = Reader { text, at: 0 };
    reader.skip_white_space();
    let name = |place: usize| {
        declared
            .get(place)
            .map(|input| (node.input_key(place), &input.ty))
    };
    let given = reader.object(declared.len(), name, places)?;
    reader.skip_white_space();
    if reader.at != text.len() {
        return None;
    }
    for (place, (input, out)) in declared.iter().zip(places).enumerate() {
        if given & 1 << place == 0 {
            match (&input.default, &input.ty) {
                (Some(default), _) => out.set(default),
                (None, Type::Optional(_)) => out.put(Value::Null),
                (None, _) => return None,
            }
        }
    }
    Some(())
}

pub(super) struct Reader<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
}

/// A number with its spelled scale.
#[derive(Clone, Copy)]
pub(super) struct SpelledNumber {
    pub(super) coefficient: i64,
    pub(super) scale: u16,
    pub(super) is_whole: bool,
}

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        if self.peek()? != byte {
            return None;
        }
        self.at += 1;
        Some(())
    }

    #[inline]
    pub(super) fn skip_white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes a literal text if it comes next.
    #[inline]
    pub(super) fn word(&mut self, word: &[u8]) -> Option<()> {
        if !self.text.get(self.at..)?.starts_with(word) {
            return None;
        }
        self.at += word.len();
        Some(())
    }

    /// Takes a string without escapes and control characters. It may be invalid UTF-8.
    #[inline]
    pub(super) fn take_quoted(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let rest = self.text.get(self.at..)?;
        let length = rest
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))?;
        let (inside, rest) = rest.split_at_checked(length)?;
        if rest.first() != Some(&b'"') {
            return None;
        }
        self.at += length + 1;
        Some(inside)
    }

    pub(super) fn string(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.take_quoted()?).ok()
    }

    /// Takes a name and returns its index, which usually is the next in declared order.
    #[inline]
    fn name<'d>(
        &mut self,
        next: usize,
        count: usize,
        declared: &impl Fn(usize) -> Option<(&'d str, &'d Type)>,
    ) -> Option<usize> {
        if let Some((name, _)) = declared(next) {
            let end = self.at + 1 + name.len();
            // Names contain no quotes: `inputs` and `record` leave others to the general reader.
            if self.text.get(self.at + 1..end) == Some(name.as_bytes())
                && self.peek() == Some(b'"')
                && self.text.get(end) == Some(&b'"')
            {
                self.at = end + 1;
                return Some(next);
            }
        }
        let key = self.take_quoted()?;
        (0..count).find(|place| declared(*place).is_some_and(|(name, _)| name.as_bytes() == key))
    }

    /// Reads the entries of an object to the places of their names. Returns a mask of the names given.
    #[inline]
    fn object<'d>(
        &mut self,
        count: usize,
        declared: impl Fn(usize) -> Option<(&'d str, &'d Type)>,
        places: &mut [Value],
    ) -> Option<u64> {
        if count > MAX_NAMES {
            return None;
        }
        self.take(b'{')?;
        self.skip_white_space();
        let mut given = 0_u64;
        if self.take(b'}').is_some() {
            return Some(given);
        }
        let mut next = 0;
        loop {
            let place = self.name(next, count, &declared)?;
            if given & 1 << place != 0 {
                return None;
            }
            given |= 1 << place;
            next = place + 1;
            self.skip_white_space();
            self.take(b':')?;
            self.skip_white_space();
            let (_, ty) = declared(place)?;
            self.value(ty, places.get_mut(place)?)?;
            self.skip_white_space();
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(given);
                }
                _ => return None,
            }
            self.skip_white_space();
        }
    }

    /// Reads a value. The recursion is bounded by the depth of the type.
    fn value(&mut self, ty: &Type, out: &mut Value) -> Option<()> {
        match ty {
            Type::Decimal => {
                let spelled = if self.peek()? == b'"' {
                    parse_number(self.take_quoted()?)?
                } else {
                    self.number()?.1
                };
                let number = Decimal::new(i128::from(spelled.coefficient), spelled.scale).ok()?;
                out.put(Value::Decimal(number));
            }
            Type::Integer => {
                let (_, spelled) = self.number()?;
                if !spelled.is_whole {
                    return None;
                }
                out.put(Value::Integer(spelled.coefficient));
            }
            Type::Boolean => {
                let is_true = self.word(b"true").is_some();
                if !is_true {
                    self.word(b"false")?;
                }
                out.put(Value::Boolean(is_true));
            }
            Type::Text => {
                let text = self.string()?;
                if is_too_long(text) {
                    return None;
                }
                out.put(Value::Text(Arc::from(text)));
            }
            Type::Enum(of) => {
                let name = self.take_quoted()?;
                let member = match of.texts() {
                    // A linear scan beats a search for few members.
                    few if few.len() <= MAX_SCANNED_MEMBERS => {
                        let place = few.iter().position(|member| member.as_bytes() == name)?;
                        Member(u32::try_from(place).ok()?)
                    }
                    _ => of.member_of_text(std::str::from_utf8(name).ok()?)?,
                };
                out.put(Value::Member(member));
            }
            Type::Float if self.peek()? != b'"' => {
                let (text, _) = self.number()?;
                out.put(number(ty, std::str::from_utf8(text).ok()?)?);
            }
            Type::Float
            | Type::Bytes
            | Type::Timestamp
            | Type::Date
            | Type::Duration
            | Type::TimeOfDay
            | Type::Period => {
                out.put(convert(ty, Given::Text(self.string()?)).ok()?);
            }
            Type::Optional(of) => {
                if self.word(b"null").is_none() {
                    return self.value(of, out);
                }
                out.put(Value::Null);
            }
            Type::Array(of) => out.put(Value::Array(self.array(of)?)),
            Type::Record(of) => out.put(Value::Record(self.record(of)?)),
            Type::Json | Type::Set(_) | Type::Map(_) => return None,
        }
        Some(())
    }

    fn array(&mut self, of: &Type) -> Option<Arc<[Value]>> {
        self.take(b'[')?;
        self.skip_white_space();
        let mut items = Vec::new();
        if self.take(b']').is_some() {
            return Some(items.into());
        }
        loop {
            let mut item = Value::Null;
            self.value(of, &mut item)?;
            items.push(item);
            if items.len() > ITEMS {
                return None;
            }
            self.skip_white_space();
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Some(items.into());
                }
                _ => return None,
            }
            self.skip_white_space();
        }
    }

    fn record(&mut self, of: &RecordType) -> Option<Arc<[Value]>> {
        if !of.outside().is_none_or(Outside::is_simple) {
            return None;
        }
        let fields = of.fields();
        let mut values: Arc<[Value]> = fields.iter().map(|_| Value::Null).collect();
        let places = Arc::get_mut(&mut values)?;
        let name = |place: usize| fields.get(place).map(|field| (of.key(place), &field.ty));
        let given = self.object(fields.len(), name, places)?;
        // An absent optional field is null.
        let mut absent = fields
            .iter()
            .enumerate()
            .filter(|(place, _)| given & 1 << place == 0);
        absent
            .all(|(_, field)| matches!(field.ty, Type::Optional(_)))
            .then_some(values)
    }

    /// Takes a number without an exponent in one pass. Returns `None` for other or long ones. The caller checks the
    /// text after it.
    #[inline]
    pub(super) fn digits(&mut self) -> Option<SpelledNumber> {
        let is_negative = self.take(b'-').is_some();
        let (mut magnitude, mut length, mut point) = (0_i64, 0, None);
        let rest = self.text.get(self.at..)?;
        for byte in rest {
            let digit = byte.wrapping_sub(b'0');
            if digit < 10 {
                // The length check below rejects an overflow.
                magnitude = magnitude.wrapping_mul(10).wrapping_add(i64::from(digit));
            } else if *byte == b'.' && point.is_none() {
                point = Some(length);
            } else {
                break;
            }
            length += 1;
        }
        let whole = point.unwrap_or(length);
        let scale = point.map_or(0, |point| length - point - 1);
        // The same rules as in `parse_number`.
        if whole == 0
            || whole + scale > MAX_DIGITS
            || (point.is_some() && scale == 0)
            || (whole > 1 && rest.first() == Some(&b'0'))
        {
            return None;
        }
        self.at += length;
        Some(SpelledNumber {
            coefficient: if is_negative { -magnitude } else { magnitude },
            scale: u16::try_from(scale).ok()?,
            is_whole: point.is_none(),
        })
    }

    /// Takes the text of a number and its value.
    #[inline]
    pub(super) fn number(&mut self) -> Option<(&'a [u8], SpelledNumber)> {
        let rest = self.text.get(self.at..)?;
        let length = rest
            .iter()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .count();
        let text = rest.get(..length)?;
        self.at += length;
        Some((text, parse_number(text)?))
    }
}

/// Parses a number without an exponent, or returns `None` for other or long texts.
#[inline]
fn parse_number(text: &[u8]) -> Option<SpelledNumber> {
    let (is_negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, text),
    };
    // One of them may be the point.
    if digits.len() > MAX_DIGITS + 1 {
        return None;
    }
    let mut magnitude = 0_i64;
    let mut point = None;
    for (place, byte) in digits.iter().enumerate() {
        match byte {
            // Nineteen digits may overflow.
            b'0'..=b'9' => {
                magnitude = magnitude
                    .checked_mul(10)?
                    .checked_add(i64::from(byte.wrapping_sub(b'0')))?;
            }
            b'.' if point.is_none() => point = Some(place),
            _ => return None,
        }
    }
    let whole = point.unwrap_or(digits.len());
    let scale = point.map_or(0, |point| digits.len() - point - 1);
    // Digits on both sides of the point, and no leading zero.
    if whole == 0 || (point.is_some() && scale == 0) || (whole > 1 && digits.first() == Some(&b'0')) {
        return None;
    }
    Some(SpelledNumber {
        coefficient: if is_negative { -magnitude } else { magnitude },
        scale: u16::try_from(scale).ok()?,
        is_whole: point.is_none(),
    })
}
