"""Play recordings of known incidents through tracker and casebook; count what is found.

`python -m tests.support.incidents DIRECTORY` prints the table for any other recordings.
"""
