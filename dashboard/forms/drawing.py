"""How the forms of admins are drawn: each field with its label, API name, help and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.forms import BoundField
from django.forms.renderers import TemplatesSetting

if TYPE_CHECKING:
    from dashboard.forms.admin_form import AdminForm


class AdminBoundField(BoundField):
    """A field of an AdminForm, as `forms/_field.html` draws it."""

    form: AdminForm

    @property
    def api(self) -> str:
        """The name of the field in the API, shown beside its label."""
        return self.form.api_names.get(self.name, "")

    @property
    def wide(self) -> bool:
        return self.name in self.form.wide

    @property
    def required_to_save(self) -> bool:
        return self.name in self.form.required_to_save

    @property
    def was(self) -> str | None:
        """What the Lease says now, if the person changed the field; else None."""
        return self.form.changed_from().get(self.name)


class AdminRenderer(TemplatesSetting):
    """Draws fields with our template and widgets with Django's or ours."""

    field_template_name = "forms/_field.html"
    bound_field_class = AdminBoundField
