"""YAML in and out, as sigs.k8s.io/yaml and go-yaml read and write it."""
