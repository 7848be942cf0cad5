//! Search for matches without backtracking: all threads advance together, in order of preference.
//!
//! At each position every instruction is visited at most once, because the first visit is the most preferred. A search
//! therefore takes at most instructions × (code points + 1) steps, and finds the same match as a backtracking search.

use std::ops::Range;
use std::str::Chars;

use vesper_ir::pattern::{Instruction, Pattern, Program};

/// Start and end of a group without a match.
const NOWHERE: usize = usize::MAX;
/// First slot of a group; the two slots before it would hold the whole match.
const WHOLE: usize = 2;

/// Search of one text for one pattern. Its buffers are reused for successive matches.
pub(super) struct Searcher<'a> {
    program: &'a Program,
    text: &'a str,
    now: Threads,
    then: Threads,
    work: Work,
    /// Best match so far, with the positions of its groups.
    found: Range<usize>,
    found_groups: Vec<usize>,
}

/// Threads at one position.
struct Threads {
    /// Waiting threads in order of preference, each with the start of its match. Their instruction consumes a code
    /// point or ends the pattern.
    ready: Vec<(u32, usize)>,
    /// Instructions visited at this position.
    visited: Vec<u32>,
    /// For each instruction its index in `visited`; valid only if that entry names the instruction.
    places: Vec<u32>,
    /// For each instruction the group positions of its thread.
    noted: Vec<usize>,
}

/// Buffers for following one thread.
struct Work {
    /// Stack of pending work at one position.
    open: Vec<Open>,
    /// Group positions of the thread; empty where no groups are requested.
    noted: Vec<usize>,
}

enum Open {
    At(u32),
    /// Restores a group position after all work above it on the stack.
    Note(usize, usize),
}

/// Position between two code points, in bytes, with its neighbours.
#[derive(Clone, Copy)]
struct Position {
    at: usize,
    before: Option<char>,
    after: Option<char>,
}

impl Threads {
    fn new(instructions: usize, slots: usize) -> Self {
        Self {
            ready: Vec::with_capacity(instructions),
            visited: Vec::with_capacity(instructions),
            places: vec![0; instructions],
            noted: vec![NOWHERE; instructions * slots],
        }
    }

    fn clear(&mut self) {
        self.ready.clear();
        self.visited.clear();
    }

    /// Marks an instruction as visited. Returns true on the first visit.
    #[inline]
    fn visit(&mut self, instruction: u32) -> bool {
        let Some(place) = self.places.get_mut(instruction as usize) else {
            return false;
        };
        if self.visited.get(*place as usize) == Some(&instruction) {
            return false;
        }
        // There are at most as many entries as instructions, which fits.
        *place = u32::try_from(self.visited.len()).unwrap_or(u32::MAX);
        self.visited.push(instruction);
        true
    }

    fn remember(&mut self, instruction: u32, noted: &[usize]) {
        let start = instruction as usize * noted.len();
        if let Some(own) = self.noted.get_mut(start..start + noted.len()) {
            own.copy_from_slice(noted);
        }
    }

    fn recall(&self, instruction: u32, noted: &mut [usize]) {
        let start = instruction as usize * noted.len();
        if let Some(own) = self.noted.get(start..start + noted.len()) {
            noted.copy_from_slice(own);
        }
    }
}

impl Position {
    /// Skips code points that satisfy the predicate. Returns the position after them.
    fn skip(mut self, rest: &mut Chars<'_>, is_skipped: impl Fn(char) -> bool) -> Self {
        while self.after.is_some_and(&is_skipped)
            && let Some(next) = self.next(rest)
        {
            self = next;
        }
        self
    }

    /// Returns the position after the next code point.
    #[inline]
    fn next(self, rest: &mut Chars<'_>) -> Option<Self> {
        let char = self.after?;
        Some(Self {
            at: self.at + char.len_utf8(),
            before: Some(char),
            after: rest.next(),
        })
    }
}

impl<'a> Searcher<'a> {
    /// Creates a search, with or without group positions.
    pub(super) fn new(pattern: &'a Pattern, text: &'a str, wants_groups: bool) -> Self {
        let program = pattern.program();
        let instructions = program.instructions.len();
        let slots = if wants_groups { 2 * pattern.groups() } else { 0 };
        Self {
            program,
            text,
            now: Threads::new(instructions, slots),
            then: Threads::new(instructions, slots),
            work: Work {
                open: Vec::new(),
                noted: vec![NOWHERE; slots],
            },
            found: 0..0,
            found_groups: vec![NOWHERE; slots],
        }
    }

    /// Returns the range of a group in the last match, if it matched. Groups count from 1.
    pub(super) fn group(&self, number: usize) -> Option<Range<usize>> {
        let start = *self.found_groups.get((2 * number).checked_sub(WHOLE)?)?;
        let end = *self.found_groups.get((2 * number + 1).checked_sub(WHOLE)?)?;
        (start != NOWHERE && end != NOWHERE).then_some(start..end)
    }

    /// Returns the first match that starts at or after this byte position.
    pub(super) fn search(&mut self, from: usize) -> Option<Range<usize>> {
        let starts = self.program.starts;
        let mut rest = self.text.get(from..)?.chars();
        let mut here = Position {
            at: from,
            before: self.text.get(..from)?.chars().next_back(),
            after: rest.next(),
        };
        let mut is_found = false;
        self.now.clear();
        loop {
            let may_start = !is_found && (!starts.is_anchored || here.before.is_none());
            if self.now.ready.is_empty() {
                if !may_start {
                    break;
                }
                if !starts.is_anchored {
                    here = here.skip(&mut rest, |char| !starts.admits(char));
                }
                if here.after.is_none() && !starts.anywhere {
                    break;
                }
            }
            if may_start && (starts.anywhere || here.after.is_some_and(|char| starts.admits(char))) {
                // Added last: a match that starts further left is preferred.
                self.work.noted.fill(NOWHERE);
                self.work.follow(self.program, &mut self.now, 0, here.at, here);
            }
            let next = here.next(&mut rest);
            is_found |= self.advance(here, next);
            let Some(next) = next else {
                break;
            };
            std::mem::swap(&mut self.now, &mut self.then);
            here = next;
        }
        is_found.then(|| self.found.clone())
    }

    /// Consumes one code point in every thread. Returns true when a thread reached the end of the pattern, which
    /// discards all less preferred threads.
    fn advance(&mut self, here: Position, next: Option<Position>) -> bool {
        self.then.clear();
        for (place, start) in &self.now.ready {
            let takes = match self.program.instructions.get(*place as usize) {
                Some(Instruction::Char(char)) => here.after == Some(*char),
                Some(Instruction::Class(class)) => {
                    let class = self.program.classes.get(*class as usize);
                    here.after
                        .zip(class)
                        .is_some_and(|(char, class)| class.contains(char))
                }
                Some(Instruction::Match) => {
                    self.now.recall(*place, &mut self.found_groups);
                    self.found = *start..here.at;
                    return true;
                }
                _ => false,
            };
            if let (true, Some(next)) = (takes, next) {
                self.now.recall(*place, &mut self.work.noted);
                self.work
                    .follow(self.program, &mut self.then, *place + 1, *start, next);
            }
        }
        false
    }
}

impl Work {
    /// Follows a thread to the instructions that consume a code point, and lists them.
    fn follow(&mut self, program: &Program, threads: &mut Threads, from: u32, start: usize, here: Position) {
        self.open.push(Open::At(from));
        while let Some(next) = self.open.pop() {
            let mut place = match next {
                Open::At(place) => place,
                Open::Note(slot, position) => {
                    if let Some(note) = self.noted.get_mut(slot) {
                        *note = position;
                    }
                    continue;
                }
            };
            while threads.visit(place) {
                match program.instructions.get(place as usize) {
                    Some(Instruction::Jump(to)) => place = *to,
                    Some(Instruction::Split { first, second }) => {
                        self.open.push(Open::At(*second));
                        place = *first;
                    }
                    Some(Instruction::Anchor(anchor)) if anchor.holds(here.before, here.after) => {
                        place += 1;
                    }
                    Some(Instruction::Save(slot)) => {
                        let slot = (*slot as usize).saturating_sub(WHOLE);
                        if let Some(note) = self.noted.get_mut(slot) {
                            self.open.push(Open::Note(slot, *note));
                            *note = here.at;
                        }
                        place += 1;
                    }
                    Some(Instruction::Char(_) | Instruction::Class(_) | Instruction::Match) => {
                        threads.ready.push((place, start));
                        threads.remember(place, &self.noted);
                        break;
                    }
                    Some(Instruction::Anchor(_)) | None => break,
                }
            }
        }
    }
}
