//! Access tokens of OAuth 2 by client credentials (RFC 6749, section 4.4).

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::time::Instant;
use vesper_ir::{Json, base64, json};
use zeroize::Zeroizing;

use super::attempt::Attempt;
use super::connect::Unanswered;
use super::headers::check_value;
use super::request::Outgoing;
use super::response::{Answer, failure_of};
use super::secrets::SecretTexts;
use super::settings::OAuth2;
use super::text::quote_plus;
use super::transport::Transport;
use super::values::not_sent;
use crate::effect::Failure;
use crate::per_process::PerProcess;

/// Time before the end of a token at which a new one is requested; a quarter of its life where that is shorter.
const MARGIN: Duration = Duration::from_mins(1);
/// Life of a token whose endpoint reports none.
const DEFAULT_LIFE: Duration = Duration::from_mins(5);
const MAX_LIFE: Duration = Duration::from_hours(24);
const REFERENCE: &str = "secret:(access token)";

/// The current token of a provider. The lock is held while one is requested, so that one request serves all.
#[derive(Default)]
pub(super) struct Tokens(PerProcess<Mutex<Option<Token>>>);

struct Token {
    text: Zeroizing<String>,
    until: Instant,
}

impl Tokens {
    /// Returns the current token, or a new one where it has ended or was refused. Nothing was sent to the provider
    /// where this fails.
    pub(super) async fn get(
        &self,
        client: &OAuth2,
        transport: &Transport,
        secrets: &SecretTexts<'_>,
        until: Instant,
        refused: Option<&String>,
    ) -> Result<Zeroizing<String>, Failure> {
        let attempt = Attempt::until(until);
        let locked = attempt.within("while waiting for an access token", until, self.0.get().lock());
        let mut current = locked.await?;
        if let Some(token) = current.as_ref()
            && token.until > Instant::now()
            && refused != Some(&*token.text)
        {
            secrets.add(&token.text, REFERENCE.to_owned());
            return Ok(token.text.clone());
        }
        *current = None;
        let token = request_token(client, transport, secrets, &attempt).await?;
        secrets.add(&token.text, REFERENCE.to_owned());
        Ok(current.insert(token).text.clone())
    }
}

async fn request_token(
    client: &OAuth2,
    transport: &Transport,
    secrets: &SecretTexts<'_>,
    attempt: &Attempt,
) -> Result<Token, Failure> {
    let settings = &transport.settings;
    let endpoint = format!(
        "the token endpoint {} of `{}`",
        client.token_url.origin, settings.name
    );
    let failed = |failure: Failure| {
        // Time that is over is the caller's; everything else is the endpoint's.
        let code = if failure.code.name() == "timeout" {
            "timeout"
        } else {
            "unavailable"
        };
        Failure {
            retry_after: failure.retry_after,
            ..Failure::new(code, format!("nothing was sent: {endpoint}: {}", failure.message))
        }
    };
    let outgoing = token_request(client, secrets)?;
    let answer = transport.exchange(&outgoing, attempt).await;
    let answer = answer.map_err(|unanswered| match unanswered {
        Unanswered::Failed(failure) => failed(failure),
        Unanswered::Refused(problem) => failed(Failure::new("unavailable", problem)),
    })?;
    let body = std::str::from_utf8(&answer.body)
        .ok()
        .and_then(|text| json::parse(text).ok());
    let member = |name: &str| match &body {
        Some(Json::Object(object)) => object.get(name),
        _ => None,
    };
    if !answer.is_good() {
        return Err(failed(refusal(&answer, transport, secrets, member("error"))));
    }
    let problem = |problem: &str| failed(Failure::new("unavailable", problem));
    // The body may hold a token, so that no message shows it.
    let Some(Json::Text(text)) = member("access_token") else {
        return Err(problem("its answer has no `access_token`"));
    };
    if let Some(Json::Text(kind)) = member("token_type")
        && !kind.eq_ignore_ascii_case("bearer")
    {
        return Err(problem("its tokens are not of the type `Bearer`"));
    }
    let text = Zeroizing::new(text.to_string());
    check_value("Authorization", &text).map_err(|_| problem("no header can hold its `access_token`"))?;
    let life = match member("expires_in") {
        Some(Json::Number(seconds)) => seconds.to_string().parse().ok(),
        Some(Json::Text(seconds)) => seconds.parse().ok(),
        _ => None,
    };
    let life = life.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let life = life.unwrap_or(DEFAULT_LIFE).min(MAX_LIFE);
    Ok(Token {
        text,
        until: Instant::now() + life.saturating_sub(MARGIN.min(life / 4)),
    })
}

/// Returns the failure of an endpoint that gave no token: its status and the code of its error.
fn refusal(
    answer: &Answer,
    transport: &Transport,
    secrets: &SecretTexts<'_>,
    error: Option<&Json>,
) -> Failure {
    let status = answer.status;
    let message = match error {
        Some(Json::Text(code)) if code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_graphic()) => {
            format!("status {status}, `{}`", secrets.redact(code))
        }
        _ => format!("status {status}"),
    };
    Failure {
        message,
        ..failure_of(answer, &transport.settings, secrets, None, Some(""))
    }
}

fn token_request(client: &OAuth2, secrets: &SecretTexts<'_>) -> Result<Outgoing, Failure> {
    let secret = |name: &str| secrets.for_provider(name);
    // Both are encoded as in a form, also within the basic scheme (RFC 6749, section 2.3.1).
    let id = Zeroizing::new(quote_plus(&client.client_id.fill(secret)?));
    let password = Zeroizing::new(quote_plus(&client.client_secret.fill(secret)?));
    let mut body = Zeroizing::new("grant_type=client_credentials".to_owned());
    for (name, value) in [("scope", &client.scope), ("audience", &client.audience)] {
        if !value.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(body, "&{name}={}", quote_plus(value));
        }
    }
    let mut headers = vec![
        ("user-agent".to_owned(), "vesper".to_owned().into()),
        ("accept".to_owned(), "application/json".to_owned().into()),
        (
            "content-type".to_owned(),
            "application/x-www-form-urlencoded".to_owned().into(),
        ),
    ];
    if client.is_in_body {
        body = Zeroizing::new(format!(
            "{}&client_id={}&client_secret={}",
            body.as_str(),
            id.as_str(),
            password.as_str()
        ));
    } else {
        let pair = Zeroizing::new(format!("{}:{}", id.as_str(), password.as_str()));
        let text = Zeroizing::new(base64::text(pair.as_bytes()));
        secrets.add(&text, "secret:(client id and secret)".to_owned());
        let value = Zeroizing::new(format!("Basic {}", text.as_str()));
        check_value("Authorization", &value).map_err(not_sent)?;
        headers.push(("authorization".to_owned(), value));
    }
    Ok(Outgoing {
        method: "POST".to_owned(),
        url: client.token_url.clone(),
        headers,
        body: Some(Bytes::from_owner(body)),
    })
}
