# AUTO-GENERATED - DO NOT EDIT
# permissions_bits_v1, from nodes/numbers/permissions_bits_v1.vsp
# semantic hash 5b3fd64eb2e332cf8d143259ff688d87fc0b7ddc4882682c049cc66fbb8541c6
"""Work out the permission bits of a new file from a mode, a mask and a role, the way chmod shows
them."""

from typing import Any, Final, Literal, TypedDict

from vesper.kernels.array import at as array_at, range as array_range
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.integer import (
    abs as integer_abs,
    bit_count as integer_bit_count,
    bit_not as integer_bit_not,
    bit_or as integer_bit_or,
    bit_xor as integer_bit_xor,
    checked,
    checked_sum,
    div_floor as integer_div_floor,
    pow as integer_pow,
    quot as integer_quot,
    rem as integer_rem,
    shift_left as integer_shift_left,
    shift_right as integer_shift_right,
    sign as integer_sign,
    text as integer_text,
)
from vesper.kernels.map import entries_of
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_INTEGER,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.set import is_subset as set_is_subset, members_in_order
from vesper.kernels.text import join as text_join


class Success(TypedDict):
    created: int
    octal: str
    symbolic: str
    may: frozenset[Literal["read", "write", "execute"]]
    is_wider: bool
    bits_set: int
    packed: int
    unpacked: int
    inverse: int
    weight: int


BIT_OF: Final[dict[Literal["read", "write", "execute"], int]] = {
    "read": 4,
    "write": 2,
    "execute": 1,
}


@exact_decimals
def permissions_bits_v1(
    *,
    mode: int,
    umask: int = 18,
    role: Literal["owner", "group", "others"],
    grant: frozenset[Literal["read", "write", "execute"]],
    toggle: int = 0,
) -> Success:
    """Work out the permission bits of a new file from a mode, a mask and a role, the way chmod
    shows them."""

    # constraint, line 6: mode >= 0
    if not mode >= 0:
        raise ContractBroken("constraint", 0, {"mode": mode})

    # constraint, line 6: mode <= 4095
    if not mode <= 4095:
        raise ContractBroken("constraint", 1, {"mode": mode})

    # constraint, line 7: umask >= 0
    if not umask >= 0:
        raise ContractBroken("constraint", 2, {"umask": umask})

    # constraint, line 7: umask <= 511
    if not umask <= 511:
        raise ContractBroken("constraint", 3, {"umask": umask})

    # constraint, line 10: toggle >= 0
    if not toggle >= 0:
        raise ContractBroken("constraint", 4, {"toggle": toggle})

    # constraint, line 10: toggle <= 511
    if not toggle <= 511:
        raise ContractBroken("constraint", 5, {"toggle": toggle})

    # precondition, line 30: bit_and(toggle, umask) == 0
    if (toggle & umask) != 0:
        raise ContractBroken("precondition", 0, {"toggle": toggle, "umask": umask})

    # step shift, line 41
    if role == "owner":
        shift = 6
    elif role == "group":
        shift = 3
    else:
        shift = 0

    # step granted, line 42
    granted = integer_shift_left(
        checked_sum(
            BIT_OF[right] for right in members_in_order(("read", "write", "execute"), grant)
        ),
        shift,
    )

    # step masked, line 44
    masked = mode & integer_bit_not(umask)

    # step created, line 45
    created = integer_bit_xor(integer_bit_or(masked, granted), toggle)

    # step digits, line 46
    digits = [
        integer_shift_right(created, checked(3 * checked(3 - i))) & 7 for i in array_range(0, 4, 1)
    ]

    # step letters, line 47
    letters = ["r", "w", "x"]

    # step flags, line 48
    flags = [(integer_shift_right(created, checked(8 - i)) & 1) == 1 for i in array_range(0, 9, 1)]

    # step mine, line 49
    mine = integer_shift_right(created, shift) & 7

    # step packed, line 51
    packed = checked(-checked(integer_shift_left(created, 16) + umask))

    # output octal, line 56
    octal = text_join([integer_text(digit) for digit in digits], "")

    # output symbolic, line 57
    symbolic = text_join(
        [
            array_at(letters, integer_rem(i, 3)) if array_at(flags, i) else "-"
            for i in array_range(0, 9, 1)
        ],
        "",
    )

    # output may, line 58
    may: frozenset[Literal["read", "write", "execute"]] = frozenset(
        right for right, bit in entries_of(BIT_OF) if (mine & bit) != 0
    )

    # output is_wider, line 59
    is_wider = (created & integer_bit_not(mode)) != 0

    # output bits_set, line 60
    bits_set = integer_bit_count(created)

    # output unpacked, line 62
    unpacked = integer_quot(checked(-packed), integer_pow(2, 16))

    # output inverse, line 63
    inverse = checked(integer_sign(packed) * integer_abs(integer_bit_not(created)))

    # output weight, line 64
    weight = integer_div_floor(packed, 65536)

    # postcondition, line 32: created >= 0 AND created <= 4095
    if not (created >= 0 and created <= 4095):
        raise ContractBroken("postcondition", 0, {"created": created})

    # postcondition, line 33: length(octal) == 4 AND length(symbolic) == 9
    if not (len(octal) == 4 and len(symbolic) == 9):
        raise ContractBroken("postcondition", 1, {"octal": octal, "symbolic": symbolic})

    # postcondition, line 34: is_subset(grant, may) OR toggle != 0
    if not (set_is_subset(grant, may) or toggle != 0):
        raise ContractBroken("postcondition", 2, {"grant": grant, "may": may, "toggle": toggle})

    # postcondition, line 35: unpacked == created
    if unpacked != created:
        raise ContractBroken("postcondition", 3, {"unpacked": unpacked, "created": created})

    # postcondition, line 36: bits_set <= 12
    if not bits_set <= 12:
        raise ContractBroken("postcondition", 4, {"bits_set": bits_set})

    return {
        "created": created,
        "octal": octal,
        "symbolic": symbolic,
        "may": may,
        "is_wider": is_wider,
        "bits_set": bits_set,
        "packed": packed,
        "unpacked": unpacked,
        "inverse": inverse,
        "weight": weight,
    }


INPUTS: Final = Inputs(
    {
        "mode": "integer",
        "umask": "integer",
        "role": "enum[owner, group, others]",
        "grant": "set<enum[read, write, execute]>",
        "toggle": "integer",
    },
    {"umask": 18, "toggle": 0},
)
RUN: Final = undecorated(permissions_bits_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 3 + ("umask" in inputs) + ("toggle" in inputs):
            raise NotPlain
        mode = inputs["mode"]
        if type(mode) is not int or mode < MIN_INTEGER or mode > MAX_INTEGER:
            raise NotPlain
        umask = inputs["umask"] if "umask" in inputs else 18
        if type(umask) is not int or umask < MIN_INTEGER or umask > MAX_INTEGER:
            raise NotPlain
        role = inputs["role"]
        if type(role) is not str or role not in {"owner", "group", "others"}:
            raise NotPlain
        grant = inputs["grant"]
        grant = read_value("set<enum[read, write, execute]>", grant)
        toggle = inputs["toggle"] if "toggle" in inputs else 0
        if type(toggle) is not int or toggle < MIN_INTEGER or toggle > MAX_INTEGER:
            raise NotPlain
    except NOT_PLAIN:
        mode, umask, role, grant, toggle = read_inputs(INPUTS, inputs)
    return RUN(mode=mode, umask=umask, role=role, grant=grant, toggle=toggle)


SOURCE: Final = Source(
    "nodes/numbers/permissions_bits_v1.vsp",
    lines={
        79: 6, 83: 6, 87: 7, 91: 7, 95: 10, 99: 10, 103: 30, 114: 42, 115: 42, 116: 42, 129: 46,
        136: 48, 139: 49, 142: 51, 145: 56, 148: 57, 150: 57, 151: 57, 168: 62, 171: 63, 174: 64,
        178: 32, 182: 33, 186: 34, 190: 35, 194: 36,
    },
    clauses={
        "constraint": [
            "mode >= 0",
            "mode <= 4095",
            "umask >= 0",
            "umask <= 511",
            "toggle >= 0",
            "toggle <= 511",
        ],
        "precondition": [
            "bit_and(toggle, umask) == 0",
        ],
        "postcondition": [
            "created >= 0 AND created <= 4095",
            "length(octal) == 4 AND length(symbolic) == 9",
            "is_subset(grant, may) OR toggle != 0",
            "unpacked == created",
            "bits_set <= 12",
        ],
    },
)  # fmt: skip
