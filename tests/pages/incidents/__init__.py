"""Tests of the incidents."""
