"""Who has an account: add somebody, give a role, reset a password, end sessions, deactivate."""
