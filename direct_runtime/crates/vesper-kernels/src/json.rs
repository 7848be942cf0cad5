//! Kernels of the `json` family.

use std::sync::Arc;

use vesper_ir::json::{ParseJsonError, parse};
use vesper_ir::limits::TEXT_LENGTH;
use vesper_ir::{ErrorCode, Json, JsonKernels, JsonKind, Type, Value};

use crate::Native;

mod cast;
mod form;
mod pointer;

impl JsonKernels for Native {
    fn json_equal(&self, left: &Json, right: &Json) -> bool {
        left.is_equal(right)
    }

    fn json_not_equal(&self, left: &Json, right: &Json) -> bool {
        !left.is_equal(right)
    }

    #[inline]
    fn json_kind(&self, value: &Json) -> JsonKind {
        match value {
            Json::Null => JsonKind::Null,
            Json::Boolean(_) => JsonKind::Boolean,
            Json::Number(_) => JsonKind::Number,
            Json::Text(_) => JsonKind::String,
            Json::Array(_) => JsonKind::Array,
            Json::Object(_) => JsonKind::Object,
        }
    }

    fn json_get(&self, value: &Json, path: &str) -> Result<Option<Value>, ErrorCode> {
        let found = pointer::follow(value, path)?;
        // SEMANTICS: a JSON null that is present is a value, not an absent optional.
        Ok(found.map(|found| Value::Json(Arc::new(found.clone()))))
    }

    fn json_has(&self, value: &Json, path: &str) -> Result<bool, ErrorCode> {
        Ok(pointer::follow(value, path)?.is_some())
    }

    fn json_field(&self, value: &Json, key: &str) -> Result<Arc<Json>, ErrorCode> {
        let Json::Object(object) = value else {
            return Err(ErrorCode::BadCast);
        };
        let found = object.get(key).ok_or(ErrorCode::MissingKey)?;
        Ok(Arc::new(found.clone()))
    }

    fn json_item(&self, value: &Json, index: i64) -> Result<Arc<Json>, ErrorCode> {
        let Json::Array(items) = value else {
            return Err(ErrorCode::BadCast);
        };
        let found = usize::try_from(index).ok().and_then(|index| items.get(index));
        Ok(Arc::new(found.ok_or(ErrorCode::IndexOutOfRange)?.clone()))
    }

    fn json_cast(&self, value: &Json, type_t: &Type) -> Result<Value, ErrorCode> {
        cast::cast(value, type_t).ok_or(ErrorCode::BadCast)
    }

    fn json_from_value(&self, value: &Value, type_t: &Type) -> Result<Arc<Json>, ErrorCode> {
        form::json_form(value, type_t).map(Arc::new)
    }

    fn json_parse(&self, value: &str) -> Result<Arc<Json>, ErrorCode> {
        parse(value).map(Arc::new).map_err(|error| match error {
            ParseJsonError::Malformed => ErrorCode::BadFormat,
            ParseJsonError::TooLarge => ErrorCode::TooLarge,
        })
    }

    fn json_text(&self, value: &Json) -> Result<Arc<str>, ErrorCode> {
        value
            .text_within(TEXT_LENGTH)
            .map(Arc::from)
            .ok_or(ErrorCode::TooLarge)
    }
}
