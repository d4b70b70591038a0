"""Requests that no well-behaved client sends."""
