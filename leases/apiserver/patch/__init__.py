"""PATCH: JSON patch, merge patch, strategic merge patch and apply. Imports registry and http."""
