"""The databases of earlier versions, as SQL text."""
