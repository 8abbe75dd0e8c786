"""A PostgreSQL server that the tests start on this machine."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from sqlalchemy import URL, NullPool, create_engine, text

USER, PASSWORD = "eamp", "s3cret/word"
ATTEMPTS = 5  # another process may take the port between its choice and its use


def program(name: str) -> str | None:
    """Find a program of the server; Debian keeps them off the PATH, in a folder per version."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda folder: float(folder.parent.name),
        reverse=True,
    )
    return shutil.which(
        name, path=os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])
    )


def missing() -> bool:
    """Return whether no server is installed on this machine."""
    return program("initdb") is None or program("postgres") is None


class Server:
    """A server with its data in an empty folder; :meth:`stop` ends it, even if its start failed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data, self.log = folder, folder / "data", folder / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self.how: dict[str, Any] = {"cwd": folder, "stdin": subprocess.DEVNULL}
        if os.getuid() == 0:  # as which a server refuses to run
            user = unprivileged()
            os.chown(folder, user.pw_uid, user.pw_gid)
            self.how |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def start(self) -> None:
        """Make a cluster of databases that asks for passwords, and serve it on a free port."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        secret.chmod(0o644)  # the folder lets nobody else in
        command = [
            program("initdb"),
            "--pgdata",
            str(self.data),
            "--username",
            USER,
            "--pwfile",
            str(secret),
            "--auth",
            "scram-sha-256",
        ]
        made = subprocess.run(
            [*command, "--encoding", "UTF8", "--no-locale", "--no-sync"],
            capture_output=True,
            text=True,
            **self.how,
        )
        assert made.returncode == 0, made.stderr
        for _ in range(ATTEMPTS):
            if self.serves(free_port()):
                return
        raise AssertionError(f"PostgreSQL does not start:\n{self.log.read_text(encoding='utf-8')}")

    def serves(self, port: int) -> bool:
        """Start the server on a port, and return whether it is ready.

        It says so in its own folder; on the port, another server might answer.
        """
        self.port = port
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "fsync": "off",
        }
        command = [
            program("postgres"),
            "-D",
            str(self.data),
            *(f"--{name}={value}" for name, value in settings.items()),
        ]
        with self.log.open("ab") as log:
            self.process = process = subprocess.Popen(command, stdout=log, stderr=log, **self.how)
        note = self.data / "postmaster.pid"
        while process.poll() is None:
            if note.exists() and note.read_text(encoding="utf-8").split()[-1:] == ["ready"]:
                return True
            ended_within(process, 0.05)
        return False

    def stop(self) -> None:
        """End the server at once, whatever is connected."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            if not ended_within(self.process, 30):
                self.process.kill()
        if self.process is not None:
            self.process.wait()

    def address(self, database: str) -> str:
        """Return the address of a database as a user would write it."""
        return URL.create(
            "postgresql", USER, PASSWORD, "127.0.0.1", self.port, database
        ).render_as_string(hide_password=False)

    def new_database(self, name: str) -> str:
        """Create an empty database and return its address."""
        run(self.address("postgres"), f'CREATE DATABASE "{name}"')
        return self.address(name)


def run(url: str, statement: str) -> list[Any]:
    """Run a statement outside of a transaction and return its rows."""
    engine = create_engine(
        url.replace("postgresql://", "postgresql+psycopg://"),
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
    )
    with engine.connect() as connection:
        result = connection.execute(text(statement))
        return list(result) if result.returns_rows else []


def ended_within(process: subprocess.Popen[Any], seconds: float) -> bool:
    """Wait for a process, and return whether it ended in time."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def unprivileged() -> pwd.struct_passwd:
    """Return the user that Debian's package makes for the server, or else ``nobody``."""
    names = {user.pw_name: user for user in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def free_port() -> int:
    """Return a port of this machine that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
