"""The pages and actions that a search finds, with what each takes and other words that find it."""

from dashboard.access import roles

Place = tuple[str, str, str | None, str]  # a route, its label, what it takes, and other words
OF_CLUSTER: tuple[Place, ...] = (
    ("overview", "Overview", None, "is anything wrong attention"),
    ("leases", "Leases", None, "list"),
    ("timeline", "Timeline", None, "who held what when playhead"),
    ("holders", "Holders", None, "what does each pod or node hold"),
    ("nodes", "Nodes", None, "heartbeats grid"),
    ("incidents", "Incidents", None, "causes why"),
    ("near_misses", "Near misses", None, "incidents late renewals"),
    ("history", "History", None, "changes export csv"),
    ("stretch", "Leases ranked by what happened", None, "history stretch changes gaps"),
    ("reliability", "Reliability", None, "objective slo quarter week"),
    ("wall", "Wall display", None, "room screen tv"),
    ("deletions", "Deletions of many Leases", roles.EDIT, "bulk reports"),
)
OF_BOARD: tuple[Place, ...] = (
    ("saved_views", "Saved views", None, "bookmarks start page"),
    ("timeline_all", "Timeline of all clusters", None, "who lost holders when"),
    ("history_all", "History of all clusters", None, "changes export csv"),
    ("incidents_all", "Incidents of all clusters", None, "causes why"),
    ("audit", "Audit trail", roles.READ_TRAIL, "writes who edited"),
    ("api", "JSON for programs", None, "api openapi"),
    ("api_tokens", "API tokens", None, "programs"),
    ("clusters", "Manage clusters", roles.CLUSTERS, "add kubeconfig pause label remove"),
    ("wall_links", "Wall links", roles.WALL_LINKS, "screens"),
    ("notifications", "Notifications", roles.RECEIVERS, "receivers alerts webhooks email"),
    ("notification_log", "Sent notifications", roles.RECEIVERS, "log messages"),
    ("badges", "Badges", roles.BADGES, "svg"),
    ("security_log", "Security log", roles.READ_SECURITY_LOG, "sign in"),
    ("people", "People", roles.MANAGE_PEOPLE, "users roles"),
)
ACTIONS: tuple[Place, ...] = (
    ("new_lease", "Create a Lease", roles.EDIT, "new add"),
    ("delete_many", "Delete many Leases", roles.EDIT, "remove bulk"),
    ("new_cluster", "Add a cluster", roles.CLUSTERS, "new kubeconfig watch"),
    ("new_receiver", "Add a receiver of notifications", roles.RECEIVERS, "new webhook"),
    ("quiet_times", "Mute notifications", roles.RECEIVERS, "quiet silence maintenance"),
)
# The actions of one Lease, with the verb that the cluster is asked about.
OF_LEASE = (
    ("lease_edit", "Edit", "patch"),
    ("lease_release", "Release", "patch"),
    ("lease_hand_over", "Hand over", "patch"),
    ("lease_delete", "Delete", "delete"),
)
OF_THIS_CLUSTER = {"new_lease", "delete_many"}
