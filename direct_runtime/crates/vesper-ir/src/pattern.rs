//! Regular expressions, as docs/spec/regex.md has them: from the text of a pattern to a program for the matcher.
//!
//! `parse` reads the grammar and settles what every atom matches, flags and Unicode included; `compile` lays the tree
//! out as instructions. The matcher is beside the kernels. The front end has refused wrong patterns with a good message
//! already: here they are refused so that no document can bring one past verification.

use std::sync::OnceLock;

mod automaton;
mod class;
mod compile;
mod parse;

use automaton::Automaton;
pub use class::Class;
pub use compile::{Instruction, Program, Starts};

/// The most code points of a pattern.
const LENGTH: usize = 1_000;
/// The most groups that are numbered.
const GROUPS: u32 = 100;
/// How deep brackets may nest.
const DEPTH: u32 = 50;
/// The highest count in `{}`.
const COUNT: u32 = 1_000;
/// The most instructions, counted as docs/spec/regex.md does.
const INSTRUCTIONS: u64 = 10_000;

/// A pattern that keeps the rules.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    tree: Tree,
    /// Made when it is first needed: a document may hold many patterns, and each may be long.
    program: OnceLock<Program>,
    automaton: OnceLock<Option<Automaton>>,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// Where, in code points.
    pub at: usize,
    pub what: &'static str,
}

impl std::fmt::Display for PatternError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the pattern is wrong at {}: {}", self.at, self.what)
    }
}

impl Pattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let tree = parse::parse(text)?;
        Ok(Self {
            text: text.to_owned(),
            tree,
            program: OnceLock::new(),
            automaton: OnceLock::new(),
        })
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many groups it has, the whole not counted.
    pub fn groups(&self) -> usize {
        self.tree.groups as usize
    }

    /// What the matcher runs.
    pub fn program(&self) -> &Program {
        self.program.get_or_init(|| compile::compile(&self.tree))
    }

    /// Whether it matches somewhere in the text, if that can be told without the matcher.
    pub fn matches(&self, text: &str) -> Option<bool> {
        let program = self.program();
        let automaton = self.automaton.get_or_init(|| Automaton::new(program));
        automaton.as_ref()?.matches(program, text)
    }
}

/// A pattern as it was written, with what each atom matches.
#[derive(Debug)]
struct Tree {
    root: Part,
    /// What the parts name by number.
    classes: Vec<Class>,
    groups: u32,
}

/// A part of a pattern.
#[derive(Debug)]
enum Part {
    Char(char),
    /// The class of this number.
    Class(u32),
    Anchor(Anchor),
    /// A group of this number, from 1.
    Group(u32, Box<Part>),
    Sequence(Vec<Part>),
    /// At least one; the first is preferred.
    Alternation(Vec<Part>),
    Repeat {
        of: Box<Part>,
        least: u32,
        /// No end without it.
        most: Option<u32>,
        is_lazy: bool,
    },
}

/// A place that matches no code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    End,
    WordBoundary,
    NoWordBoundary,
}

impl Anchor {
    /// True between these two neighbours; at an end of the text there is none.
    #[inline]
    pub fn holds(self, before: Option<char>, after: Option<char>) -> bool {
        match self {
            Self::Start => before.is_none(),
            Self::End => after.is_none(),
            Self::WordBoundary => is_word(before) != is_word(after),
            Self::NoWordBoundary => is_word(before) == is_word(after),
        }
    }
}

/// SEMANTICS: `\w` is ASCII, and so is what `\b` goes by.
fn is_word(char: Option<char>) -> bool {
    char.is_some_and(|char| char.is_ascii_alphanumeric() || char == '_')
}

impl Part {
    /// True when it can match without taking a code point.
    fn can_be_empty(&self) -> bool {
        match self {
            Self::Char(_) | Self::Class(_) => false,
            Self::Anchor(_) => true,
            Self::Group(_, of) => of.can_be_empty(),
            Self::Sequence(parts) => parts.iter().all(Self::can_be_empty),
            Self::Alternation(parts) => parts.iter().any(Self::can_be_empty),
            Self::Repeat { of, least, .. } => *least == 0 || of.can_be_empty(),
        }
    }

    /// How many instructions it takes, as docs/spec/regex.md counts them.
    fn size(&self) -> u64 {
        match self {
            Self::Char(_) | Self::Class(_) | Self::Anchor(_) => 1,
            Self::Group(_, of) => of.size().saturating_add(2),
            Self::Sequence(parts) => sum(parts.iter().map(Self::size)),
            Self::Alternation(parts) => {
                let turns = 2 * (parts.len() as u64).saturating_sub(1);
                sum(parts.iter().map(Self::size)).saturating_add(turns)
            }
            Self::Repeat { of, least, most, .. } => {
                let size = of.size();
                let copies = u64::from(*least).saturating_mul(size);
                match most {
                    // `x+` is a copy and a way back; `x*` and `x{m,}` end with a loop of their own.
                    None if *least == 1 => size.saturating_add(1),
                    None => copies.saturating_add(size).saturating_add(2),
                    Some(most) => {
                        let optional = u64::from(most.saturating_sub(*least));
                        copies.saturating_add(optional.saturating_mul(size.saturating_add(1)))
                    }
                }
            }
        }
    }
}

fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}
