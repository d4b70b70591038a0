"""Every path of the pages. The sockets' paths are in `dashboard.live.routing`."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path

from dashboard.views import (
    audit,
    broken,
    components,
    health,
    history,
    holders,
    home,
    lease,
    lease_asked,
    lease_edit,
    lease_kind,
    leases,
    metrics,
    nodes,
    overview,
    refused,
    sign_in,
    timeline,
    wall,
    wall_links,
)

of_cluster = [
    path("", overview.overview, name="overview"),
    path("leases/", leases.leases, name="leases"),
    path("leases/<str:namespace>/<str:name>/", lease.lease, name="lease"),
    path("leases/<str:namespace>/<str:name>/asked/", lease_asked.lease_asked, name="lease_asked"),
    path("leases/<str:namespace>/<str:name>/kind/", lease_kind.lease_kind, name="lease_kind"),
    path("leases/<str:namespace>/<str:name>/edit/", lease_edit.lease_edit, name="lease_edit"),
    path("timeline/", timeline.timeline, name="timeline"),
    path("holders/", holders.holders, name="holders"),
    path("nodes/", nodes.nodes, name="nodes"),
    path("nodes/cells/", nodes.cells, name="node_cells"),
    path("history/", history.history, name="history"),
    path("wall/", wall.wall, name="wall"),
]

urlpatterns = [
    path("", home.home, name="home"),
    path("c/<slug:cluster>/", include(of_cluster)),
    path("audit/", audit.audit, name="audit"),
    path("wall-links/", wall_links.wall_links, name="wall_links"),
    path("wall-links/<int:number>/revoke/", wall_links.revoke_wall_link, name="revoke_wall_link"),
    path("components/", components.components, name="components"),
    path("sign-in/", sign_in.SignInView.as_view(), name="sign_in"),
    path("sign-in/link/", sign_in.redeem_link, name="redeem_sign_in_link"),
    path("sign-in/<str:token>/", sign_in.by_link, name="sign_in_by_link"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
]

handler403 = refused.permission_denied
handler400 = broken.bad_request
handler500 = broken.broken
