"""Changes to JSON values at random: a key more or less, another type, another number, another place."""

import copy
import random
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**63, 10**299, 0.0, 1.0, -0.5, 1e308, "", "x", "\ud800", "x" * 2000, [], [[]], [0],
    [True], {}, {"": None}, {"tensor": 0}, {"request": "Ask"}, "__class__", [None] * 9,
)  # fmt: skip


def mutated(value: Any, draw: random.Random) -> Any:
    """Return the value with one to three changes."""
    value = copy.deepcopy(value)
    for _ in range(draw.randint(1, 3)):
        value = _changed(value, draw)
    return value


def _changed(value: Any, draw: random.Random) -> Any:
    if isinstance(value, dict) and draw.random() < 0.9:
        return _changed_object(value, draw)
    if isinstance(value, list) and draw.random() < 0.8:
        return _changed_list(value, draw)
    if type(value) in (int, float) and draw.random() < 0.4:
        return draw.choice((-value, value + 1, value * 10, float(value), str(value), bool(value)))
    return copy.deepcopy(draw.choice(ODD))


def _changed_object(value: dict[str, Any], draw: random.Random) -> Any:
    kind = draw.random()
    if kind < 0.1:
        return {**value, draw.choice(("more", "", "request", "kind")): draw.choice(ODD)}
    if not value:
        return draw.choice(ODD)
    key = draw.choice(list(value))
    if kind < 0.2:
        return {name: item for name, item in value.items() if name != key}
    if kind < 0.3:
        return {(f"{name}s" if name == key else name): item for name, item in value.items()}
    if kind < 0.35:
        return list(value.items()) if draw.random() < 0.5 else list(value.values())
    return {**value, key: _changed(value[key], draw)}


def _changed_list(value: list[Any], draw: random.Random) -> Any:
    if not value or draw.random() < 0.2:
        return [*value, copy.deepcopy(draw.choice(ODD))]
    place = draw.randrange(len(value))
    kind = draw.random()
    if kind < 0.2:
        return value[:place] + value[place + 1 :]
    if kind < 0.3:
        return value + value
    return [*value[:place], _changed(value[place], draw), *value[place + 1 :]]
