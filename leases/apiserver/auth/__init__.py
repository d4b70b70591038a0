"""Bearer tokens and their roles. Imports storage."""
