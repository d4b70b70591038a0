"""Tests of the documents that tell clients what is served."""
