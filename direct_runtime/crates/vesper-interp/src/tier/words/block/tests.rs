#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use vesper_ir::Member;

use super::*;
use crate::Program;
use crate::tier::words::Ended;

/// A stand-in that gives up on flagged payments. Otherwise it returns its inputs and the length of the country.
#[derive(Debug)]
struct Stand(Arc<Shape>);

impl Express for Stand {
    fn shape(&self) -> &Arc<Shape> {
        &self.0
    }

    fn run(&self, words: &mut Words<'_>, fuel: u64) -> Ended {
        let raw = words.raw(&self.0).unwrap();
        let [amount, its_scale, balance, scale, currency, country, age, flagged] = raw.words else {
            return Ended::GaveUp;
        };
        if *flagged != 0 || *age > fuel {
            return Ended::GaveUp;
        }
        let country = raw.texts.get(usize::try_from(*country).unwrap()).unwrap();
        let length = country.len() as u64;
        raw.results
            .copy_from_slice(&[*currency, *amount, *its_scale, length, *balance, *scale]);
        Ended::Done
    }
}

fn stand() -> Stand {
    let ir = include_bytes!("../../../../../../fixtures/payment_decision_v1.json");
    let program = Program::load(ir).unwrap();
    Stand(Arc::new(Shape::of(program.node(), program.plain_code()).unwrap()))
}

const COUNTRIES: [&str; 4] = ["D", "DE", "DEU", "Deut"];

/// Fills four rows, of which the third is flagged.
fn fill<'a>(block: &mut Block<'a>, ages: &[Option<Word<'a>>]) -> bool {
    block.begin(4);
    let cents = |row: i64| Some(Word::Decimal(100 * row - 150, 2));
    block.put(0, (0..4).map(cents))
        && block.put(1, (0..4).map(|row| Some(Word::Decimal(row, 0))))
        && block.put(2, (0..4).map(|row| Some(Word::Member(Member(row % 3)))))
        && block.put(3, COUNTRIES.iter().map(|text| Some(Word::Text(text))))
        && block.put(4, ages.iter().copied())
        && block.put(5, (0..4).map(|row| Some(Word::Boolean(row == 2))))
}

#[test]
fn every_row_has_its_own_words_and_results() {
    let stand = stand();
    let mut block = Block::new(&stand.0, 7).unwrap();
    let ages = [Some(Word::Integer(1)); 4];
    for _ in 0..2 {
        assert!(fill(&mut block, &ages));
        assert_eq!(block.run(&stand, 10), (3, 1));
        assert_eq!(block.has_outputs(), [true, true, false, true]);
        let of = |output| -> Vec<(u64, u64)> {
            let all = block.output(output, 0).take(4).zip(block.has_outputs());
            all.filter(|(_, is_there)| **is_there)
                .map(|(words, _)| words)
                .collect()
        };
        assert_eq!(
            of(0).iter().map(|(first, _)| *first).collect::<Vec<_>>(),
            [0, 1, 0]
        );
        assert_eq!(
            of(1),
            [
                ((-150_i64).cast_unsigned(), 2),
                ((-50_i64).cast_unsigned(), 2),
                (150, 2)
            ]
        );
        assert_eq!(
            of(2).iter().map(|(first, _)| *first).collect::<Vec<_>>(),
            [1, 2, 4]
        );
        assert_eq!(of(3), [(0, 0), (1, 0), (3, 0)]);
        assert_eq!(block.output(3, 3).next(), Some((3, 0)));
        assert_eq!(block.form(1), Some(Form::Decimal));
    }
}

#[test]
fn a_row_without_an_input_or_with_one_of_another_form_is_left_out() {
    let stand = stand();
    let mut block = Block::new(&stand.0, 4).unwrap();
    let integer = Some(Word::Integer(1));
    assert!(fill(
        &mut block,
        &[integer, None, integer, Some(Word::Float(1.0))]
    ));
    block.leave(9);
    assert_eq!(block.run(&stand, 10), (1, 1));
    assert_eq!(block.has_outputs(), [true, false, false, false]);
    assert!(fill(&mut block, &[integer; 4]));
    block.leave(0);
    assert_eq!(block.run(&stand, 10), (2, 1));
    assert_eq!(block.has_outputs(), [false, true, false, true]);
    assert!(fill(&mut block, &[integer; 4]));
    assert_eq!(block.run(&stand, 0), (0, 4), "what may be spent is handed on");
}

#[test]
fn without_all_inputs_of_all_rows_nothing_is_run() {
    let stand = stand();
    let mut block = Block::new(&stand.0, 4).unwrap();
    assert!(!fill(&mut block, &[Some(Word::Integer(1)); 3]));
    assert!(block.put(5, (0..4).map(|_| Some(Word::Boolean(false)))));
    assert_eq!(block.run(&stand, 10), (0, 0));
    assert_eq!(block.has_outputs(), [false; 4]);
    assert!(!block.put(6, (0..4).map(|_| Some(Word::Boolean(false)))));
    block.begin(9);
    assert_eq!(block.len(), 4, "no more than there is room for");
    block.begin(0);
    assert!(block.is_empty());
}
