"""The thesis's experiment (chapter 7, algorithms 3 and 4) with this project's estimators.

python -m benchmarks.thesis [--data DIR] [--runs 20] [--forest-runs 4] [--betas .1 … .9]
    [--sets NAME …] [--learners logistic forest one-vs-rest] [--trees 200] [--rows 1500]
    [--seconds S] [--seed 1]

A data set is halved, the training half loses rows of some classes (β is the share that is kept),
a classifier learns there, and every method estimates the class shares of the other half, which
are those from before. DIR holds the thesis's data sets as CSV, the label in the column ``target``;
without it, those that ship with scikit-learn are used.
"""
