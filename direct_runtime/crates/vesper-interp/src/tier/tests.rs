//! Deterministic tests: each read advances the clock, and stand-in machine code returns a different output than the
//! interpreter.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::sync::Arc;

use vesper_ir::{Decimal, Member, Value};

use super::frameless::{RETRY_CALLS, RETRY_ROWS};
use super::*;
use crate::run::meter::Limits;
use crate::tier::words::{Block, Ended, Words};
use crate::{Outcome, Program};

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

const TICK: u64 = 100;

fn clock() -> u64 {
    NOW.set(NOW.get() + TICK);
    NOW.get()
}

/// Machine code that empties the balance before the interpreter starts, and takes a set time.
#[derive(Debug)]
struct Stand {
    takes: u64,
    bytes: usize,
}

impl Native for Stand {
    fn enter(&self, frame: &mut Frame, _: &mut Meter) -> Result<(), Fault> {
        NOW.set(NOW.get() + self.takes);
        *frame.registers.get_mut(1).unwrap() = decimal("0.00");
        Ok(())
    }

    fn size(&self) -> usize {
        self.bytes
    }
}

#[derive(Debug)]
enum Stands {
    Code { takes: u64, bytes: usize },
    Refuses,
    Panics,
}

impl Compiler for Stands {
    fn compile(&self, _: &Code, _shape: Option<Arc<Shape>>) -> Result<Box<dyn Native>, String> {
        match *self {
            Self::Code { takes, bytes } => Ok(Box::new(Stand { takes, bytes })),
            Self::Refuses => Err("it is too large".to_owned()),
            Self::Panics => panic!("on purpose"),
        }
    }
}

fn decimal(text: &str) -> Value {
    Value::Decimal(Decimal::parse(text).unwrap())
}

fn tiering(compiler: Stands) -> Tiering {
    Tiering {
        compiler: Box::new(compiler),
        is_eager: false,
        calls: 100,
        operations: 20_000,
        max_bytes: usize::MAX,
        clock,
    }
}

fn payment(tiering: Tiering) -> Program {
    let ir = include_bytes!("../../../../fixtures/payment_decision_v1.json");
    Program::load_tiered(ir, &[], vesper_opt::Rules::ALL, &[], Some(Arc::new(tiering))).unwrap()
}

/// Returns true if the outcome is that of the interpreter alone.
fn is_interpreted(program: &Program) -> bool {
    let inputs = vec![
        decimal("10.00"),
        decimal("50.00"),
        Value::Member(Member(0)),
        Value::Text("DE".into()),
        Value::Integer(900),
        Value::Boolean(false),
    ];
    let limits = Limits::default();
    let plain = program.run_within(inputs.clone(), None, limits);
    match plain {
        Outcome::Returned(values) => matches!(
            values.first(),
            Some(Value::Boolean(true) | Value::Member(Member(0)))
        ),
        other => panic!("{other:?}"),
    }
}

fn stage(program: &Program) -> Stage {
    program.tiers().0.first().unwrap().1.stage.clone()
}

fn report(program: &Program) -> Report {
    program.tiers().0.first().unwrap().1.clone()
}

const CODE: Stands = Stands::Code { takes: 0, bytes: 64 };

#[test]
fn a_program_without_a_tiering_is_never_compiled() {
    let ir = include_bytes!("../../../../fixtures/payment_decision_v1.json");
    let program = Program::load(ir).unwrap();
    assert!((0..500).all(|_| is_interpreted(&program)));
    assert_eq!(stage(&program), Stage::Off);
}

#[test]
fn a_hundred_calls_make_a_form_hot_and_no_fewer() {
    let program = payment(tiering(CODE));
    assert!((0..100).all(|_| is_interpreted(&program)));
    worker::wait_until_idle();
    assert_eq!(stage(&program), Stage::Cold);
    assert!(
        is_interpreted(&program),
        "the form is queued and the call does not wait"
    );
    worker::wait_until_idle();
    assert_eq!(stage(&program), Stage::Installed);
    assert!(!is_interpreted(&program));
    assert_eq!(report(&program).entered, 1);
    assert_eq!(
        report(&program).exits,
        1,
        "the stand-in leaves everything to the interpreter"
    );
}

#[test]
fn an_eager_one_is_compiled_when_it_is_loaded_and_is_never_left() {
    let slow = Stands::Code {
        takes: 10_000,
        bytes: 64,
    };
    let program = payment(Tiering {
        is_eager: true,
        ..tiering(slow)
    });
    assert_eq!(stage(&program), Stage::Installed);
    assert!((0..2_000).all(|_| !is_interpreted(&program)));
}

#[test]
fn few_long_runs_make_a_form_hot() {
    let ir = include_bytes!("../../../../fixtures/payment_decision_v1.json");
    let tiering = Arc::new(Tiering {
        calls: u32::MAX - 1,
        ..tiering(CODE)
    });
    let program =
        Program::load_tiered(ir, &[], vesper_opt::Rules::ALL, &[], Some(Arc::clone(&tiering))).unwrap();
    let unit = program.unit_for_tests();
    unit.tier.count_fuel(&tiering, unit, 19_999);
    worker::wait_until_idle();
    assert_eq!(stage(&program), Stage::Cold);
    unit.tier.count_fuel(&tiering, unit, 1);
    worker::wait_until_idle();
    assert_eq!(stage(&program), Stage::Installed);
}

#[test]
fn slower_code_rests_and_is_tried_again() {
    let slow = Stands::Code { takes: 50, bytes: 64 };
    let program = payment(tiering(slow));
    (0..=100).for_each(|_| {
        is_interpreted(&program);
    });
    worker::wait_until_idle();
    let mut calls = 0;
    while stage(&program) == Stage::Installed {
        is_interpreted(&program);
        calls += 1;
        assert!(calls < 2_000, "the monitor has not noticed");
    }
    assert_eq!(stage(&program), Stage::Resting);
    assert_eq!(
        calls,
        2 * 15 * 17,
        "two comparisons of fifteen calls, one of seventeen each"
    );
    assert!((0..10_000).all(|_| is_interpreted(&program)));
    assert_eq!(stage(&program), Stage::Resting);
    assert!(!is_interpreted(&program));
    assert_eq!((stage(&program), report(&program).rests), (Stage::Installed, 1));
}

#[test]
fn faster_code_stays() {
    let program = payment(tiering(CODE));
    (0..20_000).for_each(|_| {
        is_interpreted(&program);
    });
    worker::wait_until_idle();
    (0..20_000).for_each(|_| {
        is_interpreted(&program);
    });
    assert_eq!((stage(&program), report(&program).rests), (Stage::Installed, 0));
}

#[test]
fn a_refused_form_keeps_its_reason_and_is_not_retried() {
    for (compiler, why) in [
        (Stands::Refuses, "it is too large"),
        (Stands::Panics, "a fault of the compiler"),
    ] {
        crate::guard::quiet_guarded_panics();
        let program = payment(Tiering {
            is_eager: true,
            ..tiering(compiler)
        });
        assert!((0..500).all(|_| is_interpreted(&program)));
        match stage(&program) {
            Stage::Refused(reason) => assert!(reason.contains(why), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn machine_code_stays_within_its_limit_and_is_retried_later() {
    let large = Stands::Code {
        takes: 0,
        bytes: 1 << 40,
    };
    let limited = |compiler| Tiering {
        max_bytes: 1 << 40,
        ..tiering(compiler)
    };
    let first = payment(Tiering {
        is_eager: true,
        max_bytes: usize::MAX,
        ..tiering(large)
    });
    assert!(counters().bytes >= 1 << 40);
    let second = payment(limited(CODE));
    (0..=100).for_each(|_| {
        is_interpreted(&second);
    });
    worker::wait_until_idle();
    assert_eq!(stage(&second), Stage::Refused(CODE_LIMIT_HIT.to_owned()));
    drop(first);
    (0..=10_000).for_each(|_| {
        is_interpreted(&second);
    });
    worker::wait_until_idle();
    assert_eq!(stage(&second), Stage::Installed);
}

#[test]
fn a_program_that_is_dropped_while_it_waits_is_gone() {
    #[derive(Debug)]
    struct Counted(#[allow(dead_code, reason = "it is counted")] Arc<()>);
    impl Compiler for Counted {
        fn compile(&self, _: &Code, _shape: Option<Arc<Shape>>) -> Result<Box<dyn Native>, String> {
            panic!("nothing is left to compile")
        }
    }
    let held = Arc::new(());
    let program = payment(Tiering {
        compiler: Box::new(Counted(Arc::clone(&held))),
        ..tiering(CODE)
    });
    let busy = worker::pause();
    (0..=100).for_each(|_| {
        is_interpreted(&program);
    });
    assert_eq!(stage(&program), Stage::Queued);
    drop(program);
    assert_eq!(Arc::strong_count(&held), 1, "the queue keeps nothing alive");
    drop(busy);
    worker::wait_until_idle();
}

#[test]
fn the_pathed_form_has_a_tier_of_its_own() {
    let program = payment(Tiering {
        is_eager: true,
        ..tiering(CODE)
    });
    assert!(program.tiers().1.is_none());
    assert!(!program.empty_path().words().is_empty());
    program.new_pathed_frame();
    assert_eq!(program.tiers().1.unwrap().stage, Stage::Installed);
}

/// A frameless function that produces no outputs; tests count how often it is offered.
#[derive(Debug)]
struct Swift(Arc<Shape>);

impl Express for Swift {
    fn shape(&self) -> &Arc<Shape> {
        &self.0
    }

    fn run(&self, _: &mut Words<'_>, _: u64) -> Ended {
        Ended::GaveUp
    }
}

impl Native for Swift {
    fn enter(&self, _: &mut Frame, _: &mut Meter) -> Result<(), Fault> {
        Ok(())
    }

    fn size(&self) -> usize {
        1
    }

    fn express(&self) -> Option<&dyn Express> {
        Some(self)
    }
}

#[derive(Debug)]
struct Swiftly;

impl Compiler for Swiftly {
    fn compile(&self, _: &Code, shape: Option<Arc<Shape>>) -> Result<Box<dyn Native>, String> {
        Ok(Box::new(Swift(shape.ok_or("it has no shape")?)))
    }

    fn compile_scaled(
        &self,
        _: &Code,
        shape: &Arc<Shape>,
        scales: &Scales,
    ) -> Result<Box<dyn Express>, String> {
        match scales.first() {
            Some(Some(13)) => Err("refused by the test".to_owned()),
            _ => Ok(Box::new(Swift(Arc::clone(shape)))),
        }
    }
}

/// Returns true if rows of this scale have their own code.
fn is_scaled(program: &Program, scale: u16, rows: u32) -> bool {
    let (general, _) = program.express_rows(1).unwrap();
    program
        .express_scaled(general, &[Some(scale), None], rows)
        .is_some()
}

#[test]
fn code_for_known_scales_is_made_once_there_were_enough_rows() {
    let program = payment(Tiering {
        compiler: Box::new(Swiftly),
        ..tiering(CODE)
    });
    assert!((0..=100).all(|_| is_interpreted(&program)));
    worker::wait_until_idle();
    assert!(!is_scaled(&program, 2, 16_000));
    assert!(!is_scaled(&program, 2, 384));
    assert_eq!(report(&program).variants, 0);
    assert!(is_scaled(&program, 2, 1));
    assert!(is_scaled(&program, 2, 1));
    assert_eq!(report(&program).variants, 1);
    // Rows of other scales are counted from zero.
    assert!(!is_scaled(&program, 3, 16_384));
    assert!(is_scaled(&program, 3, 1));
}

#[test]
fn few_vectors_of_scales_have_code_and_refused_ones_are_not_retried() {
    let program = payment(Tiering {
        compiler: Box::new(Swiftly),
        is_eager: true,
        ..tiering(CODE)
    });
    let (general, _) = program.express_rows(128).unwrap();
    assert!(
        program.express_scaled(general, &[None, None], 1).is_none(),
        "nothing is known"
    );
    assert!(!is_scaled(&program, 13, 1));
    assert!([1, 2, 3].into_iter().all(|scale| is_scaled(&program, scale, 1)));
    assert!(!is_scaled(&program, 4, 1), "there is no place left");
    assert!(!is_scaled(&program, 13, 1));
    assert!([1, 2, 3].into_iter().all(|scale| is_scaled(&program, scale, 1)));
    assert_eq!(report(&program).variants, 3);
}

#[test]
fn rows_are_retried_until_there_is_a_frameless_function() {
    let program = payment(Tiering {
        compiler: Box::new(Swiftly),
        ..tiering(CODE)
    });
    assert_eq!(program.express_rows(128).unwrap_err(), RETRY_ROWS);
    assert!((0..=100).all(|_| is_interpreted(&program)));
    worker::wait_until_idle();
    assert!(program.express_rows(128).is_ok());
}

#[test]
fn frameless_rows_rest_after_too_many_give_up() {
    let program = payment(Tiering {
        compiler: Box::new(Swiftly),
        is_eager: true,
        ..tiering(CODE)
    });
    assert!(program.express_rows(128).is_ok());
    program.expressed_rows(96, 32);
    assert!(program.express_rows(128).is_ok(), "one in four is not too many");
    program.expressed_rows(0, 33);
    let mut rows = 0;
    while let Err(count) = program.express_rows(128) {
        assert_eq!(count, 128);
        rows += count;
    }
    assert!((RETRY_CALLS - 128..=RETRY_CALLS + 128).contains(&rows), "{rows}");
    program.expressed_rows(128, 0);
    assert!(program.express_rows(128).is_ok());
    assert_eq!(report(&program).expressed, 96 + 128);
}

/// Machine code with frameless runs that are slower than the interpreter by a set time.
#[derive(Debug)]
struct Paced {
    shape: Arc<Shape>,
    takes: i64,
}

impl Express for Paced {
    fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    fn run(&self, _: &mut Words<'_>, _: u64) -> Ended {
        NOW.set(NOW.get().saturating_add_signed(self.takes));
        Ended::Done
    }

    fn run_rows(&self, block: &mut Block<'_>, _: u64) {
        let rows = block.len().try_into().unwrap_or(i64::MAX);
        NOW.set(NOW.get().saturating_add_signed(self.takes * rows));
    }
}

impl Native for Paced {
    fn enter(&self, _: &mut Frame, _: &mut Meter) -> Result<(), Fault> {
        Ok(())
    }

    fn size(&self) -> usize {
        1
    }

    fn express(&self) -> Option<&dyn Express> {
        Some(self)
    }
}

#[derive(Debug)]
struct Pacing(i64);

impl Compiler for Pacing {
    fn compile(&self, _: &Code, shape: Option<Arc<Shape>>) -> Result<Box<dyn Native>, String> {
        Ok(Box::new(Paced {
            shape: shape.ok_or("it has no shape")?,
            takes: self.0,
        }))
    }
}

/// Returns a program with such code installed.
fn paced(takes: i64) -> Program {
    let program = payment(Tiering {
        compiler: Box::new(Pacing(takes)),
        ..tiering(CODE)
    });
    assert!((0..=100).all(|_| is_interpreted(&program)));
    worker::wait_until_idle();
    program
}

/// Returns true if a call ran without a frame.
fn is_expressed(program: &Program) -> bool {
    if let Some(express) = program.express() {
        match express.run(&mut Words::new(express.shape()), 1_000) {
            Ended::Done => {
                program.expressed(true);
                return true;
            }
            Ended::GaveUp => program.expressed(false),
            Ended::TooLong => {}
        }
    }
    is_interpreted(program);
    false
}

#[test]
fn a_way_without_a_frame_that_is_slower_rests_by_itself() {
    let program = paced(50);
    let mut calls = 0;
    while report(&program).rests == 0 {
        is_expressed(&program);
        calls += 1;
        assert!(calls < 2_000, "the monitor has not noticed");
    }
    assert_eq!(
        calls,
        2 * 15 * 17,
        "two comparisons of fifteen calls, one of seventeen each"
    );
    assert_eq!(
        stage(&program),
        Stage::Installed,
        "framed runs were not slower and not sampled"
    );
    let entered = report(&program).entered;
    assert!((0..10_000).all(|_| !is_expressed(&program)));
    assert!(report(&program).entered > entered + 9_000);
    assert!(is_expressed(&program), "it is tried again");
}

#[test]
fn a_way_without_a_frame_that_is_faster_stays_and_the_ordinary_way_is_not_judged_for_it() {
    let program = paced(-50);
    let mut ordinary = 0;
    for _ in 0..200_000 {
        ordinary += u32::from(!is_expressed(&program));
    }
    assert_eq!((stage(&program), report(&program).rests), (Stage::Installed, 0));
    assert_eq!(
        report(&program).entered,
        report(&program).expressed,
        "none with a frame"
    );
    assert!(
        (100..250).contains(&ordinary),
        "it is looked at less and less: {ordinary}"
    );
}

#[test]
fn rows_without_a_frame_are_compared_with_one_that_goes_the_ordinary_way() {
    let program = paced(150);
    let mut block = Block::new(&program.shape().unwrap(), 64).unwrap();
    let mut rows = 0;
    while report(&program).rests == 0 {
        match program.express_rows(64) {
            Ok((express, _)) => {
                block.begin(64);
                express.run_rows(&mut block, 1_000);
                program.expressed_rows(64, 0);
                rows += 64;
            }
            Err(count) => {
                assert_eq!(count, 1);
                is_interpreted(&program);
                rows += 1;
            }
        }
        assert!(rows < 100_000, "the monitor has not noticed");
    }
    assert_eq!(program.express_rows(64).unwrap_err(), 64);
    assert_eq!(stage(&program), Stage::Installed);
}

#[test]
fn where_both_sides_are_timed_the_answer_is_that_of_machine_code() {
    let program = payment(tiering(CODE));
    assert!((0..=100).all(|_| is_interpreted(&program)));
    worker::wait_until_idle();
    let calls = 3 * u64::from(Monitor::new().interval());
    assert!((0..calls).all(|_| !is_interpreted(&program)));
    assert_eq!(report(&program).entered, calls, "once each");
}
