"""A script of kubectl commands and what each must answer."""
