//! Regular expressions of docs/spec/regex.md, compiled to a program for the matcher.
//!
//! `parse` reads the grammar and determines the code points of every atom, including flags and Unicode. `compile` emits
//! instructions. The matcher is in vesper-kernels. The front end rejects invalid patterns with a detailed message; the
//! checks here ensure that no document passes verification with one.

use std::sync::OnceLock;

mod automaton;
mod class;
mod compile;
mod parse;

use automaton::Automaton;
pub use class::Class;
pub use compile::{Instruction, Program, Starts};

/// Maximum number of code points in a pattern.
const MAX_LENGTH: usize = 1_000;
/// Maximum number of capture groups.
const MAX_GROUPS: u32 = 100;
/// Maximum nesting depth of brackets.
const MAX_DEPTH: u32 = 50;
/// Maximum count in `{}`.
const MAX_COUNT: u32 = 1_000;
/// Maximum number of instructions, counted as in docs/spec/regex.md.
const MAX_INSTRUCTIONS: u64 = 10_000;

/// Valid pattern.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    tree: Tree,
    /// Compiled on first use, because a document may hold many long patterns.
    program: OnceLock<Program>,
    automaton: OnceLock<Option<Automaton>>,
}

/// Error for a text that is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// Position in code points.
    pub at: usize,
    pub what: &'static str,
}

impl std::fmt::Display for PatternError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the pattern is wrong at {}: {}", self.at, self.what)
    }
}

impl Pattern {
    /// Parses a pattern.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let tree = parse::parse(text)?;
        Ok(Self {
            text: text.to_owned(),
            tree,
            program: OnceLock::new(),
            automaton: OnceLock::new(),
        })
    }

    /// Returns the text of the pattern.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of groups without the whole match.
    pub fn groups(&self) -> usize {
        self.tree.groups as usize
    }

    /// Returns the program of the matcher.
    pub fn program(&self) -> &Program {
        self.program.get_or_init(|| compile::compile(&self.tree))
    }

    /// Returns whether the pattern matches in the text. `None` means that only the matcher can decide.
    pub fn matches(&self, text: &str) -> Option<bool> {
        let program = self.program();
        let automaton = self.automaton.get_or_init(|| Automaton::new(program));
        automaton.as_ref()?.matches(program, text)
    }
}

/// Syntax tree of a pattern with resolved classes.
#[derive(Debug)]
struct Tree {
    root: Part,
    /// Classes that parts refer to by number.
    classes: Vec<Class>,
    groups: u32,
}

/// Part of a pattern.
#[derive(Debug)]
enum Part {
    Char(char),
    /// Class with this number.
    Class(u32),
    Anchor(Anchor),
    /// Group with this number, from 1.
    Group(u32, Box<Part>),
    Sequence(Vec<Part>),
    /// At least one alternative; earlier ones are preferred.
    Alternation(Vec<Part>),
    Repeat {
        of: Box<Part>,
        least: u32,
        /// Maximum count; `None` is unbounded.
        most: Option<u32>,
        is_lazy: bool,
    },
}

/// Position that matches no code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    End,
    WordBoundary,
    NoWordBoundary,
}

impl Anchor {
    /// Returns true when the anchor matches between these neighbours. `None` is an end of the text.
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

/// Returns true for a word character.
///
/// SEMANTICS: `\w` is ASCII, and so is `\b`.
fn is_word(char: Option<char>) -> bool {
    char.is_some_and(|char| char.is_ascii_alphanumeric() || char == '_')
}

impl Part {
    /// Returns true when the part can match without consuming a code point.
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

    /// Returns the number of instructions, counted as in docs/spec/regex.md.
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
                    // `x+` is a copy and a backward jump; `x*` and `x{m,}` end with a loop of their own.
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
