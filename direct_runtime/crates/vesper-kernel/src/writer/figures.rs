//! The figures of a kernel, for its metrics.

use tokio::sync::oneshot;

use super::{Core, Reply, Writer};
use crate::counts::Figures;
use crate::refusal::Refusal;

impl Core {
    fn figures(&self) -> Figures {
        Figures {
            processes: self.kernel.process_counts().by_state,
            pending_interrupts: self.kernel.pending_interrupts(),
            bus: self.hub.bus.status(),
            messages: self.hub.counted,
            counts: self.counts.clone(),
            is_serving: self.fault.is_none() && !self.is_draining,
        }
    }
}

impl Writer {
    /// Returns the figures of a kernel, also of one that stands by.
    pub async fn figures(&self) -> Result<Figures, Refusal> {
        let (sender, receiver) = oneshot::channel();
        self.tell(move |core| Reply::to(sender).now(Ok(core.figures())))?;
        receiver
            .await
            .unwrap_or_else(|_| Err(Refusal::unavailable("The kernel has stopped.")))
    }
}
