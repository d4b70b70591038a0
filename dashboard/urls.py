"""Every path of the pages. The sockets' paths are in `dashboard.live.consumers`."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path

from dashboard import health, metrics
from dashboard.pages import (
    account,
    api,
    api_tokens,
    audit,
    badges,
    clusters,
    create,
    delete_many,
    errors,
    fleet,
    fleet_wall,
    leases,
    nodes,
    overview,
    people,
    reliability,
    saved_views,
    screen,
    security_log,
    wall,
    wall_links,
)
from dashboard.pages import errors as broken
from dashboard.pages.edit import outcome, views
from dashboard.pages.history import across as history_across
from dashboard.pages.history import changes as history
from dashboard.pages.history import stretch
from dashboard.pages.holders import holder
from dashboard.pages.holders import list as holders
from dashboard.pages.incidents import across as incidents_across
from dashboard.pages.incidents import incident, near_misses
from dashboard.pages.incidents import list as incidents
from dashboard.pages.lease import events_and_candidates as lease_events
from dashboard.pages.lease import overrides
from dashboard.pages.lease import view as lease
from dashboard.pages.notifications import messages
from dashboard.pages.notifications import receivers as notifications
from dashboard.pages.search import view as search
from dashboard.pages.timeline import across as timeline_across
from dashboard.pages.timeline import view as timeline

of_cluster = [
    path("", overview.overview, name="overview"),
    path("leases/", leases.leases, name="leases"),
    path("leases/new/", create.new_lease, name="new_lease"),
    path("leases/delete/", delete_many.delete_many, name="delete_many"),
    path("rights/", views.write_rights, name="write_rights"),
    path("deletions/", delete_many.deletions, name="deletions"),
    path("deletions/<int:number>/", delete_many.deletion, name="deletion"),
    path("deletions/<int:number>/stop/", delete_many.stop_deletion, name="stop_deletion"),
    path("leases/<str:namespace>/<str:name>/", lease.lease, name="lease"),
    path(
        "leases/<str:namespace>/<str:name>/asked/",
        lease_events.lease_asked,
        name="lease_asked",
    ),
    path("leases/<str:namespace>/<str:name>/kind/", overrides.lease_kind, name="lease_kind"),
    path(
        "leases/<str:namespace>/<str:name>/vacancy/",
        overrides.lease_vacancy,
        name="lease_vacancy",
    ),
    path("leases/<str:namespace>/<str:name>/delete/", views.lease_delete, name="lease_delete"),
    path("leases/<str:namespace>/<str:name>/edit/", views.lease_edit, name="lease_edit"),
    path(
        "leases/<str:namespace>/<str:name>/release/",
        views.lease_release,
        name="lease_release",
    ),
    path(
        "leases/<str:namespace>/<str:name>/hand-over/",
        views.lease_hand_over,
        name="lease_hand_over",
    ),
    path("leases/<str:namespace>/<str:name>/edit/yaml/", views.lease_yaml, name="lease_yaml"),
    path(
        "leases/<str:namespace>/<str:name>/written/<int:number>/",
        outcome.lease_outcome,
        name="lease_outcome",
    ),
    path("timeline/", timeline.timeline, name="timeline"),
    path("holders/", holders.holders, name="holders"),
    path("holders/pods/", holders.holder_pods, name="holder_pods"),
    path("holders/<str:host>/", holder.holder, name="holder"),
    path("holders/<str:host>/place/", holder.holder_place, name="holder_place"),
    path("nodes/", nodes.nodes, name="nodes"),
    path("nodes/cells/", nodes.cells, name="node_cells"),
    path("incidents/", incidents.incidents, name="incidents"),
    path("incidents/near-misses/", near_misses.near_misses_page, name="near_misses"),
    path(
        "incidents/<str:incident>/acknowledge/",
        incident.acknowledge_incident,
        name="acknowledge_incident",
    ),
    path("incidents/<str:incident>/", incident.incident, name="incident"),
    path("history/", history.history, name="history"),
    path("history/stretch/", stretch.stretch, name="stretch"),
    path("reliability/", reliability.reliability, name="reliability"),
    path("reliability/objective/", reliability.objective, name="reliability_objective"),
    path("wall/", wall.wall, name="wall"),
    path("search/", search.search, name="search"),
    path("switch/", overview.switch, name="switch_cluster"),
]

of_notifications = [
    path("", notifications.notifications, name="notifications"),
    path("receivers/new/", notifications.new_receiver, name="new_receiver"),
    path("receivers/<int:number>/", notifications.receiver, name="receiver"),
    path("receivers/<int:number>/test/", notifications.test_receiver, name="test_receiver"),
    path("receivers/<int:number>/delete/", notifications.delete_receiver, name="delete_receiver"),
    path("log/", messages.notification_log, name="notification_log"),
    path("quiet/", messages.quiet_times, name="quiet_times"),
    path("quiet/<int:number>/end/", messages.end_quiet_time, name="end_quiet_time"),
]

of_clusters = [
    path("", clusters.clusters, name="clusters"),
    path("new/", clusters.new_cluster, name="new_cluster"),
    path("<int:number>/", clusters.cluster, name="cluster"),
    path("<int:number>/pause/", clusters.pause_cluster, name="pause_cluster"),
    path("<int:number>/resume/", clusters.resume_cluster, name="resume_cluster"),
    path("<int:number>/remove/", clusters.remove_cluster, name="remove_cluster"),
]

urlpatterns = [
    path("", fleet.home, name="home"),
    path("c/<slug:cluster>/", include(of_cluster)),
    path("search/", search.search_all, name="search_all"),
    path("timeline/", timeline_across.timeline_all, name="timeline_all"),
    path("history/", history_across.history_all, name="history_all"),
    path("incidents/", incidents_across.incidents_all, name="incidents_all"),
    path("audit/", audit.audit, name="audit"),
    path("audit/<int:number>/", audit.audit_row, name="audit_row"),
    path("wall/", screen.screen, name="screen"),
    path("wall/fleet/", fleet_wall.fleet_wall, name="fleet_wall"),
    path("wall-links/", wall_links.wall_links, name="wall_links"),
    path("wall-links/<int:number>/revoke/", wall_links.revoke_wall_link, name="revoke_wall_link"),
    path("wall-links/<int:number>/code/", wall_links.screen_code, name="screen_code"),
    path("wall-links/<int:number>/screens/", wall_links.wall_screens, name="wall_screens"),
    path("wall-links/screens/<int:number>/revoke/", wall_links.revoke_screen, name="revoke_screen"),
    path("api/", api.api, name="api"),
    path("api/openapi.json", api.openapi_document, name="openapi"),
    path("tokens/", api_tokens.tokens, name="api_tokens"),
    path("tokens/<int:number>/revoke/", api_tokens.revoke_token, name="revoke_api_token"),
    path("security-log/", security_log.security_log, name="security_log"),
    path("notifications/", include(of_notifications)),
    path("clusters/", include(of_clusters)),
    path("badges/", badges.badges, name="badges"),
    path("badges/<int:number>/revoke/", badges.revoke_badge, name="revoke_badge"),
    path("badge/<str:token>.svg", badges.badge_svg, name="badge_svg"),
    path("badge/<str:token>.json", badges.badge_json, name="badge_json"),
    path("views/", saved_views.saved_views, name="saved_views"),
    path("views/new/", saved_views.save_view, name="save_view"),
    path("views/start/", saved_views.start_view, name="start_view"),
    path("views/<int:number>/", saved_views.saved_view, name="saved_view"),
    path("views/<int:number>/edit/", saved_views.edit_view, name="edit_view"),
    path("views/<int:number>/remove/", saved_views.remove_view, name="remove_view"),
    path("people/", people.people, name="people"),
    path("people/<int:number>/", people.person, name="person"),
    path("account/time-zone/", account.time_zone, name="time_zone"),
    path("account/password/", account.own_password, name="own_password"),
    path("sign-in/", account.SignInView.as_view(), name="sign_in"),
    path("sign-in/link/", account.redeem_link, name="redeem_sign_in_link"),
    path("sign-in/<str:token>/", account.by_link, name="sign_in_by_link"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
]

handler403 = errors.permission_denied
handler404 = errors.not_found
handler400 = broken.bad_request
handler500 = broken.broken
