"""The GPU backend: kernels in Triton."""
