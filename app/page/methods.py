"""What each method is and needs, in a line."""

from collections.abc import Mapping

from app.estimation.methods import Method

NEEDS: Mapping[Method, tuple[str, str]] = {
    "cc": ("counts decisions; keeps the source's bias", "posteriors, or predictions"),
    "pcc": ("averages posteriors; keeps the source's bias", "posteriors"),
    "acc": ("inverts the confusion matrix", "a confusion matrix"),
    "acc-qp": ("the same within the simplex, by least squares", "a confusion matrix"),
    "pacc-qp": ("the same with mean posteriors", "posteriors, a validation set"),
    "bayes": ("the posterior mean under a Dirichlet prior", "calibrated posteriors"),
    "cde": (
        "moves the decision's threshold until it agrees",
        "two classes, posteriors",
    ),
    "em": ("maximum likelihood by expectation and maximisation", "calibrated posteriors"),
    "em-stop": ("the same, stopped where labelled rows say so", "posteriors, a validation set"),
    "mle": ("maximum likelihood by Newton steps, to the last digit", "calibrated posteriors"),
    "kmm-gaussian": ("matches kernel means of features", "features of labelled rows"),
    "kmm-energy": ("matches by energy distance", "features of labelled rows"),
    "rffm": ("matches random features", "features of labelled rows"),
}
