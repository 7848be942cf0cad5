//! Events of changes, for subscribers.

use super::{Event, Kernel, Moment};
use crate::ids::{InterruptId, Pid, StepId};
use crate::proto::v1::{
    AgentExecutionResult, KernelEvent, KernelEventKind, PipelineEvent, PipelineEventKind, ProcessState,
};

impl Kernel {
    fn kernel_event(&mut self, kind: KernelEventKind, pid: Pid, moment: Moment, more: KernelEvent) {
        self.events.push(Event::Kernel(Box::new(KernelEvent {
            sequence: moment.sequence.cast_signed(),
            at_us: moment.now_us,
            kind: kind.into(),
            pid: pid.to_string(),
            ..more
        })));
    }

    fn pipeline_event(&mut self, kind: PipelineEventKind, pid: Pid, moment: Moment, more: PipelineEvent) {
        self.events.push(Event::Pipeline(Box::new(PipelineEvent {
            kind: kind.into(),
            sequence: moment.sequence.cast_signed(),
            at_us: moment.now_us,
            pid: pid.to_string(),
            ..more
        })));
    }

    pub(super) fn emit_created(&mut self, pid: Pid, moment: Moment) {
        let process = self.process_message(pid).ok();
        let more = KernelEvent {
            process,
            ..KernelEvent::default()
        };
        self.kernel_event(KernelEventKind::ProcessCreated, pid, moment, more);
    }

    pub(super) fn emit_state(&mut self, pid: Pid, old: ProcessState, moment: Moment) {
        let process = self.process_message(pid).ok();
        let is_ended = process
            .as_ref()
            .is_some_and(|process| process.state() == ProcessState::Terminated);
        let more = KernelEvent {
            process: process.clone(),
            old_state: old.into(),
            ..KernelEvent::default()
        };
        self.kernel_event(KernelEventKind::ProcessStateChanged, pid, moment, more);
        if is_ended {
            let more = KernelEvent {
                process,
                ..KernelEvent::default()
            };
            self.kernel_event(KernelEventKind::ProcessTerminated, pid, moment, more);
        }
    }

    pub(super) fn emit_exceeded(&mut self, pid: Pid, resource: &str, moment: Moment) {
        let more = KernelEvent {
            resource: resource.to_owned(),
            ..KernelEvent::default()
        };
        self.kernel_event(KernelEventKind::ResourceExceeded, pid, moment, more);
    }

    /// Emits that an interrupt was created or has ended, also as an event of its pipeline.
    pub(super) fn emit_interrupt(&mut self, id: InterruptId, pid: Pid, is_new: bool, moment: Moment) {
        let Ok(interrupt) = self.interrupts.get(id).cloned() else {
            return;
        };
        let (kind, of_pipeline) = if is_new {
            (KernelEventKind::InterruptCreated, PipelineEventKind::Interrupted)
        } else {
            (KernelEventKind::InterruptResolved, PipelineEventKind::Resumed)
        };
        if self.sessions.contains_key(&pid) {
            let more = PipelineEvent {
                stage: interrupt.stage.clone(),
                step_id: interrupt.step_id.clone(),
                interrupt: Some(interrupt.clone()),
                ..PipelineEvent::default()
            };
            self.pipeline_event(of_pipeline, pid, moment, more);
        }
        let more = KernelEvent {
            interrupt: Some(interrupt),
            ..KernelEvent::default()
        };
        self.kernel_event(kind, pid, moment, more);
    }

    pub(super) fn emit_pipeline_started(&mut self, pid: Pid, moment: Moment) {
        let process = self.process_message(pid).ok();
        let more = PipelineEvent {
            process,
            ..PipelineEvent::default()
        };
        self.pipeline_event(PipelineEventKind::Started, pid, moment, more);
    }

    pub(super) fn emit_pipeline_ended(&mut self, pid: Pid, moment: Moment) {
        let more = PipelineEvent {
            process: self.process_message(pid).ok(),
            envelope: self.session_envelope(pid),
            ..PipelineEvent::default()
        };
        self.pipeline_event(PipelineEventKind::Ended, pid, moment, more);
    }

    pub(super) fn emit_stage_started(&mut self, step: StepId, stage: &str, moment: Moment) {
        let more = PipelineEvent {
            stage: stage.to_owned(),
            step_id: step.to_string(),
            ..PipelineEvent::default()
        };
        self.pipeline_event(PipelineEventKind::StageStarted, step.pid, moment, more);
    }

    pub(super) fn emit_stage_ended(
        &mut self,
        step: StepId,
        stage: &str,
        result: AgentExecutionResult,
        moment: Moment,
    ) {
        let named = AgentExecutionResult {
            step_id: step.to_string(),
            agent_name: stage.to_owned(),
            ..result
        };
        let more = PipelineEvent {
            stage: stage.to_owned(),
            step_id: step.to_string(),
            result: Some(named),
            ..PipelineEvent::default()
        };
        self.pipeline_event(PipelineEventKind::StageEnded, step.pid, moment, more);
    }
}
