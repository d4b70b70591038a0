"""Who holds what: all holders of a cluster, and one of them."""
