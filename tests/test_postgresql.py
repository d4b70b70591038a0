"""What asks the database, once more on PostgreSQL, in one run, for each takes seconds to begin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.postgres import passes_on

TESTS = Path(__file__).parent
FORMS = (
    "confirming_writes", "resend", "sent_twice", "carried_out", "leaves_the_row_open",
    "each_filter", "exports_have", "a_nul_in",
)  # fmt: skip
# Of each folder or file all tests, or those with one of these words in their names: what asks in
# SQL of its own, or meets a constraint. What is drawn of the answer is the same on both.
Chosen = dict[str, tuple[str, ...]]
# Where two processes meet: locks, constraints, and what a database tells others.
MEETINGS: Chosen = {
    "history/write/test_many_clusters.py": (),
    "history/write/test_replicas.py": (),
    "access/people/test_people.py": ("last_admin",),
    "actions/test_audited.py": FORMS,
    "serving/tasks/test_two_senders.py": (),
}
EVERYTHING: Chosen = {
    "history": (),
    "access/rights/test_rights_reader.py": (),
    "access/people/test_people.py": ("last_admin",),
    "access/wall/test_screens.py": ("gets_a_code", "runs_out", "tries_at_once", "is_seen"),
    "actions/test_audited.py": FORMS,
    "actions/test_guarded_write.py": ("sent_twice",),
    "actions/test_unanswered_writes.py": FORMS,
    "pages/audit/test_view.py": FORMS,
    "pages/clusters/test_clusters.py": ("labels", "pause", "removing", "encrypted"),
    "pages/edit/test_odd_holders.py": ("released",),
    "pages/edit/test_view.py": FORMS,
    "pages/saved_views/test_saved_views.py": ("the_owner", "starts_with_a_view", "a_nul_in"),
    "pages/search/test_search.py": ("deleted_lease",),
    "pages/several/test_history_all.py": ("next_leads",),
    "pages/several/test_incidents_all.py": ("lose_and_repeat", "beside"),
    "pages/several/test_timeline_all.py": ("sums_of",),
    "pages/timeline/test_changed.py": (),
    "serving/requests/test_slow_history.py": (),
    "serving/tasks/test_added_clusters.py": (),
    "serving/tasks/test_deletions.py": ("stop", "dead"),
    "serving/tasks/test_two_senders.py": (),
}


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(MEETINGS, id="meetings", marks=pytest.mark.brief),
        pytest.param(EVERYTHING, id="everything", marks=pytest.mark.long),
    ],
)
def test_the_same_tests_pass_on_postgresql(postgres, chosen):
    passes_on(postgres, *(test for name, words in chosen.items() for test in selected(name, words)))


def selected(name: str, words: tuple[str, ...]) -> list[str]:
    """What pytest is asked to run of a file."""
    path = TESTS / name
    if not words:
        return [str(path)]
    named = re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    found = [f"{path}::{test}" for test in named if any(word in test for word in words)]
    assert found, name
    return found
