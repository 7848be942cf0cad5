"""The effect `model_call`: the native performer, and models that the application implements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vesper._direct import ModelCatalog, ModelPerformer, SecretStore
from vesper.effects.custom.performer import CustomPerformer
from vesper.effects.custom.registry import REGISTRY, Registry
from vesper.effects.models.settings import ModelSettings
from vesper.effects.performer import Ask, EffectFailed, no_secret
from vesper.effects.settings import ConfigError
from vesper.effects.stored_json import TooLong, stored_text
from vesper.values.generated.effects import EFFECTS
from vesper.values.json_value import Json
from vesper.values.model import Value
from vesper.values.strict_json import read_content
from vesper.values.types import JSON

__all__ = ["ModelPerformer", "ModelSettings", "model_performer"]

MAX_ANSWER_BYTES = 8 << 20
_CODES = EFFECTS["model_call"].codes()


def model_performer(
    settings: Mapping[str, ModelSettings],
    secret: SecretStore | Callable[[str], str] = no_secret,
    redact: Callable[[str], str] = lambda text: text,
    resolve: Callable[[str, int], list[str]] | None = None,
    registry: Registry = REGISTRY,
) -> ModelPerformer:
    """Return the performer of `model_call` for these models. Raises `ConfigError`.

    `secret` reads the keys that the settings name; `resolve` replaces the address lookup of the system.
    """
    try:
        import certifi
    except ModuleNotFoundError as missing:
        problem = f"models need the package `{missing.name}`: pip install 'vesper[http]'"
        raise ConfigError("models", problem) from None
    custom = _CustomModels(settings, CustomPerformer(redact, registry, _CODES), secret)
    catalog = ModelCatalog(dict(settings))
    try:
        return ModelPerformer(catalog, secret, certifi.where(), custom.answer, resolve)
    except ValueError as bad:
        where, problem = bad.args
        raise ConfigError(where, problem) from None


class _CustomModels:
    """Calls the registered effects of models with `api = "custom"`."""

    def __init__(
        self,
        settings: Mapping[str, ModelSettings],
        performer: CustomPerformer,
        secret: SecretStore | Callable[[str], str],
    ) -> None:
        self._settings = settings
        self._performer = performer
        self._secret = secret.text if isinstance(secret, SecretStore) else secret

    def answer(self, name: str, request: str, execution: str, path: str, is_repeat: bool, timeout: float | None) -> str:
        """Return the answer of a model as JSON text. Raises `EffectFailed`."""
        model = self._settings[name]
        asked: dict[str, Value] = {"model": model.model, "request": Json(read_content(request))}
        ask = Ask(
            execution=execution,
            path=path,
            effect="custom",
            effect_class="read",
            fixed={"name": model.adapter},
            arguments={"request": asked},
            gives=JSON,
            timeout=timeout,
            is_repeat=is_repeat,
            secret=self._secret,
        )
        try:
            found = self._performer.perform(ask)
        except EffectFailed as failure:
            code = "unavailable" if failure.code == "effect_failed" else failure.code
            raise EffectFailed(
                code, failure.message, retry_after=failure.retry_after, may_have_happened=failure.may_have_happened
            ) from None
        try:
            return stored_text(found, MAX_ANSWER_BYTES)  # type: ignore[arg-type]  # a json, checked
        except TooLong:
            problem = f"the answer of `{name}` has more than {MAX_ANSWER_BYTES:,} bytes"
            raise EffectFailed("bad_response", problem, may_have_happened=True) from None
