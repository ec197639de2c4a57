"""Bodies that work as pasted at /docs, on an empty service, from the top to the bottom.

They tell one story: cards, where fraud was one row in a hundred, and a help desk's tickets.
"""

from collections.abc import Mapping

from app.core.json_types import JsonObject

VERSION = "/v1/models/{name}/versions/{version}"
ROWS = [[0.97, 0.03], [0.2, 0.8], [0.99, 0.01], [0.6, 0.4], [0.05, 0.95], [0.98, 0.02]]
LABELS = ["legit", "fraud", "legit", "legit", "fraud", "legit"]
COUNTED = {
    "class_counts": {"legit": 9900, "fraud": 100},
    "confusion_matrix": [[9800, 100], [30, 70]],
}
WORDS = [[3, 0], [2, 1], [0, 3], [4, 1], [1, 4], [0, 2], [5, 0], [1, 3], [2, 0], [0, 4]]
TOPICS = ["login", "login", "billing", "login", "billing", "billing", "login", "billing"]
TRAINED = {
    "features": WORDS,
    "labels": [*TOPICS, "login", "billing"],
    "feature_names": ["password", "invoice"],
    "learner": "logistic-regression",
    "folds": 2,
}

CELSIUS = [[18.5, 3], [21.0, 1], [35.5, 2], [41.0, 4], [19.0, 2], [38.0, 1], [22.5, 3], [44.0, 2]]
STATES = ["fine", "fine", "worn", "worn", "fine", "worn", "fine", "worn"]
FAHRENHEIT = [[round(1.8 * row[0] + 32, 1), row[1]] for row in CELSIUS]

Examples = Mapping[str, object]
BODIES: Mapping[tuple[str, str], Examples] = {
    ("POST", "/v1/models"): {
        "Priors and a confusion matrix": {
            "name": "cards",
            "classes": ["legit", "fraud"],
            "source": COUNTED,
        },
        "Labelled scores to calibrate by": {
            "name": "scored-cards",
            "classes": ["legit", "fraud"],
            "source": {"validation": {"labels": LABELS, "posteriors": ROWS}},
        },
        "A classifier trained here": {
            "name": "tickets",
            "classes": ["login", "billing"],
            "source": {"training": TRAINED},
        },
        "A tree whose thresholds follow the batch": {
            "name": "machines",
            "kind": "versatile-tree",
            "classes": ["fine", "worn"],
            "source": {
                "training": {
                    "features": CELSIUS,
                    "labels": STATES,
                    "feature_names": ["temperature", "shifts"],
                    "max_depth": 3,
                }
            },
        },
        "A mixture of regressions": {
            "name": "city",
            "kind": "regression-mixture",
            "source": {
                "parameters": {
                    "proportions": [0.4, 0.6],
                    "coefficients": [[1.0, 2.0], [-2.0, 0.5]],
                    "sigmas": [0.3, 0.5],
                }
            },
        },
    },
    ("POST", "/v1/models/{name}/versions"): {
        "The next version": {"source": {**COUNTED, "metadata": {"commit": "4f2a9c1"}}}
    },
    ("PATCH", "/v1/models/{name}"): {"A description": {"description": "Card payments, weekly"}},
    ("PUT", "/v1/models/{name}/aliases/{alias}"): {"The first version": {"version": 1}},
    ("POST", f"{VERSION}/estimates"): {
        "Posteriors": {
            "posteriors": ROWS,
            "observed_at": "2026-01-31T00:00:00Z",
            "segment": {"country": "BE"},
        },
        "Posteriors by class": {
            "posteriors": {"legit": [row[0] for row in ROWS], "fraud": [row[1] for row in ROWS]},
            "include": ["posteriors"],
        },
        "Counts of predictions": {"predicted_counts": {"legit": 970, "fraud": 30}},
        "EM with its trace": {"posteriors": ROWS, "method": "em", "include": ["trace"]},
        "with counted scores": {"posteriors": ROWS, "include": ["histogram"]},
    },
    ("POST", f"{VERSION}/posteriors"): {
        "To the estimate of these rows": {"posteriors": ROWS},
        "To stated priors": {"posteriors": ROWS, "target_priors": {"legit": 0.95, "fraud": 0.05}},
        "With decisions of least cost": {"posteriors": ROWS, "costs": [[0, 1], [50, 0]]},
    },
    ("POST", f"{VERSION}/shift-tests"): {
        "Has it shifted?": {"posteriors": ROWS, "shift": {"minimum_effect": 0.01}}
    },
    ("POST", f"{VERSION}/region-tests"): {
        "Can fraud be 5 %?": {"posteriors": ROWS, "priors": {"legit": 0.95, "fraud": 0.05}}
    },
    ("POST", f"{VERSION}/bias-adjustments"): {
        "A logistic model's intercepts": {
            "intercepts": {"fraud": -4.6},
            "reference": "legit",
            "target_priors": {"legit": 0.95, "fraud": 0.05},
        }
    },
    ("POST", f"{VERSION}/adjusted-models"): {
        "To stated priors": {"target_priors": {"login": 0.3, "billing": 0.7}}
    },
    ("POST", f"{VERSION}/evaluations"): {"Late truth": {"posteriors": ROWS, "labels": LABELS}},
    ("POST", f"{VERSION}/adaptations"): {
        "The same machines in Fahrenheit": {
            "features": FAHRENHEIT,
            "columns": ["temperature", "shifts"],
            "include": ["predictions"],
        }
    },
    ("POST", "/v1/adaptations/{id}/predictions"): {
        "Further rows": {"features": [[65.3, 3], [105.8, 2]]}
    },
    ("POST", "/v1/monitors"): {
        "By hour and country": {
            "name": "cards-hourly",
            "model": "cards",
            "window": {"duration": "PT1H", "grace": "PT10M", "minimum_rows": 100},
            "segment_by": "country",
            "alert": {"false_alarms": 1, "per": "P30D"},
        },
        "By thousand rows, of one version": {
            "name": "cards-thousands",
            "model": "cards",
            "version": 1,
            "window": {"rows": 1000},
        },
    },
    ("PATCH", "/v1/monitors/{monitor}"): {
        "Another budget": {"alert": {"false_alarms": 1, "per": "P7D", "minimum_effect": 0.01}}
    },
    ("POST", "/v1/monitors/{monitor}/observations"): {
        "Rows of one country": {"posteriors": ROWS, "segment": {"country": "BE"}},
        "Rows with their times": {
            "posteriors": ROWS[:2],
            "observed_at": ["2026-01-31T00:05:00Z", "2026-01-31T00:07:30Z"],
            "segment": {"country": ["BE", "NL"]},
        },
    },
    ("PATCH", "/v1/alerts/{id}"): {
        "Somebody looks into it": {"state": "acknowledged", "note": "A campaign; until Friday"}
    },
    ("POST", "/v1/jobs"): {
        "A month of files, by country": {
            "kind": "estimate",
            "model": "cards",
            "alias": "champion",
            "dataset": {"path": "scores/2026-01/*.parquet", "filter": "amount > 10"},
            "group_by": ["country"],
        },
        "Adjusted files": {
            "kind": "adjust",
            "model": "cards",
            "dataset": {"path": "scores/2026-01/", "keys": ["transaction"]},
            "target_priors": {"legit": 0.95, "fraud": 0.05},
            "output": "adjusted/2026-01",
        },
    },
    ("POST", "/v1/webhooks"): {
        "Alerts of a model": {
            "url": "https://hooks.example.com/priorshift",
            "events": ["alert.opened", "alert.closed"],
            "models": ["cards"],
        }
    },
    ("PATCH", "/v1/webhooks/{id}"): {"Send nothing for now": {"disabled": True}},
    # Last: from the first key on, requests need one.
    ("POST", "/v1/api-keys"): {
        "For a scorer": {"name": "scorer", "scopes": ["read", "estimate"], "models": ["cards"]}
    },
}
PLACES: Mapping[str, str] = {
    "name": "cards",
    "version": "latest",
    "alias": "champion",
    "monitor": "cards-hourly",
}
"""What stands for the parts of an address."""
TRAINED_PLACES = {**PLACES, "name": "tickets"}
ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    f"{VERSION}/adjusted-models": TRAINED_PLACES,
    f"{VERSION}/parameters": TRAINED_PLACES,
    f"{VERSION}/adaptations": {**PLACES, "name": "machines"},
}
"""Addresses of another model."""


def places(address: str) -> Mapping[str, str]:
    """The parts of an address, by name."""
    return ELSEWHERE.get(address, PLACES)


def add(description: JsonObject) -> None:
    """Put them into an OpenAPI description."""
    for address, path in description["paths"].items():
        for method, operation in path.items():
            for parameter in operation.get("parameters", ()):
                name = parameter["name"]
                if parameter["in"] == "path" and name in PLACES:
                    parameter["example"] = places(address)[name]
            bodies = BODIES.get((method.upper(), address))
            if bodies is not None:
                content = operation["requestBody"]["content"]["application/json"]
                content["examples"] = {
                    name: {"summary": name, "value": value} for name, value in bodies.items()
                }
