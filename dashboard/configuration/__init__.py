"""Settings: clusters, feature gates, environment variables. Tests: tests/serving."""
