"""Who calls, and the trail that a write leaves."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from app.access.callers import ANYONE, Caller
from app.clock import now
from models_store.errors import NotFound
from models_store.records import AuditRecord
from models_store.store import UnitOfWork


@dataclass(frozen=True)
class Trail:
    """A writing request, as the trail tells it."""

    caller: Caller
    action: str
    target: str
    address: str

    def note(self, unit: UnitOfWork) -> None:
        """Tell it, in the transaction that writes."""
        caller = self.caller
        unit.audit.add(
            AuditRecord(now(), caller.key_id, caller.name, self.action, self.target, self.address)
        )


def seen(caller: Caller, model: str) -> None:
    """``NotFound`` for a model that does not exist for the caller."""
    if not caller.sees(model):
        raise NotFound(f"there is no model named {model}")


async def _caller(request: Request) -> Caller:
    caller: Caller = request.scope.get("caller", ANYONE)
    return caller


async def _trail(request: Request, caller: "CallerDep") -> Trail:
    action = f"{request.method} {request.scope['route'].path}"
    address = "unknown" if request.client is None else request.client.host[:64]
    # The path as it came, percent-encoded: plain ASCII whatever it stands for.
    return Trail(caller, action, request.scope["raw_path"].decode("latin-1"), address)


CallerDep = Annotated[Caller, Depends(_caller)]
TrailDep = Annotated[Trail, Depends(_trail)]
