//! `POST /decide` as a Rust programmer writes it: axum, serde_json, rust_decimal, one thread.
//!
//! Takes the number of a port. Inputs that break the contract of W1 are refused with 422.

use axum::{http::StatusCode, routing::post, Json, Router};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
enum Currency {
    USD,
    EUR,
    GBP,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payment {
    amount: Decimal,
    balance: Decimal,
    #[allow(dead_code)] // read for its contract: one of three
    currency: Currency,
    country: String,
    user_age_days: u64,
    #[serde(default)]
    flagged: bool,
}

#[derive(Serialize)]
struct Decision {
    decision: &'static str,
    fee: Decimal,
    risk: u32,
    new_balance: Decimal,
}

type Refusal = (StatusCode, &'static str);

async fn decide(Json(payment): Json<Payment>) -> Result<Json<Decision>, Refusal> {
    let Payment { amount, balance, .. } = payment;
    let refused = |why| Err((StatusCode::UNPROCESSABLE_ENTITY, why));
    if amount <= Decimal::ZERO {
        return refused("amount > 0");
    }
    if payment.country.chars().count() != 2 {
        return refused("country has 2 characters");
    }
    let fee = if amount <= Decimal::from(100) {
        amount * Decimal::new(29, 3) + Decimal::new(30, 2)
    } else if amount <= Decimal::from(1000) {
        amount * Decimal::new(25, 3) + Decimal::new(50, 2)
    } else {
        amount * Decimal::new(19, 3) + Decimal::new(100, 2)
    };
    let mut risk = 0;
    if payment.flagged {
        risk += 30;
    }
    if payment.user_age_days < 30 {
        risk += 20;
    }
    if amount > Decimal::from(1000) {
        risk += 20;
    }
    if matches!(payment.country.as_str(), "NG" | "RU" | "KP" | "IR") {
        risk += 15;
    }
    if amount * Decimal::TWO > balance {
        risk += 15;
    }
    let new_balance = balance - amount - fee;
    let decision = if new_balance < Decimal::ZERO || risk >= 70 {
        "decline"
    } else if risk >= 40 {
        "review"
    } else {
        "approve"
    };
    if fee < Decimal::ZERO || (decision != "decline" && new_balance < Decimal::ZERO) {
        return Err((StatusCode::INTERNAL_SERVER_ERROR, "a postcondition is broken"));
    }
    Ok(Json(Decision {
        decision,
        fee,
        risk,
        new_balance,
    }))
}

fn main() -> std::io::Result<()> {
    let port = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        axum::serve(listener, Router::new().route("/decide", post(decide))).await
    })
}
