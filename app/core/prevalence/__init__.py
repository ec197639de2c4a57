"""Class shares of an unlabelled population, from a classifier trained at other shares.

Letters as in the papers: ``p0`` source priors, ``p`` target priors, ``g`` posteriors of the
source classifier (N × C), ``M`` the confusion matrix with one column per true class
(``M[j, k] = P(output j | class k)``), ``v`` output shares of the batch, ``m`` the
Karush-Kuhn-Tucker multipliers of the likelihood.
"""
