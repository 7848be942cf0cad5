//! Frameless functions for known scales of decimals, because a table column has one scale.
//!
//! A few functions exist beside the general one, each for one vector of scales. The thread that would use a function
//! compiles it once enough rows have run; other threads use the general one meanwhile. A function lives as long as
//! its program and counts toward the machine code of the process.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use super::{CODE_LIMIT_HIT, COMPILE_NANOSECONDS, COMPILED, HELD_BYTES, REFUSED, Tiering};
use crate::bytecode::Code;
use crate::guard::guarded;
use crate::tier::words::{Express, Scales};

/// The maximum vectors of scales with their own code. Tables of a node usually share one schema.
const MAX_VARIANTS: usize = 4;
/// Rows that justify compiling, which takes about as long as running half of them.
const MIN_ROWS: u32 = 16_384;

/// The compiled variants, in order of compilation.
#[derive(Debug, Default)]
pub(super) struct Variants {
    made: [OnceLock<Variant>; MAX_VARIANTS],
    /// Rows of known scales that ran the general function.
    rows: AtomicU32,
    /// Held by the thread that compiles. Other threads do not wait for it.
    making: Mutex<()>,
}

#[derive(Debug)]
struct Variant {
    scales: Box<Scales>,
    /// The code, or `None` if these scales are not compilable.
    code: Option<HeldCode>,
}

/// Machine code and the bytes it accounts for.
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

    /// Returns the code for these scales. Returns `None` if the rows should run the general function.
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
        // In a process forked while this was held it stays locked, and no variant is compiled.
        let _making = self.making.try_lock().ok()?;
        self.rows.store(0, Ordering::Relaxed);
        // Another thread may have filled the place; then the next block finds its variant.
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
    // Counted from here on; dropping the code returns the bytes.
    let held = HELD_BYTES
        .fetch_add(bytes, Ordering::Relaxed)
        .saturating_add(bytes);
    let made = HeldCode { express, bytes };
    if held > tiering.max_bytes {
        return Err(CODE_LIMIT_HIT.to_owned());
    }
    Ok(made)
}
