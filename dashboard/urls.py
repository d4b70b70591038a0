"""Every path of the pages. The sockets' paths are in `dashboard.live.routing`."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path

from dashboard.health import view as health
from dashboard.metrics import view as metrics
from dashboard.pages.account import password_view, sign_in_view
from dashboard.pages.api import view as api
from dashboard.pages.api_tokens import view as api_tokens
from dashboard.pages.audit import view as audit
from dashboard.pages.badges import badge_view
from dashboard.pages.badges import view as badges
from dashboard.pages.components import view as components
from dashboard.pages.create import view as create
from dashboard.pages.delete import deletion_view, many_view
from dashboard.pages.delete import view as lease_delete
from dashboard.pages.edit import (
    edit_view,
    hand_over_view,
    outcome_view,
    release_view,
    write_rights_view,
    yaml_view,
)
from dashboard.pages.errors import refused_view
from dashboard.pages.errors import view as broken
from dashboard.pages.history import stretch_view
from dashboard.pages.history import view as history
from dashboard.pages.holders import view as holders
from dashboard.pages.incidents import acknowledge_view, incident_view, near_misses_view
from dashboard.pages.incidents import view as incidents
from dashboard.pages.lease import events_and_candidates_view as lease_events
from dashboard.pages.lease import kind_view, vacancy_view
from dashboard.pages.lease import view as lease
from dashboard.pages.leases import view as leases
from dashboard.pages.nodes import view as nodes
from dashboard.pages.notifications import log_view, quiet_view
from dashboard.pages.notifications import view as notifications
from dashboard.pages.overview import home_view, switch_view
from dashboard.pages.overview import view as overview
from dashboard.pages.people import view as people
from dashboard.pages.reliability import view as reliability
from dashboard.pages.security_log import view as security_log
from dashboard.pages.timeline import view as timeline
from dashboard.pages.wall import view as wall
from dashboard.pages.wall_links import view as wall_links

of_cluster = [
    path("", overview.overview, name="overview"),
    path("leases/", leases.leases, name="leases"),
    path("leases/new/", create.new_lease, name="new_lease"),
    path("leases/delete/", many_view.delete_many, name="delete_many"),
    path("rights/", write_rights_view.write_rights, name="write_rights"),
    path("deletions/", deletion_view.deletions, name="deletions"),
    path("deletions/<int:number>/", deletion_view.deletion, name="deletion"),
    path("deletions/<int:number>/stop/", deletion_view.stop_deletion, name="stop_deletion"),
    path("leases/<str:namespace>/<str:name>/", lease.lease, name="lease"),
    path(
        "leases/<str:namespace>/<str:name>/asked/",
        lease_events.lease_asked,
        name="lease_asked",
    ),
    path("leases/<str:namespace>/<str:name>/kind/", kind_view.lease_kind, name="lease_kind"),
    path(
        "leases/<str:namespace>/<str:name>/vacancy/",
        vacancy_view.lease_vacancy,
        name="lease_vacancy",
    ),
    path(
        "leases/<str:namespace>/<str:name>/delete/",
        lease_delete.lease_delete,
        name="lease_delete",
    ),
    path("leases/<str:namespace>/<str:name>/edit/", edit_view.lease_edit, name="lease_edit"),
    path(
        "leases/<str:namespace>/<str:name>/release/",
        release_view.lease_release,
        name="lease_release",
    ),
    path(
        "leases/<str:namespace>/<str:name>/hand-over/",
        hand_over_view.lease_hand_over,
        name="lease_hand_over",
    ),
    path("leases/<str:namespace>/<str:name>/edit/yaml/", yaml_view.lease_yaml, name="lease_yaml"),
    path(
        "leases/<str:namespace>/<str:name>/written/<int:number>/",
        outcome_view.lease_outcome,
        name="lease_outcome",
    ),
    path("timeline/", timeline.timeline, name="timeline"),
    path("holders/", holders.holders, name="holders"),
    path("nodes/", nodes.nodes, name="nodes"),
    path("nodes/cells/", nodes.cells, name="node_cells"),
    path("incidents/", incidents.incidents, name="incidents"),
    path("incidents/near-misses/", near_misses_view.near_misses_page, name="near_misses"),
    path(
        "incidents/<str:incident>/acknowledge/",
        acknowledge_view.acknowledge_incident,
        name="acknowledge_incident",
    ),
    path("incidents/<str:incident>/", incident_view.incident, name="incident"),
    path("history/", history.history, name="history"),
    path("history/stretch/", stretch_view.stretch, name="stretch"),
    path("reliability/", reliability.reliability, name="reliability"),
    path("reliability/objective/", reliability.objective, name="reliability_objective"),
    path("wall/", wall.wall, name="wall"),
    path("switch/", switch_view.switch, name="switch_cluster"),
]

of_notifications = [
    path("", notifications.notifications, name="notifications"),
    path("receivers/new/", notifications.new_receiver, name="new_receiver"),
    path("receivers/<int:number>/", notifications.receiver, name="receiver"),
    path("receivers/<int:number>/test/", notifications.test_receiver, name="test_receiver"),
    path("receivers/<int:number>/delete/", notifications.delete_receiver, name="delete_receiver"),
    path("log/", log_view.notification_log, name="notification_log"),
    path("quiet/", quiet_view.quiet_times, name="quiet_times"),
    path("quiet/<int:number>/end/", quiet_view.end_quiet_time, name="end_quiet_time"),
]

urlpatterns = [
    path("", home_view.home, name="home"),
    path("c/<slug:cluster>/", include(of_cluster)),
    path("audit/", audit.audit, name="audit"),
    path("audit/<int:number>/", audit.audit_row, name="audit_row"),
    path("wall-links/", wall_links.wall_links, name="wall_links"),
    path("wall-links/<int:number>/revoke/", wall_links.revoke_wall_link, name="revoke_wall_link"),
    path("api/", api.api, name="api"),
    path("api/openapi.json", api.openapi_document, name="openapi"),
    path("tokens/", api_tokens.tokens, name="api_tokens"),
    path("tokens/<int:number>/revoke/", api_tokens.revoke_token, name="revoke_api_token"),
    path("security-log/", security_log.security_log, name="security_log"),
    path("notifications/", include(of_notifications)),
    path("badges/", badges.badges, name="badges"),
    path("badges/<int:number>/revoke/", badges.revoke_badge, name="revoke_badge"),
    path("badge/<str:token>.svg", badge_view.badge_svg, name="badge_svg"),
    path("badge/<str:token>.json", badge_view.badge_json, name="badge_json"),
    path("people/", people.people, name="people"),
    path("people/<int:number>/", people.person, name="person"),
    path("account/password/", password_view.own_password, name="own_password"),
    path("components/", components.components, name="components"),
    path("sign-in/", sign_in_view.SignInView.as_view(), name="sign_in"),
    path("sign-in/link/", sign_in_view.redeem_link, name="redeem_sign_in_link"),
    path("sign-in/<str:token>/", sign_in_view.by_link, name="sign_in_by_link"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
]

handler403 = refused_view.permission_denied
handler404 = refused_view.not_found
handler400 = broken.bad_request
handler500 = broken.broken
