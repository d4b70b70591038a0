"""Why Leases changed hands: the incidents, one incident with its evidence, and near misses."""
