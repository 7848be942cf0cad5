"""The base of Pydantic models of nodes: exact numbers, in JSON as in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from vesper.api.json_calls import fields_text
from vesper.values.json_mistake import JsonMistake
from vesper.values.outside_names import spelled_record
from vesper.values.strict_json import forms_of_json
from vesper.values.types import Record

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


@dataclass(frozen=True, slots=True)
class Models(Generic[InputT, OutputT]):
    """The models of one node."""

    Input: type[InputT]
    Output: type[OutputT]


class NodeModel(BaseModel):
    """A model of inputs, outputs or a record of a node. Frozen; refuses unknown fields and floats for decimals."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        ser_json_inf_nan="strings",
    )
    vesper_record: ClassVar[Record]

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Return the model of a JSON text. Numbers are read from their text: `9.99` is exact."""
        try:
            text = json_data if isinstance(json_data, str) else bytes(json_data).decode()
            forms = forms_of_json(text)
        except (JsonMistake, UnicodeDecodeError) as problem:
            what = problem.what if isinstance(problem, JsonMistake) else "the bytes are not UTF-8"
            error = PydanticCustomError("json_invalid", "Invalid JSON: {what}", {"what": what})
            raise ValidationError.from_exception_data(
                cls.__name__, [InitErrorDetails(type=error, loc=(), input=json_data)], "json"
            ) from None
        return cls.model_validate(forms, **options)

    def model_dump_json(self, **options: Any) -> str:
        """Return canonical JSON as nodes read and write it; with options, the JSON of Pydantic."""
        if options:
            return super().model_dump_json(**options)
        spelled = spelled_record(self.vesper_record)
        return fields_text(dict(spelled.fields), self.model_dump(by_alias=True))
