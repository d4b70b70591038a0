"""The controller of coordinated leader election."""
