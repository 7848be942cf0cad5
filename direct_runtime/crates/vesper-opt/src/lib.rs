//! The optimizer of the direct path: a verified node in, a node that does the same in less time out.
//!
//! One rule a file. Every rule keeps the order of effects, the first error with the expression it is of, the fuel, and
//! the way a run goes; the generated Python never sees what comes out of here.
