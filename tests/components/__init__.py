"""Every partial in every state on one page, to compare styles and to run what every page must pass.

`DJANGO_SETTINGS_MODULE=tests.settings python3 manage.py serve` shows it under /components/.
"""
