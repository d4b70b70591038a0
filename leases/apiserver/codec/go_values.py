"""Show values as Go does, in messages and in YAML; and ages as kubectl does.

Source: encoding/json's floatEncoder, strconv.FormatFloat and fmt.
"""

import math
import struct
from datetime import datetime
from typing import Any

from leases.apiserver.codec.go_json import Number
from leases.wire.status import go_quote

_MAX_DIGITS = 19  # of a number that is an int here


def json_number(value: float) -> int | Number:
    """A number as one reads it of the JSON that Go writes of it."""
    text = float_in_json(value) if isinstance(value, float) else str(value)
    whole = text.removeprefix("-").isdecimal() and len(text) <= _MAX_DIGITS
    return int(text) if whole else Number(text)


def float_in_json(value: float) -> str:
    digits, point = _digits(repr(value))
    if value and not 1e-6 <= abs(value) < 1e21:
        return _sign(value) + _scientific(digits, point, least=1)
    return _sign(value) + _positional(digits, point)


def float_key(value: float) -> str:
    """A YAML key as JSON has it: shortest for 32 bits."""
    if math.isnan(value):
        return ".nan"
    single = _single(value)
    if math.isinf(single):
        return ".inf" if single > 0 else "-.inf"
    texts = (f"{single:.{places}e}" for places in range(9))
    return _general(next(text for text in texts if _single(float(text)) == single))


def _single(value: float) -> float:
    """The nearest number of 32 bits."""
    try:
        found: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found


def go_syntax(value: Any) -> str:
    """%#v of a value that go-yaml decoded into an interface{}."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, int):
        return hex(value) if value >= 2**63 else str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
        return go_float(value)
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_element, value))}}}"
    named = [(key if isinstance(key, str) else key[1], item) for key, item in value.items()]
    pairs = [f"{_element(key)}:{_element(item)}" for key, item in sorted(named, key=_key_order)]
    return f"map[interface {{}}]interface {{}}{{{', '.join(pairs)}}}"


def _key_order(pair: tuple[Any, Any]) -> tuple[str, Any]:
    """By type, then by value. Source: internal/fmtsort."""
    kind = type(pair[0]).__name__
    return ("uint" if kind == "int" and pair[0] >= 2**63 else kind, pair[0])


def _element(value: Any) -> str:
    return "interface {}(nil)" if value is None else go_syntax(value)


def _sign(value: float) -> str:
    return "-" if math.copysign(1, value) < 0 else ""


def _digits(text: str) -> tuple[str, int]:
    """The digits of a decimal number and the place of its point: ("15", 1) for 1.5."""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    return digits.rstrip("0") or "0", point if digits else 1


def go_float(value: float) -> str:
    """%v of a finite number."""
    return _general(repr(float(value)))


def _general(text: str) -> str:
    """FormatFloat's 'g' for the shortest digits."""
    digits, point = _digits(text)
    sign = "-" if text.startswith("-") else ""
    if not -4 < point <= 6:
        return sign + _scientific(digits, point, least=2)
    return sign + _positional(digits, point)


def _scientific(digits: str, point: int, *, least: int) -> str:
    exponent = point - 1
    mantissa = digits[0] + ("." + digits[1:] if digits[1:] else "")
    return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):0{least}}"


def _positional(digits: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + digits
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


_MAP, _LIST = "map[string]interface {}", "[]interface {}"


def go_type(value: Any) -> str:
    """%T."""
    if value is None:
        return "<nil>"
    names = {dict: _MAP, list: _LIST, str: "string", bool: "bool", float: "float64"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "int64")


def go_text(value: Any) -> str:
    """%v: map[a:1 b:[x y]]."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    return _scalar(value) if not isinstance(value, str) else value


def _scalar(value: Any) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return go_float(value) if isinstance(value, float) else str(value)


def go_word(value: Any) -> str:
    """%s, which is for texts only: %!s(int64=5) for others."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_word(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_word, value))}]"
    kind = "" if value is None else f"{go_type(value)}="
    return f"%!s({kind}{_scalar(value)})"


def json_go_syntax(value: Any) -> str:
    """%#v: map[string]interface {}{"a":1}."""
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, dict):
        pairs = ", ".join(f"{go_quote(key)}:{json_go_syntax(value[key])}" for key in sorted(value))
        return f"{_MAP}{{{pairs}}}"
    if isinstance(value, list):
        return f"{_LIST}{{{', '.join(map(json_go_syntax, value))}}}"
    return "interface {}(nil)" if value is None else _scalar(value)


def age(created: str | None, now: datetime) -> str:
    if created is None:
        return "<unknown>"
    return human_duration(int((now - datetime.fromisoformat(created)).total_seconds()))


def human_duration(seconds: int) -> str:
    """A duration in at most two units. Source: apimachinery/pkg/util/duration."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"
