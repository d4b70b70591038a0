"""The paths of the product, and that of the page of all partials."""

from __future__ import annotations

from django.urls import path

from dashboard.urls import handler400, handler403, handler404, handler500
from dashboard.urls import urlpatterns as product
from tests.components.samples import components

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]

urlpatterns = [*product, path("components/", components, name="components")]
