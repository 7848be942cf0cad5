//! Handles: the proof that a node may use a capability. Only a mint makes one, and a mint accepts only its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The right to one capability. It cannot be copied.
#[derive(Debug)]
pub struct Handle {
    mint: u64,
    capability: Arc<str>,
}

impl Handle {
    pub fn capability(&self) -> &Arc<str> {
        &self.capability
    }
}

/// Maker of handles; a Host has one.
#[derive(Debug)]
pub struct Mint {
    id: u64,
}

impl Default for Mint {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl Mint {
    /// Makes the handle of a capability that the configuration grants.
    pub fn handle(&self, capability: Arc<str>) -> Handle {
        Handle {
            mint: self.id,
            capability,
        }
    }

    /// Returns true where this mint made the handle for this capability.
    pub fn opens(&self, handle: &Handle, capability: &str) -> bool {
        handle.mint == self.id && &*handle.capability == capability
    }
}

/// The handles of a node, and the capabilities that it was refused, each with the reason, in the order of checking.
#[derive(Debug, Default)]
pub struct Grants {
    pub handles: HashMap<Arc<str>, Handle>,
    pub refused: Vec<(Arc<str>, String)>,
}

impl Grants {
    /// Returns the reason why a capability was refused.
    pub fn refusal(&self, capability: &str) -> Option<&str> {
        let found = self.refused.iter().find(|(each, _)| &**each == capability);
        found.map(|(_, why)| &**why)
    }
}
