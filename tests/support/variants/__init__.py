"""Make recordings of known incidents that nobody has seen: by seed, the same each time.

`python -m tests.support.variants DIRECTORY [SEED]...` writes them as files of the recordings' form.
"""
