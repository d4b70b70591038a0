"""Lanes of terms and gaps: who held what over time."""
