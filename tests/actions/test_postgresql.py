"""The main path of each form, and the rows that a crash leaves open, on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from tests.support.postgres import passes_on

TESTS = Path(__file__).parent.parent
FILES = (
    "actions/test_audited.py",
    "actions/test_open_rows.py",
    "pages/audit/test_view.py",
    "pages/create/test_create.py",
    "pages/delete/test_delete_one.py",
    "pages/edit/test_other_forms.py",
    "pages/edit/test_view.py",
)
CHOSEN = (
    "vacant_lease", "confirming_writes", "release_writes", "typed_identity", "yaml_sends_only",
    "deleted_and_audited", "resend", "sent_twice", "carried_out",
    "leaves_the_row_open", "each_filter", "exports_have", "a_nul_in",
)  # fmt: skip


def test_the_forms_and_the_trail_work_on_postgresql(postgres):
    passes_on(postgres, *(str(TESTS / name) for name in FILES), "-k", " or ".join(CHOSEN))
