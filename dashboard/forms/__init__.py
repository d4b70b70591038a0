"""Django forms, one per action of an admin: fields, widgets, errors at their fields.

A form checks the shape; the API server's dry run decides whether values are valid. May import
`parts`, `access` and the rooms below. Templates: templates/forms. Tests: tests/forms.
"""
