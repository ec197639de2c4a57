"""The image's command run outside an image, and the two container files read."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.end_to_end.processes import free_port, ready
from tests.jobs.places import placed
from tests.patience import Deadline, patience

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def instruction(name: str) -> list[str]:
    found = re.findall(rf"^{name} (\[.*\])$", DOCKERFILE, re.MULTILINE)
    return list(json.loads(found[-1]))


def variables() -> dict[str, str]:
    """The ENV of the final stage."""
    final = DOCKERFILE.split("FROM")[-1].replace("\\\n", " ")
    block = re.search(r"^ENV (.*)$", final, re.MULTILINE)
    assert block is not None
    return dict(part.split("=", 1) for part in block.group(1).split() if "=" in part)


def test_the_entry_point_serves_as_in_the_image(database_url: str, tmp_path: Path) -> None:
    port = free_port()
    key = tmp_path / "admin-key"
    key.write_text("k" * 64)
    environment = {
        **os.environ,
        **{k: v for k, v in variables().items() if k != "PATH"},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PRIORSHIFT_DATABASE_URL": database_url,
        "PRIORSHIFT_PORT": str(port),
        "PRIORSHIFT_ADMIN_KEY_FILE": str(key),
    }
    entry = instruction("ENTRYPOINT")
    subprocess.run(
        [*entry, *COMPOSE["services"]["migration"]["command"]], env=environment, check=True
    )
    health = re.search(r"HEALTHCHECK .* CMD (\[.*\])", DOCKERFILE)
    assert health is not None
    check = json.loads(health.group(1))
    assert subprocess.run(check, env=environment, check=False).returncode == 1
    process = subprocess.Popen([*entry, *instruction("CMD")], env=environment)
    try:
        ready(f"http://127.0.0.1:{port}", process)
        assert subprocess.run(check, env=environment, check=False).returncode == 0
    finally:
        process.terminate()
        assert process.wait(timeout=patience(30)) in (0, -15)


def test_the_dockerfile_passes_hadolint() -> None:
    command = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert command is not None
    found = subprocess.run(
        [command, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout


def test_the_image_is_lean_and_unprivileged() -> None:
    final = DOCKERFILE.split("FROM")[-1]
    assert "USER 10001" in final
    assert "apt-get" not in final
    assert not re.search(r"\bpip3? +install\b", final)
    assert "/site-packages" in final
    assert "--from=build" in final


def healthy(check: list[str], process: "subprocess.Popen[bytes]") -> None:
    """Wait until a health check of the image passes outside one."""
    assert check[:2] == ["CMD", "priorshift"]
    command = [sys.executable, "-m", "app", *check[2:]]
    deadline = Deadline(30)
    while subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode != 0:
        assert process.poll() is None
        assert not deadline.over()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The address of the composition's scheduler, with a worker, outside an image."""
    scheduler = free_port()
    processes = []
    try:
        for name in ("scheduler", "worker"):
            service, port = COMPOSE["services"][name], free_port()
            given = {
                "dask": str(Path(sys.executable).parent / "dask"),
                "tcp://scheduler:8786": f"tcp://127.0.0.1:{scheduler}",
                "8786": str(scheduler),
                "127.0.0.1:8787": f"127.0.0.1:{port}",
                "/tmp": str(tmp_path),
            }
            words = [*service["entrypoint"], *service["command"]]
            command = [given.get(word, word) for word in words]
            quiet = subprocess.DEVNULL
            processes.append(subprocess.Popen(command, stdout=quiet, stderr=quiet))
            check = service["healthcheck"]["test"]
            healthy([word.replace("8787", str(port)) for word in check], processes[-1])
        yield f"tcp://127.0.0.1:{scheduler}"
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(timeout=patience(30))


def test_jobs_run_on_the_cluster_of_the_composition(
    cluster: str, sqlite_url: str, tmp_path: Path
) -> None:
    with placed(sqlite_url, tmp_path, dask_scheduler=cluster) as place:
        job = place.done(place.job(kind="estimate")["id"])
        assert (job["state"], job["rows"]) == ("done", 1100)


class TestCompose:
    services = COMPOSE["services"]
    cluster = ("scheduler", "worker")

    @pytest.mark.parametrize("name", cluster)
    def test_the_cluster_is_a_profile_of_the_same_image(self, name: str) -> None:
        service = self.services[name]
        assert service["profiles"] == ["cluster"]
        assert service["build"] == self.services["app"]["build"]
        assert service["networks"] == ["cluster"]
        assert not {"secrets", "ports", "environment"} & set(service)

    def test_who_reaches_whom(self) -> None:
        """Whoever reaches Dask can run code there; the database is asked by two only."""
        inside: dict[str, set[str]] = {}
        for name, service in self.services.items():
            for network in service.get("networks", ["default"]):
                inside.setdefault(network, set()).add(name)
        assert inside == {
            "cluster": {"app", "scheduler", "worker"},
            "database": {"app", "database", "migration"},
            "default": {"app", "grafana", "prometheus"},
        }
        assert COMPOSE["networks"] == {
            "cluster": {"internal": True},
            "database": {"internal": True},
        }

    @pytest.mark.parametrize("name", services)
    def test_it_can_do_no_more_than_it_must(self, name: str) -> None:
        service = self.services[name]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["read_only"] is True
        assert service["pids_limit"] <= 512
        assert "/tmp" in service["tmpfs"]
        assert not {"cap_add", "devices", "privileged", "network_mode", "pid"} & set(service)
        assert not any("docker.sock" in volume for volume in service.get("volumes", ()))

    def test_the_database_does_not_start_as_root(self) -> None:
        database = self.services["database"]
        assert database["user"] == "postgres"
        # Its socket lies here; the image's folder is on the read-only root.
        assert "/run/postgresql" in database["tmpfs"]

    def test_the_workers_see_what_the_app_sees(self) -> None:
        app, worker = self.services["app"], self.services["worker"]
        assert worker["deploy"] == {"replicas": 2}
        assert worker["volumes"] == app["volumes"]
        (volume,) = app["volumes"]
        assert volume.endswith(":/scores:ro")
        settings = app["environment"]
        assert json.loads(settings["PRIORSHIFT_DATA_ROOTS"]) == ["/scores"]
        # Without a value it comes from the environment of the composition, or is not set.
        assert settings["PRIORSHIFT_DASK_SCHEDULER"] is None

    def test_the_app_waits_for_the_migration_and_the_database(self) -> None:
        assert self.services["app"]["depends_on"] == {
            "database": {"condition": "service_healthy"},
            "migration": {"condition": "service_completed_successfully"},
        }
        assert self.services["migration"]["depends_on"] == {
            "database": {"condition": "service_healthy"}
        }
        assert "healthcheck" in self.services["database"]

    def test_the_app_gets_its_keys_as_files(self) -> None:
        app = self.services["app"]
        for name in app["secrets"]:
            assert COMPOSE["secrets"][name]["file"] == f"./secrets/{name}"
        files = {f"/run/secrets/{name}" for name in app["secrets"]}
        assert files == {v for k, v in app["environment"].items() if k.endswith("_FILE")}
        assert "/tmp" in app["tmpfs"]

    def test_what_people_open_is_published_and_on_loopback(self) -> None:
        published = {name: s["ports"] for name, s in self.services.items() if "ports" in s}
        assert published == {"app": ["127.0.0.1:8000:8000"], "grafana": ["127.0.0.1:3000:3000"]}

    @pytest.mark.parametrize("name", ["app", "migration", "database"])
    def test_no_password_is_written_down(self, name: str) -> None:
        for key, value in self.services[name]["environment"].items():
            if "PASSWORD" in key or "://" in (value or ""):
                assert "${POSTGRES_PASSWORD:?" in value
