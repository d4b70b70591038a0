"""The database's history.
"""
