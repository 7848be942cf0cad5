//! Pipelines through the writer: routes, limits, branches, questions, restarts.

use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Runtime;
use vesper_kernel::log::{Log, MemoryLog, SqliteLog};
use vesper_kernel::proto::v1::{self, InstructionKind, TerminalReason, agent_execution_result::Outcome};
use vesper_kernel::refusal::{Code, Refusal};
use vesper_kernel::settings::Settings;
use vesper_kernel::writer::{Writer, WriterThread};

type Failure = Box<dyn std::error::Error>;

const IS_BILLING: &str = include_str!("fixtures/route_billing.json");

struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("vesper-kernel-{name}-{}.db", std::process::id()));
        let file = Self(path);
        file.remove();
        file
    }

    fn log(&self) -> Result<Box<dyn Log>, Failure> {
        Ok(Box::new(SqliteLog::open(&self.0)?))
    }

    fn remove(&self) {
        for end in ["", "-wal", "-shm"] {
            let mut path = self.0.clone().into_os_string();
            path.push(end);
            drop(std::fs::remove_file(path));
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.remove();
    }
}

fn start(log: Box<dyn Log>) -> Result<(Writer, WriterThread), Failure> {
    Ok(Writer::start(Settings::default(), log)?)
}

fn stage(name: &str, routes: Vec<v1::RoutingRule>) -> v1::AgentConfig {
    v1::AgentConfig {
        name: name.to_owned(),
        agent: format!("{name}_v1"),
        service: "agents".to_owned(),
        routes,
        ..v1::AgentConfig::default()
    }
}

fn to(targets: &[&str]) -> v1::RoutingRule {
    v1::RoutingRule {
        targets: targets.iter().map(|&target| target.to_owned()).collect(),
        ..v1::RoutingRule::default()
    }
}

/// triage → billing (by a condition) or answer; billing → law and price in parallel → answer, which may ask triage again.
fn support() -> v1::PipelineConfig {
    let billing = v1::RoutingRule {
        condition: "CAST(outputs[\"triage\"][\"category\"] AS string) == \"billing\"".to_owned(),
        condition_ir: IS_BILLING.to_owned(),
        ..to(&["billing"])
    };
    let fork = v1::RoutingRule {
        join: "answer".to_owned(),
        ..to(&["law", "price"])
    };
    v1::PipelineConfig {
        name: "support".to_owned(),
        agents: vec![
            stage("triage", vec![billing, to(&["answer"])]),
            stage("billing", vec![fork]),
            stage("law", vec![to(&["answer"])]),
            stage("price", vec![to(&["answer"])]),
            stage("answer", Vec::new()),
        ],
        edge_limits: Vec::new(),
    }
}

async fn submit(writer: &Writer, pipeline: v1::PipelineConfig) -> Result<String, Refusal> {
    let process = writer.change(v1::CreateProcessRequest::default()).await?;
    writer
        .change(v1::ScheduleProcessRequest {
            pid: process.pid.clone(),
        })
        .await?;
    let request = v1::InitializeSessionRequest {
        pid: process.pid.clone(),
        pipeline: Some(pipeline),
        inputs_json: [("text".to_owned(), "\"Where is my refund?\"".to_owned())].into(),
        ..v1::InitializeSessionRequest::default()
    };
    writer
        .run(move |core| {
            core.conditions()
                .check(request.pipeline.as_ref().ok_or(Refusal::invalid("no pipeline"))?)?;
            core.perform(request)
        })
        .await?;
    Ok(process.pid)
}

async fn next(writer: &Writer, pid: &str, worker: &str) -> Result<v1::Instruction, Refusal> {
    let request = v1::GetNextInstructionRequest {
        pid: pid.to_owned(),
        worker: worker.to_owned(),
        lease_us: 0,
    };
    writer.change(request).await
}

async fn report(
    writer: &Writer,
    given: &v1::Instruction,
    worker: &str,
    outcome: Outcome,
) -> Result<v1::ReportAgentResultResponse, Refusal> {
    let result = v1::AgentExecutionResult {
        step_id: given.step_id.clone(),
        agent_name: given.agent_name.clone(),
        outcome: Some(outcome),
        metrics: Some(v1::AgentExecutionMetrics {
            llm_calls: 1,
            tokens_in: 10,
            ..v1::AgentExecutionMetrics::default()
        }),
    };
    let request = v1::ReportAgentResultRequest {
        pid: given.pid.clone(),
        worker: worker.to_owned(),
        result: Some(result),
    };
    writer.run(move |core| core.report(request)).await
}

fn output(text: &str) -> Outcome {
    Outcome::OutputJson(text.to_owned())
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one story: a pipeline from its start to its end"
)]
fn a_pipeline_routes_forks_joins_asks_and_survives_restarts() -> Result<(), Failure> {
    let runtime = Runtime::new()?;
    let file = File::new("support");
    let (writer, thread) = start(file.log()?)?;
    let pid = runtime.block_on(async {
        let pid = submit(&writer, support()).await?;
        let triage = next(&writer, &pid, "ada").await?;
        assert_eq!(
            (triage.kind(), triage.agent_name.as_str()),
            (InstructionKind::RunAgent, "triage")
        );
        // A worker that asks again has its step again.
        assert_eq!(next(&writer, &pid, "ada").await?.step_id, triage.step_id);
        assert_eq!(
            next(&writer, &pid, "bob").await?.kind(),
            InstructionKind::WaitSteps
        );
        let stolen = report(&writer, &triage, "bob", output("{}")).await;
        assert_eq!(
            stolen.map_err(|refusal| refusal.code).err(),
            Some(Code::FailedPrecondition)
        );
        assert!(
            report(&writer, &triage, "ada", output("{\"category\":\"billing\"}"))
                .await?
                .accepted
        );
        assert!(!report(&writer, &triage, "ada", output("{}")).await?.accepted);

        let billing = next(&writer, &pid, "ada").await?;
        assert_eq!(billing.agent_name, "billing");
        let question = v1::AgentQuestion {
            kind: v1::InterruptKind::Confirmation.into(),
            message: "Refund 20.00?".to_owned(),
            run_id: "run1".to_owned(),
            ..v1::AgentQuestion::default()
        };
        report(&writer, &billing, "ada", Outcome::Question(question)).await?;
        assert_eq!(
            next(&writer, &pid, "ada").await?.kind(),
            InstructionKind::WaitInterrupt
        );
        Ok::<_, Refusal>(pid)
    })?;
    thread.stop();

    // A stop leaves a snapshot; a second kernel reads it.
    let (writer, thread) = start(file.log()?)?;
    runtime.block_on(async {
        let waiting = next(&writer, &pid, "ada").await?;
        let interrupt = waiting.interrupt.unwrap_or_default();
        let response = v1::InterruptResponse {
            value_json: "true".to_owned(),
            by: "eve".to_owned(),
        };
        let answer = v1::ResolveInterruptRequest {
            interrupt_id: interrupt.interrupt_id.clone(),
            response: Some(response),
        };
        writer.change(answer.clone()).await?;
        let second = writer.change(answer).await.map_err(|refusal| refusal.code);
        assert_eq!(second.err(), Some(Code::FailedPrecondition));

        let billing = next(&writer, &pid, "ada").await?;
        assert_eq!(billing.agent_name, "billing");
        let answered = billing.interrupt.clone().and_then(|interrupt| interrupt.response);
        assert_eq!(answered.map(|response| response.by), Some("eve".to_owned()));
        report(&writer, &billing, "ada", output("{\"amount\":20.00}")).await?;
        let law = next(&writer, &pid, "ada").await?;
        let price = next(&writer, &pid, "bob").await?;
        assert_eq!(
            (law.agent_name.as_str(), price.agent_name.as_str()),
            ("law", "price")
        );
        report(&writer, &price, "bob", output("20.00")).await?;
        assert_eq!(
            next(&writer, &pid, "bob").await?.kind(),
            InstructionKind::WaitSteps
        );
        report(&writer, &law, "ada", output("true")).await?;
        Ok::<_, Refusal>(())
    })?;
    // Dropping without a stop is a kill as far as the log is concerned: nothing is written at the end.
    drop(writer);
    thread.stop();

    let (writer, thread) = start(file.log()?)?;
    runtime.block_on(async {
        let answer = next(&writer, &pid, "ada").await?;
        assert_eq!(answer.agent_name, "answer");
        let outputs = answer.envelope.clone().unwrap_or_default().outputs_json;
        let names: Vec<&str> = outputs.keys().map(String::as_str).collect();
        assert_eq!(names, ["billing", "law", "price", "triage"]);
        assert_eq!(
            outputs.get("billing").map(String::as_str),
            Some("{\"amount\":20.00}")
        );
        report(&writer, &answer, "ada", output("\"Paid.\"")).await?;
        let end = next(&writer, &pid, "ada").await?;
        assert_eq!(
            (end.kind(), end.terminal_reason()),
            (InstructionKind::Terminate, TerminalReason::Completed)
        );
        let usage = end.envelope.unwrap_or_default().usage.unwrap_or_default();
        // Six reports: the question counts as well. Edges: triage, billing ×2, two joins.
        assert_eq!((usage.llm_calls, usage.iterations, usage.agent_hops), (6, 5, 5));
        Ok::<_, Refusal>(())
    })?;
    thread.stop();
    Ok(())
}

#[test]
fn an_edge_limit_ends_a_loop() -> Result<(), Failure> {
    let runtime = Runtime::new()?;
    let (writer, thread) = start(Box::new(MemoryLog))?;
    let pipeline = v1::PipelineConfig {
        name: "loop".to_owned(),
        agents: vec![
            stage("ask", vec![to(&["check"])]),
            stage("check", vec![to(&["ask"])]),
        ],
        edge_limits: vec![v1::EdgeLimit {
            from: "check".to_owned(),
            to: "ask".to_owned(),
            max_traversals: 2,
        }],
    };
    runtime.block_on(async {
        let pid = submit(&writer, pipeline).await?;
        let mut stages = Vec::new();
        let end = loop {
            let given = next(&writer, &pid, "ada").await?;
            if given.kind() != InstructionKind::RunAgent {
                break given;
            }
            stages.push(given.agent_name.clone());
            report(&writer, &given, "ada", output("null")).await?;
        };
        assert_eq!(stages.join(" "), "ask check ask check ask check");
        assert_eq!(end.terminal_reason(), TerminalReason::EdgeLimitExceeded);
        assert_eq!(
            end.termination_message,
            "The edge check->ask was taken 2 times, its limit."
        );
        Ok::<_, Refusal>(())
    })?;
    thread.stop();
    Ok(())
}

#[test]
fn each_branch_has_an_envelope_of_its_own_also_in_later_forks_and_after_a_restart() -> Result<(), Failure> {
    let runtime = Runtime::new()?;
    let file = File::new("forks");
    let fork = v1::RoutingRule {
        join: "plan".to_owned(),
        ..to(&["law", "price"])
    };
    let pipeline = v1::PipelineConfig {
        name: "forks".to_owned(),
        agents: vec![
            stage("plan", vec![fork]),
            stage("law", vec![to(&["plan"])]),
            stage("price", vec![to(&["plan"])]),
        ],
        edge_limits: Vec::new(),
    };
    let (writer, thread) = start(file.log()?)?;
    let pid = runtime.block_on(submit(&writer, pipeline))?;
    thread.stop();
    let mut envelopes = Vec::new();
    for _ in 0..3 {
        // A stop leaves a snapshot of the session between two forks.
        let (writer, thread) = start(file.log()?)?;
        runtime.block_on(async {
            let plan = next(&writer, &pid, "ada").await?;
            report(&writer, &plan, "ada", output("1")).await?;
            for _ in 0..2 {
                let given = next(&writer, &pid, "ada").await?;
                let envelope = given.envelope.clone().unwrap_or_default();
                let clone = v1::CloneEnvelopeRequest {
                    envelope_id: envelope.envelope_id.clone(),
                };
                let clone = writer.change(clone).await?;
                assert_eq!(clone.parent_envelope_id, envelope.envelope_id);
                assert_eq!(clone.current_stage, given.agent_name);
                envelopes.push(envelope.envelope_id);
                report(&writer, &given, "ada", output("1")).await?;
            }
            Ok::<_, Refusal>(())
        })?;
        thread.stop();
    }
    let expected = (2..8).map(|number| format!("{pid}/e{number}"));
    assert_eq!(envelopes, expected.collect::<Vec<_>>());
    Ok(())
}

#[test]
fn a_worker_that_comes_again_to_a_restarted_kernel_gets_its_step_again() -> Result<(), Failure> {
    let runtime = Runtime::new()?;
    let file = File::new("again");
    let service = v1::ServiceInfo {
        r#type: v1::ServiceType::Worker.into(),
        name: "agents".to_owned(),
        max_concurrent: 10,
        status: v1::ServiceStatus::Healthy.into(),
        ..v1::ServiceInfo::default()
    };
    let work = |writer: &Writer| {
        let start = v1::WorkerStart {
            service: "agents".to_owned(),
            worker: "ada".to_owned(),
            max_concurrent: 2,
        };
        let given = runtime.block_on(async {
            let (_, mut stream) = writer.run(move |core| core.start_worker(&start)).await?;
            Ok::<_, Failure>(tokio::time::timeout(Duration::from_secs(10), stream.recv()).await?)
        });
        Ok::<_, Failure>(given?.map(|given| given.work_id))
    };
    let (writer, thread) = start(file.log()?)?;
    let pid = runtime.block_on(async {
        let request = v1::RegisterServiceRequest {
            service: Some(service),
        };
        writer.change(request).await?;
        submit(&writer, support()).await
    })?;
    let step = Some(format!("{pid}/1"));
    assert_eq!(work(&writer)?, step);
    // The kernel ends without hearing of the worker's end.
    thread.stop();
    let (writer, thread) = start(file.log()?)?;
    assert_eq!(work(&writer)?, step);
    thread.stop();
    Ok(())
}

#[test]
fn a_condition_that_fails_ends_the_session() -> Result<(), Failure> {
    let runtime = Runtime::new()?;
    let (writer, thread) = start(Box::new(MemoryLog))?;
    runtime.block_on(async {
        let pid = submit(&writer, support()).await?;
        let triage = next(&writer, &pid, "ada").await?;
        report(&writer, &triage, "ada", output("{\"category\":7}")).await?;
        let end = next(&writer, &pid, "ada").await?;
        assert_eq!(end.terminal_reason(), TerminalReason::RoutingFailed);
        assert!(
            end.termination_message.contains("of \"triage\" failed"),
            "{}",
            end.termination_message
        );
        Ok::<_, Refusal>(())
    })?;
    thread.stop();
    Ok(())
}

#[test]
fn one_kernel_has_a_file() -> Result<(), Failure> {
    let file = File::new("held");
    let (_writer, thread) = start(file.log()?)?;
    let second = SqliteLog::open(&file.0)
        .map(drop)
        .map_err(|error| error.to_string());
    assert!(second.is_err_and(|message| message.contains("another kernel has this file")));
    thread.stop();
    Ok(())
}
