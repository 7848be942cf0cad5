//! RPCs that wait for others: pipelines, workers, messages.

use tonic::{Request, Response, Status, Streaming};
use tower::service_fn;
use vesper_kernel::hub::Acceptance;
use vesper_kernel::machines::bus::Address;
use vesper_kernel::machines::sessions::check_json;
use vesper_kernel::proto::v1::{
    self, AgentExecutionResult, Instruction, InstructionKind, PipelineEvent, PipelineEventKind, WorkRequest,
    WorkResponse, work_request, work_response, work_result,
};
use vesper_kernel::refusal::Refusal;
use vesper_kernel::writer::{Core, Reply};

use crate::answers::{patience_us, status};
use crate::services::{Calls, HttpAnswer, HttpRequest};
use crate::streams::{Answers, Events, Messages, PipelineEvents, Works};
use crate::traces::{Context, TRACEPARENT, carried};

impl Calls {
    pub(super) async fn subscribe_events(
        self,
        request: Request<v1::SubscribeEventsRequest>,
    ) -> Result<Answers<v1::KernelEvent>, Status> {
        let request = request.into_inner();
        let subscribe = |core: &mut Core| {
            if !request.pid.is_empty() {
                core.kernel.get_process(&v1::GetProcessRequest {
                    pid: request.pid.clone(),
                })?;
            }
            core.hub.subscribe_events(request)
        };
        let receiver = self.writer.run(subscribe).await.map_err(status)?;
        Ok(Box::pin(Events(Some(receiver))))
    }

    pub(super) async fn initialize_session(
        self,
        request: Request<v1::InitializeSessionRequest>,
    ) -> Result<v1::InitializeSessionResponse, Status> {
        let request = carried(request).into_inner();
        let initialize = |core: &mut Core| {
            refuse_draining(core)?;
            if let Some(pipeline) = &request.pipeline {
                core.conditions().check(pipeline)?;
            }
            core.perform(request)
        };
        let session = self.writer.run(initialize).await.map_err(status)?;
        Ok(v1::InitializeSessionResponse {
            session: Some(session),
        })
    }

    pub(super) async fn execute_pipeline(
        self,
        request: Request<v1::ExecutePipelineRequest>,
    ) -> Result<Answers<PipelineEvent>, Status> {
        let request = carried(request).into_inner();
        let execute = |core: &mut Core| {
            refuse_draining(core)?;
            if let Some(pipeline) = &request.pipeline {
                core.conditions().check(pipeline)?;
            }
            let before = core.sequence();
            let pid = core.perform(request)?.to_string();
            let is_new = core.sequence() > before;
            let now_us = core.now_us();
            let found = core.kernel.request_status(&pid, now_us)?;
            let receiver = core.hub.subscribe_pipeline(&pid);
            let is_ended = found
                .process
                .as_ref()
                .is_some_and(|process| process.ended_us.is_some());
            let ended = is_ended.then(|| PipelineEvent {
                kind: PipelineEventKind::Ended.into(),
                sequence: core.sequence().cast_signed(),
                at_us: now_us,
                pid: pid.clone(),
                process: found.process,
                envelope: found.envelope,
                ..PipelineEvent::default()
            });
            if ended.is_some() && !is_new {
                core.hub.forget_pipeline(&pid);
                return Ok((receiver, ended));
            }
            Ok((receiver, None))
        };
        let (receiver, ended) = self.writer.run(execute).await.map_err(status)?;
        if let Some(ended) = ended {
            return Ok(Box::pin(tokio_stream::once(Ok(ended))));
        }
        Ok(Box::pin(PipelineEvents(Some(receiver))))
    }

    pub(super) async fn execute_agent(
        self,
        request: Request<v1::ExecuteAgentRequest>,
    ) -> Result<AgentExecutionResult, Status> {
        let context = request.extensions().get::<Context>().copied();
        let request = request.into_inner();
        let pid = request.pid.clone();
        let dispatch =
            move |core: &mut Core, reply: Reply<work_result::Result>| match instruction(core, request) {
                Ok((service, mut step)) => {
                    if let (Some(context), Some(envelope)) = (context, &mut step.envelope) {
                        envelope
                            .metadata
                            .insert(TRACEPARENT.to_owned(), context.to_string());
                    }
                    core.dispatch(&service, work_response::Work::Step(step), reply);
                }
                Err(refusal) => reply.now(Err(refusal)),
            };
        let work_result::Result::Agent(result) = self.writer.ask(dispatch).await.map_err(status)? else {
            return Err(misfit());
        };
        if let (false, Some(metrics)) = (pid.is_empty(), &result.metrics) {
            let usage = v1::Usage {
                llm_calls: metrics.llm_calls,
                tool_calls: metrics.tool_calls,
                tokens_in: metrics.tokens_in,
                tokens_out: metrics.tokens_out,
                ..v1::Usage::default()
            };
            let record = v1::RecordUsageRequest {
                pid,
                usage: Some(usage),
            };
            self.writer.change(record).await.map_err(status)?;
        }
        Ok(result)
    }

    pub(super) async fn dispatch(
        self,
        request: Request<v1::DispatchRequest>,
    ) -> Result<v1::DispatchResponse, Status> {
        let request = request.into_inner();
        let given = request.request.unwrap_or_default();
        let dispatch = move |core: &mut Core, reply: Reply<work_result::Result>| {
            core.dispatch(&request.service, work_response::Work::Request(given), reply);
        };
        match self.writer.ask(dispatch).await.map_err(status)? {
            work_result::Result::Response(response) => Ok(v1::DispatchResponse {
                response: Some(response),
            }),
            _ => Err(misfit()),
        }
    }

    pub(super) async fn dispatch_inference(
        self,
        request: Request<v1::DispatchInferenceRequest>,
    ) -> Result<v1::DispatchInferenceResponse, Status> {
        let request = request.into_inner();
        check_json("input_json", &request.input_json, false).map_err(status)?;
        let select = {
            let model = request.model.clone();
            move |core: &mut Core| core.kernel.registry().for_model(&model).map(str::to_owned)
        };
        let service = self.writer.run(select).await.map_err(status)?;
        let inference = v1::InferenceRequest {
            model: request.model,
            input_json: request.input_json,
            metadata: request.metadata,
        };
        let to = service.clone();
        let dispatch = move |core: &mut Core, reply: Reply<work_result::Result>| {
            core.dispatch(&to, work_response::Work::Inference(inference), reply);
        };
        match self.writer.ask(dispatch).await.map_err(status)? {
            work_result::Result::OutputJson(output_json) => {
                Ok(v1::DispatchInferenceResponse { output_json, service })
            }
            _ => Err(misfit()),
        }
    }

    pub(super) async fn publish(
        self,
        request: Request<v1::PublishRequest>,
    ) -> Result<v1::PublishResponse, Status> {
        let wait_us = patience_us(request.metadata());
        let request = request.into_inner();
        if request.topic.is_empty() {
            return Err(Status::invalid_argument("Name the topic."));
        }
        let message = v1::Message {
            topic: request.topic.clone(),
            sender: request.sender,
            payload: request.payload,
            headers: request.headers,
            ..v1::Message::default()
        };
        self.post(Address::Topic(request.topic), message, wait_us).await
    }

    pub(super) async fn send(self, request: Request<v1::SendRequest>) -> Result<v1::SendResponse, Status> {
        let wait_us = patience_us(request.metadata());
        let request = request.into_inner();
        if request.recipient.is_empty() {
            return Err(Status::invalid_argument("Name the recipient."));
        }
        let message = v1::Message {
            sender: request.sender,
            payload: request.payload,
            headers: request.headers,
            ..v1::Message::default()
        };
        let sent = self
            .post(Address::Name(request.recipient), message, wait_us)
            .await?;
        Ok(v1::SendResponse {
            message_id: sent.message_id,
        })
    }

    async fn post(
        self,
        address: Address,
        message: v1::Message,
        wait_us: i64,
    ) -> Result<v1::PublishResponse, Status> {
        let post = move |core: &mut Core, reply: Reply<v1::PublishResponse>| {
            let now_us = core.now_us();
            if let Address::Name(name) = &address
                && !core.hub.bus.has_queue(&address)
            {
                reply.now(Err(Refusal::not_found(format!(
                    "There is no recipient \"{name}\"."
                ))));
                return;
            }
            let message = core.hub.stamp(message, now_us);
            core.hub.post(
                address,
                message,
                now_us.saturating_add(wait_us),
                Acceptance::Publish(reply),
            );
        };
        self.writer.ask(post).await.map_err(status)
    }

    pub(super) async fn query(self, request: Request<v1::QueryRequest>) -> Result<v1::QueryResponse, Status> {
        let patience_us = patience_us(request.metadata());
        let request = request.into_inner();
        if request.topic.is_empty() {
            return Err(Status::invalid_argument("Name the topic."));
        }
        if request.timeout_us < 0 {
            return Err(Status::invalid_argument("timeout_us is negative."));
        }
        let wait_us = if request.timeout_us == 0 {
            patience_us
        } else {
            request.timeout_us.min(patience_us)
        };
        let message = v1::Message {
            topic: request.topic.clone(),
            sender: request.sender,
            payload: request.payload,
            headers: request.headers,
            ..v1::Message::default()
        };
        let query = move |core: &mut Core, reply: Reply<v1::QueryResponse>| {
            let now_us = core.now_us();
            let message = core.hub.stamp(message, now_us);
            core.hub
                .query(request.topic, message, now_us.saturating_add(wait_us), reply);
        };
        self.writer.ask(query).await.map_err(status)
    }

    pub(super) async fn subscribe(
        self,
        request: Request<v1::SubscribeRequest>,
    ) -> Result<Answers<v1::Message>, Status> {
        let request = request.into_inner();
        let writer = self.writer.clone();
        // Made by the job: a caller that has gone before its answer leaves no subscription.
        let subscribe = move |core: &mut Core| {
            let (id, receiver) = core.hub.subscribe(&request)?;
            Ok(Messages {
                id,
                receiver,
                writer,
                taken: 0,
            })
        };
        let messages = self.writer.run(subscribe).await.map_err(status)?;
        Ok(Box::pin(messages))
    }

    /// Answers the RPC of workers, whose requests are a stream as well.
    pub(super) fn worked<Fut>(
        self,
        request: HttpRequest,
        call: impl Fn(Self, Request<Streaming<WorkRequest>>) -> Fut + Send + 'static,
    ) -> HttpAnswer
    where
        Fut: Future<Output = Result<Answers<WorkResponse>, Status>> + Send + 'static,
    {
        Box::pin(async move {
            let mut grpc = self.grpc();
            let service = service_fn(move |request: Request<Streaming<WorkRequest>>| {
                let answer = call(self.clone(), request);
                async move { answer.await.map(Response::new) }
            });
            Ok(grpc.streaming(service, request).await)
        })
    }

    pub(super) async fn work(
        self,
        request: Request<Streaming<WorkRequest>>,
    ) -> Result<Answers<WorkResponse>, Status> {
        let mut requests = request.into_inner();
        let first = requests.message().await?.and_then(|first| first.message);
        let Some(work_request::Message::Start(start)) = first else {
            return Err(Status::invalid_argument(
                "The first message of a worker is `start`.",
            ));
        };
        let name = start.worker.clone();
        let (writer, traces) = (self.writer.clone(), self.traces.clone());
        // Made by the job: a worker that has gone before its answer leaves no stream.
        let started = self.writer.run(move |core| {
            refuse_draining(core)?;
            let (epoch, receiver) = core.start_worker(&start)?;
            Ok(Works {
                stream: format!("{}/{epoch}", start.worker),
                name: start.worker,
                epoch,
                receiver,
                writer,
                traces,
            })
        });
        let works = started.await.map_err(status)?;
        let (epoch, stream) = (works.epoch, works.stream.clone());
        tokio::spawn(async move {
            while let Ok(Some(request)) = requests.message().await {
                let name = name.clone();
                let told = match request.message {
                    Some(work_request::Message::Result(result)) => {
                        if let Some(traces) = &self.traces {
                            traces.end_work(&stream, &result);
                        }
                        self.writer
                            .tell(move |core| core.finish_work(&name, epoch, result))
                    }
                    Some(work_request::Message::Heartbeat(_)) => {
                        self.writer.tell(move |core| core.renew_worker(&name))
                    }
                    Some(work_request::Message::Start(_)) | None => break,
                };
                if told.is_err() {
                    break;
                }
            }
            // A kernel that has stopped has no workers.
            drop(self.writer.tell(move |core| core.end_worker(&name, epoch)));
        });
        Ok(Box::pin(works))
    }
}

fn refuse_draining(core: &Core) -> Result<(), Refusal> {
    if core.is_draining() {
        return Err(Refusal::unavailable("The kernel is shutting down."));
    }
    Ok(())
}

fn misfit() -> Status {
    Status::aborted("The worker sent a result of another kind.")
}

/// Returns the service and the instruction of a single agent.
fn instruction(core: &mut Core, request: v1::ExecuteAgentRequest) -> Result<(String, Instruction), Refusal> {
    let none = || Refusal::invalid("The request has no agent.");
    let agent = request.agent.ok_or_else(none)?;
    if agent.name.is_empty() || agent.agent.is_empty() || agent.service.is_empty() {
        return Err(Refusal::invalid("The agent needs name, agent and service."));
    }
    let envelope = core.kernel.envelope(&request.envelope_id)?;
    if !request.pid.is_empty() {
        let now_us = core.now_us();
        let status = core.kernel.check_quota(&request.pid, now_us)?;
        if !status.within_quota {
            return Err(Refusal::exhausted(format!(
                "The quota of {} is exceeded.",
                status.exceeded.join(", ")
            )));
        }
        let payer = v1::GetProcessRequest {
            pid: request.pid.clone(),
        };
        if core.kernel.get_process(&payer)?.ended_us.is_some() {
            return Err(Refusal::precondition(format!(
                "The process {} has ended.",
                request.pid
            )));
        }
    }
    let instruction = Instruction {
        kind: InstructionKind::RunAgent.into(),
        pid: request.pid,
        step_id: format!("{}@{}/{}", envelope.envelope_id, envelope.version, agent.name),
        agent_name: agent.name.clone(),
        envelope: Some(envelope),
        ..Instruction::default()
    };
    Ok((
        agent.service.clone(),
        Instruction {
            agent_config: Some(agent),
            ..instruction
        },
    ))
}
