"""API tokens: a person makes and revokes own ones; an admin sees all."""
