//! Marks: the values of observed expressions in a traced run, in order of evaluation.
//!
//! Only the traced form has `Mark` instructions, but the run loop passes a place for marks to every form. Its cost is
//! measured against a build with the feature `blind`, which has no such place (tests/bench/hooks.py).

use vesper_ir::Value;
use vesper_ir::node::ExpressionIndex;

/// The value of the expression `index`.
#[derive(Clone, Debug)]
pub struct Mark {
    pub index: ExpressionIndex,
    pub value: Value,
}

#[cfg(not(feature = "blind"))]
mod storage {
    use super::Mark;

    /// The marks of a run.
    #[derive(Debug, Default)]
    pub(crate) struct Marks(Vec<Mark>);

    impl Marks {
        #[inline]
        pub(crate) fn push(&mut self, mark: Mark) {
            self.0.push(mark);
        }

        pub(crate) fn all(&self) -> &[Mark] {
            &self.0
        }

        pub(crate) fn take(&mut self) -> Vec<Mark> {
            std::mem::take(&mut self.0)
        }

        pub(crate) fn append(&mut self, later: &mut Self) {
            self.0.append(&mut later.0);
        }
    }
}

#[cfg(feature = "blind")]
mod storage {
    use super::Mark;

    /// No marks: a build for measurements that traces nothing.
    #[derive(Debug, Default)]
    pub(crate) struct Marks(());

    #[allow(clippy::unused_self, reason = "the other build has something in it")]
    impl Marks {
        pub(crate) fn all(&self) -> &[Mark] {
            &[]
        }

        pub(crate) fn take(&mut self) -> Vec<Mark> {
            Vec::new()
        }

        pub(crate) fn append(&mut self, _later: &mut Self) {}
    }
}

pub(crate) use storage::Marks;
