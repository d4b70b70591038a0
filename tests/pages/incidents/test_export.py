"""An incident in files: the contract's fields, nothing that a spreadsheet or a renderer runs."""

from __future__ import annotations

import csv
from datetime import timedelta
from types import SimpleNamespace

import msgspec

from dashboard.lists.declaration import csv_lines
from dashboard.pages.incidents.evidence import affected_leases
from dashboard.pages.incidents.list import FIELDS, file_name, incident_cells, incident_item
from dashboard.pages.incidents.markdown import code, incident_markdown, plain
from leases.domain.incident import Evidence, Source
from tests.support.values.changes import T0
from tests.support.values.incidents import a_story, an_incident

NOW = T0 + timedelta(minutes=5)
EVIL = "=1+1|<img src=x>`**[x](http://evil)\u202e\n# @all"


def markdown(incident, story=None, notes=()) -> str:
    story = story or a_story()
    affected = affected_leases(incident, story, NOW)
    return incident_markdown(incident, affected, story, notes, url="https://x/i/", now=NOW)


def test_an_item_has_the_fields_of_the_contract():
    item = incident_item(an_incident(ended=None), 5)
    assert (*item, "same_time_as") == FIELDS
    assert (item["cause"], item["confidence"], item["ended"]) == ("node_down", "likely", None)
    assert item["began"] == "2026-11-20T12:00:00.123456Z"
    assert item["leases"][0] == {"namespace": "kube-node-lease", "name": "worker-7"}
    assert item["evidence"][1]["source"] == "pods"
    assert item["changes"] == 5
    msgspec.json.encode(item)


def test_a_line_of_csv_is_no_formula():
    lines = csv_lines(FIELDS, [incident_cells(an_incident(sentence=EVIL, writer="=cmd()"), 5)])
    (row,) = csv.DictReader(lines)
    assert tuple(row) == FIELDS
    assert row["writer"] == "'=cmd()"
    assert row["sentence"].startswith("'=1+1|")
    assert row["leases"].split()[0] == "kube-node-lease/worker-7"
    assert row["evidence"].startswith("leases: worker-7 renewed")


def test_a_file_is_named_by_cluster_time_and_cause():
    assert file_name(an_incident(cluster="a b/c")) == "a-b-c-incident-20261120T120000Z-node_down"


def test_markdown_has_facts_evidence_timeline_and_notes():
    note = SimpleNamespace(who="olga", at=T0, text="Rack 14.\n\nPower *tripped*.")
    text = markdown(an_incident(), notes=[note])
    assert text.startswith("# worker-7's heartbeat stopped at 12:00:00; 2 elections ran out")
    assert "| Cause | Node down, likely. The node of the holder stopped. |" in text
    assert "| Ended | 20 Nov 2026 12:00:41.123, after 41 s |" in text
    assert "2. keda/operator.keda.sh ran out; it was held by keda-1 (Pods)" in text
    assert "**Events could not be read.**" in text
    assert (
        "| 20 Nov 2026 12:00:12.123 | `keda/operator.keda.sh` | `operator.keda.sh` was taken over "
        "by `keda-2` from `keda-1` after 2.0 s without a holder. |"
    ) in text
    assert "| `kube-system/scheduler` | `cp-1` | `cp-2` | 16 s |" in text
    assert "**olga**, 20 Nov 2026 12:00:00.123:\n\n> Rack 14.\n>\n> Power \\*tripped\\*." in text


def test_markdown_tells_the_evidence_by_time():
    told = [Evidence(f"at 12:0{minute}:00", Source.PODS) for minute in (3, 1)]
    text = markdown(an_incident(evidence=tuple(told)))
    assert "1. at 12:01:00 (Pods)\n2. at 12:03:00 (Pods)" in text


def test_markdown_of_an_incident_that_goes_on_names_its_moment():
    text = markdown(an_incident(ended=None))
    assert "| Ended | went on up to 20 Nov 2026 12:05:00.123, for 5 m" in text


def test_hostile_text_does_not_become_markup():
    story = [msgspec.structs.replace(a_story()[0], holder=EVIL, previous_holder=EVIL)]
    evidence = (Evidence(EVIL, Source.PODS),)
    note = SimpleNamespace(who="<b>", at=T0, text=f"{EVIL}\n- [ ] x\n1. x\n===")
    one = an_incident(sentence=EVIL, evidence=evidence, hosts=(EVIL,))
    text = markdown(one, story, [note])
    escaped = "1+1\\|&lt;img src=x>\\`\\*\\*\\[x\\](http\\://evil)\\\\u202e \\# @<!-- -->all"
    assert f"# \\={escaped}\n" in text
    assert f"1. \\={escaped} (Pods)" in text
    assert "``=1+1\\|<img src=x>`**[x](http://evil)\\u202e # @all``" in text
    assert "> \\- \\[ \\] x\n> 1\\. x\n> \\===" in text
    assert "\u202e" not in text
    assert not [line for line in text.splitlines() if line.startswith("# ")][1:]


def test_no_character_ends_a_code_span():
    assert code("a`b``c") == "```a`b``c```"
    assert code("`") == "`` ` ``"
    assert code("") == "` `"
    assert plain("+ x") == "\\+ x"
    assert plain("www.x mail@x") == "www\\.x mail@<!-- -->x"
