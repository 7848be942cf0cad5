//! Streams of workers: steps of pipelines and requests of clients, and their results.

use std::collections::BTreeMap;

use tokio::sync::mpsc;

use super::{Hub, Stream};
use crate::kernel::worker_of;
use crate::proto::log::v1 as log;
use crate::proto::v1::{
    AgentExecutionResult, AgentFailure, ReportAgentResultRequest, WorkResponse, WorkResult, WorkerStart,
    agent_execution_result, work_response, work_result,
};
use crate::refusal::{Code, Refusal};
use crate::settings::SECOND_US;
use crate::writer::{Core, Reply};

/// Lease of steps that workers with streams have; their heartbeats prolong it.
const STREAM_LEASE_US: i64 = 60 * SECOND_US;
const MAX_CONCURRENT: usize = 1 << 16;

/// What a worker performs.
#[derive(Debug)]
pub enum Work {
    /// A request, and who waits for its result.
    Call(Reply<work_result::Result>),
    /// A step of a pipeline, of this process.
    Step(String),
}

/// The stream of a worker.
#[derive(Debug)]
pub struct WorkerStream {
    service: String,
    max_concurrent: usize,
    sender: mpsc::Sender<WorkResponse>,
    under_way: BTreeMap<String, Work>,
    /// Tells this stream from a later one of a worker with this name.
    epoch: u64,
}

impl WorkerStream {
    fn has_room(&self) -> bool {
        self.under_way.len() < self.max_concurrent && !self.sender.is_closed()
    }
}

impl Hub {
    /// Returns the least loaded worker of a service that has room.
    fn free_worker(&self, service: &str) -> Option<String> {
        self.workers
            .iter()
            .filter(|(_, worker)| worker.service == service && worker.has_room())
            .min_by_key(|(_, worker)| worker.under_way.len())
            .map(|(name, _)| name.clone())
    }

    fn workers_of(&self, service: &str) -> usize {
        self.workers
            .values()
            .filter(|worker| worker.service == service)
            .count()
    }
}

/// Gives ready steps to workers with room. The steps leave after the commit.
pub fn assign_steps(core: &mut Core) {
    let names: Vec<String> = core.hub.workers.keys().cloned().collect();
    for name in names {
        while let Some(worker) = core.hub.workers.get(&name) {
            let service = worker.service.clone();
            let is_open = core
                .kernel
                .registry()
                .reason_against(&service)
                .is_ok_and(|reason| reason.is_none());
            if core.is_draining() || !worker.has_room() || !core.kernel.has_ready_step(&service) || !is_open {
                break;
            }
            let taken = log::WorkerTakes {
                worker: name.clone(),
                service: service.clone(),
                lease_us: STREAM_LEASE_US,
            };
            let Ok(Some(instruction)) = core.perform(taken) else {
                break;
            };
            let work = Work::Step(instruction.pid.clone());
            let id = instruction.step_id.clone();
            hand_over(core, &name, id, work, work_response::Work::Step(instruction));
        }
    }
}

/// Gives work to a worker, after the commit.
fn hand_over(core: &mut Core, name: &str, id: String, work: Work, message: work_response::Work) {
    let Some(worker) = core.hub.workers.get_mut(name) else {
        return;
    };
    worker.under_way.insert(id.clone(), work);
    let (sender, service) = (worker.sender.clone(), worker.service.clone());
    // The service was seen to have a place.
    drop(core.kernel.registry_mut().acquire(&service));
    core.answer_later(move |is_durable| {
        if is_durable {
            // A stream that has ended reports so.
            drop(sender.try_send(WorkResponse {
                work_id: id,
                work: Some(message),
            }));
        }
    });
}

impl Core {
    /// Adds the stream of a worker, and returns what it gets with the number of the stream.
    pub fn start_worker(&mut self, start: &WorkerStart) -> Result<(u64, Stream<WorkResponse>), Refusal> {
        self.kernel.registry().get(&start.service)?;
        worker_of(&start.worker)?;
        let max_concurrent = usize::try_from(start.max_concurrent).unwrap_or(0);
        if !(1..=MAX_CONCURRENT).contains(&max_concurrent) {
            return Err(Refusal::invalid(format!(
                "max_concurrent is not between 1 and {MAX_CONCURRENT}."
            )));
        }
        if let Some(other) = self.hub.workers.get(&start.worker) {
            if !other.sender.is_closed() {
                return Err(Refusal::exists(format!(
                    "The worker \"{}\" has a stream.",
                    start.worker
                )));
            }
            let epoch = other.epoch;
            self.end_worker(&start.worker, epoch);
        }
        // Steps of a stream that a kernel before this one had: their results went with it.
        self.perform(log::WorkerEnds {
            worker: start.worker.clone(),
        })?;
        // There is room for all that may be under way.
        let (sender, receiver) = mpsc::channel(max_concurrent);
        self.hub.epochs += 1;
        let epoch = self.hub.epochs;
        let stream = WorkerStream {
            service: start.service.clone(),
            max_concurrent,
            sender,
            under_way: BTreeMap::new(),
            epoch,
        };
        self.hub.workers.insert(start.worker.clone(), stream);
        let workers = self.hub.workers_of(&start.service);
        self.kernel.registry_mut().set_workers(&start.service, workers);
        Ok((epoch, receiver))
    }

    /// Removes the stream of a worker. Its steps are ready again; its requests fail.
    pub fn end_worker(&mut self, name: &str, epoch: u64) {
        if self
            .hub
            .workers
            .get(name)
            .is_none_or(|worker| worker.epoch != epoch)
        {
            return;
        }
        let Some(stream) = self.hub.workers.remove(name) else {
            return;
        };
        let lost = || Refusal::unavailable(format!("The stream of the worker \"{name}\" ended."));
        let mut has_steps = false;
        for work in stream.under_way.into_values() {
            match work {
                Work::Call(reply) => reply.now(Err(lost())),
                Work::Step(_) => has_steps = true,
            }
            // The service may have gone.
            drop(self.kernel.registry_mut().release(&stream.service));
        }
        let workers = self.hub.workers_of(&stream.service);
        self.kernel.registry_mut().set_workers(&stream.service, workers);
        if has_steps {
            // Where the log fails, the leases end by themselves.
            drop(self.perform(log::WorkerEnds {
                worker: name.to_owned(),
            }));
        }
    }

    /// Ends the streams that a shutdown need not wait for.
    pub(crate) fn end_idle_streams(&mut self) {
        self.hub.end_readers();
        let idle = self
            .hub
            .workers
            .iter()
            .filter(|(_, worker)| worker.under_way.is_empty());
        let idle: Vec<(String, u64)> = idle.map(|(name, worker)| (name.clone(), worker.epoch)).collect();
        for (name, epoch) in idle {
            self.end_worker(&name, epoch);
        }
    }

    /// Prolongs what a worker has.
    pub fn renew_worker(&mut self, name: &str) {
        // Where the log fails, the leases end by themselves.
        drop(self.perform(log::WorkerRenews {
            worker: name.to_owned(),
            lease_us: STREAM_LEASE_US,
        }));
    }

    /// Gives a request to a worker of the service.
    pub fn dispatch(
        &mut self,
        service: &str,
        message: work_response::Work,
        reply: Reply<work_result::Result>,
    ) {
        let worker = match self.kernel.registry().reason_against(service) {
            Err(refusal) => Err(refusal),
            Ok(Some(reason)) => Err(Refusal::unavailable(reason)),
            Ok(None) if self.is_draining() => Err(Refusal::unavailable("The kernel is shutting down.")),
            Ok(None) => self.hub.free_worker(service).ok_or_else(|| {
                Refusal::unavailable(format!("No worker of \"{service}\" takes a request now."))
            }),
        };
        match worker {
            Ok(worker) => {
                self.hub.works += 1;
                let id = format!("w{}", self.hub.works);
                hand_over(self, &worker, id, Work::Call(reply), message);
            }
            Err(refusal) => reply.now(Err(refusal)),
        }
    }

    /// Takes the result of a worker. One that does not fit its work fails the work.
    pub fn finish_work(&mut self, name: &str, epoch: u64, result: WorkResult) {
        let worker = self
            .hub
            .workers
            .get_mut(name)
            .filter(|worker| worker.epoch == epoch);
        let Some((service, work)) = worker
            .and_then(|worker| Some((worker.service.clone(), worker.under_way.remove(&result.work_id)?)))
        else {
            return;
        };
        // The service may have gone.
        drop(self.kernel.registry_mut().release(&service));
        let given = result
            .result
            .unwrap_or_else(|| work_result::Result::Error("it sent no result".to_owned()));
        match work {
            Work::Call(reply) => reply.now(match given {
                work_result::Result::Error(error) => {
                    Err(Refusal::aborted(format!("The worker \"{name}\" failed: {error}")))
                }
                other => Ok(other),
            }),
            Work::Step(pid) => self.finish_step(name, &pid, result.work_id, given),
        }
    }

    fn finish_step(&mut self, name: &str, pid: &str, step_id: String, given: work_result::Result) {
        let result = match given {
            work_result::Result::Agent(result) => AgentExecutionResult {
                step_id: step_id.clone(),
                ..result
            },
            work_result::Result::Error(error) => failed_step(step_id.clone(), "worker_error", error),
            _ => failed_step(
                step_id.clone(),
                "worker_error",
                "it sent a result of another kind".to_owned(),
            ),
        };
        let report = |result| ReportAgentResultRequest {
            pid: pid.to_owned(),
            worker: name.to_owned(),
            result: Some(result),
        };
        match self.report(report(result)) {
            Err(refusal) if refusal.code == Code::InvalidArgument => {
                let result = failed_step(step_id, "invalid_result", refusal.message);
                // A worker whose lease ended, or whose process did, has nothing to report any more.
                drop(self.report(report(result)));
            }
            _ => {}
        }
    }
}

fn failed_step(step_id: String, code: &str, message: String) -> AgentExecutionResult {
    let failure = AgentFailure {
        code: code.to_owned(),
        message,
    };
    AgentExecutionResult {
        step_id,
        outcome: Some(agent_execution_result::Outcome::Failure(failure)),
        ..AgentExecutionResult::default()
    }
}
