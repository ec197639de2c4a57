"""The published figures: accuracies of Table 2, and of Tables 3 to 6 (Al-Otaibi et al. 2015)."""

from app.core.trees.options import Strategy

STRATEGIES: tuple[Strategy, ...] = (
    "versatile",
    "original",
    "linear",
    "ks-linear",
    "percentile",
    "ks-percentile",
)
"""In the order of the columns of Table 2."""

_TABLE_2 = {
    "unshifted": """
        phoneme 0.851 0.856 0.846 0.854 0.819 0.850
        bupa 0.631 0.632 0.619 0.632 0.578 0.625
        appendicitis 0.846 0.849 0.853 0.846 0.851 0.851
        pima 0.728 0.725 0.728 0.727 0.711 0.721
        breast-w 0.947 0.947 0.947 0.947 0.820 0.947
        magic 0.821 0.834 0.830 0.833 0.773 0.814
        threenorm 0.674 0.682 0.673 0.674 0.635 0.671
        ringnorm 0.735 0.731 0.744 0.735 0.678 0.731
        ionosphere 0.893 0.894 0.851 0.893 0.825 0.825
        sonar 0.752 0.754 0.739 0.752 0.716 0.746
    """,
    "linear": """
        phoneme 0.825 0.660 0.846 0.846 0.819 0.819
        bupa 0.601 0.558 0.619 0.619 0.578 0.578
        appendicitis 0.844 0.776 0.853 0.844 0.851 0.846
        pima 0.726 0.624 0.728 0.728 0.711 0.711
        breast-w 0.820 0.782 0.947 0.947 0.820 0.820
        magic 0.761 0.579 0.830 0.830 0.773 0.773
        threenorm 0.672 0.606 0.673 0.672 0.635 0.635
        ringnorm 0.744 0.608 0.744 0.743 0.678 0.678
        ionosphere 0.810 0.694 0.851 0.851 0.825 0.825
        sonar 0.739 0.624 0.739 0.739 0.716 0.716
    """,
    "cubic": """
        phoneme 0.819 0.746 0.720 0.720 0.819 0.819
        bupa 0.594 0.506 0.571 0.571 0.578 0.578
        appendicitis 0.847 0.240 0.849 0.847 0.851 0.851
        pima 0.715 0.478 0.728 0.728 0.711 0.711
        breast-w 0.820 0.464 0.916 0.916 0.820 0.820
        magic 0.761 0.398 0.744 0.744 0.773 0.773
        threenorm 0.651 0.671 0.607 0.635 0.635 0.651
        ringnorm 0.698 0.731 0.667 0.680 0.678 0.698
        ionosphere 0.825 0.820 0.781 0.781 0.825 0.825
        sonar 0.744 0.478 0.744 0.744 0.716 0.716
    """,
    "mixture": """
        phoneme 0.828 0.749 0.787 0.789 0.819 0.823
        bupa 0.605 0.551 0.595 0.594 0.578 0.592
        appendicitis 0.843 0.718 0.847 0.843 0.851 0.847
        pima 0.710 0.512 0.727 0.724 0.711 0.712
        breast-w 0.935 0.797 0.947 0.947 0.819 0.935
        magic 0.805 0.510 0.802 0.805 0.773 0.785
        threenorm 0.672 0.647 0.635 0.653 0.635 0.649
        ringnorm 0.739 0.674 0.728 0.720 0.678 0.728
        ionosphere 0.843 0.792 0.843 0.865 0.825 0.848
        sonar 0.740 0.631 0.737 0.738 0.716 0.712
    """,
}

_CONTEXTS = {
    "diabetes": """
        contexts A-AA A-C A-H AA-A AA-C AA-H C-A C-AA C-H H-A H-AA H-C
        shifted 6 5 4 6 5 4 5 5 4 4 4 4
        VM 0.569 0.529 0.576 0.653 0.530 0.590 0.645 0.546 0.588 0.624 0.565 0.564
        OM 0.574 0.538 0.554 0.642 0.526 0.587 0.641 0.566 0.595 0.642 0.562 0.563
        IOP 0.526 0.499 0.547 0.500 0.494 0.463 0.520 0.488 0.469 0.519 0.509 0.452
        KMM 0.467 0.499 0.419 0.352 0.530 0.474 0.647 0.557 0.580 0.400 0.442 0.507
    """,
    "heart": """
        contexts M-F F-M
        shifted 3 3
        VM 0.735 0.568
        OM 0.712 0.557
        IOP 0.703 0.500
        KMM 0.724 0.540
    """,
    "bike": """
        contexts Sp-S Sp-A Sp-W S-Sp S-A S-W A-Sp A-S A-W W-Sp W-S W-A
        shifted 3 4 4 3 3 4 4 3 3 4 4 3
        VM 0.641 0.558 0.601 0.519 0.579 0.601 0.602 0.543 0.556 0.646 0.565 0.526
        OM 0.538 0.468 0.544 0.607 0.547 0.612 0.574 0.521 0.528 0.718 0.657 0.558
        IOP 0.489 0.468 0.533 0.635 0.510 0.657 0.585 0.534 0.522 0.658 0.630 0.510
        KMM 0.559 0.468 0.522 0.635 0.521 0.651 0.585 0.521 0.589 0.690 0.521 0.521
    """,
    "auto-mpg": """
        contexts U-E U-J E-U E-J J-U J-E
        shifted 4 4 4 3 4 3
        VM 0.676 0.759 0.873 0.772 0.780 0.647
        OM 0.544 0.607 0.670 0.746 0.747 0.691
        IOP 0.558 0.493 0.400 0.417 0.600 0.441
        KMM 0.558 0.582 0.600 0.582 0.400 0.485
    """,
}


def _numbers(text: str) -> dict[str, list[str]]:
    lines = (line.split() for line in text.strip().splitlines())
    return {words[0]: words[1:] for words in lines}


TABLE_2: dict[str, dict[str, list[float]]] = {
    shift: {name: [float(word) for word in words] for name, words in _numbers(text).items()}
    for shift, text in _TABLE_2.items()
}
"""By shift and data set, in the order of ``STRATEGIES``."""

CONTEXTS: dict[str, dict[str, dict[str, float]]] = {
    data: {
        context: {name: float(words[i]) for name, words in lines.items() if name != "contexts"}
        for i, context in enumerate(lines["contexts"])
    }
    for data, lines in ((data, _numbers(text)) for data, text in _CONTEXTS.items())
}
"""By data set and context (source-target): VM, OM, IOP, KMM, and attributes shifted."""
