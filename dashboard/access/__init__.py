"""Who may see and do what: guards (first line of every view), roles, wall links, sign-in links, and
the end of rights on open sockets.

May import Django, `leases.models` and the runtime of the process; never a page or a template.
Tests: tests/access, tests/pages.
"""
