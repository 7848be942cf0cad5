//! Machine code for rows whose decimals have scales that are known: a column of a table has one for all of them.
//!
//! A few such functions stand beside the general one, each for one vector of scales. One is made by the thread whose rows
//! would have used it, once there were enough of them to pay for it; the others go on in the general way meanwhile. What
//! is made stays until the program is dropped, and counts among the machine code that the process holds.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use super::{CODE_LIMIT_HIT, COMPILE_NANOSECONDS, COMPILED, HELD_BYTES, REFUSED, Tiering};
use crate::bytecode::Code;
use crate::guard::guarded;
use crate::tier::words::{Express, Scales};

/// So many vectors of scales have code of their own: tables of a node mostly have one schema.
const MAX_VARIANTS: usize = 4;
/// So many rows pay for making it: that takes about as long as half of them in the general way.
const MIN_ROWS: u32 = 16_384;

/// All of them, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Variants {
    made: [OnceLock<Variant>; MAX_VARIANTS],
    /// Rows that went the general way though something was known of their scales.
    rows: AtomicU32,
    /// HeldCode by the thread that makes one. Nobody waits for it.
    making: Mutex<()>,
}

#[derive(Debug)]
struct Variant {
    scales: Box<Scales>,
    /// Nothing where there is no code for these scales.
    code: Option<HeldCode>,
}

/// Machine code, and its share of what the process holds.
#[derive(Debug)]
struct HeldCode {
    express: Box<dyn Express>,
    bytes: usize,
}

impl Drop for HeldCode {
    fn drop(&mut self) {
        HELD_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Variants {
    fn all(&self) -> impl Iterator<Item = &Variant> {
        self.made.iter().map_while(OnceLock::get)
    }

    pub(super) fn bytes(&self) -> usize {
        self.all()
            .filter_map(|each| each.code.as_ref())
            .map(|held| held.bytes)
            .sum()
    }

    pub(super) fn count(&self) -> usize {
        self.all().filter(|each| each.code.is_some()).count()
    }

    /// The code for these scales; nothing where so many rows are to go the general way.
    pub(super) fn of(
        &self,
        tiering: &Tiering,
        general: &dyn Express,
        code: &Code,
        scales: &Scales,
        rows: u32,
    ) -> Option<&dyn Express> {
        if let Some(known) = self.all().find(|each| *each.scales == *scales) {
            return known.code.as_ref().map(|held| &*held.express);
        }
        if scales.iter().all(Option::is_none) {
            return None;
        }
        let free = self.made.iter().find(|place| place.get().is_none())?;
        let before = self.rows.load(Ordering::Relaxed);
        if before < MIN_ROWS && !tiering.is_eager {
            self.rows.store(before.saturating_add(rows), Ordering::Relaxed);
            return None;
        }
        // A process that was forked while somebody held this makes none: it is locked there for ever.
        let _making = self.making.try_lock().ok()?;
        self.rows.store(0, Ordering::Relaxed);
        // Somebody else may have been quicker; then the next block finds it.
        let made = free.get_or_init(|| Variant {
            scales: Box::from(scales),
            code: compile_counted(tiering, general, code, scales),
        });
        (*made.scales == *scales).then_some(())?;
        made.code.as_ref().map(|held| &*held.express)
    }
}

fn compile_counted(
    tiering: &Tiering,
    general: &dyn Express,
    code: &Code,
    scales: &Scales,
) -> Option<HeldCode> {
    let begun = (tiering.clock)();
    let made = compile_scaled_code(tiering, general, code, scales);
    COMPILE_NANOSECONDS.fetch_add((tiering.clock)().saturating_sub(begun), Ordering::Relaxed);
    let counter = if made.is_ok() { &COMPILED } else { &REFUSED };
    counter.fetch_add(1, Ordering::Relaxed);
    made.ok()
}

fn compile_scaled_code(
    tiering: &Tiering,
    general: &dyn Express,
    code: &Code,
    scales: &Scales,
) -> Result<HeldCode, String> {
    if HELD_BYTES.load(Ordering::Relaxed) >= tiering.max_bytes {
        return Err(CODE_LIMIT_HIT.to_owned());
    }
    let express = guarded(|| tiering.compiler.compile_scaled(code, general.shape(), scales))
        .map_err(|message| format!("a fault of the compiler: {message}"))??;
    let bytes = express.size();
    // From here on it is counted, and given back when it is dropped.
    let held = HELD_BYTES
        .fetch_add(bytes, Ordering::Relaxed)
        .saturating_add(bytes);
    let made = HeldCode { express, bytes };
    if held > tiering.max_bytes {
        return Err(CODE_LIMIT_HIT.to_owned());
    }
    Ok(made)
}
