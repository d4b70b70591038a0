"""What several benchmarks share; none of these is a benchmark."""
