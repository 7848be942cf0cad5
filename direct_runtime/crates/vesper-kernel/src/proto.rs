//! The messages of `schemas/proto`. `make generate-protos` writes the files that are included here.
#![allow(clippy::all, clippy::pedantic, reason = "generated code")]

/// The messages of the services.
pub mod v1 {
    include!("proto/vesper.kernel.v1.rs");
}

/// The messages of the durable log.
pub mod log {
    pub mod v1 {
        include!("proto/vesper.kernel.log.v1.rs");
    }
}

/// The descriptors of all messages and services, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("proto/descriptors.binpb");
