//! Lazy deterministic automaton that decides whether a pattern matches.
//!
//! Each code point costs one table lookup; transitions that the matcher would compute repeatedly are stored. The
//! automaton finds neither the position of a match nor its groups.
//!
//! Code points that no part of the pattern distinguishes share one symbol; the end of the text is a symbol of its own.
//! A state is the set of instructions at which threads wait before anchors are evaluated, since an anchor also depends
//! on the next symbol. A table has at most [`MAX_CELLS`] entries and [`MAX_WAITING`] waiting threads; beyond them the
//! matcher is used.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, TryLockError};

use super::compile::{Instruction, Program};
use super::{Anchor, Class, is_word};

/// Maximum number of entries in a table.
const MAX_CELLS: usize = 1 << 16;
/// Maximum number of waiting threads in all states together; one state may have every instruction.
const MAX_WAITING: usize = 1 << 18;
/// Maximum number of membership tests for computing the symbols.
const MAX_TESTS: usize = 1 << 18;

/// Entries that are not states.
const UNKNOWN: u32 = u32::MAX;
const FOUND: u32 = u32::MAX - 1;
const DEAD: u32 = u32::MAX - 2;

/// Lazily filled table of a program.
#[derive(Debug)]
pub(super) struct Automaton {
    symbols: Symbols,
    /// Shared by all threads. A thread that finds it locked uses the matcher instead.
    table: Mutex<Table>,
}

/// Partition of code points into symbols.
#[derive(Debug)]
struct Symbols {
    ascii: [u16; 128],
    /// First code point of each range with its symbol, in order.
    ranges: Vec<(u32, u16)>,
    /// One code point of each symbol. `None` is the last symbol, the end of the text.
    examples: Vec<Option<char>>,
}

#[derive(Debug)]
struct Table {
    /// Next state for each state and symbol.
    cells: Vec<u32>,
    states: Vec<State>,
    numbers: HashMap<State, u32>,
    /// Number of waiting threads in all states.
    held: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Instructions of the waiting threads, in order.
    places: Arc<[u32]>,
    before: Before,
}

/// Property of the previous code point that anchors read. Without such anchors it is `Other` except at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Before {
    Start,
    Word,
    Other,
}

impl Before {
    fn example(self) -> Option<char> {
        match self {
            Self::Start => None,
            Self::Word => Some('a'),
            Self::Other => Some(' '),
        }
    }
}

impl Automaton {
    /// Builds the automaton. Returns `None` where computing the symbols would take too long.
    pub(super) fn new(program: &Program) -> Option<Self> {
        let symbols = Symbols::new(program)?;
        let start = State {
            places: Arc::from([]),
            before: Before::Start,
        };
        let table = Table {
            cells: vec![UNKNOWN; symbols.examples.len()],
            states: vec![start.clone()],
            numbers: HashMap::from([(start, 0)]),
            held: 0,
        };
        Some(Self {
            symbols,
            table: Mutex::new(table),
        })
    }

    /// Returns whether there is a match, or `None` where the table cannot decide.
    pub(super) fn matches(&self, program: &Program, text: &str) -> Option<bool> {
        let mut table = match self.table.try_lock() {
            Ok(table) => table,
            // The table is consistent between any two entries, so also after a panic.
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let end = self.symbols.examples.len().saturating_sub(1);
        let symbols = text.chars().map(|char| usize::from(self.symbols.of(char)));
        let mut state = 0;
        for symbol in symbols.chain([end]) {
            let cell = state as usize * self.symbols.examples.len() + symbol;
            let next = match table.cells.get(cell).copied()? {
                UNKNOWN => table.fill(program, &self.symbols, state, symbol)?,
                known => known,
            };
            match next {
                FOUND => return Some(true),
                DEAD => return Some(false),
                next => state = next,
            }
        }
        Some(false)
    }
}

impl Table {
    /// Computes the transition of a state by a symbol. Returns `None` where the table is full.
    fn fill(&mut self, program: &Program, symbols: &Symbols, state: u32, symbol: usize) -> Option<u32> {
        let width = symbols.examples.len();
        let after = *symbols.examples.get(symbol)?;
        let next = self.states.get(state as usize)?.next(program, after);
        let number = match next {
            Next::Found => FOUND,
            Next::Nowhere => DEAD,
            Next::State(next) => {
                if let Some(known) = self.numbers.get(&next) {
                    *known
                } else {
                    let held = self.held + next.places.len();
                    if self.cells.len() + width > MAX_CELLS || held > MAX_WAITING {
                        return None;
                    }
                    self.held = held;
                    let number = u32::try_from(self.states.len()).ok()?;
                    self.cells.resize(self.cells.len() + width, UNKNOWN);
                    self.states.push(next.clone());
                    self.numbers.insert(next, number);
                    number
                }
            }
        };
        *self.cells.get_mut(state as usize * width + symbol)? = number;
        Some(number)
    }
}

enum Next {
    Found,
    Nowhere,
    State(State),
}

impl State {
    fn next(&self, program: &Program, after: Option<char>) -> Next {
        let before = self.before.example();
        let mut open = self.places.to_vec();
        if before.is_none() || !program.starts.is_anchored {
            open.push(0);
        }
        let mut seen = vec![false; program.instructions.len()];
        let mut places = BTreeSet::new();
        while let Some(place) = open.pop() {
            match seen.get_mut(place as usize) {
                Some(is_seen) if !*is_seen => *is_seen = true,
                _ => continue,
            }
            match program.instructions.get(place as usize) {
                Some(Instruction::Match) => return Next::Found,
                Some(Instruction::Jump(to)) => open.push(*to),
                Some(Instruction::Split { first, second }) => open.extend([*first, *second]),
                Some(Instruction::Save(_)) => open.push(place + 1),
                Some(Instruction::Anchor(anchor)) if anchor.holds(before, after) => open.push(place + 1),
                Some(Instruction::Char(char)) if after == Some(*char) => {
                    places.insert(place + 1);
                }
                Some(Instruction::Class(number)) => {
                    let class = program.classes.get(*number as usize);
                    if after.zip(class).is_some_and(|(char, class)| class.contains(char)) {
                        places.insert(place + 1);
                    }
                }
                Some(Instruction::Char(_) | Instruction::Anchor(_)) | None => {}
            }
        }
        if after.is_none() || places.is_empty() && program.starts.is_anchored {
            return Next::Nowhere;
        }
        let is_word = has_word_anchors(program) && is_word(after);
        Next::State(Self {
            places: places.into_iter().collect(),
            before: if is_word { Before::Word } else { Before::Other },
        })
    }
}

fn has_word_anchors(program: &Program) -> bool {
    let is_about_words = |instruction: &Instruction| {
        matches!(
            instruction,
            Instruction::Anchor(Anchor::WordBoundary | Anchor::NoWordBoundary)
        )
    };
    program.instructions.iter().any(is_about_words)
}

impl Symbols {
    fn new(program: &Program) -> Option<Self> {
        let chars: BTreeSet<char> = program
            .instructions
            .iter()
            .filter_map(|instruction| match instruction {
                Instruction::Char(char) => Some(*char),
                _ => None,
            })
            .collect();
        // Starts of the ranges whose code points all behave alike.
        let mut begins: BTreeSet<u32> = BTreeSet::from([0]);
        for char in &chars {
            begins.extend([u32::from(*char), u32::from(*char) + 1]);
        }
        for (first, last) in program.classes.iter().flat_map(Class::ranges) {
            begins.extend([*first, *last + 1]);
        }
        let tracks_words = has_word_anchors(program);
        if tracks_words {
            let words = ['0', '9', 'A', 'Z', '_', '_', 'a', 'z'].map(u32::from);
            begins.extend(
                words
                    .iter()
                    .zip([0, 1].into_iter().cycle())
                    .map(|(code, more)| code + more),
            );
        }
        if begins
            .len()
            .saturating_mul(chars.len() + program.classes.len() + 1)
            > MAX_TESTS
        {
            return None;
        }
        let mut numbers: HashMap<Vec<bool>, u16> = HashMap::new();
        let mut examples = Vec::new();
        let mut ranges = Vec::with_capacity(begins.len());
        for begin in begins {
            // No text contains surrogates. A range that starts with one continues after them or is dropped.
            let Some(example) = char::from_u32(begin).or((begin <= 0xdfff).then_some('\u{e000}')) else {
                continue;
            };
            let answers = chars.iter().map(|char| *char == example);
            let answers = answers.chain(program.classes.iter().map(|class| class.contains(example)));
            let answers: Vec<bool> = answers.chain([tracks_words && is_word(Some(example))]).collect();
            let next = u16::try_from(examples.len()).ok()?;
            let number = *numbers.entry(answers).or_insert(next);
            if number == next {
                examples.push(Some(example));
            }
            ranges.push((begin, number));
        }
        examples.push(None);
        let mut symbols = Self {
            ascii: [0; 128],
            ranges,
            examples,
        };
        let mut ascii = [0; 128];
        for (symbol, char) in ascii.iter_mut().zip('\0'..) {
            *symbol = symbols.find_in_ranges(char);
        }
        symbols.ascii = ascii;
        Some(symbols)
    }

    #[inline]
    fn of(&self, char: char) -> u16 {
        match self.ascii.get(u32::from(char) as usize) {
            Some(symbol) => *symbol,
            None => self.find_in_ranges(char),
        }
    }

    fn find_in_ranges(&self, char: char) -> u16 {
        let place = self
            .ranges
            .partition_point(|(first, _)| *first <= u32::from(char));
        let stretch = place.checked_sub(1).and_then(|place| self.ranges.get(place));
        stretch.map_or(0, |(_, symbol)| *symbol)
    }
}
