"""The security log: who came in or was refused, and who gave or took a right."""
