//! Streams to callers, which report what was taken and that they have ended.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_stream::Stream;
use tonic::Status;
use vesper_kernel::machines::bus::SubscriptionId;
use vesper_kernel::proto::v1::{KernelEvent, Message, PipelineEvent, PipelineEventKind, WorkResponse};
use vesper_kernel::writer::Writer;

use crate::traces::Traces;

/// Messages that are reported as taken together.
const TAKEN_TOGETHER: usize = 32;

pub(crate) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Events of the kernel. Their end is an error: the caller lags behind, or the kernel stops.
pub(crate) struct Events(pub(crate) Option<vesper_kernel::hub::Stream<KernelEvent>>);

impl Stream for Events {
    type Item = Result<KernelEvent, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(receiver) = &mut self.0 else {
            return Poll::Ready(None);
        };
        receiver.poll_recv(context).map(|event| {
            if event.is_none() {
                self.0 = None;
            }
            Some(event.ok_or_else(lagging))
        })
    }
}

fn lagging() -> Status {
    Status::unavailable(
        "The stream ended: its reader lags behind too far, or the kernel stops. Continue with after_sequence.",
    )
}

/// Events of a pipeline until its end.
pub(crate) struct PipelineEvents(pub(crate) Option<vesper_kernel::hub::Stream<PipelineEvent>>);

impl Stream for PipelineEvents {
    type Item = Result<PipelineEvent, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(receiver) = &mut self.0 else {
            return Poll::Ready(None);
        };
        receiver.poll_recv(context).map(|event| {
            if event
                .as_ref()
                .is_none_or(|event| event.kind() == PipelineEventKind::Ended)
            {
                self.0 = None;
            }
            Some(event.ok_or_else(lagging))
        })
    }
}

/// Messages of a subscription.
pub(crate) struct Messages {
    pub(crate) id: SubscriptionId,
    pub(crate) receiver: vesper_kernel::hub::Stream<Message>,
    pub(crate) writer: Writer,
    pub(crate) taken: usize,
}

impl Messages {
    fn report(&mut self) {
        let (id, count) = (self.id, std::mem::take(&mut self.taken));
        if count > 0 {
            // A kernel that has stopped needs no report.
            drop(self.writer.tell(move |core| core.hub.bus.taken(id, count)));
        }
    }
}

impl Stream for Messages {
    type Item = Result<Message, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.receiver.poll_recv(context);
        match &polled {
            Poll::Ready(Some(_)) => {
                self.taken += 1;
                if self.taken >= TAKEN_TOGETHER {
                    self.report();
                }
            }
            Poll::Pending | Poll::Ready(None) => self.report(),
        }
        polled.map(|message| message.map(Ok))
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        let id = self.id;
        // A kernel that has stopped has no subscriptions.
        drop(self.writer.tell(move |core| core.hub.unsubscribe(id)));
    }
}

/// Work for a worker.
pub(crate) struct Works {
    pub(crate) name: String,
    pub(crate) epoch: u64,
    /// Tells this stream of the worker from its others.
    pub(crate) stream: String,
    pub(crate) receiver: vesper_kernel::hub::Stream<WorkResponse>,
    pub(crate) writer: Writer,
    pub(crate) traces: Option<Traces>,
}

impl Stream for Works {
    type Item = Result<WorkResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.receiver.poll_recv(context);
        polled.map(|work| {
            let mut work = work?;
            if let Some(traces) = &self.traces {
                traces.begin_work(&self.stream, &self.name, &mut work);
            }
            Some(Ok(work))
        })
    }
}

impl Drop for Works {
    fn drop(&mut self) {
        if let Some(traces) = &self.traces {
            traces.end_stream(&self.stream);
        }
        let (name, epoch) = (std::mem::take(&mut self.name), self.epoch);
        // A kernel that has stopped has no workers.
        drop(self.writer.tell(move |core| core.end_worker(&name, epoch)));
    }
}
