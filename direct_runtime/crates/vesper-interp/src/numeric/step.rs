//! The steps of a numeric form, and what each of them reads and writes.

/// One step. Which of the parts it has depends on the code; the comments there say what it does with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) code: StepCode,
    pub(super) out: u8,
    pub(super) a: u8,
    pub(super) b: u8,
    pub(super) c: u8,
    pub(super) d: u8,
    pub(super) e: u8,
    pub(super) to: u16,
}

/// What a step does. An integer operation that fails leaves the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepCode {
    // out = a · b, of integers.
    AddI,
    SubtractI,
    MultiplyI,
    QuotI,
    RemI,
    DivFloorI,
    ModI,
    AndI,
    OrI,
    XorI,
    ShiftLeftI,
    ShiftRightI,
    // out = (a · b) · c, of integers; what ends in `From` takes the first result from c.
    AddAddI,
    AddSubtractI,
    AddFromI,
    AddMultiplyI,
    AddAndI,
    AddRemI,
    AddModI,
    SubtractAddI,
    SubtractSubtractI,
    SubtractFromI,
    SubtractMultiplyI,
    MultiplyAddI,
    MultiplySubtractI,
    MultiplyFromI,
    MultiplyMultiplyI,
    MultiplyAndI,
    MultiplyRemI,
    MultiplyModI,
    // out = (a * b + c) · d, of integers.
    MultiplyAddAndI,
    MultiplyAddRemI,
    MultiplyAddModI,
    // out = · a, of an integer.
    NegateI,
    AbsI,
    SignI,
    NotI,
    CountI,
    ToFloat,
    // out = float(a) · b.
    ToFloatMultiply,
    ToFloatDivide,
    // out = a · b, of floats.
    AddF,
    SubtractF,
    MultiplyF,
    DivideF,
    // out = (a · b) · c, of floats: rounded twice, as the two operations are.
    AddAddF,
    AddSubtractF,
    AddFromF,
    AddMultiplyF,
    SubtractAddF,
    SubtractSubtractF,
    SubtractFromF,
    SubtractMultiplyF,
    MultiplyAddF,
    MultiplySubtractF,
    MultiplyFromF,
    MultiplyMultiplyF,
    // out = (a * b · c) * d · e, of floats.
    MultiplyAddMultiplyAddF,
    MultiplyAddMultiplySubtractF,
    MultiplySubtractMultiplyAddF,
    MultiplySubtractMultiplySubtractF,
    // out = · a, of a float.
    NegateF,
    AbsF,
    SqrtF,
    FloorF,
    CeilF,
    TruncF,
    ToIntegerF,
    IsNanF,
    IsFiniteF,
    // out = · a and out = a · b, of booleans.
    NotB,
    EqualB,
    NotEqualB,
    // out = a · b, a boolean.
    EqualI,
    NotEqualI,
    LessI,
    LessOrEqualI,
    GreaterI,
    GreaterOrEqualI,
    EqualF,
    NotEqualF,
    LessF,
    LessOrEqualF,
    GreaterF,
    GreaterOrEqualF,
    // Goes to `to` where a · b holds.
    JumpIfEqualI,
    JumpIfNotEqualI,
    JumpIfLessI,
    JumpIfLessOrEqualI,
    JumpIfGreaterI,
    JumpIfGreaterOrEqualI,
    JumpIfEqualF,
    JumpIfNotEqualF,
    JumpIfLessF,
    JumpIfLessOrEqualF,
    JumpIfGreaterF,
    JumpIfGreaterOrEqualF,
    // Goes to `to` where a · b does not hold, which for floats is not the opposite comparison.
    JumpUnlessEqualI,
    JumpUnlessNotEqualI,
    JumpUnlessLessI,
    JumpUnlessLessOrEqualI,
    JumpUnlessGreaterI,
    JumpUnlessGreaterOrEqualI,
    JumpUnlessEqualF,
    JumpUnlessNotEqualF,
    JumpUnlessLessF,
    JumpUnlessLessOrEqualF,
    JumpUnlessGreaterF,
    JumpUnlessGreaterOrEqualF,
    // out = c where a · b holds, otherwise d.
    ChooseEqualI,
    ChooseNotEqualI,
    ChooseLessI,
    ChooseLessOrEqualI,
    ChooseGreaterI,
    ChooseGreaterOrEqualI,
    ChooseEqualF,
    ChooseNotEqualF,
    ChooseLessF,
    ChooseLessOrEqualF,
    ChooseGreaterF,
    ChooseGreaterOrEqualF,
    // out = c + d where a · b holds, otherwise c: an integer, then a float.
    AddIfEqualII,
    AddIfNotEqualII,
    AddIfLessII,
    AddIfLessOrEqualII,
    AddIfGreaterII,
    AddIfGreaterOrEqualII,
    AddIfEqualFI,
    AddIfNotEqualFI,
    AddIfLessFI,
    AddIfLessOrEqualFI,
    AddIfGreaterFI,
    AddIfGreaterOrEqualFI,
    AddIfEqualIF,
    AddIfNotEqualIF,
    AddIfLessIF,
    AddIfLessOrEqualIF,
    AddIfGreaterIF,
    AddIfGreaterOrEqualIF,
    AddIfEqualFF,
    AddIfNotEqualFF,
    AddIfLessFF,
    AddIfLessOrEqualFF,
    AddIfGreaterFF,
    AddIfGreaterOrEqualFF,
    // out = a.
    Move,
    // out = a, then b = c.
    MoveTwo,
    Jump,
    JumpIfTrue,
    JumpIfFalse,
    // The three slots from a on become the range from b to c in steps of d.
    Range,
    // out = the next integer of the range at a, or goes to `to`.
    Next,
    // The same for the loop whose form this is: where a round begins.
    HeadNext,
    // The same, where the range is one of places of items, and out = the item.
    HeadNextItem,
    // Where a round of a loop begins that goes through nothing.
    Head,
    // The heads again, from the end of a round: these go to `to` where there is a next one.
    AgainNext,
    AgainNextItem,
    // One round more in b, then the same.
    RoundAgainNext,
    RoundAgainNextItem,
    // One round more in a.
    Round,
    // out = d with the bit of c moved by the class of b - a: how many rounds a loop had.
    Class,
    // Leaves the round where a >= b.
    Limit,
    Spend,
    // Leaves the round where a is false.
    Require,
    // Leaves the round.
    Undo,
    // Leaves the loop.
    Leave,
}

/// Which parts of a step are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    Nothing,
    A,
    Ab,
    Abc,
    Abcd,
    Abcde,
    /// b, c and d.
    Bounds,
    /// a and c.
    Moves,
    /// The three slots from a on.
    Position,
    /// These, and b.
    PositionAndRound,
}

impl Step {
    pub(super) fn new(code: StepCode) -> Self {
        Self {
            code,
            out: 0,
            a: 0,
            b: 0,
            c: 0,
            d: 0,
            e: 0,
            to: 0,
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "every code by its name, that none is forgotten"
    )]
    fn kind(&self) -> Reads {
        #[allow(clippy::enum_glob_use, reason = "these names mean nothing else here")]
        use StepCode::*;
        match self.code {
            AddI
            | SubtractI
            | MultiplyI
            | QuotI
            | RemI
            | DivFloorI
            | ModI
            | AndI
            | OrI
            | XorI
            | ShiftLeftI
            | ShiftRightI
            | ToFloatMultiply
            | ToFloatDivide
            | AddF
            | SubtractF
            | MultiplyF
            | DivideF
            | EqualB
            | NotEqualB
            | EqualI
            | NotEqualI
            | LessI
            | LessOrEqualI
            | GreaterI
            | GreaterOrEqualI
            | EqualF
            | NotEqualF
            | LessF
            | LessOrEqualF
            | GreaterF
            | GreaterOrEqualF
            | JumpIfEqualI
            | JumpIfNotEqualI
            | JumpIfLessI
            | JumpIfLessOrEqualI
            | JumpIfGreaterI
            | JumpIfGreaterOrEqualI
            | JumpIfEqualF
            | JumpIfNotEqualF
            | JumpIfLessF
            | JumpIfLessOrEqualF
            | JumpIfGreaterF
            | JumpIfGreaterOrEqualF
            | JumpUnlessEqualI
            | JumpUnlessNotEqualI
            | JumpUnlessLessI
            | JumpUnlessLessOrEqualI
            | JumpUnlessGreaterI
            | JumpUnlessGreaterOrEqualI
            | JumpUnlessEqualF
            | JumpUnlessNotEqualF
            | JumpUnlessLessF
            | JumpUnlessLessOrEqualF
            | JumpUnlessGreaterF
            | JumpUnlessGreaterOrEqualF
            | Limit => Reads::Ab,
            AddAddI | AddSubtractI | AddFromI | AddMultiplyI | AddAndI | AddRemI | AddModI | SubtractAddI
            | SubtractSubtractI | SubtractFromI | SubtractMultiplyI | MultiplyAddI | MultiplySubtractI
            | MultiplyFromI | MultiplyMultiplyI | MultiplyAndI | MultiplyRemI | MultiplyModI | AddAddF
            | AddSubtractF | AddFromF | AddMultiplyF | SubtractAddF | SubtractSubtractF | SubtractFromF
            | SubtractMultiplyF | MultiplyAddF | MultiplySubtractF | MultiplyFromF | MultiplyMultiplyF => {
                Reads::Abc
            }
            NegateI | AbsI | SignI | NotI | CountI | ToFloat | NegateF | AbsF | SqrtF | FloorF | CeilF
            | TruncF | ToIntegerF | IsNanF | IsFiniteF | NotB | Move | JumpIfTrue | JumpIfFalse | Round
            | Require => Reads::A,
            ChooseEqualI
            | ChooseNotEqualI
            | ChooseLessI
            | ChooseLessOrEqualI
            | ChooseGreaterI
            | ChooseGreaterOrEqualI
            | ChooseEqualF
            | ChooseNotEqualF
            | ChooseLessF
            | ChooseLessOrEqualF
            | ChooseGreaterF
            | ChooseGreaterOrEqualF
            | AddIfEqualII
            | AddIfNotEqualII
            | AddIfLessII
            | AddIfLessOrEqualII
            | AddIfGreaterII
            | AddIfGreaterOrEqualII
            | AddIfEqualFI
            | AddIfNotEqualFI
            | AddIfLessFI
            | AddIfLessOrEqualFI
            | AddIfGreaterFI
            | AddIfGreaterOrEqualFI
            | AddIfEqualIF
            | AddIfNotEqualIF
            | AddIfLessIF
            | AddIfLessOrEqualIF
            | AddIfGreaterIF
            | AddIfGreaterOrEqualIF
            | AddIfEqualFF
            | AddIfNotEqualFF
            | AddIfLessFF
            | AddIfLessOrEqualFF
            | AddIfGreaterFF
            | AddIfGreaterOrEqualFF
            | MultiplyAddAndI
            | MultiplyAddRemI
            | MultiplyAddModI
            | Class => Reads::Abcd,
            MultiplyAddMultiplyAddF
            | MultiplyAddMultiplySubtractF
            | MultiplySubtractMultiplyAddF
            | MultiplySubtractMultiplySubtractF => Reads::Abcde,
            MoveTwo => Reads::Moves,
            Range => Reads::Bounds,
            Next | HeadNext | HeadNextItem | AgainNext | AgainNextItem => Reads::Position,
            RoundAgainNext | RoundAgainNextItem => Reads::PositionAndRound,
            Jump | Head | Spend | Undo | Leave => Reads::Nothing,
        }
    }

    /// The slots that it reads; one may come twice.
    pub(super) fn reads(&self) -> Vec<u8> {
        let position = [self.a, self.a.wrapping_add(1), self.a.wrapping_add(2)];
        match self.kind() {
            Reads::Nothing => Vec::new(),
            Reads::A => vec![self.a],
            Reads::Ab => vec![self.a, self.b],
            Reads::Abc => vec![self.a, self.b, self.c],
            Reads::Abcd => vec![self.a, self.b, self.c, self.d],
            Reads::Abcde => vec![self.a, self.b, self.c, self.d, self.e],
            Reads::Bounds => vec![self.b, self.c, self.d],
            Reads::Moves => vec![self.a, self.c],
            Reads::Position => position.to_vec(),
            Reads::PositionAndRound => [position.as_slice(), &[self.b]].concat(),
        }
    }

    /// The slots that it writes.
    pub(super) fn writes(&self) -> Vec<u8> {
        #[allow(clippy::enum_glob_use, reason = "these names mean nothing else here")]
        use StepCode::*;
        let position = [self.a, self.a.wrapping_add(1), self.a.wrapping_add(2)];
        match self.code {
            MoveTwo => vec![self.out, self.b],
            Range => position.to_vec(),
            Next | HeadNext | HeadNextItem | AgainNext | AgainNextItem => {
                vec![self.out, self.a, self.a.wrapping_add(2)]
            }
            RoundAgainNext | RoundAgainNextItem => {
                vec![self.out, self.a, self.a.wrapping_add(2), self.b]
            }
            Round => vec![self.a],
            Jump | JumpIfTrue | JumpIfFalse | Head | Limit | Spend | Require | Undo | Leave => Vec::new(),
            _ if self.compared_jump().is_some() => Vec::new(),
            _ => vec![self.out],
        }
    }

    /// The comparison by which it jumps, and whether that has to hold.
    pub(super) fn compared_jump(&self) -> Option<(usize, bool)> {
        let place = |list: &[StepCode; 12]| list.iter().position(|code| *code == self.code);
        let if_holds = place(&JUMPS_IF).map(|place| (place, true));
        if_holds.or_else(|| place(&JUMPS_UNLESS).map(|place| (place, false)))
    }

    /// True where `to` is the place of a step.
    pub(super) fn jumps(&self) -> bool {
        #[allow(clippy::enum_glob_use, reason = "these names mean nothing else here")]
        use StepCode::*;
        matches!(
            self.code,
            Jump | JumpIfTrue
                | JumpIfFalse
                | Next
                | HeadNext
                | HeadNextItem
                | AgainNext
                | AgainNextItem
                | RoundAgainNext
                | RoundAgainNextItem
        ) || self.compared_jump().is_some()
    }

    /// True where the step behind it may come next.
    pub(super) fn goes_on(&self) -> bool {
        !matches!(self.code, StepCode::Jump | StepCode::Undo | StepCode::Leave)
    }

    /// True where it may leave the round.
    pub(super) fn may_undo(&self) -> bool {
        #[allow(clippy::enum_glob_use, reason = "these names mean nothing else here")]
        use StepCode::*;
        match self.code {
            AddI | SubtractI | MultiplyI | QuotI | RemI | DivFloorI | ModI | ShiftLeftI | ShiftRightI
            | MultiplyAddAndI | MultiplyAddRemI | MultiplyAddModI | NegateI | AbsI | FloorF | CeilF
            | TruncF | ToIntegerF | Range | Next | Limit | Spend | Require | Undo => true,
            _ if ADDITIONS_OF_INTEGERS.contains(&self.code) => true,
            // Every pair of integer operations has one that may.
            _ => self.kind() == Reads::Abc && !self.is_of_floats(),
        }
    }

    fn is_of_floats(&self) -> bool {
        #[allow(clippy::enum_glob_use, reason = "these names mean nothing else here")]
        use StepCode::*;
        matches!(
            self.code,
            AddAddF
                | AddSubtractF
                | AddFromF
                | AddMultiplyF
                | SubtractAddF
                | SubtractSubtractF
                | SubtractFromF
                | SubtractMultiplyF
                | MultiplyAddF
                | MultiplySubtractF
                | MultiplyFromF
                | MultiplyMultiplyF
                | MultiplyAddMultiplyAddF
                | MultiplyAddMultiplySubtractF
                | MultiplySubtractMultiplyAddF
                | MultiplySubtractMultiplySubtractF
        )
    }

    /// True where it only computes, and hardly ever leaves the round: such a step may be done without need.
    pub(super) fn is_cheap(&self) -> bool {
        #[allow(clippy::enum_glob_use, reason = "these names mean nothing else here")]
        use StepCode::*;
        let is_plain = matches!(
            self.code,
            AddI | SubtractI
                | MultiplyI
                | AndI
                | OrI
                | XorI
                | AddAddI
                | AddSubtractI
                | AddFromI
                | AddAndI
                | SubtractAddI
                | SubtractSubtractI
                | SubtractFromI
                | MultiplyAddI
                | MultiplySubtractI
                | MultiplyFromI
                | MultiplyAndI
                | MultiplyAddAndI
                | ToFloat
                | ToFloatMultiply
                | AddF
                | SubtractF
                | MultiplyF
                | NegateF
                | AbsF
                | NotB
                | Move
        );
        let is_choice = CHOICES.contains(&self.code);
        is_plain || is_choice || COMPARISONS.contains(&self.code) || self.is_of_floats()
    }
}

/// The comparisons, and at the same places what is made of one and what follows it.
pub(super) const COMPARISONS: [StepCode; 12] = [
    StepCode::EqualI,
    StepCode::NotEqualI,
    StepCode::LessI,
    StepCode::LessOrEqualI,
    StepCode::GreaterI,
    StepCode::GreaterOrEqualI,
    StepCode::EqualF,
    StepCode::NotEqualF,
    StepCode::LessF,
    StepCode::LessOrEqualF,
    StepCode::GreaterF,
    StepCode::GreaterOrEqualF,
];

pub(super) const JUMPS_IF: [StepCode; 12] = [
    StepCode::JumpIfEqualI,
    StepCode::JumpIfNotEqualI,
    StepCode::JumpIfLessI,
    StepCode::JumpIfLessOrEqualI,
    StepCode::JumpIfGreaterI,
    StepCode::JumpIfGreaterOrEqualI,
    StepCode::JumpIfEqualF,
    StepCode::JumpIfNotEqualF,
    StepCode::JumpIfLessF,
    StepCode::JumpIfLessOrEqualF,
    StepCode::JumpIfGreaterF,
    StepCode::JumpIfGreaterOrEqualF,
];

pub(super) const JUMPS_UNLESS: [StepCode; 12] = [
    StepCode::JumpUnlessEqualI,
    StepCode::JumpUnlessNotEqualI,
    StepCode::JumpUnlessLessI,
    StepCode::JumpUnlessLessOrEqualI,
    StepCode::JumpUnlessGreaterI,
    StepCode::JumpUnlessGreaterOrEqualI,
    StepCode::JumpUnlessEqualF,
    StepCode::JumpUnlessNotEqualF,
    StepCode::JumpUnlessLessF,
    StepCode::JumpUnlessLessOrEqualF,
    StepCode::JumpUnlessGreaterF,
    StepCode::JumpUnlessGreaterOrEqualF,
];

pub(super) const CHOICES: [StepCode; 12] = [
    StepCode::ChooseEqualI,
    StepCode::ChooseNotEqualI,
    StepCode::ChooseLessI,
    StepCode::ChooseLessOrEqualI,
    StepCode::ChooseGreaterI,
    StepCode::ChooseGreaterOrEqualI,
    StepCode::ChooseEqualF,
    StepCode::ChooseNotEqualF,
    StepCode::ChooseLessF,
    StepCode::ChooseLessOrEqualF,
    StepCode::ChooseGreaterF,
    StepCode::ChooseGreaterOrEqualF,
];

pub(super) const ADDITIONS_OF_INTEGERS: [StepCode; 12] = [
    StepCode::AddIfEqualII,
    StepCode::AddIfNotEqualII,
    StepCode::AddIfLessII,
    StepCode::AddIfLessOrEqualII,
    StepCode::AddIfGreaterII,
    StepCode::AddIfGreaterOrEqualII,
    StepCode::AddIfEqualFI,
    StepCode::AddIfNotEqualFI,
    StepCode::AddIfLessFI,
    StepCode::AddIfLessOrEqualFI,
    StepCode::AddIfGreaterFI,
    StepCode::AddIfGreaterOrEqualFI,
];

pub(super) const ADDITIONS_OF_FLOATS: [StepCode; 12] = [
    StepCode::AddIfEqualIF,
    StepCode::AddIfNotEqualIF,
    StepCode::AddIfLessIF,
    StepCode::AddIfLessOrEqualIF,
    StepCode::AddIfGreaterIF,
    StepCode::AddIfGreaterOrEqualIF,
    StepCode::AddIfEqualFF,
    StepCode::AddIfNotEqualFF,
    StepCode::AddIfLessFF,
    StepCode::AddIfLessOrEqualFF,
    StepCode::AddIfGreaterFF,
    StepCode::AddIfGreaterOrEqualFF,
];
