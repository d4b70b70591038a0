"""Is anything wrong, and what just happened?"""
