"""What `doctor` looks at, one module for each subject. Tests: tests/serving/doctor."""
