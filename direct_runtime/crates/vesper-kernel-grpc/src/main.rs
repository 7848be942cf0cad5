//! The kernel as a program: settings from a file and the environment, ended by SIGTERM or Ctrl-C.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use vesper_kernel_grpc::serve;
use vesper_kernel_grpc::settings::{ServerSettings, read_file};

const HELP: &str = r#"Usage: vesper-kernel [--config FILE]

Serve processes of agents by gRPC, until SIGTERM or Ctrl-C.

FILE has lines NAME=value; variables of the environment with these names win.

  VESPER_KERNEL_LISTEN             host:port [127.0.0.1:7443]; port 0 takes a free one
  VESPER_KERNEL_STORE              memory, sqlite:PATH or postgresql://USER@HOST/DATABASE,
                                   which kernels can share: one serves, the others stand by [memory]
  VESPER_KERNEL_METRICS            host:port at which Prometheus reads /metrics [none]
  VESPER_KERNEL_OTLP               base URL of an OTLP/HTTP receiver of spans, such as http://127.0.0.1:4318 [none]
  VESPER_KERNEL_SAMPLE             share of traces that begin here and are recorded, from 0 to 1 [1]
  VESPER_KERNEL_TOKENS             bearer tokens that are accepted, separated by commas
  VESPER_KERNEL_KEYS               named tokens by their digests, as JSON:
                                   [{"name": "planner", "sha256": "64 hexadecimal digits"}]
  VESPER_KERNEL_JWT                issuers of tokens (JWT), as JSON: [{"issuer": "https://id.example",
                                   "audience": "kernel", "jwks": "/path/of/keys.json"}],
                                   also "algorithms" [RS256, ES256, EdDSA], "subject_claim" [sub],
                                   "refresh": seconds between two reads of the file [600]
  VESPER_KERNEL_TLS_CERT, _TLS_KEY paths of certificate and key, in PEM
  VESPER_KERNEL_TLS_CLIENT_CA      path of authorities, in PEM: callers show a certificate of theirs;
                                   optional where there are tokens, keys or issuers, too
  VESPER_KERNEL_MAX_MESSAGE_BYTES  size of a request [4194304]
  VESPER_KERNEL_DRAIN_SECONDS      how long a shutdown waits [5]
  VESPER_KERNEL_RETENTION_SECONDS  how long ended processes are kept [86400]
  VESPER_KERNEL_RATE_BURST, _RATE_PER_MINUTE, _RATE_PER_HOUR
                                   requests of a user in a second, a minute, an hour [no limit]
  VESPER_KERNEL_MAX_LLM_CALLS, _MAX_TOOL_CALLS, _MAX_AGENT_HOPS, _MAX_ITERATIONS,
  _MAX_TOKENS_IN, _MAX_TOKENS_OUT, _TIMEOUT_SECONDS
                                   quota of processes that name none [no limit]
"#;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Where standard error is closed, only the exit code remains.
            let _ = writeln!(std::io::stderr(), "vesper-kernel: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let mut values = BTreeMap::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-h" | "--help" => return print(HELP),
            "--version" => return print(concat!(env!("CARGO_PKG_VERSION"), "\n")),
            "--config" => {
                let path = arguments.next().ok_or("--config needs a file.")?;
                let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
                values.extend(read_file(&text).map_err(|error| format!("{path}: {error}"))?);
            }
            other => return Err(format!("there is no option {other}; try --help.")),
        }
    }
    values.extend(std::env::vars().filter(|(name, _)| name.starts_with("VESPER_KERNEL_")));
    let settings = ServerSettings::read(&values).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("the threads do not start: {error}"))?;
    runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
        let running = serve(settings).await.map_err(|error| error.to_string())?;
        print(&format!("listening on {}\n", running.address))?;
        if let Some(address) = running.metrics {
            print(&format!("metrics on {address}\n"))?;
        }
        let stop = async {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        };
        running.until(stop).await.map_err(|error| error.to_string())
    })
}

fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| error.to_string())
}
