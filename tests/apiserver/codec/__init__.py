"""Objects as JSON, YAML and protobuf."""
