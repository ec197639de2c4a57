"""That no two jobs write into each other's folders, asked at one moment too."""

from app.access.callers import Caller
from app.core.errors import InvalidInput
from app.datasets import paths
from app.datasets.adjusted import Output
from app.datasets.places import overlap
from app.stored.jobs import StoredJobRequest
from models_store.store import UnitOfWork


def claim(unit: UnitOfWork, output: Output, caller: Caller) -> None:
    """``InvalidInput`` where a job that is not over writes at, in or around ``output``.

    What is over has left its files, which ``Output.require_apart`` comes upon, or nothing. The
    claim is the job that the transaction adds.
    """
    for job in unit.jobs.writing():
        path = str(StoredJobRequest.read(job.asked).request["output"])
        if overlap(output.place, paths.parse(path, "/output").segments):
            which = f"job {job.id} ({path!a})" if caller.sees(job.model) else "another job"
            message = f"overlaps with the output of {which}, which is not over; name a new one"
            raise InvalidInput.at("/output", message)
