"""What the API server does between a decoded object and the store. Imports http and storage."""
