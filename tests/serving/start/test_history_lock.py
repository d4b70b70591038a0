"""One `serve` at a time over one SQLite history."""

from __future__ import annotations

from tests.support.processes import free_port, get, manage, serving


def test_a_second_serve_on_one_history_is_refused_with_a_sentence(tmp_path):
    data = tmp_path / "data"
    history = f"sqlite:///{data / 'leaseboard.sqlite3'}"
    cluster = ("--cluster", "c=url:http://127.0.0.1:1")
    ports = ("--port", str(free_port()), "--api-port", str(free_port()))
    with serving(data, *cluster) as server:
        for other, extra in (
            (data, {}),
            (tmp_path / "other", {"LEASEBOARD_DATABASE_URL": history}),
        ):
            done = manage(other, "serve", *ports, *cluster, **extra)
            assert done.returncode == 1
            assert "Another serve writes the history in" in done.stderr
            assert "PostgreSQL" in done.stderr
            assert len(done.stderr.strip().splitlines()) == 1
            assert done.stdout == ""
        assert get(f"{server.url}/healthz")[0] == 200
        server.kill()
        with serving(data, *cluster):  # the kernel let go of the lock
            pass
