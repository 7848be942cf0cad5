//! What callers show: API keys, JSON Web Tokens, subjects of client certificates.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{digest, hmac, signature};
use serde_json::Value;

use crate::fields::{Fields, TableError};

const MAX_CREDENTIAL_BYTES: usize = 8 << 10;
const CLOCK_SKEW_SECONDS: f64 = 60.0;
/// Keys that are tried for a token without `kid`.
const MAX_KEYS_TRIED: usize = 4;
const MAX_NAME_BYTES: usize = 255;

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub subject: String,
    pub tenant: Option<String>,
    /// The authority: `key`, `mtls`, or `jwt:` and the issuer. A subject is unique for it.
    pub via: Cow<'static, str>,
    pub scopes: Vec<String>,
}

/// How callers authenticate.
#[derive(Debug, Default)]
pub struct Auth {
    keys: Vec<ApiKey>,
    issuers: Vec<Issuer>,
    has_mtls: bool,
    pub is_required: bool,
}

#[derive(Debug)]
struct ApiKey {
    name: String,
    sha256: [u8; 32],
    tenant: Option<String>,
    scopes: Vec<String>,
}

/// An issuer of tokens.
#[derive(Debug)]
struct Issuer {
    name: String,
    /// `jwt:` and the name.
    via: String,
    audience: String,
    keys: Vec<Key>,
    algorithms: Vec<Algorithm>,
    subject_claim: String,
    tenant_claim: Option<String>,
    scope_claim: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
    Hs256,
}

/// A key of an issuer. Its material fixes the one algorithm that it verifies.
#[derive(Debug)]
struct Key {
    kid: Option<String>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
    Secret(hmac::Key),
}

/// The reason why credentials are refused, for the caller.
pub type Rejection = &'static str;

impl Auth {
    pub fn read(mut fields: Fields) -> Result<Self, TableError> {
        let keys = fields
            .list("keys")?
            .into_iter()
            .map(ApiKey::read)
            .collect::<Result<_, _>>()?;
        let issuers = fields
            .list("jwt")?
            .into_iter()
            .map(Issuer::read)
            .collect::<Result<_, _>>()?;
        let found = Self {
            keys,
            issuers,
            has_mtls: fields.boolean("mtls")?,
            is_required: fields.boolean("is_required")?,
        };
        fields.done()?;
        Ok(found)
    }

    /// Returns the caller; `None` where the request has no credentials. Wrong credentials are always refused.
    ///
    /// `subject` is that of a verified certificate.
    pub fn identify(
        &self,
        authorization: Option<&[u8]>,
        api_key: Option<&[u8]>,
        subject: Option<&str>,
        now: SystemTime,
    ) -> Result<Option<Actor>, Rejection> {
        // Where nothing here reads them, these headers are between the caller and a proxy.
        let has_credentials = !(self.keys.is_empty() && self.issuers.is_empty());
        let (authorization, api_key) = (
            authorization.filter(|_| has_credentials),
            api_key.filter(|_| has_credentials),
        );
        if authorization.is_some() && api_key.is_some() {
            return Err("Send one credential: `Authorization` or `X-API-Key`.");
        }
        if let Some(key) = api_key {
            return self.api_key(key).map(Some);
        }
        if let Some(authorization) = authorization {
            let token = bearer(authorization).ok_or("The scheme of `Authorization` is not Bearer.")?;
            let is_jwt = !self.issuers.is_empty() && token.split(|byte| *byte == b'.').count() == 3;
            return if is_jwt {
                self.jwt(token, now).map(Some)
            } else {
                self.api_key(token).map(Some)
            };
        }
        let Some(subject) = subject.filter(|_| self.has_mtls) else {
            return Ok(None);
        };
        if !is_name(subject) {
            return Err("The subject of the certificate is malformed.");
        }
        let (subject, via) = (subject.to_owned(), "mtls".into());
        Ok(Some(Actor {
            subject,
            tenant: None,
            via,
            scopes: Vec::new(),
        }))
    }

    /// Returns an issuer none of whose keys verifies its tokens, if there is one.
    pub fn issuer_without_key(&self) -> Option<&str> {
        let has_key = |issuer: &&Issuer| {
            let mut keys = issuer.keys.iter();
            keys.any(|each| issuer.algorithms.contains(&each.material.algorithm()))
        };
        let found = self.issuers.iter().find(|issuer| !has_key(issuer));
        found.map(|issuer| issuer.name.as_str())
    }

    fn api_key(&self, given: &[u8]) -> Result<Actor, Rejection> {
        const UNKNOWN: Rejection = "The API key is not known.";
        if given.len() > MAX_CREDENTIAL_BYTES {
            return Err(UNKNOWN);
        }
        let digest = digest::digest(&digest::SHA256, given);
        let mut found = None;
        // Every key is compared in full, so the time says nothing about them.
        for key in &self.keys {
            let difference = key
                .sha256
                .iter()
                .zip(digest.as_ref())
                .fold(0, |sum, (left, right)| sum | (left ^ right));
            if std::hint::black_box(difference) == 0 {
                found = Some(key);
            }
        }
        let key = found.ok_or(UNKNOWN)?;
        Ok(Actor {
            subject: key.name.clone(),
            tenant: key.tenant.clone(),
            via: "key".into(),
            scopes: key.scopes.clone(),
        })
    }

    fn jwt(&self, token: &[u8], now: SystemTime) -> Result<Actor, Rejection> {
        if token.len() > MAX_CREDENTIAL_BYTES {
            return Err("The token is longer than 8 KiB.");
        }
        let token = std::str::from_utf8(token).map_err(|_| MALFORMED)?;
        let (signed, signature) = token.rsplit_once('.').ok_or(MALFORMED)?;
        let (header, payload) = signed.split_once('.').ok_or(MALFORMED)?;
        let (header, payload) = (json_part(header)?, json_part(payload)?);
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| MALFORMED)?;
        let algorithm = text(&header, "alg")
            .and_then(Algorithm::of_name)
            .ok_or("The token's algorithm is refused.")?;
        if header.get("crit").is_some() {
            return Err("The token has critical extensions.");
        }
        let named = text(&payload, "iss");
        let issuer = self.issuers.iter().find(|each| Some(each.name.as_str()) == named);
        let issuer = issuer.ok_or("The token's issuer is not known.")?;
        issuer.verify(algorithm, text(&header, "kid"), signed.as_bytes(), &signature)?;
        issuer.actor(&payload, now)
    }
}

const MALFORMED: Rejection = "The token is malformed.";

/// Returns whether a text can name a caller in journal and logs: it is short, and all of it can be seen.
fn is_name(text: &str) -> bool {
    let is_plain = |each: char| each == ' ' || !(each.is_control() || each.is_whitespace());
    let is_visible = || !text.escape_debug().to_string().contains("\\u{");
    (1..=MAX_NAME_BYTES).contains(&text.len()) && text.chars().all(is_plain) && is_visible()
}

/// Returns the token of `Bearer TOKEN`.
fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = authorization.split_at_checked(7)?;
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then(|| token.trim_ascii())
}

fn json_part(part: &str) -> Result<Value, Rejection> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| MALFORMED)?;
    serde_json::from_slice(&bytes)
        .ok()
        .filter(Value::is_object)
        .ok_or(MALFORMED)
}

fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

impl ApiKey {
    fn read(given: Value) -> Result<Self, TableError> {
        let mut fields = Fields::of(given, "auth.keys")?;
        let digits = fields.text("sha256")?;
        let mut sha256 = [0; 32];
        let is_whole = digits.len() == 64;
        for (byte, pair) in sha256.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.contains('+'));
            *byte = match pair.map(|pair| u8::from_str_radix(pair, 16)) {
                Some(Ok(byte)) if is_whole => byte,
                _ => return Err(fields.error("sha256", "64 hexadecimal digits are expected")),
            };
        }
        if !is_whole {
            return Err(fields.error("sha256", "64 hexadecimal digits are expected"));
        }
        let (name, tenant) = (fields.text("name")?, fields.optional_text("tenant")?);
        if !is_name(&name) || tenant.as_deref().is_some_and(|tenant| !is_name(tenant)) {
            return Err(fields.error("name", "name and tenant are 1 to 255 bytes of visible text"));
        }
        let found = Self {
            name,
            sha256,
            tenant,
            scopes: fields.texts("scopes")?,
        };
        fields.done()?;
        Ok(found)
    }
}

impl Algorithm {
    fn of_name(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            "HS256" => Some(Self::Hs256),
            _ => None,
        }
    }
}

impl Issuer {
    fn read(given: Value) -> Result<Self, TableError> {
        let mut fields = Fields::of(given, "auth.jwt")?;
        let mut algorithms = Vec::new();
        for name in fields.texts("algorithms")? {
            let found = Algorithm::of_name(&name);
            algorithms
                .push(found.ok_or_else(|| fields.error("algorithms", &format!("`{name}` is unknown")))?);
        }
        let name = fields.text("issuer")?;
        if !is_name(&name) {
            return Err(fields.error("issuer", "1 to 255 bytes of visible text are expected"));
        }
        let found = Self {
            via: format!("jwt:{name}"),
            name,
            audience: fields.text("audience")?,
            // A key set may hold keys for other purposes, which verify nothing here.
            keys: fields.list("keys")?.iter().filter_map(Key::of_jwk).collect(),
            algorithms,
            subject_claim: fields
                .optional_text("subject_claim")?
                .unwrap_or_else(|| "sub".to_owned()),
            tenant_claim: fields.optional_text("tenant_claim")?,
            scope_claim: fields
                .optional_text("scope_claim")?
                .unwrap_or_else(|| "scope".to_owned()),
        };
        fields.done()?;
        Ok(found)
    }

    fn verify(
        &self,
        algorithm: Algorithm,
        kid: Option<&str>,
        signed: &[u8],
        mac: &[u8],
    ) -> Result<(), Rejection> {
        if !self.algorithms.contains(&algorithm) {
            return Err("The token's algorithm is refused.");
        }
        let fitting = self
            .keys
            .iter()
            .filter(|each| each.material.algorithm() == algorithm);
        let mut candidates = fitting
            .filter(|each| kid.is_none() || each.kid.as_deref() == kid)
            .peekable();
        if candidates.peek().is_none() {
            return Err("The token's key is not known.");
        }
        let is_valid = candidates
            .take(MAX_KEYS_TRIED)
            .any(|each| each.material.verifies(signed, mac));
        if is_valid {
            Ok(())
        } else {
            Err("The token's signature is wrong.")
        }
    }

    fn actor(&self, claims: &Value, now: SystemTime) -> Result<Actor, Rejection> {
        let now = now
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64());
        let seconds = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(found) => found
                .as_f64()
                .map(Some)
                .ok_or("A time in the token is not a number."),
        };
        let expires = seconds("exp")?.ok_or("The token has no `exp`.")?;
        if now > expires + CLOCK_SKEW_SECONDS {
            return Err("The token has expired.");
        }
        if seconds("nbf")?.is_some_and(|from| now + CLOCK_SKEW_SECONDS < from) {
            return Err("The token is not valid yet.");
        }
        let is_audience = match claims.get("aud") {
            Some(Value::String(audience)) => *audience == self.audience,
            Some(Value::Array(several)) => several.iter().any(|each| each.as_str() == Some(&self.audience)),
            _ => false,
        };
        if !is_audience {
            return Err("The token is for another audience.");
        }
        let subject = text(claims, &self.subject_claim).filter(|each| is_name(each));
        let tenant = match self.tenant_claim.as_ref().and_then(|name| claims.get(name)) {
            None | Some(Value::Null) => None,
            Some(Value::String(tenant)) if is_name(tenant) => Some(tenant.clone()),
            Some(_) => return Err("The token's tenant is malformed."),
        };
        let scopes = match claims.get(&self.scope_claim) {
            Some(Value::String(scopes)) => scopes.split_ascii_whitespace().map(str::to_owned).collect(),
            Some(Value::Array(scopes)) => scopes
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        };
        let subject = subject.ok_or("The token names no subject.")?.to_owned();
        Ok(Actor {
            subject,
            tenant,
            via: self.via.clone().into(),
            scopes,
        })
    }
}

impl Key {
    /// Reads a JSON Web Key; `None` for one that verifies no signature of ours.
    fn of_jwk(jwk: &Value) -> Option<Self> {
        let bytes = |name: &str| text(jwk, name).and_then(|each| URL_SAFE_NO_PAD.decode(each).ok());
        let coordinate = |name: &str| bytes(name).filter(|each| each.len() == 32);
        let material = match (text(jwk, "kty")?, text(jwk, "crv")) {
            ("RSA", _) => Material::Rsa {
                n: bytes("n")?,
                e: bytes("e")?,
            },
            ("EC", Some("P-256")) => Material::P256([vec![4], coordinate("x")?, coordinate("y")?].concat()),
            ("OKP", Some("Ed25519")) => Material::Ed25519(coordinate("x")?),
            // RFC 7518: a secret is as long as the digest at least.
            ("oct", _) => Material::Secret(hmac::Key::new(
                hmac::HMAC_SHA256,
                &bytes("k").filter(|each| each.len() >= 32)?,
            )),
            _ => return None,
        };
        let is_for_us = text(jwk, "use").is_none_or(|each| each == "sig")
            && text(jwk, "alg").is_none_or(|each| Algorithm::of_name(each) == Some(material.algorithm()));
        is_for_us.then(|| Self {
            kid: text(jwk, "kid").map(str::to_owned),
            material,
        })
    }
}

impl Material {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa { .. } => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
            Self::Ed25519(_) => Algorithm::EdDsa,
            Self::Secret(_) => Algorithm::Hs256,
        }
    }

    fn verifies(&self, signed: &[u8], mac: &[u8]) -> bool {
        let public = |algorithm: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            signature::UnparsedPublicKey::new(algorithm, key)
                .verify(signed, mac)
                .is_ok()
        };
        match self {
            Self::Rsa { n, e } => signature::RsaPublicKeyComponents { n, e }
                .verify(&signature::RSA_PKCS1_2048_8192_SHA256, signed, mac)
                .is_ok(),
            Self::P256(point) => public(&signature::ECDSA_P256_SHA256_FIXED, point),
            Self::Ed25519(point) => public(&signature::ED25519, point),
            Self::Secret(key) => hmac::verify(key, signed, mac).is_ok(),
        }
    }
}
