"""Totals of days, weeks and quarters, which outlive the changes they are counted from."""
