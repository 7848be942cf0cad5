//! The second tier of the direct runtime: the bytecode of the interpreter, compiled to machine code with Cranelift.
//!
//! Compiled code never fails by itself. Wherever something unusual would happen (an overflow, a decimal that is not small,
//! a broken contract, a request, an empty tank) it stops before that instruction, what it holds is written back to the
//! frame, and the interpreter goes on from there.
