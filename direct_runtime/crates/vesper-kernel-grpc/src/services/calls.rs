//! The RPCs of each service.

use tonic::{Request, Status};
use vesper_kernel::kernel::Command;
use vesper_kernel::proto::v1::{self, GetSystemStatusResponse};
use vesper_kernel::refusal::Refusal;
use vesper_kernel::writer::Core;

use crate::answers::status;
use crate::services::{Calls, service};
use crate::traces::carried;

impl Calls {
    /// Performs a command, and makes the response of its answer.
    async fn change<C, Res>(self, request: Request<C>, respond: fn(C::Answer) -> Res) -> Result<Res, Status>
    where
        C: Command + Send + 'static,
    {
        self.writer
            .change(request.into_inner())
            .await
            .map(respond)
            .map_err(status)
    }

    /// Asks a question about the state.
    async fn read<Req, Res>(
        self,
        request: Request<Req>,
        question: fn(&mut Core, &Req) -> Result<Res, Refusal>,
    ) -> Result<Res, Status>
    where
        Req: Send + 'static,
        Res: Send + 'static,
    {
        let request = request.into_inner();
        self.writer
            .run(move |core| question(core, &request))
            .await
            .map_err(status)
    }

    async fn system_status(
        self,
        _request: Request<v1::GetSystemStatusRequest>,
    ) -> Result<GetSystemStatusResponse, Status> {
        let question = |core: &mut Core| {
            let now_us = core.now_us();
            let open_queries = i64::try_from(core.hub.open_queries()).unwrap_or(i64::MAX);
            Ok(GetSystemStatusResponse {
                uptime_us: i64::try_from(core.uptime().as_micros()).unwrap_or(i64::MAX),
                last_sequence: core.sequence().cast_signed(),
                bus: Some(v1::BusStatus {
                    open_queries,
                    ..core.hub.bus.status()
                }),
                draining: core.is_draining(),
                ..core.kernel.system_status(now_us)
            })
        };
        self.writer.run(question).await.map_err(status)
    }

    async fn next_instruction(
        self,
        request: Request<v1::GetNextInstructionRequest>,
    ) -> Result<v1::Instruction, Status> {
        let (worker, traces) = (request.get_ref().worker.clone(), self.traces.clone());
        let mut step: v1::Instruction = self.change(request, |answer| answer).await?;
        if let Some(traces) = traces {
            traces.begin_instruction(&worker, &mut step);
        }
        Ok(step)
    }

    async fn report_result(
        self,
        request: Request<v1::ReportAgentResultRequest>,
    ) -> Result<v1::ReportAgentResultResponse, Status> {
        let request = request.into_inner();
        let traced = self.traces.as_ref().map(|traces| (traces, request.clone()));
        let answer = self.writer.run(move |core| core.report(request)).await;
        if let (Ok(_), Some((traces, request))) = (&answer, &traced) {
            traces.end_instruction(&request.pid, request.result.as_ref());
        }
        answer.map_err(status)
    }

    /// Records usage that a request stands for.
    async fn record(self, pid: String, usage: v1::Usage) -> Result<v1::RecordUsageResponse, Status> {
        let request = v1::RecordUsageRequest {
            pid,
            usage: Some(usage),
        };
        self.writer.change(request).await.map_err(status)
    }
}

service! {
    KernelService = "vesper.kernel.v1.KernelService" {
        "CreateProcess" => unary |calls, request: Request<v1::CreateProcessRequest>| {
            calls.change(request, |process| v1::CreateProcessResponse { process: Some(process) })
        };
        "GetProcess" => unary |calls, request: Request<v1::GetProcessRequest>| calls.read(request, |core, request| {
            Ok(v1::GetProcessResponse { process: Some(core.kernel.get_process(request)?) })
        });
        "ScheduleProcess" => unary |calls, request: Request<v1::ScheduleProcessRequest>| {
            calls.change(request, |process| v1::ScheduleProcessResponse { process: Some(process) })
        };
        "GetNextRunnable" => unary |calls, request: Request<v1::GetNextRunnableRequest>| {
            calls.change(request, |process| v1::GetNextRunnableResponse { process })
        };
        "TransitionState" => unary |calls, request: Request<v1::TransitionStateRequest>| {
            calls.change(request, |process| v1::TransitionStateResponse { process: Some(process) })
        };
        "TerminateProcess" => unary |calls, request: Request<v1::TerminateProcessRequest>| {
            calls.change(request, |process| v1::TerminateProcessResponse { process: Some(process) })
        };
        "CheckQuota" => unary |calls, request: Request<v1::CheckQuotaRequest>| calls.read(request, |core, request| {
            let now_us = core.now_us();
            core.kernel.check_quota(&request.pid, now_us)
        });
        "RecordUsage" => unary |calls, request: Request<v1::RecordUsageRequest>| calls.change(request, |answer| answer);
        "CheckRateLimit" => unary |calls, request: Request<v1::CheckRateLimitRequest>| {
            calls.change(request, |answer| answer)
        };
        "ListProcesses" => unary |calls, request: Request<v1::ListProcessesRequest>| {
            calls.read(request, |core, request| core.kernel.list_processes(request))
        };
        "GetProcessCounts" => unary |calls, request: Request<v1::GetProcessCountsRequest>| {
            calls.read(request, |core, _request| Ok(core.kernel.process_counts()))
        };
        "Submit" => unary |calls, request: Request<v1::SubmitRequest>| calls.change(request, |answer| answer);
        "RenewLease" => unary |calls, request: Request<v1::RenewLeaseRequest>| {
            calls.change(request, |lease_until_us| v1::RenewLeaseResponse { lease_until_us })
        };
        "RecordToolCall" => unary |calls, request: Request<v1::RecordToolCallRequest>| async move {
            let usage = v1::Usage { tool_calls: 1, ..v1::Usage::default() };
            let recorded = calls.record(request.into_inner().pid, usage).await?;
            Ok(v1::RecordToolCallResponse { process: recorded.process, remaining: recorded.remaining })
        };
        "RecordAgentHop" => unary |calls, request: Request<v1::RecordAgentHopRequest>| async move {
            let usage = v1::Usage { agent_hops: 1, ..v1::Usage::default() };
            let recorded = calls.record(request.into_inner().pid, usage).await?;
            Ok(v1::RecordAgentHopResponse { process: recorded.process, remaining: recorded.remaining })
        };
        "GetRemainingBudget" => unary |calls, request: Request<v1::GetRemainingBudgetRequest>| {
            calls.read(request, |core, request| {
                let now_us = core.now_us();
                let remaining = core.kernel.check_quota(&request.pid, now_us)?.remaining;
                Ok(v1::GetRemainingBudgetResponse { remaining })
            })
        };
        "GetSystemStatus" => unary Calls::system_status;
        "GetRequestStatus" => unary |calls, request: Request<v1::GetRequestStatusRequest>| {
            calls.read(request, |core, request| {
                let now_us = core.now_us();
                core.kernel.request_status(&request.pid, now_us)
            })
        };
        "SubscribeEvents" => streamed Calls::subscribe_events;
        "Cleanup" => unary |calls, request: Request<v1::CleanupRequest>| calls.change(request, |answer| answer);
    }
}

service! {
    EngineService = "vesper.kernel.v1.EngineService" {
        "CreateEnvelope" => unary |calls, request: Request<v1::CreateEnvelopeRequest>| {
            calls.change(carried(request), |answer| answer)
        };
        "UpdateEnvelope" => unary |calls, request: Request<v1::UpdateEnvelopeRequest>| calls.change(request, |answer| answer);
        "CheckBounds" => unary |calls, request: Request<v1::CheckBoundsRequest>| calls.read(request, |core, request| {
            let now_us = core.now_us();
            core.kernel.check_bounds(&request.envelope_id, now_us)
        });
        "ExecutePipeline" => streamed Calls::execute_pipeline;
        "ExecuteAgent" => unary Calls::execute_agent;
        "CloneEnvelope" => unary |calls, request: Request<v1::CloneEnvelopeRequest>| calls.change(request, |answer| answer);
    }
}

service! {
    OrchestrationService = "vesper.kernel.v1.OrchestrationService" {
        "InitializeSession" => unary Calls::initialize_session;
        "GetNextInstruction" => unary Calls::next_instruction;
        "ReportAgentResult" => unary Calls::report_result;
        "GetSessionState" => unary |calls, request: Request<v1::GetSessionStateRequest>| {
            calls.read(request, |core, request| core.kernel.session_state(&request.pid))
        };
        "TerminateSession" => unary |calls, request: Request<v1::TerminateSessionRequest>| {
            calls.change(request, |session| v1::TerminateSessionResponse { session: Some(session) })
        };
        "CleanupSession" => unary |calls, request: Request<v1::CleanupSessionRequest>| {
            calls.change(request, |()| v1::CleanupSessionResponse {})
        };
    }
}

service! {
    CommBusService = "vesper.kernel.v1.CommBusService" {
        "Publish" => unary Calls::publish;
        "Send" => unary Calls::send;
        "Query" => unary Calls::query;
        "Subscribe" => streamed Calls::subscribe;
        "Reply" => unary |calls, request: Request<v1::ReplyRequest>| calls.read(request, |core, request| {
            let response = v1::QueryResponse { payload: request.payload.clone(), responder: request.responder.clone() };
            core.hub.reply(&request.query_id, response)?;
            Ok(v1::ReplyResponse {})
        });
        "Acknowledge" => unary |calls, request: Request<v1::AcknowledgeRequest>| calls.read(request, |core, request| {
            let acknowledged = core.hub.bus.acknowledge(&request.subscription_id, &request.message_ids)?;
            Ok(v1::AcknowledgeResponse { acknowledged })
        });
    }
}

service! {
    InterruptService = "vesper.kernel.v1.InterruptService" {
        "CreateInterrupt" => unary |calls, request: Request<v1::CreateInterruptRequest>| {
            calls.change(request, |interrupt| v1::CreateInterruptResponse { interrupt: Some(interrupt) })
        };
        "GetInterrupt" => unary |calls, request: Request<v1::GetInterruptRequest>| calls.read(request, |core, request| {
            Ok(v1::GetInterruptResponse { interrupt: Some(core.kernel.get_interrupt(&request.interrupt_id)?) })
        });
        "ResolveInterrupt" => unary |calls, request: Request<v1::ResolveInterruptRequest>| {
            calls.change(request, |interrupt| v1::ResolveInterruptResponse { interrupt: Some(interrupt) })
        };
        "CancelInterrupt" => unary |calls, request: Request<v1::CancelInterruptRequest>| {
            calls.change(request, |interrupt| v1::CancelInterruptResponse { interrupt: Some(interrupt) })
        };
        "ListInterrupts" => unary |calls, request: Request<v1::ListInterruptsRequest>| {
            calls.read(request, |core, request| core.kernel.list_interrupts(request))
        };
    }
}

service! {
    RegistryService = "vesper.kernel.v1.RegistryService" {
        "RegisterService" => unary |calls, request: Request<v1::RegisterServiceRequest>| {
            calls.change(request, |service| v1::RegisterServiceResponse { service: Some(service) })
        };
        "UnregisterService" => unary |calls, request: Request<v1::UnregisterServiceRequest>| {
            calls.change(request, |()| v1::UnregisterServiceResponse {})
        };
        "ListServices" => unary |calls, request: Request<v1::ListServicesRequest>| {
            calls.read(request, |core, request| core.kernel.list_services(request))
        };
        "UpdateHealth" => unary |calls, request: Request<v1::UpdateHealthRequest>| {
            calls.change(request, |service| v1::UpdateHealthResponse { service: Some(service) })
        };
        "CanAccept" => unary |calls, request: Request<v1::CanAcceptRequest>| calls.read(request, |core, request| {
            let reason = core.kernel.registry().reason_against(&request.name)?;
            Ok(v1::CanAcceptResponse { can_accept: reason.is_none(), reason: reason.unwrap_or_default() })
        });
        "AcquireSlot" => unary |calls, request: Request<v1::AcquireSlotRequest>| calls.read(request, |core, request| {
            let service = core.kernel.registry_mut().acquire(&request.name)?.clone();
            Ok(v1::AcquireSlotResponse { service: Some(service) })
        });
        "ReleaseSlot" => unary |calls, request: Request<v1::ReleaseSlotRequest>| calls.read(request, |core, request| {
            let service = core.kernel.registry_mut().release(&request.name)?.clone();
            Ok(v1::ReleaseSlotResponse { service: Some(service) })
        });
        "Dispatch" => unary Calls::dispatch;
        "DispatchInference" => unary Calls::dispatch_inference;
        "GetServiceStats" => unary |calls, request: Request<v1::GetServiceStatsRequest>| {
            calls.read(request, |core, _request| Ok(core.kernel.registry().stats()))
        };
        "Work" => worked Calls::work;
    }
}
