"""What all forms of admins share: reason, errors in both places, the controls."""

from __future__ import annotations

import dataclasses
import re

import pytest
from django import forms
from django.template.loader import render_to_string

from dashboard.forms.admin_form import AdminForm
from dashboard.forms.fields import Dropdown, Moment, TextLine, WholeNumber
from dashboard.forms.yaml_form import YamlForm
from leases.wire.status import (
    ApiError,
    Invalid,
    Status,
    StatusCause,
    StatusDetails,
    TooManyRequests,
    Unreachable,
)


class ExampleForm(AdminForm):
    api_names = {"duration_seconds": "leaseDurationSeconds"}
    field_of_cause = {"spec.leaseDurationSeconds": "duration_seconds"}

    holder = forms.CharField(label="Holder", widget=TextLine(mono=True), required=False)
    duration_seconds = forms.IntegerField(
        label="Duration", widget=WholeNumber(unit="s"), required=False, help_text="Whole seconds."
    )
    renew_time = forms.CharField(label="Renewed", widget=Moment(), required=False)
    strategy = forms.ChoiceField(choices=[("", "Not set")], widget=Dropdown(), required=False)


def group(form: AdminForm, name: str) -> str:
    return form[name].as_field_group()


def refusal(*causes: tuple[str, str]) -> Invalid:
    listed = tuple(StatusCause(message=message, field=field) for field, message in causes)
    return Invalid(Status(code=422, message="no", details=StatusDetails(causes=listed)))


def test_a_preview_needs_no_reason_and_saving_does():
    assert ExampleForm({"reason": ""}).is_valid()
    saved = ExampleForm({"reason": ""}, saving=True)
    assert not saved.is_valid()
    assert saved.errors["reason"] == ["Say why; the reason is kept in the audit trail."]
    for form in (ExampleForm(), saved):
        assert '<span class="need">required</span>' in group(form, "reason")
        assert 'aria-required="true"' in group(form, "reason")


def test_no_reason_is_needed_where_the_setting_says_so(settings):
    settings.LEASEBOARD = dataclasses.replace(settings.LEASEBOARD, reason_required=False)
    form = ExampleForm({"reason": ""}, saving=True)
    assert form.is_valid()
    assert "required" not in group(form, "reason")


def test_a_field_names_its_api_name_its_help_and_its_unit():
    drawn = group(ExampleForm(), "duration_seconds")
    assert "<code>leaseDurationSeconds</code>" in drawn
    assert "<span>s</span>" in drawn
    assert 'aria-describedby="id_duration_seconds_helptext"' in drawn
    assert 'id="id_duration_seconds_helptext"' in drawn
    assert 'for="id_duration_seconds"' in drawn


def test_an_error_is_at_its_field_and_in_the_summary():
    form = ExampleForm({"duration_seconds": "soon"})
    drawn = group(form, "duration_seconds")
    assert 'aria-invalid="true"' in drawn
    described = re.search(r'aria-describedby="([^"]+)"', drawn)
    assert described is not None
    assert all(f'id="{one}"' in drawn for one in described[1].split())
    summary = render_to_string("forms/_problems.html", {"form": form, "error": ""})
    assert '<a class="link" href="#id_duration_seconds">Duration</a>: Enter a whole' in summary
    assert "Nothing was written: correct 1 field" in summary
    assert "autofocus" in summary


def test_no_error_no_summary():
    form = ExampleForm({})
    assert not render_to_string("forms/_problems.html", {"form": form, "error": ""}).strip()


def test_causes_of_the_server_land_on_their_fields_and_the_rest_in_a_sentence():
    form = ExampleForm({"duration_seconds": "0"})
    twice = [("spec.leaseDurationSeconds", "must be greater than 0")] * 2
    assert form.place(refusal(*twice)) == ""
    assert form.errors["duration_seconds"] == ["must be greater than 0"]
    elsewhere = ExampleForm({})
    said = elsewhere.place(refusal(("metadata.finalizers", "name not qualified")))
    assert said == "The cluster refused: metadata.finalizers: name not qualified"
    assert ExampleForm({}).place(refusal()) == "The cluster refused: no"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Unreachable("It did not answer within 30 s."), "It did not answer within 30 s."),
        (ApiError(Status(code=504, message="slow")), "The cluster could not do it (504): slow"),
        (
            TooManyRequests(Status(code=429, message="wait")),
            "The cluster could not do it (429): wait",
        ),
    ],
)
def test_who_did_not_answer_did_not_refuse(error, said):
    assert ExampleForm({}).place(error) == said
    assert YamlForm({}, current=None).place(error) == said


def test_each_drawing_of_a_form_can_write_once():
    form = ExampleForm({"once": "used"})
    drawn = [render_to_string("forms/_hidden.html", {"form": form}) for _ in range(2)]
    tokens = [re.findall(r'name="once" value="([^"]+)"', one) for one in drawn]
    assert [len(one) for one in tokens] == [1, 1]
    assert tokens[0] != tokens[1]
    assert "used" not in "".join(drawn)


@pytest.mark.parametrize("name", ["renew_time", "strategy"])
def test_controls_are_native(name):
    drawn = group(ExampleForm(), name)
    assert f'id="id_{name}"' in drawn
    if name == "renew_time":
        assert 'name="now" value="renew_time"' in drawn
