"""Bytes to objects and back: JSON as Go reads it, YAML, protobuf, the schema."""
