//! Executable memory with compiled code.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, default_libcall_names};
use vesper_interp::words::{Block, Ended, Express, Shape, Words};

use crate::FramelessFunction;
use crate::NotCompiled;
use crate::frameless::{self, FramelessCode, call_at, find_at, length_of};
use crate::routines::{decimal_add, decimal_compare, decimal_multiply, decimal_subtract};
use crate::runtime::{Context, refill, step_at};

/// The signature of compiled code: context, slots and entry; returns the exit.
type Code = extern "C" fn(&mut Context<'_>, *mut u64, u64) -> i64;

/// The machine code of one form of a node. It owns the memory of the code.
pub(crate) struct Machine {
    code: Code,
    memory: Memory,
}

/// The memory of a module, freed on drop.
struct Memory {
    size: usize,
    /// In a mutex because a module is not `Sync`; it is only accessed on drop.
    module: Mutex<Option<JITModule>>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Machine({} bytes)", self.memory.size)
    }
}

/// The trade-off between compile time and run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Values live in slots between instructions, so there is little to allocate and optimise.
    Quick,
    /// Values live in machine registers.
    Good,
}

/// Returns the target of this processor, created once per level.
pub(crate) fn target(level: Level) -> Result<Arc<dyn TargetIsa>, NotCompiled> {
    static QUICK: OnceLock<Result<Arc<dyn TargetIsa>, String>> = OnceLock::new();
    static GOOD: OnceLock<Result<Arc<dyn TargetIsa>, String>> = OnceLock::new();
    let (target, optimised, allocated) = match level {
        Level::Quick => (&QUICK, "none", "single_pass"),
        Level::Good => (&GOOD, "speed", "backtracking"),
    };
    let made = target.get_or_init(|| {
        let mut flags = settings::builder();
        let all = [
            ("opt_level", optimised),
            ("regalloc_algorithm", allocated),
            ("is_pic", "false"),
            (
                "enable_verifier",
                if cfg!(debug_assertions) { "true" } else { "false" },
            ),
        ];
        for (name, value) in all {
            flags.set(name, value).map_err(|error| error.to_string())?;
        }
        let target = cranelift_native::builder().map_err(ToOwned::to_owned)?;
        target
            .finish(settings::Flags::new(flags))
            .map_err(|error| error.to_string())
    });
    made.clone()
        .map_err(|what| NotCompiled::new(format!("no code can be made for this processor: {what}")))
}

/// The names of the functions that compiled code calls.
pub(crate) const STEP: &str = "step_at";
pub(crate) const REFILL: &str = "refill";
pub(crate) const CALL: &str = "call_at";
pub(crate) const FIND: &str = "find_at";
pub(crate) const LENGTH: &str = "length_of";
pub(crate) const DECIMAL_ADD: &str = "decimal_add";
pub(crate) const DECIMAL_SUBTRACT: &str = "decimal_subtract";
pub(crate) const DECIMAL_MULTIPLY: &str = "decimal_multiply";
pub(crate) const DECIMAL_COMPARE: &str = "decimal_compare";

/// Creates a module for one function.
pub(crate) fn module(level: Level) -> Result<JITModule, NotCompiled> {
    let mut builder = JITBuilder::with_isa(target(level)?, default_libcall_names());
    builder.symbol(STEP, step_at as *const u8);
    builder.symbol(REFILL, refill as *const u8);
    builder.symbol(CALL, call_at as *const u8);
    builder.symbol(FIND, find_at as *const u8);
    builder.symbol(LENGTH, length_of as *const u8);
    builder.symbol(DECIMAL_ADD, decimal_add as *const u8);
    builder.symbol(DECIMAL_SUBTRACT, decimal_subtract as *const u8);
    builder.symbol(DECIMAL_MULTIPLY, decimal_multiply as *const u8);
    builder.symbol(DECIMAL_COMPARE, decimal_compare as *const u8);
    Ok(JITModule::new(builder))
}

impl Machine {
    /// Makes the memory of a module executable, which the system may refuse. The frameless function, if any, lives as
    /// long as the machine.
    pub(crate) fn new(
        module: JITModule,
        function: FuncId,
        second: Option<FramelessFunction>,
        size: usize,
    ) -> Result<(Self, Option<FramelessCode>), NotCompiled> {
        let module = finalise(module)?;
        let code = module.get_finalized_function(function);
        #[expect(unsafe_code, reason = "the one way to call machine code")]
        // SAFETY: `lower` declares the function with this signature, its definition is final, and its memory is freed
        // with `self`, which is borrowed while it runs.
        let code = unsafe { std::mem::transmute::<*const u8, Code>(code) };
        // `Compiled` owns both, lends the frameless function no longer than itself, and drops it first.
        let second = second.map(|second| frameless_code(&module, second));
        let machine = Self {
            code,
            memory: Memory::new(module, size),
        };
        Ok((machine, second))
    }

    pub(crate) fn size(&self) -> usize {
        self.memory.size
    }

    /// Runs from an entry and returns the exit.
    pub(crate) fn run(&self, context: &mut Context<'_>, entry: usize) -> i64 {
        let slots = context.slots();
        (self.code)(context, slots, entry as u64)
    }
}

/// Makes the memory of a module executable, which the system may refuse.
fn finalise(mut module: JITModule) -> Result<JITModule, NotCompiled> {
    match module.finalize_definitions() {
        Ok(()) => Ok(module),
        Err(error) => {
            release(module);
            Err(NotCompiled::new(format!(
                "memory cannot be made executable: {error}"
            )))
        }
    }
}

/// Returns the frameless function of an executable module. It is valid as long as the module lives.
fn frameless_code(module: &JITModule, second: FramelessFunction) -> FramelessCode {
    let code = module.get_finalized_function(second.function);
    #[expect(unsafe_code, reason = "the one way to call machine code")]
    // SAFETY: `lower` declares the function with this signature and its definition is final. The owner also owns the
    // memory, lends the function no longer than that, and drops it first.
    let code = unsafe { std::mem::transmute::<*const u8, frameless::Code>(code) };
    FramelessCode {
        code,
        parts: second.parts,
    }
}

/// A frameless function with its own memory.
#[derive(Debug)]
pub(crate) struct FramelessMachine {
    /// Declared before the memory, because it points into it.
    express: FramelessCode,
    memory: Memory,
}

impl FramelessMachine {
    pub(crate) fn new(module: JITModule, second: FramelessFunction) -> Result<Self, NotCompiled> {
        let size = second.bytes;
        let module = finalise(module)?;
        Ok(Self {
            express: frameless_code(&module, second),
            memory: Memory::new(module, size),
        })
    }
}

impl Express for FramelessMachine {
    fn shape(&self) -> &Arc<Shape> {
        self.express.shape()
    }

    fn run(&self, words: &mut Words<'_>, fuel: u64) -> Ended {
        self.express.run(words, fuel)
    }

    fn run_rows(&self, block: &mut Block<'_>, fuel: u64) {
        self.express.run_rows(block, fuel);
    }

    fn size(&self) -> usize {
        self.memory.size
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Memory({} bytes)", self.size)
    }
}

impl Memory {
    fn new(module: JITModule, size: usize) -> Self {
        Self {
            size,
            module: Mutex::new(Some(module)),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let module = self
            .module
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        module.into_iter().for_each(release);
    }
}

/// Frees the memory of a module.
#[expect(unsafe_code, reason = "a module that is dropped keeps its memory for ever")]
pub(crate) fn release(module: JITModule) {
    // SAFETY: only `Machine` and `FramelessMachine` point into it, and they are not created yet or being dropped. No
    // code runs, because a run borrows one of them.
    unsafe { module.free_memory() };
}
