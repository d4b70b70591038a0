"""Tests of benchmarks_run."""
