//! A server for a test, and a client that was not generated from the protos.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use prost::Message;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, IntoStreamingRequest, Request, Status, Streaming};
use tonic_prost::ProstCodec;
use vesper_kernel::proto::{DESCRIPTORS, v1};
use vesper_kernel_grpc::serve;
use vesper_kernel_grpc::settings::ServerSettings;

pub(crate) type Failure = Box<dyn std::error::Error>;

/// A client that knows RPCs by their path.
pub(crate) struct Client {
    pub(crate) grpc: tonic::client::Grpc<Channel>,
    pub(crate) called: BTreeSet<String>,
}

impl Client {
    pub(crate) async fn connect(address: &str) -> Result<Self, Failure> {
        let channel = Channel::from_shared(format!("http://{address}"))?
            .connect()
            .await?;
        Ok(Self {
            grpc: tonic::client::Grpc::new(channel),
            called: BTreeSet::new(),
        })
    }

    pub(crate) fn path(&mut self, method: &str) -> Result<http::uri::PathAndQuery, Status> {
        self.called.insert(method.to_owned());
        format!("/vesper.kernel.v1.{method}")
            .parse()
            .map_err(|_| Status::internal("no path"))
    }

    pub(crate) async fn call<Req, Res>(&mut self, method: &str, request: Req) -> Result<Res, Status>
    where
        Req: Message + 'static,
        Res: Message + Default + 'static,
    {
        let path = self.path(method)?;
        self.grpc
            .ready()
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let answer = self
            .grpc
            .unary(Request::new(request), path, ProstCodec::<Req, Res>::default())
            .await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn stream<Req, Res>(
        &mut self,
        method: &str,
        request: Req,
    ) -> Result<Streaming<Res>, Status>
    where
        Req: Message + 'static,
        Res: Message + Default + 'static,
    {
        let path = self.path(method)?;
        self.grpc
            .ready()
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let request = Request::new(request);
        let answer = self
            .grpc
            .server_streaming(request, path, ProstCodec::<Req, Res>::default())
            .await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn work(
        &mut self,
        worker: &str,
        service: &str,
    ) -> Result<(mpsc::Sender<v1::WorkRequest>, Streaming<v1::WorkResponse>), Status> {
        let path = self.path("RegistryService/Work")?;
        self.grpc
            .ready()
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let (sender, receiver) = mpsc::channel(16);
        let start = v1::WorkerStart {
            service: service.to_owned(),
            worker: worker.to_owned(),
            max_concurrent: 4,
        };
        let start = v1::WorkRequest {
            message: Some(v1::work_request::Message::Start(start)),
        };
        sender.send(start).await.map_err(|_| Status::internal("closed"))?;
        let requests = ReceiverStream::new(receiver).into_streaming_request();
        let codec = ProstCodec::<v1::WorkRequest, v1::WorkResponse>::default();
        let answer = self.grpc.streaming(requests, path, codec).await?;
        Ok((sender, answer.into_inner()))
    }
}

/// Runs a test with a client of a server of its own.
pub(crate) fn with_server<Fut>(
    settings: &[(&str, &str)],
    test: impl FnOnce(Client, String) -> Fut,
) -> Result<(), Failure>
where
    Fut: Future<Output = Result<(), Failure>>,
{
    let mut values: BTreeMap<String, String> =
        [("VESPER_KERNEL_LISTEN".to_owned(), "127.0.0.1:0".to_owned())].into();
    values.extend(
        settings
            .iter()
            .map(|(name, value)| (format!("VESPER_KERNEL_{name}"), (*value).to_owned())),
    );
    let settings = ServerSettings::read(&values)?;
    Runtime::new()?.block_on(async {
        let running = serve(settings).await?;
        let address = running.address.to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(running.until(async {
            drop(stopped.await);
        }));
        let client = Client::connect(&address).await?;
        let ended = tokio::time::timeout(Duration::from_mins(1), test(client, address)).await?;
        drop(stop);
        served.await??;
        ended
    })
}

pub(crate) fn code<T>(answer: Result<T, Status>) -> Option<Code> {
    answer.err().map(|status| status.code())
}

/// Returns the RPCs of the protos.
pub(crate) fn declared() -> Result<BTreeSet<String>, Failure> {
    let set = prost_types::FileDescriptorSet::decode(DESCRIPTORS)?;
    let services = set.file.iter().flat_map(|file| &file.service);
    Ok(services
        .flat_map(|service| {
            service
                .method
                .iter()
                .map(move |method| format!("{}/{}", service.name(), method.name()))
        })
        .collect())
}
