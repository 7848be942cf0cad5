//! The machine code tier of the direct engine: compiles bytecode with Cranelift.
//!
//! Compiled code never fails by itself. Before an unusual case (an overflow, a large decimal, a broken contract, a
//! request, exhausted fuel) it stops, its values are written back to the frame, and the interpreter continues from
//! there.
//!
//! `dataflow` computes reads, writes and liveness. `plan` decides how each instruction is compiled and where values
//! live. `lower` emits Cranelift IR. `machine` owns the executable memory. `runtime` and `frameless` run the code,
//! with and without a frame.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, Function, Signature, UserFuncName, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Linkage, Module};
use vesper_interp::code::{Code, Instruction, Tables};
use vesper_interp::native::Native;
use vesper_interp::words::{Express, Shape};

mod dataflow;
mod frameless;
mod kinds;
mod lookup;
mod lower;
mod machine;
mod plan;
mod record_splitting;
mod routines;
mod runtime;

use lower::{FramelessFunctions, Functions, Lower, LowerOptions, Side};
use machine::{FramelessMachine, Level, Machine};
use plan::Plan;
use runtime::{Compiled, Parts};

/// Compiler options.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A guard that always fails. Tests reach every exit with it, without a matching input.
    pub fail_guard: Option<u32>,
    /// The maximum instructions of compiled code, because compile time grows faster than the code.
    pub max_instructions: usize,
    /// Code without loops from this many instructions on is compiled at the quick level. It runs once per call, and
    /// better register allocation would save less than it costs.
    pub quick_from: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fail_guard: None,
            max_instructions: 4_000,
            quick_from: 112,
        }
    }
}

/// The reason why a node was not compiled. The interpreter runs it instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCompiled(String);

impl NotCompiled {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for NotCompiled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for NotCompiled {}

/// Refuses code that leaves its frame in other ways than by a request or a call.
fn check_flow(code: &Code) -> Result<(), NotCompiled> {
    if !code.functions.is_empty() {
        return Err(NotCompiled::new("recursive functions run in the interpreter"));
    }
    if !code.forks.is_empty() {
        return Err(NotCompiled::new(
            "parallel statements and rounds in flight run in the interpreter",
        ));
    }
    Ok(())
}

/// Compiles one form of a node.
pub fn compile(
    code: &Code,
    shape: Option<Arc<Shape>>,
    options: &Options,
) -> Result<Box<dyn Native>, NotCompiled> {
    check_flow(code)?;
    catch_panics(|| {
        let level = level(code, options);
        let mut arena = machine::module(level)?;
        let framed = define(&mut arena, code, options, level, FunctionForm::Framed);
        let made = framed.and_then(|(function, bytes, side)| {
            let shape = shape.filter(|_| level == Level::Good);
            let express = define_frameless(&mut arena, code, shape, options, side.guards)?;
            Ok((function, bytes, side, express))
        });
        match made {
            Ok((function, bytes, side, express)) => {
                let guards = side.guards + express.as_ref().map_or(0, |express| express.guards);
                let total = bytes + express.as_ref().map_or(0, |express| express.bytes);
                let (machine, express) = Machine::new(arena, function, express, total)?;
                let mut parts = parts(code, side);
                parts.guards = guards;
                let native: Box<dyn Native> = Box::new(Compiled {
                    express,
                    machine,
                    parts,
                });
                Ok(native)
            }
            Err(why) => {
                machine::release(arena);
                Err(why)
            }
        }
    })
}

/// Compiles only the frameless function, for inputs with these scales where known. Alignment, comparison and result
/// scales are then resolved at compile time. The function gives up on other scales.
pub fn compile_scaled(
    code: &Code,
    shape: &Arc<Shape>,
    scales: &[Option<u16>],
    options: &Options,
) -> Result<Box<dyn Express>, NotCompiled> {
    check_flow(code)?;
    catch_panics(|| {
        let apart = split_records(code, options);
        let (level, code) = (level(code, options), apart.as_ref().unwrap_or(code));
        if level != Level::Good || Plan::new(code, Some(shape))?.always_leaves() {
            return Err(NotCompiled::new("a run always comes to what it leaves"));
        }
        let mut arena = machine::module(Level::Good)?;
        match define(
            &mut arena,
            code,
            options,
            Level::Good,
            FunctionForm::Words(shape, scales),
        ) {
            Ok((function, bytes, side)) => {
                let second = FramelessFunction {
                    function,
                    bytes,
                    guards: side.guards,
                    parts: frameless::Parts {
                        constants: code.constants.clone(),
                        sites: side.calls,
                        shape: Arc::clone(shape),
                    },
                };
                let alone: Box<dyn Express> = Box::new(FramelessMachine::new(arena, second)?);
                Ok(alone)
            }
            Err(why) => {
                machine::release(arena);
                Err(why)
            }
        }
    })
}

/// The form of a function: with a frame, or without one and with known scales.
#[derive(Clone, Copy)]
enum FunctionForm<'a> {
    Framed,
    Words(&'a Shape, &'a [Option<u16>]),
}

impl<'a> FunctionForm<'a> {
    fn shape(self) -> Option<&'a Shape> {
        match self {
            Self::Framed => None,
            Self::Words(shape, _) => Some(shape),
        }
    }
}

/// A frameless function in a module.
pub(crate) struct FramelessFunction {
    function: FuncId,
    parts: frameless::Parts,
    guards: u32,
    bytes: usize,
}

/// Defines the frameless function. Returns `None` if every run would give up, or if a guard of the framed function is
/// forced. Long code has no shape, because a frame costs little of its run.
fn define_frameless(
    module: &mut JITModule,
    code: &Code,
    shape: Option<Arc<Shape>>,
    options: &Options,
    guards: u32,
) -> Result<Option<FramelessFunction>, NotCompiled> {
    let is_shown = options.fail_guard.is_none_or(|guard| guard >= guards);
    let Some(shape) = shape.filter(|_| is_shown) else {
        return Ok(None);
    };
    let options = Options {
        fail_guard: options.fail_guard.map(|guard| guard - guards),
        ..*options
    };
    let apart = split_records(code, &options);
    let code = apart.as_ref().unwrap_or(code);
    if Plan::new(code, Some(&shape))?.always_leaves() {
        return Ok(None);
    }
    let (function, bytes, side) = define(
        module,
        code,
        &options,
        Level::Good,
        FunctionForm::Words(&shape, &[]),
    )?;
    Ok(Some(FramelessFunction {
        function,
        bytes,
        guards: side.guards,
        parts: frameless::Parts {
            constants: code.constants.clone(),
            sites: side.calls,
            shape,
        },
    }))
}

/// Splits records that are only read by field. Returns `None` without any, or if the code becomes too long.
fn split_records(code: &Code, options: &Options) -> Option<Code> {
    record_splitting::split_records(code).filter(|apart| apart.instructions.len() <= options.max_instructions)
}

/// Returns the Cranelift IR of the code.
pub fn clif(code: &Code) -> Result<String, NotCompiled> {
    catch_panics(|| {
        let options = Options::default();
        let level = level(code, &options);
        let mut module = machine::module(level)?;
        let made = build_function(&mut module, code, &options, level, FunctionForm::Framed);
        machine::release(module);
        made.map(|(_, context, _)| context.func.display().to_string())
    })
}

/// Returns the machine code as assembly.
pub fn asm(code: &Code) -> Result<String, NotCompiled> {
    catch_panics(|| assemble(code, level(code, &Options::default()), FunctionForm::Framed))
}

/// Returns the frameless machine code as assembly.
pub fn asm_without_frame(code: &Code, shape: &Shape) -> Result<String, NotCompiled> {
    catch_panics(|| {
        let apart = split_records(code, &Options::default());
        let code = apart.as_ref().unwrap_or(code);
        assemble(code, Level::Good, FunctionForm::Words(shape, &[]))
    })
}

fn assemble(code: &Code, level: Level, manners: FunctionForm<'_>) -> Result<String, NotCompiled> {
    let mut module = machine::module(level)?;
    let made = build_function(&mut module, code, &Options::default(), level, manners);
    machine::release(module);
    let (_, mut context, _) = made?;
    context.set_disasm(true);
    let target = machine::target(level)?;
    let compiled = context.compile(&*target, &mut ControlPlane::default());
    let compiled =
        compiled.map_err(|error| NotCompiled::new(format!("Cranelift refuses: {:?}", error.inner)))?;
    Ok(compiled.vcode.clone().unwrap_or_default())
}

/// Chooses the level at which code is compiled.
fn level(code: &Code, options: &Options) -> Level {
    let mut all = code.instructions.iter().enumerate();
    let is_long = code.instructions.len() >= options.quick_from;
    let is_of_loop = |(at, one): (usize, &Instruction)| {
        dataflow::takes_fuel(one) || dataflow::accesses(code, one).jump.is_some_and(|to| to <= at)
    };
    if is_long && !all.any(is_of_loop) {
        Level::Quick
    } else {
        Level::Good
    }
}

/// Runs the compiler, and turns a panic into `NotCompiled`.
fn catch_panics<T>(run: impl FnOnce() -> Result<T, NotCompiled>) -> Result<T, NotCompiled> {
    let made = catch_unwind(AssertUnwindSafe(run));
    made.unwrap_or_else(|_| {
        Err(NotCompiled::new(
            "the compiler of machine code panicked: a bug of Vesper",
        ))
    })
}

fn parts(code: &Code, side: Side) -> Parts {
    Parts {
        tables: Tables {
            constants: code.constants.clone(),
            operands: code.operands.clone(),
            prices: code.prices.clone(),
            path: code.path.as_ref().map(|path| path.first),
        },
        registers: code.registers,
        exits: side.exits,
        sites: side.sites,
        entries: side.entries,
        slots: side.slots,
        constants: side.constants,
        guards: side.guards,
    }
}

fn check_supported(code: &Code, options: &Options) -> Result<(), NotCompiled> {
    let count = code.instructions.len();
    if count > options.max_instructions {
        return Err(NotCompiled::new(format!(
            "the node has {count} instructions, and code of more than {} is not compiled",
            options.max_instructions
        )));
    }
    if code
        .instructions
        .iter()
        .any(|each| matches!(each, Instruction::Switch { .. }))
    {
        return Err(NotCompiled::new(
            "it has a jump table, of which there is no machine code yet",
        ));
    }
    Ok(())
}

/// Builds the function in Cranelift IR.
fn build_function(
    module: &mut JITModule,
    code: &Code,
    options: &Options,
    level: Level,
    manners: FunctionForm<'_>,
) -> Result<(FuncId, Context, Side), NotCompiled> {
    let shape = manners.shape();
    check_supported(code, options)?;
    let plan = Plan::new(code, shape)?;
    let pointer = module.target_config().pointer_type();
    let signature = |module: &JITModule, parameters: &[types::Type]| -> Signature {
        let mut signature = module.make_signature();
        signature
            .params
            .extend(parameters.iter().copied().map(AbiParam::new));
        signature.returns.push(AbiParam::new(types::I64));
        signature
    };
    let refused =
        |error: cranelift_module::ModuleError| NotCompiled::new(format!("Cranelift refuses: {error}"));
    let own = signature(module, &[pointer, pointer, types::I64]);
    let function = module
        .declare_function(
            if shape.is_some() { "words" } else { "node" },
            Linkage::Local,
            &own,
        )
        .map_err(refused)?;
    let import = |module: &mut JITModule, name: &str, parameters: &[types::Type]| {
        let signature = signature(module, parameters);
        module
            .declare_function(name, Linkage::Import, &signature)
            .map_err(refused)
    };
    let step = import(module, machine::STEP, &[pointer, types::I32])?;
    let call = import(module, machine::CALL, &[pointer, types::I32])?;
    let find = import(module, machine::FIND, &[pointer, types::I32, types::I64])?;
    let length = import(module, machine::LENGTH, &[pointer, types::I64])?;
    let refill = import(module, machine::REFILL, &[pointer])?;
    let add = import(module, machine::DECIMAL_ADD, &[pointer, types::I64])?;
    let subtract = import(module, machine::DECIMAL_SUBTRACT, &[pointer, types::I64])?;
    let multiply = import(module, machine::DECIMAL_MULTIPLY, &[pointer, types::I64])?;
    let compare = import(module, machine::DECIMAL_COMPARE, &[pointer, types::I64])?;
    let mut context = Context::for_function(Function::with_name_signature(
        UserFuncName::user(0, function.as_u32()),
        own,
    ));
    let mut frontend = FunctionBuilderContext::new();
    let functions = Functions {
        step: module.declare_func_in_func(step, &mut context.func),
        refill: module.declare_func_in_func(refill, &mut context.func),
        decimal_add: module.declare_func_in_func(add, &mut context.func),
        decimal_subtract: module.declare_func_in_func(subtract, &mut context.func),
        decimal_multiply: module.declare_func_in_func(multiply, &mut context.func),
        decimal_compare: module.declare_func_in_func(compare, &mut context.func),
    };
    let called = FramelessFunctions {
        call: module.declare_func_in_func(call, &mut context.func),
        find: module.declare_func_in_func(find, &mut context.func),
        length: module.declare_func_in_func(length, &mut context.func),
    };
    let builder = FunctionBuilder::new(&mut context.func, &mut frontend);
    let side = Lower::write(
        code,
        &plan,
        builder,
        functions,
        LowerOptions {
            fail_guard: options.fail_guard,
            level,
            without_frame: shape.map(|shape| (shape, called)),
            scales: match manners {
                FunctionForm::Framed => &[],
                FunctionForm::Words(_, scales) => scales,
            },
        },
        module.target_config(),
    )?;
    Ok((function, context, side))
}

/// Defines the function in a module and returns its size in bytes.
fn define(
    module: &mut JITModule,
    code: &Code,
    options: &Options,
    level: Level,
    manners: FunctionForm<'_>,
) -> Result<(FuncId, usize, Side), NotCompiled> {
    let (function, mut context, side) = build_function(module, code, options, level, manners)?;
    let defined = module.define_function(function, &mut context);
    defined.map_err(|error| NotCompiled::new(format!("Cranelift refuses: {error:?}")))?;
    let bytes = context.compiled_code().map_or(0, |code| code.code_buffer().len());
    Ok((function, bytes, side))
}
