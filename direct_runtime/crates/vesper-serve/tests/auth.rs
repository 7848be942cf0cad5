//! Callers: API keys, tokens and certificates.
#![allow(
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "tests: a panic fails them, cases are lists"
)]

mod support;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use ring::{digest, hmac};
use serde_json::{Value, json};
use support::{NOW_SECONDS, Outcome, Random, endpoint, exchange, header, problem, route_from, table};
use vesper_serve::{Exchange, Routed};

const SECRET: &[u8] = b"a secret of 32 bytes, at the least";

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn sha256(text: &str) -> String {
    digest::digest(&digest::SHA256, text.as_bytes())
        .as_ref()
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

struct Signers {
    ed25519: Ed25519KeyPair,
    p256: EcdsaKeyPair,
}

impl Signers {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let random = SystemRandom::new();
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).map_err(|_| "no key")?;
        let p256 =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).map_err(|_| "no key")?;
        Ok(Self {
            ed25519: Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).map_err(|_| "no key")?,
            p256: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, p256.as_ref(), &random)
                .map_err(|_| "no key")?,
        })
    }

    fn keys(&self) -> Value {
        let point = self.p256.public_key().as_ref();
        let (x, y) = (
            point.get(1..33).unwrap_or_default(),
            point.get(33..).unwrap_or_default(),
        );
        json!([
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": encode(self.ed25519.public_key())},
            {"kty": "EC", "crv": "P-256", "kid": "ec", "x": encode(x), "y": encode(y), "use": "sig"},
            {"kty": "oct", "kid": "secret", "k": encode(SECRET)},
            {"kty": "RSA", "kid": "encryption", "use": "enc", "n": "AQAB", "e": "AQAB"},
            {"kty": "unknown"},
        ])
    }

    fn token(&self, header: &Value, claims: &Value) -> Result<String, Box<dyn std::error::Error>> {
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = match header["alg"].as_str() {
            Some("EdDSA") => self.ed25519.sign(signed.as_bytes()).as_ref().to_vec(),
            Some("ES256") => {
                let signature = self.p256.sign(&SystemRandom::new(), signed.as_bytes());
                signature.map_err(|_| "no signature")?.as_ref().to_vec()
            }
            Some("HS256") => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
                hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        Ok(format!("{signed}.{}", encode(signature)))
    }
}

fn claims() -> Value {
    json!({"iss": "https://issuer", "aud": ["other", "api"], "sub": "ada", "exp": NOW_SECONDS + 10, "org": "acme", "scope": "read write"})
}

fn service(signers: &Signers, algorithms: &[&str]) -> Result<Exchange, Box<dyn std::error::Error>> {
    let mut scoped = endpoint("scoped", "GET", "/scoped", &json!([]), "none");
    scoped["scopes"] = json!(["read", "write"]);
    let mut table = table(&[endpoint("open", "GET", "/open", &json!([]), "none"), scoped]);
    table["auth"] = json!({
        "keys": [
            {"name": "shop", "sha256": sha256("key of the shop"), "tenant": "acme", "scopes": ["read"]},
            {"name": "till", "sha256": sha256("key.of.till"), "tenant": null, "scopes": ["read", "write"]},
        ],
        "jwt": [{
            "issuer": "https://issuer", "audience": "api", "keys": signers.keys(), "algorithms": algorithms,
            "subject_claim": "sub", "tenant_claim": "org", "scope_claim": "scope",
        }],
        "mtls": true, "is_required": true,
    });
    exchange(&table)
}

/// Returns the status, or 0 and the caller.
fn ask(
    exchange: &Exchange,
    path: &str,
    headers: &[(&str, &str)],
    subject: Option<&str>,
) -> Result<(u16, String), String> {
    match route_from(exchange, "GET", path, headers, subject)? {
        Routed::Call(call) => {
            let actor = call.actor().ok_or("no caller")?;
            Ok((0, format!("{} {:?} {}", actor.subject, actor.tenant, actor.via)))
        }
        Routed::Answer(answer) => {
            assert_eq!(
                header(&answer, "www-authenticate").starts_with("Bearer"),
                answer.status.as_u16() == 401
            );
            Ok((answer.status.as_u16(), problem(&answer)))
        }
    }
}

#[test]
fn keys_and_certificates_name_a_caller() -> Outcome {
    let exchange = service(&Signers::new()?, &["EdDSA"])?;
    let get = |path: &str, headers: &[(&str, &str)]| ask(&exchange, path, headers, None);
    let shop = (0, "shop Some(\"acme\") key".to_owned());
    assert_eq!(get("/open", &[("x-api-key", "key of the shop")])?, shop);
    assert_eq!(
        get("/open", &[("authorization", "bearer key of the shop")])?,
        shop
    );
    assert_eq!(
        get("/scoped", &[("x-api-key", "key of the shop")])?,
        (403, "forbidden".to_owned())
    );
    assert_eq!(get("/scoped", &[("x-api-key", "key.of.till")])?.0, 0);
    let nobody = (401, "unauthenticated".to_owned());
    for headers in [
        &[][..],
        &[("x-api-key", "")],
        &[("x-api-key", "another")],
        &[("x-api-key", "key of the shop"), ("authorization", "Bearer x")],
        &[("authorization", "Basic a2V5")],
        &[("authorization", "Bearer ")],
        &[("authorization", "B")],
    ] {
        assert_eq!(get("/open", headers)?, nobody, "{headers:?}");
    }
    assert_eq!(
        ask(&exchange, "/open", &[], Some("CN=ada"))?,
        (0, "CN=ada None mtls".to_owned())
    );
    assert_eq!(ask(&exchange, "/scoped", &[], Some("CN=ada"))?.0, 403);
    assert_eq!(
        ask(&exchange, "/open", &[("x-api-key", "wrong")], Some("CN=ada"))?,
        nobody
    );
    assert_eq!(get("/metrics", &[])?, nobody);
    assert!(
        matches!(route_from(&exchange, "GET", "/readyz", &[], None)?, Routed::Call(call) if call.actor().is_none())
    );
    assert_eq!(get("/livez", &[])?.0, 200);
    Ok(())
}

#[test]
fn credentials_that_nothing_reads_are_ignored() -> Outcome {
    let mut table = table(&[endpoint("open", "GET", "/open", &json!([]), "none")]);
    let headers = [("x-api-key", "of a proxy"), ("authorization", "Basic x")];
    assert!(matches!(
        route_from(&exchange(&table)?, "GET", "/open", &headers, None)?,
        Routed::Call(_)
    ));
    table["auth"] = json!({"keys": [], "jwt": [], "mtls": true, "is_required": true});
    let exchange = exchange(&table)?;
    assert_eq!(ask(&exchange, "/open", &headers, None)?.0, 401);
    assert_eq!(ask(&exchange, "/open", &headers, Some("CN=ada"))?.0, 0);
    assert_eq!(ask(&exchange, "/open", &[], Some("CN=a\nb"))?.0, 401);
    Ok(())
}

#[test]
fn tokens_are_verified() -> Outcome {
    let signers = Signers::new()?;
    let exchange = service(&signers, &["EdDSA", "ES256", "RS256"])?;
    let status = |header: &Value, claims: &Value| -> Result<u16, Box<dyn std::error::Error>> {
        let token = format!("Bearer {}", signers.token(header, claims)?);
        Ok(ask(&exchange, "/scoped", &[("authorization", &token)], None)?.0)
    };
    let ed = json!({"alg": "EdDSA", "kid": "ed"});
    assert_eq!(status(&ed, &claims())?, 0);
    assert_eq!(status(&json!({"alg": "ES256", "kid": "ec"}), &claims())?, 0);
    assert_eq!(status(&json!({"alg": "ES256"}), &claims())?, 0);
    for header in [
        json!({"alg": "none"}),
        json!({"alg": "None", "kid": "ed"}),
        json!({"kid": "ed"}),
        json!({"alg": "HS256", "kid": "secret"}),
        json!({"alg": "EdDSA", "kid": "ec"}),
        json!({"alg": "EdDSA", "kid": "unknown"}),
        json!({"alg": "RS256", "kid": "encryption"}),
        json!({"alg": "EdDSA", "kid": "ed", "crit": ["exp"]}),
    ] {
        assert_eq!(status(&header, &claims())?, 401, "{header}");
    }
    for (claim, value, expected) in [
        ("iss", json!("https://other"), 401),
        ("aud", json!("other"), 401),
        ("aud", json!(null), 401),
        ("aud", json!("api"), 0),
        ("exp", json!(null), 401),
        ("exp", json!("soon"), 401),
        ("exp", json!(NOW_SECONDS - 61), 401),
        ("exp", json!(NOW_SECONDS - 59), 0),
        ("nbf", json!(NOW_SECONDS + 61), 401),
        ("nbf", json!(NOW_SECONDS + 59), 0),
        ("nbf", json!("x"), 401),
        ("sub", json!(""), 401),
        ("sub", json!(7), 401),
        ("sub", json!("a\u{200b}da"), 401),
        ("sub", json!("Zo\u{eb} \"the\\ e\u{301}"), 0),
        ("sub", json!("s".repeat(600)), 401),
        ("org", json!(7), 401),
        ("org", json!(null), 0),
        ("scope", json!(["read", "write"]), 0),
        ("scope", json!("read"), 403),
    ] {
        let mut changed = claims();
        changed[claim] = value.clone();
        assert_eq!(status(&ed, &changed)?, expected, "{claim} {value}");
    }
    let secret = service(&signers, &["HS256"])?;
    let token = format!(
        "Bearer {}",
        signers.token(&json!({"alg": "HS256", "kid": "secret"}), &claims())?
    );
    assert_eq!(
        ask(&secret, "/scoped", &[("authorization", &token)], None)?,
        (0, "ada Some(\"acme\") jwt:https://issuer".to_owned())
    );
    let token = format!("Bearer {}", signers.token(&ed, &claims())?);
    assert_eq!(
        ask(&secret, "/scoped", &[("authorization", &token)], None)?.0,
        401
    );
    Ok(())
}

#[test]
fn changed_tokens_are_refused() -> Outcome {
    let signers = Signers::new()?;
    let exchange = service(&signers, &["EdDSA", "ES256"])?;
    let token = signers.token(&json!({"alg": "EdDSA", "kid": "ed"}), &claims())?;
    let mut random = Random(3);
    for _ in 0..3_000 {
        let (before, after) = token.split_at(random.below(token.len()));
        let changed = match random.below(3) {
            0 => before.to_owned(),
            1 => format!("{before}{}{after}", random.text(&["A", ".", "=", "%"], 2)),
            _ => format!(
                "{before}{}{}",
                random.text(&["A", "b", "0", "-", "_", "."], 1),
                after.get(1..).unwrap_or("")
            ),
        };
        if changed != token {
            let found = ask(
                &exchange,
                "/open",
                &[("authorization", &format!("Bearer {changed}"))],
                None,
            )?;
            assert_eq!(found.0, 401, "{changed}");
        }
    }
    let long = format!("Bearer {}", "a.".repeat(100_000));
    assert_eq!(ask(&exchange, "/open", &[("authorization", &long)], None)?.0, 401);
    Ok(())
}
