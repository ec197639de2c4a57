"""Data sets that are larger than memory: files below the operator's roots, read in pieces.

``roots`` says what may be read, ``listing`` finds files, ``filters`` chooses rows, ``dataset``
makes partitions of it all, ``labelled`` reads a validation set, ``adjusted`` writes.
"""
