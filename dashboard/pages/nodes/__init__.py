"""All heartbeats in one node grid."""
