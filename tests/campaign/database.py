"""Faults of the database: locked, damaged, and with connections that are cut."""

import os
import random
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from tests.campaign.processes import Running, run
from tests.campaign.stores import CELLS, Work, check, sweep, undisturbed
from tests.campaign.tally import Options, Tally

CUTS = 3


def database(options: Options) -> Tally:
    """Try all faults of the database on a sweep."""
    tally, chance = Tally("database"), random.Random(f"{options.seed}/database")
    work = sweep(options.folder / "recipe.yaml")
    if (calm := undisturbed(work, options, tally)) is None:
        return tally
    locked(work, options.folder, calm, chance, tally)
    for number in range(4):
        damaged(work, options.folder / f"damaged {number}", calm, number, chance, tally)
    cut_connections(work, options.folder, calm, chance, tally)
    return tally


def locked(work: Work, folder: Path, calm: Path, chance: random.Random, tally: Tally) -> None:
    """Hold the lock of the database for seconds, several times, while a sweep runs."""
    disturbed = folder / "locked"
    running = Running(work.command(disturbed), folder / "locked output")
    for _ in range(CUTS):
        while not work.busy(disturbed, running.children()) and not running.wait(0.1):
            pass
        if running.wait(chance.uniform(0, 1)):
            break
        with closing(sqlite3.connect(disturbed / "runs.db", timeout=60)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(chance.uniform(1, 4))
            connection.execute("ROLLBACK")
        tally.count("locks")
    ended = running.ended()
    if ended.status != 0:
        tally.fault(f"a sweep with a locked database ended with {ended.last_words}")
    check(work, disturbed, calm, tally)


def damaged(
    work: Work, disturbed: Path, calm: Path, number: int, chance: random.Random, tally: Tally
) -> None:
    """Damage a finished store: the sweep must say so, or still have all its results."""
    shutil.copytree(calm, disturbed)
    file = disturbed / "runs.db"
    content = bytearray(file.read_bytes())
    if number == 0:
        content = bytearray(b"no database at all\n" * 1000)
    elif number == 1:
        del content[len(content) // 2 :]
    else:
        for _ in range(20):
            start = chance.randrange(100, len(content) - 256)
            content[start : start + 256] = chance.randbytes(256)
    file.write_bytes(content)
    ended = run(work.command(disturbed), disturbed.with_name("damaged output"))
    tally.count("damaged databases")
    tally.say(f"damaged database: {ended.last_words}")
    if ended.status == 0:
        check(work, disturbed, calm, tally)
    elif ended.status != 2 or "Traceback" in ended.err:
        tally.fault(f"a sweep with a damaged database ended with {ended.last_words}")


def cut_connections(
    work: Work, folder: Path, calm: Path, chance: random.Random, tally: Tally
) -> None:
    """Cut all connections to a PostgreSQL server, several times, and restart it once."""
    try:
        # imported here because psycopg and a server are optional
        import psycopg  # noqa: F401
        from tests.experiments import postgresql
    except ImportError:
        tally.notes.append("no cut connections: psycopg is not installed")
        return
    if postgresql.missing():
        tally.notes.append("no cut connections: no PostgreSQL server is installed")
        return
    place = folder / "server"
    place.mkdir()
    for each in (folder, *folder.parents):  # the server runs as another user
        if each.stat().st_uid == os.getuid() and not each.stat().st_mode & 0o001:
            each.chmod(each.stat().st_mode | 0o001)
    server = postgresql.Server(place)
    try:
        server.start()
        url = server.new_database("campaign")
        disturbed, cuts = folder / "connections", 0
        while True:
            running = Running(
                work.command(disturbed), folder / "connections output", {"EAMP_STORAGE": url}
            )
            while cuts <= CUTS and not running.wait(chance.uniform(4, 10)):
                cuts += 1
                tally.count("cut connections")
                postgresql.run(
                    server.address("postgres"),
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = 'campaign'",
                )
            ended = running.ended(600)
            tally.say(f"cut connections: {ended.last_words}")
            if ended.status == 0:
                break
            if ended.status != 2 or "Traceback" in ended.err or cuts > 20:
                tally.fault(f"a sweep whose connections are cut ended with {ended.last_words}")
                return
        states = dict(
            tuple(row)
            for row in postgresql.run(url, "SELECT state, count(*) FROM trials GROUP BY state")
        )
        if states.get("COMPLETE") != CELLS:
            tally.fault(f"{states} trials after cut connections instead of {CELLS}")
        same_table(disturbed, calm, tally)
    finally:
        server.stop()


def same_table(folder: Path, calm: Path, tally: Tally) -> None:
    """Compare the tables of two sweeps, but for their times."""
    # heavy: only needed here
    import pandas as pd

    tables = []
    for each in (folder, calm):
        table = pd.read_csv(each / "cells.csv").drop(columns=["seconds", "threads"])
        tables.append(table.sort_index(axis=1))
    if not tables[0].equals(tables[1]):
        tally.fault(f"the tables in {folder} and {calm} differ")
