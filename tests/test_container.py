"""The image's command run outside an image, and the two container files read."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.end_to_end.processes import free_port, ready

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
        assert process.wait(timeout=30) in (0, -15)


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
    assert "pip" not in final
    assert "--from=build" in final


class TestCompose:
    services = COMPOSE["services"]

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
            if "PASSWORD" in key or "://" in value:
                assert "${POSTGRES_PASSWORD:?" in value
