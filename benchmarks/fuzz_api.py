"""Generated requests to a real server, from its own description: python -m benchmarks.fuzz_api

schemathesis calls every route with data that fits /openapi.json and with data that does not. It
checks that nothing is a 5xx, that status, headers, media type and body are as documented, and that
no 4xx is longer than 64 kB.
The same seed gives the same data. The service has keys, and models that the addresses name.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx

from benchmarks.service import service

ADMIN = "fuzz" * 10
PHASES = "examples,coverage,fuzzing,stateful"
CONFIGURATION = Path(__file__).with_name("fuzz_api.toml")
VALIDATION = {
    "labels": ["a", "b", "a", "b"] * 30,
    "posteriors": [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]] * 30,
}
TRAINING = {
    "features": [[0.0, "x"], [1.0, "y"], [0.2, "y"], [0.9, "x"]] * 10,
    "labels": ["a", "b"] * 20,
    "feature_names": ["one", "two"],
    "categorical": ["two"],
    "learner": "logistic-regression",
    "folds": 2,
}
SOURCES = {
    "cards": {"validation": VALIDATION},
    "counted": {"confusion_matrix": [[90, 10], [5, 95]]},
    "trained": {"training": TRAINING},
}
OTHERS: dict[str, dict[str, Any]] = {
    "machines": {
        "kind": "versatile-tree",
        "classes": ["a", "b"],
        "source": {
            "training": {
                "features": [[0.0, 3], [1.0, 1], [0.2, 2], [0.9, 1]] * 20,
                "labels": ["a", "b"] * 40,
                "feature_names": ["one", "two"],
            }
        },
    },
    "city": {
        "kind": "regression-mixture",
        "source": {
            "parameters": {
                "proportions": [0.4, 0.6],
                "coefficients": [[1.0, 2.0], [-2.0, 0.5]],
                "sigmas": [0.3, 0.5],
            }
        },
    },
}
SAMPLES: dict[str, dict[str, Any]] = {
    "machines": {"features": [[32.0, 3], [33.8, 1], [32.4, 2], [33.6, 1]] * 10},
    "city": {"x": [[-1.0], [0.0], [0.5], [2.0]], "y": [-1.0, 1.2, -1.7, 5.1]},
}
DISPOSABLE = ("old", "older")


def populate(base: str) -> dict[str, str]:
    """Models under the names that the configuration knows; ids of what is kept, by variable."""
    with httpx.Client(base_url=base, headers=bearer(), timeout=60) as client:
        for name in (*SOURCES, *DISPOSABLE):
            source = SOURCES.get(name, SOURCES["counted"])
            body = {"name": name, "classes": ["a", "b"], "source": source}
            client.post("/v1/models", json=body).raise_for_status()
            alias = f"/v1/models/{name}/aliases/champion"
            client.put(alias, json={"version": 1}).raise_for_status()
        batch = {"predictions": ["a", "b", "b"]}
        kept = client.post("/v1/models/cards/versions/1/estimates", json=batch)
        labels = {"labels": ["a", "b", "b"], "estimate": kept.raise_for_status().json()["id"]}
        client.post("/v1/models/cards/versions/1/evaluations", json=labels).raise_for_status()
        ids = {"FUZZ_ESTIMATE": str(labels["estimate"])}
        for name, other in OTHERS.items():
            client.post("/v1/models", json={"name": name, **other}).raise_for_status()
            address = f"/v1/models/{name}/versions/1/adaptations"
            adapted = client.post(address, json=SAMPLES[name]).raise_for_status().json()
            ids[f"FUZZ_{name.upper()}"] = adapted["id"]
        return ids


def bearer() -> dict[str, str]:
    """The key of the run."""
    return {"Authorization": f"Bearer {ADMIN}"}


def fuzz(base: str, examples: int, seed: int, phases: str = PHASES) -> int:
    """Run schemathesis on a service; its exit status, 0 where nothing was found."""
    environment = {**os.environ, "FUZZ_KEY": ADMIN, **populate(base)}
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIGURATION)]
    options = [f"--max-examples={examples}", f"--seed={seed}", f"--phases={phases}"]
    with tempfile.TemporaryDirectory() as folder:
        description = Path(folder) / "openapi.json"
        answer = httpx.get(f"{base}/openapi.json", headers=bearer(), timeout=60).raise_for_status()
        description.write_bytes(answer.content)
        run = [*command, "run", str(description), f"--url={base}", *options]
        environment["PYTHONPATH"] = str(Path(__file__).parents[1])
        return subprocess.run(run, env=environment, cwd=folder, check=False).returncode


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=60, help="the most for each route")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--phases", default=PHASES)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "admin-key"
        key.write_text(ADMIN)
        with service(admin_key_file=str(key), key_secret="fuzz " * 10) as running:
            sys.exit(fuzz(running.base, arguments.examples, arguments.seed, arguments.phases))


if __name__ == "__main__":
    main()
