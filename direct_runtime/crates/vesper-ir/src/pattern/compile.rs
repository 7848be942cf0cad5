//! Compiler of patterns to instructions. The matcher prefers `first` to `second`.

use super::{Anchor, Class, Part, Tree};

/// Instruction of the matcher. After consuming a code point the next instruction follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Consumes this code point.
    Char(char),
    /// Consumes a member of the class with this number.
    Class(u32),
    /// Continues if the anchor matches.
    Anchor(Anchor),
    /// Continues at both instructions; the first is preferred.
    Split { first: u32, second: u32 },
    /// Continues at this instruction.
    Jump(u32),
    /// Records the position: `2n` for the start of group `n`, `2n + 1` for its end.
    Save(u32),
    /// End of the pattern.
    Match,
}

/// Program of the matcher.
#[derive(Debug)]
pub struct Program {
    pub instructions: Vec<Instruction>,
    pub classes: Vec<Class>,
    pub starts: Starts,
}

/// Positions where a match can start. The matcher skips all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starts {
    /// True where a match starts only at the start of the text.
    pub is_anchored: bool,
    /// True where any position can be a start. The pattern may match without consuming a code point.
    pub anywhere: bool,
    /// ASCII characters before which a match can start, one bit for each.
    pub ascii: u128,
    /// True where a match can start before code points that are not ASCII.
    pub beyond_ascii: bool,
}

impl Starts {
    /// Returns true when a match may start before this code point.
    #[inline]
    pub fn admits(&self, char: char) -> bool {
        let code = u32::from(char);
        self.anywhere
            || if code < 128 {
                self.ascii >> code & 1 == 1
            } else {
                self.beyond_ascii
            }
    }
}

pub(super) fn compile(tree: &Tree) -> Program {
    let mut compiler = Compiler {
        instructions: Vec::new(),
    };
    compiler.part(&tree.root);
    compiler.emit(Instruction::Match);
    let mut program = Program {
        instructions: compiler.instructions,
        classes: tree.classes.clone(),
        starts: Starts {
            is_anchored: false,
            anywhere: true,
            ascii: 0,
            beyond_ascii: false,
        },
    };
    program.starts = starts(&program);
    program
}

struct Compiler {
    instructions: Vec<Instruction>,
}

impl Compiler {
    /// Returns the index of the next instruction. A program has little more than 10,000.
    fn here(&self) -> u32 {
        u32::try_from(self.instructions.len()).unwrap_or(u32::MAX)
    }

    fn emit(&mut self, instruction: Instruction) -> usize {
        self.instructions.push(instruction);
        self.instructions.len().saturating_sub(1)
    }

    fn put(&mut self, place: usize, instruction: Instruction) {
        if let Some(slot) = self.instructions.get_mut(place) {
            *slot = instruction;
        }
    }

    /// Emits a part. The depth of a pattern is limited, and so is this recursion.
    fn part(&mut self, part: &Part) {
        match part {
            Part::Char(char) => {
                self.emit(Instruction::Char(*char));
            }
            Part::Class(number) => {
                self.emit(Instruction::Class(*number));
            }
            Part::Anchor(anchor) => {
                self.emit(Instruction::Anchor(*anchor));
            }
            Part::Group(number, of) => {
                self.emit(Instruction::Save(2 * number));
                self.part(of);
                self.emit(Instruction::Save(2 * number + 1));
            }
            Part::Sequence(parts) => parts.iter().for_each(|part| self.part(part)),
            Part::Alternation(parts) => self.alternation(parts),
            Part::Repeat {
                of,
                least,
                most,
                is_lazy,
            } => self.repeat(of, *least, *most, *is_lazy),
        }
    }

    fn alternation(&mut self, parts: &[Part]) {
        let mut to_end = Vec::new();
        if let Some((last, others)) = parts.split_last() {
            for part in others {
                let split = self.emit(Instruction::Match);
                let first = self.here();
                self.part(part);
                to_end.push(self.emit(Instruction::Match));
                let second = self.here();
                self.put(split, Instruction::Split { first, second });
            }
            self.part(last);
        }
        let end = self.here();
        for jump in to_end {
            self.put(jump, Instruction::Jump(end));
        }
    }

    fn repeat(&mut self, of: &Part, least: u32, most: Option<u32>, is_lazy: bool) {
        let split = |more: u32, stop: u32| {
            let (first, second) = if is_lazy { (stop, more) } else { (more, stop) };
            Instruction::Split { first, second }
        };
        let mut start = self.here();
        for _ in 0..least {
            start = self.here();
            self.part(of);
        }
        match most {
            // The last copy is the body of the loop. It cannot be empty, so every round makes progress.
            None if least == 1 => {
                let stop = self.here() + 1;
                self.emit(split(start, stop));
            }
            None => {
                let back = self.here();
                let choice = self.emit(Instruction::Match);
                let more = self.here();
                self.part(of);
                self.emit(Instruction::Jump(back));
                let stop = self.here();
                self.put(choice, split(more, stop));
            }
            // Optional copies, each inside the previous one: leaving one out leaves out all that follow.
            Some(most) => {
                let mut choices = Vec::new();
                for _ in least..most {
                    choices.push((self.emit(Instruction::Match), self.here()));
                    self.part(of);
                }
                let stop = self.here();
                for (choice, more) in choices {
                    self.put(choice, split(more, stop));
                }
            }
        }
    }
}

/// Follows the program from its start to the first code points that it consumes.
fn starts(program: &Program) -> Starts {
    let mut found = Starts {
        is_anchored: true,
        anywhere: false,
        ascii: 0,
        beyond_ascii: false,
    };
    // Visited instructions, with and without a preceding start anchor.
    let mut seen = vec![[false; 2]; program.instructions.len()];
    let mut open = vec![(0_u32, false)];
    while let Some((place, is_anchored)) = open.pop() {
        let Some(is_seen) = seen
            .get_mut(place as usize)
            .and_then(|both| both.get_mut(usize::from(is_anchored)))
        else {
            continue;
        };
        if std::mem::replace(is_seen, true) {
            continue;
        }
        let Some(instruction) = program.instructions.get(place as usize) else {
            continue;
        };
        match *instruction {
            Instruction::Char(char) => {
                found.is_anchored &= is_anchored;
                match u32::from(char) {
                    code @ 0..128 => found.ascii |= 1 << code,
                    _ => found.beyond_ascii = true,
                }
            }
            Instruction::Class(number) => {
                found.is_anchored &= is_anchored;
                if let Some(class) = program.classes.get(number as usize) {
                    found.ascii |= class.ascii();
                    found.beyond_ascii |= class.has_non_ascii();
                }
            }
            Instruction::Match => {
                found.is_anchored &= is_anchored;
                found.anywhere = true;
            }
            Instruction::Anchor(Anchor::Start) => open.push((place + 1, true)),
            Instruction::Anchor(_) | Instruction::Save(_) => open.push((place + 1, is_anchored)),
            Instruction::Jump(to) => open.push((to, is_anchored)),
            Instruction::Split { first, second } => {
                open.extend([(first, is_anchored), (second, is_anchored)]);
            }
        }
    }
    found
}
