"""Strategies for Leases, for any JSON, and for patches of either."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from hypothesis import strategies as st

INT32_MAX = 2**31 - 1
# Surrogates cannot be sent; everything else can, NUL included.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
# The first moment of year 1 is Go's zero time, which is no time.
moments = (
    st.datetimes(timezones=st.just(UTC))
    .filter(lambda at: at.year > 1)
    .map(lambda at: f"{at.year:04}-{at:%m-%dT%H:%M:%S}.{at.microsecond:06}Z")
)
# In the order in which Go writes them.
SPEC = {
    "holderIdentity": texts,
    "leaseDurationSeconds": st.integers(1, INT32_MAX),
    "acquireTime": moments,
    "renewTime": moments,
    "leaseTransitions": st.integers(0, INT32_MAX),
}
specs = st.fixed_dictionaries({}, optional=SPEC).map(
    lambda spec: {name: spec[name] for name in SPEC if name in spec}
)

# Few keys, so that patches meet what is there; the slash is escaped in a JSON pointer.
keys = st.sampled_from(["a", "b", "c", "x.y/a", "x.y/b"])
label_values = st.from_regex(r"\A([a-z0-9]([a-z0-9.-]{0,4}[a-z0-9])?)?\Z")
finalizers = st.lists(st.sampled_from([f"x.y/{letter}" for letter in "abcdef"]), unique=True)
METADATA = {
    "labels": st.dictionaries(keys, label_values),
    "annotations": st.dictionaries(keys, texts),
    "finalizers": finalizers,
}
leases = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({}, optional=METADATA), "spec": specs}
)


def nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values | st.none()


merge_patches = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": nullable(st.dictionaries(keys, nullable(label_values))),
                "annotations": nullable(st.dictionaries(keys, nullable(texts))),
                "finalizers": nullable(finalizers),
            },
        ),
        "spec": st.fixed_dictionaries(
            {}, optional={name: nullable(value) for name, value in SPEC.items()}
        ),
    },
)

# 0 and 1 are left out: to Python they equal False and True, which JSON distinguishes.
scalars = st.none() | st.booleans() | st.integers(2, 9) | st.text("ab/~-0", max_size=3)
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("ab/~0", max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.text("ab/~0", min_size=1, max_size=2), documents, max_size=4)


def pointers(value: Any, path: str = "") -> list[str]:
    """The pointers to everything inside, and to what could be added."""
    found = []
    if isinstance(value, dict):
        for name, item in value.items():
            inner = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
            found += [inner, *pointers(item, inner)]
        found.append(f"{path}/new")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += [f"{path}/{index}", *pointers(item, f"{path}/{index}")]
        found += [f"{path}/{len(value)}", f"{path}/-"]
    return found


@st.composite
def json_patches(draw: st.DrawFn, document: Any, values: st.SearchStrategy[Any]) -> list[Any]:
    """Operations on what is in the document; most can be carried out."""
    place = st.sampled_from(pointers(document))
    operation = st.one_of(
        st.fixed_dictionaries({"op": st.sampled_from(["add", "replace"]), "path": place}).flatmap(
            lambda one: values.map(lambda value: one | {"value": value})
        ),
        st.fixed_dictionaries({"op": st.just("remove"), "path": place}),
        st.fixed_dictionaries({"op": st.just("test"), "path": place, "value": values}),
        st.fixed_dictionaries(
            {"op": st.sampled_from(["move", "copy"]), "from": place, "path": place}
        ),
    )
    found: list[Any] = draw(st.lists(operation, min_size=1, max_size=4))
    return found
