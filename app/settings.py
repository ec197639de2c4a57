"""Configuration from the environment: PRIORSHIFT_*."""

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from app import hostnames
from app.datasets.roots import Root, Roots
from app.logs import Format

PREFIX = "PRIORSHIFT_"
OF_COMMANDS = ("HOST", "KEY", "PORT", "URL", "WORKERS")
"""What commands take from the environment beside the settings: options of theirs."""
LINK = re.compile(
    r"(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""What Kubernetes sets in every container for a Service whose name begins with priorshift."""
ADDRESS = re.compile(r"(tcp|udp|sctp)://")
"""Begins what it sets as ``…_PORT``."""
TAKEN = (
    "is what Kubernetes sets for a Service of the name priorshift: set enableServiceLinks: false "
    "in the pod, or name the Service otherwise"
)
Scheduler = Annotated[str, Field(pattern=r"^(tcp|tls)://[A-Za-z0-9._:\[\]-]+$")]
Origin = Annotated[str, Field(pattern=r"^https?://[a-z0-9.:\[\]-]+$")]


def _roots(given: list[str]) -> list[str]:
    Roots.of(given)
    return given


def _root(given: str) -> str:
    Root.of(given)
    return given


class Settings(BaseSettings):
    """Every setting has a default that suits a laptop."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, hide_input_in_errors=True)

    key_secret: SecretStr | None = None
    key_secret_file: Path | None = None
    admin_key_file: Path | None = None
    database_url: str = Field("sqlite:///priorshift.db", repr=False)
    log_format: Format = "auto"
    allowed_hosts: Annotated[list[str], AfterValidator(hostnames.checked)] = []
    cors_origins: list[Origin] = []
    max_body_bytes: int = Field(128 * 1024 * 1024, ge=1024)
    max_inflated_bytes: int = Field(128 * 1024 * 1024, ge=1024)
    max_held_bytes: int = Field(512 * 1024 * 1024, ge=1024)
    max_rows: int = Field(5_000_000, ge=1)
    body_seconds: float = Field(120.0, gt=0)
    request_seconds: float = Field(30.0, gt=0)
    large_body_bytes: int = Field(1024 * 1024, ge=0)
    large_slots: int = Field(2, ge=1)
    small_slots: int = Field(16, ge=1)
    queue: int = Field(64, ge=0)
    max_classes: int = Field(1000, ge=1)
    version_cache_bytes: int = Field(64 * 1024 * 1024, ge=0)
    selection_seconds: float = Field(1.0, ge=0)
    database_pool_size: int = Field(10, ge=1)
    database_busy_seconds: float = Field(10.0, gt=0)
    retain_estimates_days: int | None = Field(None, ge=1, le=36_500)
    webhook_allowed_hosts: list[str] = []
    training_seconds: float = Field(300.0, gt=0)
    training_wait_seconds: float = Field(30.0, ge=0)
    data_roots: Annotated[list[str], AfterValidator(_roots)] = []
    output_root: Annotated[str, AfterValidator(_root)] | None = None
    dask_scheduler: Scheduler | None = None
    job_slots: int = Field(1, ge=1, le=64)
    data_memory_bytes: int = Field(512 * 1024 * 1024, ge=64 * 1024 * 1024)


class Misnamed(ValueError):
    """Names in the environment that mean nothing; ``messages``: a line for each, no values."""

    def __init__(self, messages: list[str]) -> None:
        self.messages = messages
        super().__init__("; ".join(messages))


def require_names(environment: Mapping[str, str]) -> None:
    """``Misnamed`` where a name is no setting: it was meant to be one, and would do nothing."""
    known = [*map(str.upper, Settings.model_fields), *OF_COMMANDS]
    found = []
    for given, value in sorted(environment.items()):
        name = given.upper().removeprefix(PREFIX)
        if name == given.upper() or LINK.fullmatch(name):
            continue
        linked = name.endswith("PORT") and ADDRESS.match(value)
        if name == "PORT" and linked:
            found.append(f"{given} {TAKEN}")
        elif name not in known and not linked:
            near = get_close_matches(name, known, 1)
            advice = f"did you mean {PREFIX}{near[0]}?" if near else "take it away"
            found.append(f"{given} is no setting of this release; {advice}")
    if found:
        raise Misnamed(found)


def configured() -> Settings:
    """The settings of the environment; ``Misnamed`` where it has others."""
    require_names(os.environ)
    return Settings()


def mistakes(error: ValidationError | SettingsError | Misnamed) -> list[str]:
    """A line for each setting that is wrong, under the name that the operator gave it."""
    if isinstance(error, Misnamed):
        return error.messages
    if isinstance(error, SettingsError):
        named = re.search(r'field "(\w+)"', str(error))
        name = named[1].upper() if named else "*"
        return [f'{PREFIX}{name} must be a JSON list, as ["one", "another"]']
    return [
        f"{PREFIX}{'.'.join(map(str, found['loc'])).upper()}: "
        + found["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        for found in error.errors(include_url=False, include_context=False, include_input=False)
    ]
