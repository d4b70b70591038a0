"""Tests of the zone in which a page shows times."""
