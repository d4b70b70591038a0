"""Tests of the documents that list for clients what is served."""
