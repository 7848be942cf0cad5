//! JSON text straight to the inputs of a run, for texts as most callers write them: every key declared and spelled
//! without escapes, numbers of moderate length, no type that needs a second look.
//!
//! Nothing is refused here. Where anything is otherwise this gives up, and `read` begins again: it knows all the rules,
//! and finds every problem.

use std::sync::Arc;

use vesper_ir::limits::ITEMS;
use vesper_ir::node::Input;
use vesper_ir::{Decimal, Member, RecordType, Type, Value};

use super::read::number;
use crate::inputs::{Given, convert, is_too_long};

/// As many digits fit 64 bits, whatever they are.
const MAX_DIGITS: usize = 18;
/// As many names have a bit each.
const MOST_NAMES: usize = 64;
const FEW_MEMBERS: usize = 8;

/// Writes the inputs that a text gives into their places, which hold nothing yet; nothing where it gives up.
pub(super) fn inputs(declared: &[Input], text: &[u8], places: &mut [Value]) -> Option<()> {
    let mut reader = Reader { text, at: 0 };
    reader.white_space();
    let name = |place: usize| declared.get(place).map(|input| (&*input.name, &input.ty));
    let given = reader.object(declared.len(), name, places)?;
    reader.white_space();
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

/// A number as it is spelled.
#[derive(Clone, Copy)]
pub(super) struct Spelled {
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
    pub(super) fn white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes this text if it comes next.
    #[inline]
    pub(super) fn word(&mut self, word: &[u8]) -> Option<()> {
        if !self.text.get(self.at..)?.starts_with(word) {
            return None;
        }
        self.at += word.len();
        Some(())
    }

    /// What is between quotes, where nothing in it is escaped or may not be there. It may be no UTF-8.
    #[inline]
    pub(super) fn quoted(&mut self) -> Option<&'a [u8]> {
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
        std::str::from_utf8(self.quoted()?).ok()
    }

    /// The place of the name that comes next, which is mostly the next one in declared order.
    #[inline]
    fn name<'d>(
        &mut self,
        next: usize,
        count: usize,
        declared: &impl Fn(usize) -> Option<(&'d str, &'d Type)>,
    ) -> Option<usize> {
        if let Some((name, _)) = declared(next) {
            let end = self.at + 1 + name.len();
            // No name has a quote in it.
            if self.text.get(self.at + 1..end) == Some(name.as_bytes())
                && self.peek() == Some(b'"')
                && self.text.get(end) == Some(&b'"')
            {
                self.at = end + 1;
                return Some(next);
            }
        }
        let key = self.quoted()?;
        (0..count).find(|place| declared(*place).is_some_and(|(name, _)| name.as_bytes() == key))
    }

    /// Writes the entries of an object into the places of their names, and says which were given, bit by bit.
    #[inline]
    fn object<'d>(
        &mut self,
        count: usize,
        declared: impl Fn(usize) -> Option<(&'d str, &'d Type)>,
        places: &mut [Value],
    ) -> Option<u64> {
        if count > MOST_NAMES {
            return None;
        }
        self.take(b'{')?;
        self.white_space();
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
            self.white_space();
            self.take(b':')?;
            self.white_space();
            let (_, ty) = declared(place)?;
            self.value(ty, places.get_mut(place)?)?;
            self.white_space();
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(given);
                }
                _ => return None,
            }
            self.white_space();
        }
    }

    /// Goes as deep as the type does, which is limited.
    fn value(&mut self, ty: &Type, out: &mut Value) -> Option<()> {
        match ty {
            Type::Decimal => {
                let spelled = if self.peek()? == b'"' {
                    spelled(self.quoted()?)?
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
                let name = self.quoted()?;
                let member = match of.members() {
                    // To look at a few is quicker than to search.
                    few if few.len() <= FEW_MEMBERS => {
                        let place = few.iter().position(|member| member.as_bytes() == name)?;
                        Member(u32::try_from(place).ok()?)
                    }
                    _ => of.member(std::str::from_utf8(name).ok()?)?,
                };
                out.put(Value::Member(member));
            }
            Type::Float if self.peek()? != b'"' => {
                let (text, _) = self.number()?;
                out.put(number(ty, std::str::from_utf8(text).ok()?)?);
            }
            Type::Float | Type::Bytes | Type::Timestamp | Type::Date | Type::Duration => {
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
        self.white_space();
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
            self.white_space();
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Some(items.into());
                }
                _ => return None,
            }
            self.white_space();
        }
    }

    fn record(&mut self, of: &RecordType) -> Option<Arc<[Value]>> {
        let fields = of.fields();
        let mut values: Arc<[Value]> = fields.iter().map(|_| Value::Null).collect();
        let places = Arc::get_mut(&mut values)?;
        let name = |place: usize| fields.get(place).map(|field| (&*field.name, &field.ty));
        let given = self.object(fields.len(), name, places)?;
        // One that is not given is null, if it may be.
        let mut absent = fields
            .iter()
            .enumerate()
            .filter(|(place, _)| given & 1 << place == 0);
        absent
            .all(|(_, field)| matches!(field.ty, Type::Optional(_)))
            .then_some(values)
    }

    /// What is spelled next that is a JSON number without an exponent, in one go; nothing for others, and for long
    /// ones. What stands behind it is looked at by who goes on.
    #[inline]
    pub(super) fn digits(&mut self) -> Option<Spelled> {
        let is_negative = self.take(b'-').is_some();
        let (mut magnitude, mut length, mut point) = (0_i64, 0, None);
        let rest = self.text.get(self.at..)?;
        for byte in rest {
            let digit = byte.wrapping_sub(b'0');
            if digit < 10 {
                // More digits than fit are refused below.
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
        // As in `spelled`.
        if whole == 0
            || whole + scale > MAX_DIGITS
            || (point.is_some() && scale == 0)
            || (whole > 1 && rest.first() == Some(&b'0'))
        {
            return None;
        }
        self.at += length;
        Some(Spelled {
            coefficient: if is_negative { -magnitude } else { magnitude },
            scale: u16::try_from(scale).ok()?,
            is_whole: point.is_none(),
        })
    }

    /// The text of a number, and what it spells.
    #[inline]
    pub(super) fn number(&mut self) -> Option<(&'a [u8], Spelled)> {
        let rest = self.text.get(self.at..)?;
        let length = rest
            .iter()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .count();
        let text = rest.get(..length)?;
        self.at += length;
        Some((text, spelled(text)?))
    }
}

/// What a text spells that is a JSON number without an exponent; nothing for other texts, and for long ones.
#[inline]
fn spelled(text: &[u8]) -> Option<Spelled> {
    let (is_negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, text),
    };
    // One of these is the point.
    if digits.len() > MAX_DIGITS + 1 {
        return None;
    }
    let mut magnitude = 0_i64;
    let mut point = None;
    for (place, byte) in digits.iter().enumerate() {
        match byte {
            // Nineteen digits may be too many.
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
    // Digits on both sides of the point, and no zero in front of others.
    if whole == 0 || (point.is_some() && scale == 0) || (whole > 1 && digits.first() == Some(&b'0')) {
        return None;
    }
    Some(Spelled {
        coefficient: if is_negative { -magnitude } else { magnitude },
        scale: u16::try_from(scale).ok()?,
        is_whole: point.is_none(),
    })
}
