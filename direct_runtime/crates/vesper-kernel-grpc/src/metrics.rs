//! The metrics of the kernel as Prometheus reads them, by HTTP.

mod names;
mod rpcs;
mod text;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use http::{Response, StatusCode, header};
use tonic::Status;
use vesper_kernel::counts::Figures;
use vesper_kernel::writer::Writer;

use crate::credentials::Credentials;
use crate::traces::SpanCounts;
use text::Page;

pub(crate) use rpcs::{Rpcs, code_name};

const PATH: &str = "/metrics";

/// What a scrape reads.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) writer: Writer,
    pub(crate) credentials: Credentials,
    pub(crate) rpcs: Arc<Rpcs>,
    pub(crate) spans: Option<Arc<SpanCounts>>,
}

impl Metrics {
    /// Returns the server's one page.
    pub(crate) fn routes(self) -> axum::Router {
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let metrics = self.clone();
            let checked = metrics.credentials.check(&request);
            async move { Ok::<_, Infallible>(metrics.answer(checked).await) }
        });
        axum::Router::new().route_service(PATH, service)
    }

    async fn answer(&self, checked: Result<(), Status>) -> Response<Body> {
        if let Err(refused) = checked {
            return response(StatusCode::UNAUTHORIZED, refused.message().to_owned());
        }
        match self.writer.figures().await {
            Ok(figures) => response(StatusCode::OK, self.page(&figures)),
            Err(refusal) => response(StatusCode::SERVICE_UNAVAILABLE, refusal.message),
        }
    }

    fn page(&self, figures: &Figures) -> String {
        let mut page = Page::default();
        let processes = figures.processes.iter();
        page.add(
            &names::PROCESSES,
            &["state"],
            processes.map(|(state, count)| (vec![state.as_str()], count)),
        );
        let by_code = self
            .rpcs
            .called()
            .flat_map(|(name, method)| method.codes().map(move |(code, count)| (vec![name, code], count)));
        page.add(&names::RPCS_TOTAL, &["method", "code"], by_code);
        let durations = self.rpcs.called().map(|(name, method)| (name, &method.durations));
        page.add_durations(&names::RPC_DURATION, Some("method"), durations);
        let exceeded = figures.counts.exceeded.iter();
        page.add(
            &names::QUOTA_EXCEEDED,
            &["resource"],
            exceeded.map(|(resource, count)| (vec![resource.as_str()], count)),
        );
        let messages = [
            ("accepted", figures.messages.accepted),
            ("delivered", figures.messages.delivered),
            ("refused", figures.messages.refused),
        ];
        page.add(
            &names::BUS_MESSAGES,
            &["result"],
            messages.map(|(result, count)| (vec![result], count)),
        );
        let single = |value: i64| [(vec![], value)];
        let pending = i64::try_from(figures.pending_interrupts).unwrap_or(i64::MAX);
        page.add(&names::INTERRUPTS_PENDING, &[], single(pending));
        page.add(&names::BUS_QUEUED, &[], single(figures.bus.queued));
        page.add(&names::BUS_SUBSCRIBERS, &[], single(figures.bus.subscribers));
        page.add(&names::LOG_CHANGES, &[], [(vec![], figures.counts.changes)]);
        page.add_durations(&names::LOG_LAG, None, [("", &*figures.counts.lag)]);
        let spans = self.spans.iter().flat_map(|spans| {
            [("exported", &spans.exported), ("dropped", &spans.dropped)]
                .map(|(result, count)| (vec![result], count.load(Ordering::Relaxed)))
        });
        page.add(&names::SPANS_TOTAL, &["result"], spans);
        page.add(&names::SERVING, &[], single(figures.is_serving.into()));
        page.0
    }
}

fn response(status: StatusCode, text: String) -> Response<Body> {
    let kind = if status == StatusCode::OK {
        text::CONTENT_TYPE
    } else {
        "text/plain; charset=utf-8"
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let kind = http::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
