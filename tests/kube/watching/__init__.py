"""Tests of the reflector: what it reports of clusters well and ill."""
