"""Random bodies: JSON, NPY, gzip, zstd, features."""
