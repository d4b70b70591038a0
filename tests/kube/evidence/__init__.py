"""Pods, Nodes and Events as evidence."""
