"""Pictures of the present state, for other pages, by links that admins make and revoke."""
