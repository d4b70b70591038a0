"""Links that open the wall without a login."""
