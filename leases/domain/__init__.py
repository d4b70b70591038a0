"""The rules: values in, values out, `now` always an argument.

May import the standard library and msgspec only. Tests: tests/domain.
"""
