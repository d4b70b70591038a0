"""The registry: everything between a decoded object and the store. Imports http and storage."""
