//! The parts of inputs that a node can read, such as single fields.

use std::collections::BTreeMap;

use vesper_ir::flow::{Block, Statement};
use vesper_ir::node::{ExpressionIndex, ExpressionKind};
use vesper_ir::{Node, Op, Type};

/// The parts of a value that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Parts {
    /// Only its presence, or the length of a collection.
    #[default]
    Outside,
    Fields(BTreeMap<u32, Parts>),
    /// These parts of every item of an array.
    Items(Box<Parts>),
    Whole,
}

impl Parts {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Outside, parts) | (parts, Self::Outside) => parts,
            (Self::Items(left), Self::Items(right)) => Self::Items(Box::new(left.join(*right))),
            (Self::Fields(mut left), Self::Fields(right)) => {
                for (place, parts) in right {
                    let known = left.remove(&place).unwrap_or_default();
                    left.insert(place, known.join(parts));
                }
                Self::Fields(left)
            }
            _ => Self::Whole,
        }
    }
}

/// Returns the parts of each input that a node reads.
pub(crate) fn parts_of_inputs(node: &Node) -> Vec<Parts> {
    let mut users = Users {
        node,
        of: vec![None; node.expressions.len()],
        locals: vec![Vec::new(); node.locals],
        loops: BTreeMap::new(),
        read: vec![None; node.expressions.len()],
    };
    users.find();
    let mut found = vec![Parts::default(); node.inputs.len()];
    // Backwards: users of an expression, and mentions of a local bound to it, come later.
    for (place, expression) in node.expressions.iter().enumerate().rev() {
        let Ok(index) = ExpressionIndex::try_from(place) else {
            continue;
        };
        let parts = users.parts(index);
        if let ExpressionKind::Input(input) = expression.kind
            && let Some(known) = found.get_mut(input)
        {
            *known = std::mem::take(known).join(parts.clone());
        }
        if let Some(known) = users.read.get_mut(place) {
            *known = Some(parts);
        }
    }
    found
}

struct Users<'a> {
    node: &'a Node,
    /// The parent of each expression.
    of: Vec<Option<ExpressionIndex>>,
    /// The mentions of each local.
    locals: Vec<Vec<ExpressionIndex>>,
    /// The item local of each loop statement, by its collection.
    loops: BTreeMap<ExpressionIndex, usize>,
    /// The parts read of each expression visited so far.
    read: Vec<Option<Parts>>,
}

impl Users<'_> {
    fn find(&mut self) {
        for (index, expression) in (0..).zip(&self.node.expressions) {
            let mut uses = |part: ExpressionIndex| {
                if let Some(user) = self.of.get_mut(part as usize) {
                    *user = Some(index);
                }
            };
            match &expression.kind {
                ExpressionKind::Call { args, .. } | ExpressionKind::Apply { args, .. } => {
                    args.iter().copied().for_each(uses);
                }
                ExpressionKind::If {
                    condition,
                    then,
                    otherwise,
                } => [*condition, *then, *otherwise].into_iter().for_each(uses),
                ExpressionKind::And(left, right) | ExpressionKind::Or(left, right) => {
                    [*left, *right].into_iter().for_each(uses);
                }
                ExpressionKind::Let { value, body, .. } => [*value, *body].into_iter().for_each(uses),
                ExpressionKind::For { parts, .. } => {
                    let all = [
                        Some(parts.over),
                        parts.with,
                        parts.filter,
                        parts.key,
                        Some(parts.value),
                    ];
                    all.into_iter().flatten().for_each(uses);
                }
                ExpressionKind::Array(items) | ExpressionKind::Record(items) => {
                    items.iter().copied().for_each(uses);
                }
                ExpressionKind::Field { of, .. } => uses(*of),
                ExpressionKind::Local(local) => {
                    if let Some(mentions) = self.locals.get_mut(*local) {
                        mentions.push(index);
                    }
                }
                ExpressionKind::Literal(_)
                | ExpressionKind::Input(_)
                | ExpressionKind::Constant(_)
                | ExpressionKind::Step(_)
                | ExpressionKind::Output(_)
                | ExpressionKind::Error(_)
                | ExpressionKind::Now
                | ExpressionKind::Result => {}
            }
        }
        self.loops_of(&self.node.body);
    }

    fn loops_of(&mut self, block: &Block) {
        for statement in block {
            if let Statement::Loop(repeated) = statement
                && let (Some(over), [item]) = (repeated.over, repeated.locals.as_slice())
                && let Some(local) = self.node.loop_local(*item)
            {
                self.loops.insert(over, local);
            }
            for block in statement.blocks() {
                self.loops_of(block);
            }
        }
    }

    /// Returns the parts that are read of an expression's value.
    fn parts(&self, index: ExpressionIndex) -> Parts {
        let Some(user) = self.of.get(index as usize).copied().flatten() else {
            // A statement reads the whole value, unless it loops over it.
            return match self.loops.get(&index) {
                Some(local) => self.items(index, *local),
                None => Parts::Whole,
            };
        };
        match self.node.expression(user).map(|user| &user.kind) {
            Some(ExpressionKind::Field { place, .. }) => {
                Parts::Fields(BTreeMap::from([(*place, self.visited_parts(user))]))
            }
            Some(ExpressionKind::For {
                item,
                entry_value: None,
                parts,
                ..
            }) if parts.over == index && !parts.kind.is_of_items() => self.items(index, *item),
            Some(ExpressionKind::Let { local, value, .. }) if *value == index => self.mentions(*local),
            Some(ExpressionKind::Let { .. }) => self.visited_parts(user),
            Some(ExpressionKind::If { condition, .. }) if *condition != index => self.visited_parts(user),
            Some(ExpressionKind::Call {
                op: Op::ArrayLength, ..
            }) => Parts::Outside,
            _ => Parts::Whole,
        }
    }

    /// Returns the parts read of a visited expression.
    fn visited_parts(&self, index: ExpressionIndex) -> Parts {
        let known = self.read.get(index as usize).cloned().flatten();
        known.unwrap_or(Parts::Whole)
    }

    fn mentions(&self, local: usize) -> Parts {
        let Some(mentions) = self.locals.get(local) else {
            return Parts::Whole;
        };
        let each = mentions.iter().map(|mention| self.visited_parts(*mention));
        each.fold(Parts::Outside, Parts::join)
    }

    /// Returns the parts of each array item that are read through this local.
    fn items(&self, over: ExpressionIndex, local: usize) -> Parts {
        match self.node.expression(over).map(|over| &over.ty) {
            Some(Type::Array(_)) => Parts::Items(Box::new(self.mentions(local))),
            _ => Parts::Whole,
        }
    }
}
