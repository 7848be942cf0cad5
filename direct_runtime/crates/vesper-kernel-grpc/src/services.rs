//! The services: each RPC with what it does on the state.

mod calls;
mod long_calls;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Request, Response, Status};
use tower::service_fn;
use vesper_kernel::writer::Writer;

use crate::codec::KernelCodec;
use crate::credentials::Credentials;
use crate::metrics::{Rpcs, code_name};
use crate::streams::Answers;
use crate::traces::{OpenRpc, Traces};

pub(crate) use calls::{
    CommBusService, EngineService, InterruptService, KernelService, OrchestrationService, RegistryService,
};

/// What every service needs.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    pub(crate) writer: Writer,
    pub(crate) credentials: Credentials,
    pub(crate) max_message_bytes: usize,
    /// Counts RPCs, where there are metrics.
    pub(crate) rpcs: Option<Arc<Rpcs>>,
    pub(crate) traces: Option<Traces>,
}

type HttpRequest = http::Request<Body>;
pub(crate) type HttpResponse = http::Response<Body>;
pub(crate) type HttpAnswer = Pin<Box<dyn Future<Output = Result<HttpResponse, Infallible>> + Send>>;

impl Calls {
    fn grpc<Req, Res>(&self) -> Grpc<KernelCodec<Res, Req>>
    where
        Req: prost::Message + Default + 'static,
        Res: prost::Message + Default + 'static,
    {
        Grpc::new(KernelCodec::default()).apply_max_message_size_config(Some(self.max_message_bytes), None)
    }

    /// Begins the span of an RPC, which the request has from then on.
    fn begin_span(&self, request: &mut HttpRequest, service: &str, methods: &[&str]) -> Option<OpenRpc> {
        let traces = self.traces.as_ref()?;
        let method = request.uri().path().rsplit('/').next()?;
        let method = methods.iter().find(|each| **each == method)?;
        let open = traces.rpc(request.headers(), service, method)?;
        request.extensions_mut().insert(open.context);
        Some(open)
    }

    /// Answers an RPC with one request and one answer.
    fn unary<Req, Res, Fut>(
        self,
        request: HttpRequest,
        call: impl Fn(Self, Request<Req>) -> Fut + Send + 'static,
    ) -> HttpAnswer
    where
        Req: prost::Message + Default + 'static,
        Res: prost::Message + Default + 'static,
        Fut: Future<Output = Result<Res, Status>> + Send + 'static,
    {
        Box::pin(async move {
            let mut grpc = self.grpc();
            let service = service_fn(move |request: Request<Req>| {
                let answer = call(self.clone(), request);
                async move { answer.await.map(Response::new) }
            });
            Ok(grpc.unary(service, request).await)
        })
    }

    /// Answers an RPC with one request and a stream of answers.
    fn streamed<Req, Res, Fut>(
        self,
        request: HttpRequest,
        call: impl Fn(Self, Request<Req>) -> Fut + Send + 'static,
    ) -> HttpAnswer
    where
        Req: prost::Message + Default + 'static,
        Res: prost::Message + Default + 'static,
        Fut: Future<Output = Result<Answers<Res>, Status>> + Send + 'static,
    {
        Box::pin(async move {
            let mut grpc = self.grpc();
            let service = service_fn(move |request: Request<Req>| {
                let answer = call(self.clone(), request);
                async move { answer.await.map(Response::new) }
            });
            Ok(grpc.server_streaming(service, request).await)
        })
    }
}

/// Ends the span of an RPC with its answer; that of a stream, with its head.
pub(crate) fn ended_by(span: OpenRpc, answer: HttpAnswer) -> HttpAnswer {
    Box::pin(async move {
        let Ok(response) = answer.await;
        span.end(code_name(&response));
        Ok(response)
    })
}

/// Declares a service: its name and its RPCs, each with a function of `Calls` and the request.
macro_rules! service {
    ($service:ident = $name:literal { $($method:literal => $kind:ident $call:expr;)* }) => {
        #[derive(Clone, Debug)]
        pub(crate) struct $service(pub(crate) $crate::services::Calls);

        impl $service {
            pub(crate) const METHODS: &'static [&'static str] = &[$($method),*];

            fn answer(&self, mut request: $crate::services::HttpRequest) -> $crate::services::HttpAnswer {
                let calls = self.0.clone();
                if let Err(status) = calls.credentials.check(&request) {
                    return Box::pin(std::future::ready(Ok(status.into_http())));
                }
                let span = calls.begin_span(&mut request, $name, Self::METHODS);
                let path = request.uri().path();
                let answer = match path.strip_prefix(concat!("/", $name, "/")).unwrap_or_default() {
                    $($method => calls.$kind(request, $call),)*
                    other => {
                        let status = tonic::Status::unimplemented(format!("{} has no method {other}.", $name));
                        Box::pin(std::future::ready(Ok(status.into_http())))
                    }
                };
                match span {
                    Some(span) => $crate::services::ended_by(span, answer),
                    None => answer,
                }
            }
        }

        impl tonic::server::NamedService for $service {
            const NAME: &'static str = $name;
        }

        impl tower::Service<$crate::services::HttpRequest> for $service {
            type Response = $crate::services::HttpResponse;
            type Error = std::convert::Infallible;
            type Future = $crate::services::HttpAnswer;

            fn poll_ready(
                &mut self,
                _context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Result<(), Self::Error>> {
                std::task::Poll::Ready(Ok(()))
            }

            fn call(&mut self, request: $crate::services::HttpRequest) -> Self::Future {
                let Some(rpcs) = self.0.rpcs.clone() else {
                    return self.answer(request);
                };
                let path = request.uri().path().to_owned();
                rpcs.count(&path, self.answer(request))
            }
        }
    };
}

pub(crate) use service;
