//! Finds matches without going back: all ways to go on are followed at once, in order of preference.
//!
//! At every position each instruction is visited at most once, whichever way leads there: the most preferred one came
//! first. So a search takes at most instructions × (code points + 1) steps, and finds what a backtracking search would.

use std::ops::Range;
use std::str::Chars;

use vesper_ir::pattern::{Instruction, Pattern, Program};

/// Where a group that took no part begins and ends.
const NOWHERE: usize = usize::MAX;
/// Groups are noted from slot 2 on; the first two would be the whole.
const WHOLE: usize = 2;

/// A search of one text for one pattern; what it allocates serves one match after the other.
pub(super) struct Searcher<'a> {
    program: &'a Program,
    text: &'a str,
    now: Threads,
    then: Threads,
    work: Work,
    /// The best match so far, and the positions of its groups.
    found: Range<usize>,
    found_groups: Vec<usize>,
}

/// Where the ways stand that have got as far as one position.
struct Threads {
    /// Those at an instruction that takes a code point, or at the end: the most preferred first, each with the start of
    /// its match.
    ready: Vec<(u32, usize)>,
    /// The instructions that a way has led to.
    visited: Vec<u32>,
    /// For each instruction its place in `visited`, where that place names the instruction.
    places: Vec<u32>,
    /// For each instruction the positions of groups noted on the way to it.
    noted: Vec<usize>,
}

/// What one way is followed with.
struct Work {
    /// What is still to be followed at one position; the last is followed first.
    open: Vec<Open>,
    /// The positions of groups noted on the way; none where nobody asks for groups.
    noted: Vec<usize>,
}

enum Open {
    At(u32),
    /// The note to put back once everything behind it has been followed.
    Note(usize, usize),
}

/// A position between two code points, in bytes, and its neighbours.
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

    /// True when no way led to the instruction before; from now on one has.
    #[inline]
    fn visit(&mut self, instruction: u32) -> bool {
        let Some(place) = self.places.get_mut(instruction as usize) else {
            return false;
        };
        if self.visited.get(*place as usize) == Some(&instruction) {
            return false;
        }
        // At most as many as there are instructions, which fits.
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
    /// The first position from this one on where the code point that comes after it is not of these, or the end.
    fn skip(mut self, rest: &mut Chars<'_>, is_skipped: impl Fn(char) -> bool) -> Self {
        while self.after.is_some_and(&is_skipped)
            && let Some(next) = self.next(rest)
        {
            self = next;
        }
        self
    }

    /// The position behind the code point that comes after this one.
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
    /// Looks for whole matches, and for what their groups matched if that is wanted.
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

    /// What a group of the match that was found last matched; nothing where it took no part. Groups count from 1.
    pub(super) fn group(&self, number: usize) -> Option<Range<usize>> {
        let start = *self.found_groups.get((2 * number).checked_sub(WHOLE)?)?;
        let end = *self.found_groups.get((2 * number + 1).checked_sub(WHOLE)?)?;
        (start != NOWHERE && end != NOWHERE).then_some(start..end)
    }

    /// The first match that starts at this position, in bytes, or after it.
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
                // Behind all others: a match that starts further left is preferred.
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

    /// Takes the code point at a position on every way that can; true when one has come to the end of the pattern. The
    /// ways behind that one are given up: it is preferred to all of them.
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
    /// Follows a way up to the instructions that take a code point, and puts those in the list.
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
