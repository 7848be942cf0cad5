//! Every RPC through a client on a socket.

mod client;

use std::collections::BTreeSet;

use tokio::runtime::Runtime;
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;
use vesper_kernel::proto::v1;
use vesper_kernel_grpc::serve;
use vesper_kernel_grpc::settings::ServerSettings;

use client::{Client, Failure, code, declared, with_server};

fn two_stages() -> v1::PipelineConfig {
    let stage = |name: &str, routes| v1::AgentConfig {
        name: name.to_owned(),
        agent: format!("{name}_v1"),
        service: "agents".to_owned(),
        routes,
        ..v1::AgentConfig::default()
    };
    let then = v1::RoutingRule {
        targets: vec!["write".to_owned()],
        ..v1::RoutingRule::default()
    };
    v1::PipelineConfig {
        name: "two".to_owned(),
        agents: vec![stage("read", vec![then]), stage("write", Vec::new())],
        ..v1::PipelineConfig::default()
    }
}

fn service(name: &str, of: v1::ServiceType) -> v1::RegisterServiceRequest {
    let service = v1::ServiceInfo {
        name: name.to_owned(),
        r#type: of.into(),
        version: "1".to_owned(),
        max_concurrent: 8,
        capabilities: vec!["small".to_owned()],
        ..v1::ServiceInfo::default()
    };
    v1::RegisterServiceRequest {
        service: Some(service),
    }
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one story: every RPC, in the order of a client"
)]
fn every_rpc_answers_a_client() -> Result<(), Failure> {
    with_server(&[("RATE_PER_MINUTE", "2")], |mut client, _| async move {
        let of_user = |user: &str| v1::CreateProcessRequest {
            user_id: user.to_owned(),
            ..v1::CreateProcessRequest::default()
        };
        let mut events: Streaming<v1::KernelEvent> = client
            .stream(
                "KernelService/SubscribeEvents",
                v1::SubscribeEventsRequest::default(),
            )
            .await?;

        // The life cycle.
        let created: v1::CreateProcessResponse =
            client.call("KernelService/CreateProcess", of_user("ada")).await?;
        let process = created.process.unwrap_or_default();
        let pid = process.pid.clone();
        assert_eq!(process.state(), v1::ProcessState::New);
        let event = events.message().await?.unwrap_or_default();
        assert_eq!(
            (event.kind(), event.pid.as_str()),
            (v1::KernelEventKind::ProcessCreated, pid.as_str())
        );
        let twin = v1::CreateProcessRequest {
            request_id: process.request_id.clone(),
            ..v1::CreateProcessRequest::default()
        };
        let twin: Result<v1::CreateProcessResponse, _> =
            client.call("KernelService/CreateProcess", twin).await;
        assert_eq!(code(twin), Some(Code::AlreadyExists));
        let got: v1::GetProcessResponse = client
            .call(
                "KernelService/GetProcess",
                v1::GetProcessRequest { pid: pid.clone() },
            )
            .await?;
        assert_eq!(got.process, Some(process));
        let none: Result<v1::GetProcessResponse, _> = client
            .call(
                "KernelService/GetProcess",
                v1::GetProcessRequest {
                    pid: "p999".to_owned(),
                },
            )
            .await;
        assert_eq!(code(none), Some(Code::NotFound));
        let _: v1::ScheduleProcessResponse = client
            .call(
                "KernelService/ScheduleProcess",
                v1::ScheduleProcessRequest { pid: pid.clone() },
            )
            .await?;
        let again: Result<v1::ScheduleProcessResponse, _> = client
            .call(
                "KernelService/ScheduleProcess",
                v1::ScheduleProcessRequest { pid: pid.clone() },
            )
            .await;
        assert_eq!(code(again), Some(Code::FailedPrecondition));
        let take = v1::GetNextRunnableRequest {
            worker: "worker".to_owned(),
            lease_us: 0,
        };
        let taken: v1::GetNextRunnableResponse =
            client.call("KernelService/GetNextRunnable", take.clone()).await?;
        assert_eq!(taken.process.map(|process| process.pid), Some(pid.clone()));
        let empty: v1::GetNextRunnableResponse = client.call("KernelService/GetNextRunnable", take).await?;
        assert_eq!(empty.process, None);
        let renew = v1::RenewLeaseRequest {
            pid: pid.clone(),
            worker: "worker".to_owned(),
            lease_us: 60_000_000,
        };
        let _: v1::RenewLeaseResponse = client.call("KernelService/RenewLease", renew).await?;

        // Quotas.
        let usage = v1::Usage {
            llm_calls: 2,
            ..v1::Usage::default()
        };
        let record = v1::RecordUsageRequest {
            pid: pid.clone(),
            usage: Some(usage),
        };
        let _: v1::RecordUsageResponse = client.call("KernelService/RecordUsage", record).await?;
        let _: v1::RecordToolCallResponse = client
            .call(
                "KernelService/RecordToolCall",
                v1::RecordToolCallRequest { pid: pid.clone() },
            )
            .await?;
        let _: v1::RecordAgentHopResponse = client
            .call(
                "KernelService/RecordAgentHop",
                v1::RecordAgentHopRequest { pid: pid.clone() },
            )
            .await?;
        let quota: v1::CheckQuotaResponse = client
            .call(
                "KernelService/CheckQuota",
                v1::CheckQuotaRequest { pid: pid.clone() },
            )
            .await?;
        let used = quota.usage.unwrap_or_default();
        assert_eq!(
            (
                quota.within_quota,
                used.llm_calls,
                used.tool_calls,
                used.agent_hops
            ),
            (true, 2, 1, 1)
        );
        let left: v1::GetRemainingBudgetResponse = client
            .call(
                "KernelService/GetRemainingBudget",
                v1::GetRemainingBudgetRequest { pid: pid.clone() },
            )
            .await?;
        assert_eq!(left.remaining, Some(v1::RemainingBudget::default()));
        for expected in [true, true, false] {
            let check = v1::CheckRateLimitRequest {
                user_id: "bob".to_owned(),
                record: true,
            };
            let checked: v1::CheckRateLimitResponse =
                client.call("KernelService/CheckRateLimit", check).await?;
            assert_eq!(checked.allowed, expected);
        }
        let refused = v1::SubmitRequest {
            process: Some(of_user("bob")),
        };
        let refused: Result<v1::SubmitResponse, _> = client.call("KernelService/Submit", refused).await;
        assert_eq!(code(refused), Some(Code::ResourceExhausted));
        let submit = v1::SubmitRequest {
            process: Some(of_user("eve")),
        };
        let submitted: v1::SubmitResponse = client.call("KernelService/Submit", submit).await?;
        let other = submitted.process.unwrap_or_default();
        assert!(submitted.created);

        // Interrupts.
        let ask = v1::CreateInterruptRequest {
            pid: pid.clone(),
            kind: v1::InterruptKind::Confirmation.into(),
            message: "Go on?".to_owned(),
            ..v1::CreateInterruptRequest::default()
        };
        let asked: v1::CreateInterruptResponse = client
            .call("InterruptService/CreateInterrupt", ask.clone())
            .await?;
        let id = asked.interrupt.unwrap_or_default().interrupt_id;
        let _: v1::GetInterruptResponse = client
            .call(
                "InterruptService/GetInterrupt",
                v1::GetInterruptRequest {
                    interrupt_id: id.clone(),
                },
            )
            .await?;
        let bare = v1::ResolveInterruptRequest {
            interrupt_id: id.clone(),
            response: None,
        };
        let bare: Result<v1::ResolveInterruptResponse, _> =
            client.call("InterruptService/ResolveInterrupt", bare).await;
        assert_eq!(code(bare), Some(Code::InvalidArgument));
        let response = v1::InterruptResponse {
            value_json: "true".to_owned(),
            by: "eve".to_owned(),
        };
        let resolve = v1::ResolveInterruptRequest {
            interrupt_id: id,
            response: Some(response),
        };
        let _: v1::ResolveInterruptResponse =
            client.call("InterruptService/ResolveInterrupt", resolve).await?;
        let status = v1::GetRequestStatusRequest { pid: pid.clone() };
        let status: v1::GetRequestStatusResponse =
            client.call("KernelService/GetRequestStatus", status).await?;
        assert_eq!(
            status.process.unwrap_or_default().state(),
            v1::ProcessState::Ready
        );
        let run = v1::TransitionStateRequest {
            pid: pid.clone(),
            state: v1::ProcessState::Running.into(),
            ..v1::TransitionStateRequest::default()
        };
        let _: v1::TransitionStateResponse = client.call("KernelService/TransitionState", run).await?;
        let asked: v1::CreateInterruptResponse = client.call("InterruptService/CreateInterrupt", ask).await?;
        let id = asked.interrupt.unwrap_or_default().interrupt_id;
        let cancel = v1::CancelInterruptRequest {
            interrupt_id: id,
            by: "eve".to_owned(),
        };
        let _: v1::CancelInterruptResponse = client.call("InterruptService/CancelInterrupt", cancel).await?;
        let listed = v1::ListInterruptsRequest {
            pid: pid.clone(),
            page_size: 1,
            ..v1::ListInterruptsRequest::default()
        };
        let listed: v1::ListInterruptsResponse =
            client.call("InterruptService/ListInterrupts", listed).await?;
        assert_eq!(
            (listed.interrupts.len(), listed.next_page_token.is_empty()),
            (1, false)
        );
        let ended: v1::GetProcessResponse = client
            .call(
                "KernelService/GetProcess",
                v1::GetProcessRequest { pid: pid.clone() },
            )
            .await?;
        assert_eq!(
            ended.process.unwrap_or_default().terminal_reason(),
            v1::TerminalReason::Cancelled
        );
        let terminate = v1::TerminateProcessRequest {
            pid: other.pid.clone(),
            ..v1::TerminateProcessRequest::default()
        };
        let _: v1::TerminateProcessResponse =
            client.call("KernelService/TerminateProcess", terminate).await?;

        // Lists and status.
        let list = v1::ListProcessesRequest {
            user_id: "ada".to_owned(),
            ..v1::ListProcessesRequest::default()
        };
        let list: v1::ListProcessesResponse = client.call("KernelService/ListProcesses", list).await?;
        assert_eq!(list.processes.len(), 1);
        let counts: v1::GetProcessCountsResponse = client
            .call("KernelService/GetProcessCounts", v1::GetProcessCountsRequest {})
            .await?;
        assert_eq!((counts.total, counts.by_state.get("terminated")), (2, Some(&2)));
        let cleaned: v1::CleanupResponse = client
            .call("KernelService/Cleanup", v1::CleanupRequest {})
            .await?;
        assert_eq!(cleaned.removed_processes, 0);
        let system: v1::GetSystemStatusResponse = client
            .call("KernelService/GetSystemStatus", v1::GetSystemStatusRequest {})
            .await?;
        assert!(system.last_sequence > 0 && !system.draining);

        envelopes(&mut client).await?;
        orchestration(&mut client).await?;
        registry(&mut client).await?;
        bus(&mut client).await?;

        let declared = declared()?;
        assert_eq!(client.called, declared, "every declared RPC was called");
        Ok(())
    })
}

async fn envelopes(client: &mut Client) -> Result<(), Failure> {
    let create = v1::CreateEnvelopeRequest {
        inputs_json: [("text".to_owned(), "\"hello\"".to_owned())].into(),
        bounds: Some(v1::Quota {
            max_tokens_in: Some(5),
            ..v1::Quota::default()
        }),
        ..v1::CreateEnvelopeRequest::default()
    };
    let envelope: v1::Envelope = client.call("EngineService/CreateEnvelope", create).await?;
    let update = v1::UpdateEnvelopeRequest {
        envelope_id: envelope.envelope_id.clone(),
        version: 1,
        outputs_json: [("read".to_owned(), "1.50".to_owned())].into(),
        usage: Some(v1::Usage {
            tokens_in: 6,
            ..v1::Usage::default()
        }),
        ..v1::UpdateEnvelopeRequest::default()
    };
    let updated: v1::Envelope = client
        .call("EngineService/UpdateEnvelope", update.clone())
        .await?;
    assert_eq!(updated.version, 2);
    let stale: Result<v1::Envelope, _> = client.call("EngineService/UpdateEnvelope", update).await;
    assert_eq!(code(stale), Some(Code::Aborted));
    let check = v1::CheckBoundsRequest {
        envelope_id: envelope.envelope_id.clone(),
    };
    let bounds: v1::BoundsCheckResult = client.call("EngineService/CheckBounds", check).await?;
    assert_eq!(
        (bounds.within_bounds, bounds.exceeded),
        (false, vec!["tokens_in".to_owned()])
    );
    let clone = v1::CloneEnvelopeRequest {
        envelope_id: envelope.envelope_id.clone(),
    };
    let clone: v1::Envelope = client.call("EngineService/CloneEnvelope", clone).await?;
    assert_eq!(
        (clone.parent_envelope_id, clone.outputs_json),
        (envelope.envelope_id, updated.outputs_json)
    );
    Ok(())
}

async fn orchestration(client: &mut Client) -> Result<(), Failure> {
    let submitted: v1::SubmitResponse = client
        .call("KernelService/Submit", v1::SubmitRequest::default())
        .await?;
    let pid = submitted.process.unwrap_or_default().pid;
    let initialize = |pipeline| v1::InitializeSessionRequest {
        pid: pid.clone(),
        pipeline: Some(pipeline),
        ..v1::InitializeSessionRequest::default()
    };
    let empty: Result<v1::InitializeSessionResponse, _> = client
        .call(
            "OrchestrationService/InitializeSession",
            initialize(v1::PipelineConfig::default()),
        )
        .await;
    assert_eq!(code(empty), Some(Code::InvalidArgument));
    let _: v1::InitializeSessionResponse = client
        .call("OrchestrationService/InitializeSession", initialize(two_stages()))
        .await?;
    let ask = v1::GetNextInstructionRequest {
        pid: pid.clone(),
        worker: "worker".to_owned(),
        lease_us: 0,
    };
    let step: v1::Instruction = client
        .call("OrchestrationService/GetNextInstruction", ask)
        .await?;
    let result = v1::AgentExecutionResult {
        step_id: step.step_id,
        outcome: Some(v1::agent_execution_result::Outcome::OutputJson("1".to_owned())),
        ..v1::AgentExecutionResult::default()
    };
    let report = v1::ReportAgentResultRequest {
        pid: pid.clone(),
        worker: "worker".to_owned(),
        result: Some(result),
    };
    let reported: v1::ReportAgentResultResponse = client
        .call("OrchestrationService/ReportAgentResult", report)
        .await?;
    assert!(reported.accepted);
    let state: v1::SessionState = client
        .call(
            "OrchestrationService/GetSessionState",
            v1::GetSessionStateRequest { pid: pid.clone() },
        )
        .await?;
    assert_eq!(state.edge_traversals.get("read->write"), Some(&1));
    let end = v1::TerminateSessionRequest {
        pid: pid.clone(),
        ..v1::TerminateSessionRequest::default()
    };
    let _: v1::TerminateSessionResponse = client.call("OrchestrationService/TerminateSession", end).await?;
    let clean = v1::CleanupSessionRequest { pid: pid.clone() };
    let _: v1::CleanupSessionResponse = client.call("OrchestrationService/CleanupSession", clean).await?;
    let gone: Result<v1::SessionState, _> = client
        .call(
            "OrchestrationService/GetSessionState",
            v1::GetSessionStateRequest { pid },
        )
        .await;
    assert_eq!(code(gone), Some(Code::FailedPrecondition));
    Ok(())
}

#[expect(
    clippy::too_many_lines,
    reason = "one story: a service, its workers and what they perform"
)]
async fn registry(client: &mut Client) -> Result<(), Failure> {
    use v1::PipelineEventKind::{Ended, StageEnded, StageStarted, Started};
    use v1::work_response::Work;
    let named = |name: &str| name.to_owned();
    let _: v1::RegisterServiceResponse = client
        .call(
            "RegistryService/RegisterService",
            service("agents", v1::ServiceType::Worker),
        )
        .await?;
    let _: v1::RegisterServiceResponse = client
        .call(
            "RegistryService/RegisterService",
            service("models", v1::ServiceType::Inference),
        )
        .await?;
    let health = v1::UpdateHealthRequest {
        name: named("agents"),
        status: v1::ServiceStatus::Healthy.into(),
    };
    let _: v1::UpdateHealthResponse = client.call("RegistryService/UpdateHealth", health).await?;
    let _: v1::AcquireSlotResponse = client
        .call(
            "RegistryService/AcquireSlot",
            v1::AcquireSlotRequest {
                name: named("agents"),
            },
        )
        .await?;
    let busy = v1::UnregisterServiceRequest {
        name: named("agents"),
    };
    let busy: Result<v1::UnregisterServiceResponse, _> =
        client.call("RegistryService/UnregisterService", busy).await;
    assert_eq!(code(busy), Some(Code::FailedPrecondition));
    let _: v1::ReleaseSlotResponse = client
        .call(
            "RegistryService/ReleaseSlot",
            v1::ReleaseSlotRequest {
                name: named("agents"),
            },
        )
        .await?;
    let can: v1::CanAcceptResponse = client
        .call(
            "RegistryService/CanAccept",
            v1::CanAcceptRequest {
                name: named("agents"),
            },
        )
        .await?;
    assert!(can.can_accept);
    let idle = v1::DispatchRequest {
        service: named("agents"),
        request: None,
    };
    let idle: Result<v1::DispatchResponse, _> = client.call("RegistryService/Dispatch", idle).await;
    assert_eq!(code(idle), Some(Code::Unavailable));

    // A worker that answers everything, in a task of its own.
    for name in ["agents", "models"] {
        let (sender, mut works) = client.work(&format!("worker of {name}"), name).await?;
        tokio::spawn(async move {
            while let Ok(Some(work)) = works.message().await {
                let result = match work.work {
                    Some(Work::Request(request)) => {
                        let response = v1::ServiceResponse {
                            envelope: request.envelope,
                            ..v1::ServiceResponse::default()
                        };
                        v1::work_result::Result::Response(response)
                    }
                    Some(Work::Inference(asked)) => v1::work_result::Result::OutputJson(asked.input_json),
                    Some(Work::Step(step)) => {
                        let output = format!("\"{} done\"", step.agent_name);
                        v1::work_result::Result::Agent(v1::AgentExecutionResult {
                            step_id: step.step_id,
                            outcome: Some(v1::agent_execution_result::Outcome::OutputJson(output)),
                            ..v1::AgentExecutionResult::default()
                        })
                    }
                    None => break,
                };
                let answer = v1::WorkResult {
                    work_id: work.work_id,
                    result: Some(result),
                };
                let message = Some(v1::work_request::Message::Result(answer));
                if sender.send(v1::WorkRequest { message }).await.is_err() {
                    break;
                }
            }
        });
    }
    let envelope = v1::Envelope {
        request_id: named("r"),
        ..v1::Envelope::default()
    };
    let request = v1::ServiceRequest {
        envelope: Some(envelope.clone()),
        ..v1::ServiceRequest::default()
    };
    let dispatch = v1::DispatchRequest {
        service: named("agents"),
        request: Some(request),
    };
    let answered: v1::DispatchResponse = client.call("RegistryService/Dispatch", dispatch).await?;
    assert_eq!(answered.response.unwrap_or_default().envelope, Some(envelope));
    let inference = v1::DispatchInferenceRequest {
        model: named("small"),
        input_json: named("[1]"),
        ..Default::default()
    };
    let inferred: v1::DispatchInferenceResponse = client
        .call("RegistryService/DispatchInference", inference)
        .await?;
    assert_eq!(
        (inferred.output_json.as_str(), inferred.service.as_str()),
        ("[1]", "models")
    );

    let envelope: v1::Envelope = client
        .call(
            "EngineService/CreateEnvelope",
            v1::CreateEnvelopeRequest::default(),
        )
        .await?;
    let agent = two_stages().agents.into_iter().next();
    let execute = v1::ExecuteAgentRequest {
        agent,
        envelope_id: envelope.envelope_id,
        pid: String::new(),
    };
    let executed: v1::AgentExecutionResult = client.call("EngineService/ExecuteAgent", execute).await?;
    assert!(executed.outcome.is_some());

    let execute = v1::ExecutePipelineRequest {
        pipeline: Some(two_stages()),
        ..v1::ExecutePipelineRequest::default()
    };
    let mut events: Streaming<v1::PipelineEvent> =
        client.stream("EngineService/ExecutePipeline", execute).await?;
    let mut kinds = Vec::new();
    let mut last = v1::PipelineEvent::default();
    while let Some(event) = events.message().await? {
        kinds.push(event.kind());
        last = event;
    }
    assert_eq!(
        kinds,
        [Started, StageStarted, StageEnded, StageStarted, StageEnded, Ended]
    );
    let outputs = last.envelope.unwrap_or_default().outputs_json;
    assert_eq!(outputs.get("write").map(String::as_str), Some("\"write done\""));

    let stats: v1::GetServiceStatsResponse = client
        .call("RegistryService/GetServiceStats", v1::GetServiceStatsRequest {})
        .await?;
    assert_eq!(
        (stats.total_services, stats.total_load, stats.total_capacity),
        (2, 0, 16)
    );
    let services = v1::ListServicesRequest {
        r#type: v1::ServiceType::Inference.into(),
    };
    let services: v1::ListServicesResponse = client.call("RegistryService/ListServices", services).await?;
    assert_eq!(services.services.first().map(|service| service.workers), Some(1));
    let _: v1::UnregisterServiceResponse = client
        .call(
            "RegistryService/UnregisterService",
            v1::UnregisterServiceRequest {
                name: named("models"),
            },
        )
        .await?;
    Ok(())
}

async fn bus(client: &mut Client) -> Result<(), Failure> {
    let subscribe = v1::SubscribeRequest {
        topics: vec!["orders.*".to_owned()],
        name: "desk".to_owned(),
        acknowledges: true,
        max_in_flight: 2,
        ..v1::SubscribeRequest::default()
    };
    let mut messages: Streaming<v1::Message> = client.stream("CommBusService/Subscribe", subscribe).await?;
    let publish = |payload: &[u8]| v1::PublishRequest {
        topic: "orders.new".to_owned(),
        sender: "shop".to_owned(),
        payload: payload.to_vec(),
        ..v1::PublishRequest::default()
    };
    let mut sent: Vec<String> = Vec::new();
    for payload in [b"1", b"2", b"3"] {
        let published: v1::PublishResponse = client.call("CommBusService/Publish", publish(payload)).await?;
        assert_eq!(published.receivers, 1);
        sent.push(published.message_id);
    }
    let first = messages.message().await?.unwrap_or_default();
    let second = messages.message().await?.unwrap_or_default();
    assert_eq!(
        (first.payload.as_slice(), second.payload.as_slice()),
        (b"1".as_slice(), b"2".as_slice())
    );
    // The window is full: the third one waits for an acknowledgement.
    let acknowledge = v1::AcknowledgeRequest {
        subscription_id: first.subscription_id,
        message_ids: vec![first.message_id],
    };
    let acknowledged: v1::AcknowledgeResponse =
        client.call("CommBusService/Acknowledge", acknowledge).await?;
    assert_eq!(acknowledged.acknowledged, 1);
    assert_eq!(
        messages.message().await?.map(|message| message.payload),
        Some(b"3".to_vec())
    );

    let nobody = v1::SendRequest {
        recipient: "nobody".to_owned(),
        ..v1::SendRequest::default()
    };
    let nobody: Result<v1::SendResponse, _> = client.call("CommBusService/Send", nobody).await;
    assert_eq!(code(nobody), Some(Code::NotFound));
    let direct = v1::SendRequest {
        recipient: "desk".to_owned(),
        ..v1::SendRequest::default()
    };
    let _: v1::SendResponse = client.call("CommBusService/Send", direct).await?;

    let unasked = v1::QueryRequest {
        topic: "prices".to_owned(),
        ..v1::QueryRequest::default()
    };
    let unasked: Result<v1::QueryResponse, _> = client.call("CommBusService/Query", unasked).await;
    assert_eq!(code(unasked), Some(Code::Unavailable));
    let subscribe = v1::SubscribeRequest {
        topics: vec!["prices".to_owned()],
        ..v1::SubscribeRequest::default()
    };
    let mut prices: Streaming<v1::Message> = client.stream("CommBusService/Subscribe", subscribe).await?;
    let mut other = Client {
        grpc: client.grpc.clone(),
        called: BTreeSet::new(),
    };
    let answering = tokio::spawn(async move {
        let asked = prices.message().await?.unwrap_or_default();
        let reply = v1::ReplyRequest {
            query_id: asked.query_id,
            payload: b"7".to_vec(),
            responder: "desk".to_owned(),
        };
        let _: v1::ReplyResponse = other.call("CommBusService/Reply", reply).await?;
        // The second one is not answered.
        prices.message().await?;
        Ok::<_, Status>((other, prices))
    });
    let query = v1::QueryRequest {
        topic: "prices".to_owned(),
        timeout_us: 200_000,
        ..v1::QueryRequest::default()
    };
    let asked = client
        .call::<_, v1::QueryResponse>("CommBusService/Query", query.clone())
        .await?;
    assert_eq!(asked.payload, b"7");
    let late: Result<v1::QueryResponse, _> = client.call("CommBusService/Query", query).await;
    assert_eq!(code(late), Some(Code::DeadlineExceeded));
    let (other, _prices) = answering.await??;
    client.called.extend(other.called);
    Ok(())
}

#[test]
fn a_token_is_required_where_there_are_tokens() -> Result<(), Failure> {
    with_server(&[("TOKENS", "secret")], |mut client, _| async move {
        let counts = v1::GetProcessCountsRequest {};
        let bare: Result<v1::GetProcessCountsResponse, _> =
            client.call("KernelService/GetProcessCounts", counts).await;
        assert_eq!(code(bare), Some(Code::Unauthenticated));
        let mut request = Request::new(v1::GetProcessCountsRequest {});
        request
            .metadata_mut()
            .insert("authorization", "Bearer secret".parse()?);
        let path = client.path("KernelService/GetProcessCounts")?;
        client.grpc.ready().await?;
        let codec = ProstCodec::<v1::GetProcessCountsRequest, v1::GetProcessCountsResponse>::default();
        assert_eq!(
            client.grpc.unary(request, path, codec).await?.into_inner().total,
            0
        );
        Ok(())
    })
}

#[test]
fn a_large_message_and_an_unknown_method_are_refused() -> Result<(), Failure> {
    with_server(&[("MAX_MESSAGE_BYTES", "1000")], |mut client, _| async move {
        let large = v1::GetProcessRequest {
            pid: "p".repeat(2_000),
        };
        let large: Result<v1::GetProcessResponse, _> = client.call("KernelService/GetProcess", large).await;
        assert_eq!(code(large), Some(Code::OutOfRange));
        let unknown: Result<v1::GetProcessResponse, _> = client
            .call("KernelService/Fork", v1::GetProcessRequest::default())
            .await;
        assert_eq!(code(unknown), Some(Code::Unimplemented));
        Ok(())
    })
}

#[test]
fn an_open_address_needs_tokens() -> Result<(), Failure> {
    let values = [("VESPER_KERNEL_LISTEN".to_owned(), "0.0.0.0:0".to_owned())].into();
    let settings = ServerSettings::read(&values)?;
    let refused = Runtime::new()?.block_on(serve(settings)).map(drop);
    assert!(refused.is_err_and(|error| error.0.contains("without authentication")));
    Ok(())
}
