"""Adjusted posteriors of a data set, a file for each of its partitions."""

import hashlib
import json

import numpy as np

from app.core.arrays import AnyFloats, Floats
from app.datasets.adjusted import Output
from app.engines import Progress
from app.estimation import PosteriorBatch, Request, adjust_batch
from app.intake import parse
from app.jobs.context import Context, Result, counted
from app.jobs.estimation import estimated
from app.stored.jobs import StoredJobResult
from models_store.store import UnitOfWork


def run(context: Context) -> Result:
    """The files; those that a run before this one has finished stay as they are."""
    resolved, asked, source = context.resolved(), context.asked, context.version.source
    target = _target(context, resolved.partitions)
    parts = [resolved.digest, context.version.digest, target.tolist()]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    assert asked.output is not None
    root = context.settings.output_root
    output = Output.of(root, asked.output, context.job.id, digest, resolved)
    output.prepare()

    def adjust(posteriors: AnyFloats) -> Floats:
        context.keeping.check()
        batch = PosteriorBatch(np.asarray(posteriors, np.float64))
        return adjust_batch(source, batch, target, Request()).posteriors

    written, counts = [], resolved.skipped
    for number, partition in enumerate(resolved.partitions):
        context.keeping.check()
        written.append(output.write(number, partition, adjust))
        counts = counts.and_(written[-1].counts)
        done = Progress(1, number + 1, len(resolved.partitions), counts.rows)
        context.keeping.progress(done)
    output.finish(written)

    def write(unit: UnitOfWork) -> StoredJobResult:
        return counted(counts).model_copy(update={"output": asked.output, "files": len(written)})

    return Result(write)


def _target(context: Context, partitions: object) -> Floats:
    """The stated priors, or those of an estimate, which is kept for when the job goes on."""
    asked, classes = context.asked, context.version.source.classes
    if asked.target_priors is not None:
        target, _ = parse.stated_priors(asked.target_priors, classes, "/target_priors")
        return target
    state = context.resumed()
    if "target" in state:
        return np.array(state["target"])
    (found,) = estimated(context, partitions, state).estimates.values()
    context.keeping.checkpoint({"target": found.prevalence.tolist()})
    return found.prevalence
