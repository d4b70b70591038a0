"""Kubernetes clients as people use them, each against a Lease API of its own process on a real
socket.
"""
