"""PostgreSQL and MySQL (or MariaDB) in a folder of their own, whose connections are ended now and then."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import sqlalchemy

PATIENCE = 60.0
"""Seconds for a database to come up."""


@dataclass(frozen=True)
class Database:
    """A kind of database: what it needs, how it is started, and how all its connections are ended."""

    driver: str
    package: str
    programs: tuple[str, ...]
    install: str
    served: Callable[[Path], AbstractContextManager[str]]
    connections: str
    end: str


def _owner() -> str | None:
    """PostgreSQL does not run as root; its own user does."""
    return "postgres" if os.geteuid() == 0 else None


@contextmanager
def _postgresql(folder: Path) -> Iterator[str]:
    place, user = folder / "postgresql", _owner()
    place.mkdir()
    if user:
        folder.chmod(0o711)
        shutil.chown(place, user)
    data = str(place / "data")
    subprocess.run(
        ["initdb", "-D", data, "-A", "trust", "-U", "mlflow"], check=True, user=user, stdout=subprocess.DEVNULL
    )
    options = f"-k {place} -c listen_addresses=''"
    start = ["pg_ctl", "-D", data, "-o", options, "-l", str(place / "log"), "-w", "start"]
    subprocess.run(start, check=True, user=user, stdout=subprocess.DEVNULL)
    try:
        yield f"postgresql+psycopg://mlflow@/postgres?host={place}"
    finally:
        subprocess.run(["pg_ctl", "-D", data, "-m", "fast", "stop"], user=user, stdout=subprocess.DEVNULL, check=False)


@contextmanager
def _mysql(folder: Path) -> Iterator[str]:
    place, user = folder / "mysql", getpass.getuser()
    place.mkdir()
    data = f"--datadir={place}/data"
    make = ["mariadb-install-db", "--no-defaults", data, f"--user={user}", "--auth-root-authentication-method=normal"]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    door = f"{place}/door"
    with (place / "log").open("wb") as log:
        command = ["mariadbd", "--no-defaults", data, f"--socket={door}", "--skip-networking", f"--user={user}"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        address = f"mysql+pymysql://root@localhost/{{}}?unix_socket={door}"
        _wait(address.format(""))
        with sqlalchemy.create_engine(address.format("")).connect() as connection:
            connection.execute(sqlalchemy.text("create database mlflow character set utf8mb4"))
        yield address.format("mlflow")
    finally:
        process.terminate()
        process.wait(30)


def _wait(uri: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            sqlalchemy.create_engine(uri).connect().close()
        except sqlalchemy.exc.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


POSTGRESQL = Database(
    driver="psycopg",
    package="'psycopg[binary]'",
    programs=("initdb", "pg_ctl"),
    install="apt-get install postgresql, and put /usr/lib/postgresql/VERSION/bin on the PATH",
    served=_postgresql,
    connections="select pid from pg_stat_activity where usename = 'mlflow' and pid <> pg_backend_pid()",
    end="select pg_terminate_backend({})",
)
MYSQL = Database(
    driver="pymysql",
    package="pymysql",
    programs=("mariadb-install-db", "mariadbd"),
    install="apt-get install mariadb-server",
    served=_mysql,
    connections="select id from information_schema.processlist where db = 'mlflow' and id <> connection_id()",
    end="kill {}",
)


@contextmanager
def interrupted(kind: Database, uri: str, rate: float, seed: int) -> Iterator[Callable[[], dict[str, int]]]:
    """End all connections now and then: at a rate of 0.03 every 7 to 20 seconds."""
    counts, over = {"ended": 0}, threading.Event()
    chance = Random(seed)  # noqa: S311 - no secret
    engine = sqlalchemy.create_engine(uri, isolation_level="AUTOCOMMIT")

    def interrupt() -> None:
        while not over.wait(chance.uniform(0.2, 0.6) / rate):
            with engine.connect() as connection:
                for (number,) in connection.execute(sqlalchemy.text(kind.connections)).all():
                    with suppress(sqlalchemy.exc.DBAPIError):  # it has just ended by itself
                        connection.execute(sqlalchemy.text(kind.end.format(int(number))))
                        counts["ended"] += 1

    thread = threading.Thread(target=interrupt, daemon=True)
    if rate:
        thread.start()
    try:
        yield lambda: counts
    finally:
        over.set()
        if rate:
            thread.join(10)
        engine.dispose()
