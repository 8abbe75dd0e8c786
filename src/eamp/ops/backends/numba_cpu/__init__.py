"""The CPU backend: kernels compiled by Numba, on the threads of torch."""
