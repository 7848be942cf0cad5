//! The runtime of frameless machine code: its context and the functions it calls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use vesper_interp::words::{Block, CONSTANT, Ended, Express, Shape, Words, number_of_text};
use vesper_ir::prices::charge_of;
use vesper_ir::{Key, MAX_ARITY, Member, Op, Set, TextKernels, Value, dispatch};
use vesper_kernels::Native;

use crate::kinds::{Bits, Kind};
use crate::lookup::{Lookup, ShortTexts, pack};

/// A call from frameless code.
#[derive(Clone, Debug)]
pub(crate) enum Site {
    /// The length of a text; another function computes it.
    Length,
    /// Compares two texts.
    Texts(Op),
    /// Membership of a text in a constant, with the numbers of few short keys.
    Has(Keys, Option<Vec<u64>>),
    /// The value of a text in a constant map, by index of its key.
    At { keys: Keys, values: Box<[Bits]> },
    /// A kernel call on temporary values.
    Kernel { op: Op, args: Vec<Arg>, gives: Kind },
}

/// The texts of a constant.
#[derive(Clone, Debug)]
pub(crate) enum Keys {
    ShortTexts(ShortTexts),
    Table(Lookup),
    /// Too many or too similar for a table.
    Set(Set),
}

impl Keys {
    /// Returns the numbers of few short texts, to compare one by one.
    pub(crate) fn numbers(keys: &Set) -> Option<Vec<u64>> {
        let Set::Text(texts) = keys else {
            return None;
        };
        if texts.len() > MAX_COMPARED {
            return None;
        }
        let number = |text: &Arc<str>| {
            let mut eight = [0; 8];
            eight.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
            Some(number_of_text(eight, text.len())).filter(|number| *number != 0)
        };
        texts.iter().map(number).collect()
    }

    pub(crate) fn new(keys: &Set) -> Self {
        if let Some(short) = ShortTexts::new(keys) {
            return Self::ShortTexts(short);
        }
        Lookup::new(keys).map_or_else(|| Self::Set(keys.clone()), Self::Table)
    }

    #[inline]
    fn find(&self, text: &str) -> Option<usize> {
        match self {
            Self::ShortTexts(table) => table.find(text),
            Self::Table(table) => table.find(text),
            Self::Set(set) => set.find(Key::Text(text)),
        }
    }
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    Constant(usize),
    /// The next word argument.
    Given(Kind),
}

/// The maximum texts that machine code compares one by one.
const MAX_COMPARED: usize = 8;

/// The words of arguments and results.
const SCRATCH_WORDS: usize = 2 * MAX_ARITY;

/// The context of frameless code, which accesses the fields before `texts` directly.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CallContext<'a> {
    pub(crate) fuel: u64,
    /// The address of the text numbers, and the index of the last, which is zero.
    numbers: u64,
    last_number: u64,
    scratch: [u64; SCRATCH_WORDS],
    texts: &'a [&'a str],
    constants: &'a [Value],
    sites: &'a [Site],
}

/// The offsets of the text numbers, their last index and the scratch words.
pub(crate) const NUMBERS_AT: i32 = 8;
pub(crate) const LAST_NUMBER_AT: i32 = 16;
pub(crate) const SCRATCH_AT: usize = 24;
/// The numbers of a run without texts.
const NO_NUMBER: [u64; 1] = [0];

/// The result of a successful run or call.
pub(crate) const DONE: i64 = 0;
/// The result of a run or call that gave up, without an effect.
pub(crate) const GAVE_UP: i64 = 1;
/// The result of a run that would exceed its fuel and has spent nothing.
pub(crate) const TOO_LONG: i64 = 2;

/// The immutable data of frameless code.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) shape: Arc<Shape>,
    pub(crate) constants: Vec<Value>,
    pub(crate) sites: Vec<Site>,
}

/// The signature of frameless code: context, input words and result words.
pub(crate) type Code = extern "C" fn(&mut CallContext<'_>, *mut u64, *mut u64) -> i64;

/// Frameless code with its data.
#[derive(Debug)]
pub(crate) struct FramelessCode {
    pub(crate) code: Code,
    pub(crate) parts: Parts,
}

impl Express for FramelessCode {
    fn shape(&self) -> &Arc<Shape> {
        &self.parts.shape
    }

    #[inline]
    fn run(&self, words: &mut Words<'_>, fuel: u64) -> Ended {
        // SAFETY: words of another shape, or incomplete ones, never reach the call below.
        let Some(raw) = words.raw(&self.parts.shape) else {
            return Ended::GaveUp;
        };
        let mut room = CallContext::new(fuel, raw.texts, raw.numbers, &self.parts);
        match (self.code)(&mut room, raw.words.as_mut_ptr(), raw.results.as_mut_ptr()) {
            DONE => Ended::Done,
            TOO_LONG => Ended::TooLong,
            _ => Ended::GaveUp,
        }
    }

    fn run_rows(&self, block: &mut Block<'_>, fuel: u64) {
        let Some(raw) = block.raw(&self.parts.shape) else {
            return;
        };
        // Scratch is written before it is read and fuel is reset, so all rows share one context.
        let mut room = CallContext::new(fuel, raw.texts, raw.numbers, &self.parts);
        for (row, words, results) in raw.rows() {
            room.fuel = fuel;
            *row = (self.code)(&mut room, words.as_mut_ptr(), results.as_mut_ptr()) == DONE;
        }
    }
}

impl<'a> CallContext<'a> {
    /// Creates a context, which borrows texts and numbers.
    #[inline]
    fn new(fuel: u64, texts: &'a [&'a str], numbers: &'a [u64], parts: &'a Parts) -> Self {
        let numbers = if numbers.is_empty() { &NO_NUMBER } else { numbers };
        Self {
            fuel,
            numbers: numbers.as_ptr().addr() as u64,
            last_number: numbers.len() as u64 - 1,
            scratch: [0; SCRATCH_WORDS],
            texts,
            constants: &parts.constants,
            sites: &parts.sites,
        }
    }

    fn text(&self, word: u64) -> Option<&'a str> {
        let place = usize::try_from(word & !CONSTANT).ok()?;
        if word & CONSTANT == 0 {
            return self.texts.get(place).copied();
        }
        match self.constants.get(place)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the index of a text among the keys of a site, or `ABSENT`. Returns `None` for an invalid site or text.
    #[inline]
    fn find_key(&self, site: u32, text: u64) -> Option<i64> {
        let text = self.text(text)?;
        let (Site::Has(keys, _) | Site::At { keys, .. }) = self.sites.get(site as usize)? else {
            return None;
        };
        keys.find(text)
            .map_or(Some(ABSENT), |place| i64::try_from(place).ok())
    }

    /// Writes a result to the scratch. Returns `None` if it has no form in words.
    fn give(&mut self, kind: Kind, value: &Value) -> Option<()> {
        self.give_bits(kind, kind.bits(value)?);
        Some(())
    }

    #[inline]
    fn give_bits(&mut self, kind: Kind, [first, second, _]: Bits) {
        let [one, two, ..] = &mut self.scratch;
        *one = first;
        if kind.width() == 2 {
            *two = second;
        }
    }

    fn give_one(&mut self, bits: u64) {
        let [first, ..] = &mut self.scratch;
        *first = bits;
    }

    /// Executes a site on the scratch words, or returns `None` if it fails.
    fn run_site(&mut self, site: u32) -> Option<()> {
        let site = self.sites.get(site as usize)?;
        let [first, second, ..] = self.scratch;
        match site {
            Site::Texts(op) => {
                let holds = compare_texts(*op, self.text(first)?, self.text(second)?)?;
                self.give_one(u64::from(holds));
            }
            // These have functions of their own.
            Site::Length | Site::Has(..) | Site::At { .. } => return None,
            Site::Kernel { op, args, gives } => {
                // A kernel may panic; lookups cannot.
                let value = catch_unwind(AssertUnwindSafe(|| self.kernel(*op, args)));
                self.give(*gives, &value.ok().flatten()?)?;
            }
        }
        Some(())
    }

    /// Computes a kernel on the scratch words.
    #[inline(never)]
    fn kernel(&self, op: Op, args: &[Arg]) -> Option<Value> {
        let mut made = [const { Value::Null }; MAX_ARITY];
        let mut words = self.scratch.as_slice();
        for (made, arg) in made.iter_mut().zip(args) {
            if let Arg::Given(kind) = arg {
                *made = self.value(*kind, words)?;
                words = words.get(kind.width()..)?;
            }
        }
        let mut values = [&Value::Null; MAX_ARITY];
        for (place, (value, arg)) in values.iter_mut().zip(args).enumerate() {
            *value = match arg {
                Arg::Constant(constant) => self.constants.get(*constant)?,
                Arg::Given(_) => made.get(place)?,
            };
        }
        let result = dispatch(&Native, op, &values).ok()?;
        // A large call is charged by the framed run.
        charge_of(op, &values, &result).is_none().then_some(result)
    }

    fn value(&self, kind: Kind, words: &[u64]) -> Option<Value> {
        let first = *words.first()?;
        Some(match kind {
            Kind::Boolean => Value::Boolean(first != 0),
            Kind::Integer => Value::Integer(first.cast_signed()),
            Kind::Float => Value::Float(f64::from_bits(first)),
            Kind::Decimal => {
                let mut place = Value::Null;
                kind.write(&mut place, [first, *words.get(1)?, 0]).then_some(())?;
                place
            }
            Kind::Timestamp => Value::Timestamp(first.cast_signed()),
            Kind::Duration => Value::Duration(first.cast_signed()),
            Kind::Date => Value::Date(i32::try_from(first.cast_signed()).ok()?),
            Kind::Member => Value::Member(Member(u32::try_from(first).ok()?)),
            Kind::Text => Value::Text(Arc::from(self.text(first)?)),
            Kind::Range | Kind::Items | Kind::Rows => return None,
        })
    }
}

/// Executes a site. Called by compiled code. A failure or panic recurs in the framed run.
pub(crate) extern "C" fn call_at(room: &mut CallContext<'_>, site: u32) -> i64 {
    match room.run_site(site) {
        Some(()) => DONE,
        None => GAVE_UP,
    }
}

#[inline(never)]
fn compare_texts(op: Op, left: &str, right: &str) -> Option<bool> {
    Some(match op {
        Op::TextEqual => Native.text_equal(left, right),
        Op::TextNotEqual => Native.text_not_equal(left, right),
        Op::TextLess => Native.text_less(left, right),
        Op::TextLessOrEqual => Native.text_less_or_equal(left, right),
        Op::TextGreater => Native.text_greater(left, right),
        Op::TextGreaterOrEqual => Native.text_greater_or_equal(left, right),
        _ => return None,
    })
}

/// The result of `find_at` for an absent text.
pub(crate) const ABSENT: i64 = -1;
/// The result of `find_at` for an invalid site or text.
const LOOKUP_FAILED: i64 = -2;

/// The high bit of each byte, which is clear in ASCII.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns the characters of a text: its bytes if short and ASCII, otherwise counted by the kernel.
#[inline]
fn length(text: &str) -> i64 {
    match pack(text.as_bytes()) {
        Some(bits) if bits & HIGH == 0 => i64::try_from(text.len()).unwrap_or(i64::MAX),
        _ => Native.text_length(text),
    }
}

/// Returns the characters of a text, or a negative number if it is invalid. Called by compiled code; cannot panic.
pub(crate) extern "C" fn length_of(room: &CallContext<'_>, text: u64) -> i64 {
    let Some(text) = room.text(text) else {
        return LOOKUP_FAILED;
    };
    length(text)
}

/// Returns the index of a text among the keys of a site. Called by compiled code; cannot panic.
pub(crate) extern "C" fn find_at(room: &CallContext<'_>, site: u32, text: u64) -> i64 {
    room.find_key(site, text).unwrap_or(LOOKUP_FAILED)
}
