"""Distribution feature matching: shares for which the classes' mean features mix to the batch's.

Dussap, Blanchard and Chérief-Abdellatif (2023). With Φ a feature map, argmin over the simplex of
½‖Σ_k a_k Φ(P_k) − Φ(Q)‖²; soft, Σ a ≤ 1 and 1 − Σ a is the share of what is none of the classes.
"""
