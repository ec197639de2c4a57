"""The endpoint that FastAPI's own tutorial leads to, for comparison: pydantic lists, one array.

python -m benchmarks.idiomatic --port 9000
"""

import argparse
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI, Request
from pydantic import BaseModel

from app.core.prevalence.adjustment.posteriors import adjust
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood

app = FastAPI()
SOURCES = {2: np.array([0.8, 0.2]), 3: np.full(3, 1 / 3)}


class Batch(BaseModel):
    """Rows of posteriors."""

    posteriors: list[list[float]]


@app.post("/estimates")
def estimates(batch: Batch) -> dict[str, Any]:
    """The estimate alone."""
    rows = np.array(batch.posteriors)
    solution = mle(Likelihood.of(rows, SOURCES[rows.shape[1]]))
    return {"prevalence": solution.prevalence.tolist(), "gain": solution.gain}


@app.post("/posteriors")
def posteriors(batch: Batch) -> dict[str, Any]:
    """The adjusted rows."""
    rows = np.array(batch.posteriors)
    source = SOURCES[rows.shape[1]]
    solution = mle(Likelihood.of(rows, source))
    return {"posteriors": adjust(rows, source, solution.prevalence)[0].tolist()}


@app.post("/echo")
async def echo(batch: Batch) -> Batch:
    """What came."""
    return batch


@app.post("/drop")
async def drop(request: Request) -> dict[str, int]:
    """How much came."""
    return {"bytes": len(await request.body())}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvicorn.run(app, port=parser.parse_args().port, log_level="warning")
