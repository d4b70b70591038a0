"""The Go types of the access and token reviews.

Source: k8s.io/api/authorization/v1/types.go and k8s.io/api/authentication/v1/types.go.
"""

from __future__ import annotations

from leases.apiserver.codec.schema import (
    BOOL,
    TEXT,
    Field,
    GoType,
    Mapping,
    SliceType,
    Structure,
    Text,
    with_spec,
)

_TEXTS = SliceType("[]string", TEXT)
_EXTRA = Mapping("map[string]v1.ExtraValue", SliceType("v1.ExtraValue", TEXT))


def _fields(**kinds: GoType) -> dict[str, Field]:
    return {name: Field(kind) for name, kind in kinds.items()}


def _selector(kind: str) -> Field:
    """A FieldSelectorAttributes or LabelSelectorAttributes."""
    requirement = Structure(
        f"{kind}SelectorRequirement",
        {
            "key": Field(TEXT, always=True),
            "operator": Field(Text(f"v1.{kind}SelectorOperator"), always=True),
            "values": Field(_TEXTS),
        },
    )
    requirements = SliceType(f"[]v1.{kind}SelectorRequirement", requirement)
    name = f"{kind}SelectorAttributes"
    return Field(
        Structure(name, _fields(rawSelector=TEXT, requirements=requirements)), pointer=True
    )


_ATTRIBUTES = {
    "resourceAttributes": Field(
        Structure(
            "ResourceAttributes",
            _fields(
                namespace=TEXT, verb=TEXT, group=TEXT, version=TEXT, resource=TEXT,
                subresource=TEXT, name=TEXT,
            )
            | {"fieldSelector": _selector("Field"), "labelSelector": _selector("Label")},
        ),
        pointer=True,
    ),
    "nonResourceAttributes": Field(
        Structure("NonResourceAttributes", _fields(path=TEXT, verb=TEXT)), pointer=True
    ),
}  # fmt: skip
_SUBJECT_SPEC = Structure(
    "SubjectAccessReviewSpec",
    _ATTRIBUTES | _fields(user=TEXT, groups=_TEXTS, extra=_EXTRA, uid=TEXT),
)
_ACCESS_STATUS = Structure(
    "SubjectAccessReviewStatus",
    {"allowed": Field(BOOL, always=True)} | _fields(denied=BOOL, reason=TEXT, evaluationError=TEXT),
)
_USER = Structure("UserInfo", _fields(username=TEXT, uid=TEXT, groups=_TEXTS, extra=_EXTRA))
_RULES = {
    "resourceRules": _fields(
        verbs=_TEXTS, apiGroups=_TEXTS, resources=_TEXTS, resourceNames=_TEXTS
    ),
    "nonResourceRules": _fields(verbs=_TEXTS, nonResourceURLs=_TEXTS),
}

SELF_ACCESS = with_spec(
    "SelfSubjectAccessReview",
    spec=Structure("SelfSubjectAccessReviewSpec", _ATTRIBUTES),
    status=_ACCESS_STATUS,
)
SUBJECT_ACCESS = with_spec("SubjectAccessReview", spec=_SUBJECT_SPEC, status=_ACCESS_STATUS)
LOCAL_ACCESS = with_spec("LocalSubjectAccessReview", spec=_SUBJECT_SPEC, status=_ACCESS_STATUS)
SELF_RULES = with_spec(
    "SelfSubjectRulesReview",
    spec=Structure("SelfSubjectRulesReviewSpec", _fields(namespace=TEXT)),
    status=Structure(
        "SubjectRulesReviewStatus",
        {
            name: Field(SliceType(f"[]v1.{kind}", Structure(kind, _RULES[name])))
            for name, kind in (
                ("resourceRules", "ResourceRule"),
                ("nonResourceRules", "NonResourceRule"),
            )
        }
        | _fields(incomplete=BOOL, evaluationError=TEXT),
    ),
)
WHO_AM_I = with_spec(
    "SelfSubjectReview", status=Structure("SelfSubjectReviewStatus", _fields(userInfo=_USER))
)
TOKEN = with_spec(
    "TokenReview",
    spec=Structure("TokenReviewSpec", _fields(token=TEXT, audiences=_TEXTS)),
    status=Structure(
        "TokenReviewStatus",
        _fields(authenticated=BOOL)
        | {"user": Field(_USER, always=True)}
        | _fields(error=TEXT, audiences=_TEXTS),
    ),
)
