"""Which episodes are one incident: an outage, a dead node, a drain, a rollout of everything."""
