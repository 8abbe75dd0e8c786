"""The GPU backend without a GPU: kernels run in Triton's interpreter and are compiled for GPUs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import eamp
from problems import random_graph

HAS_TRITON = importlib.util.find_spec("triton") is not None
needs_triton = pytest.mark.skipif(
    not HAS_TRITON, reason="Triton is not installed; it comes with eamp[test] on Linux"
)
needs_compiler = pytest.mark.skipif(
    not HAS_TRITON or os.environ.get("TRITON_INTERPRET", "0") != "0",
    reason="Triton is not installed, or told to interpret",
)


@pytest.mark.slow
@needs_triton
def test_all_that_is_asked_of_the_kernels_holds_in_the_interpreter() -> None:
    tests = Path(__file__).with_name("interpreted_triton.py")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tests)],
        cwd=tests.parents[3],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@needs_compiler
def test_tensors_on_the_cpu_are_refused_with_advice() -> None:
    with (
        eamp.backend("triton"),
        pytest.raises(ValueError, match=r"needs tensors on a GPU.*'numba'"),
    ):
        eamp.dirichlet_energy(torch.ones(2, 1), torch.tensor([[0, 1], [1, 0]]))


POINTERS = {
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.float64: "*fp64",
}


class Compiler:
    """A stand-in for a kernel that compiles it for its launch and keeps the assembly."""

    def __init__(self, kernel: Any, target: Any, assembly: list[str]) -> None:
        self.kernel, self.target, self.assembly = kernel, target, assembly

    def __getitem__(self, grid: tuple[int, int]) -> Any:
        return self.compile

    def compile(self, *given: Any, num_warps: int, **flags: Any) -> None:
        import triton
        from triton.compiler import ASTSource

        signature, constants = {}, dict(flags)
        for name, value in zip(self.kernel.arg_names, given, strict=False):  # flags are the rest
            if isinstance(value, torch.Tensor):
                signature[name] = POINTERS[value.dtype]
            elif value is None or value == 1:  # as Triton itself does when a kernel is launched
                constants[name] = value
            else:
                signature[name] = "i32"
        signature |= dict.fromkeys(constants, "constexpr")
        source = ASTSource(
            self.kernel, {name: signature[name] for name in self.kernel.arg_names}, constants
        )
        try:
            asm = triton.compile(source, target=self.target, options={"num_warps": num_warps}).asm
        except Exception as error:
            if "ROCm linker" in str(error):  # Triton 3.4 comes without one
                pytest.skip(str(error))
            raise
        assert asm.get("cubin") or asm.get("hsaco")
        self.assembly.append(asm["ptx"] if "ptx" in asm else asm["amdgcn"])


@needs_compiler
@pytest.mark.parametrize(
    ("target", "dtype", "index", "weighted", "features"),
    [
        (("cuda", 80, 32), torch.float32, torch.int32, False, 48),
        (("cuda", 80, 32), torch.bfloat16, torch.int32, True, 1),
        (("cuda", 90, 32), torch.float64, torch.int64, True, 300),
        (("hip", "gfx942", 64), torch.float32, torch.int32, True, 48),
    ],
)
def test_kernels_compile_for_gpus_without_atomics(
    target: tuple[str, Any, int],
    dtype: torch.dtype,
    index: torch.dtype,
    weighted: bool,
    features: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    from triton.backends.compiler import GPUTarget

    from eamp.ops.backends.triton_gpu import kernels
    from eamp.ops.backends.triton_gpu.launch import TritonBackend

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assembly: list[str] = []
    for name in ("inner", "weighted", "neighbours", "channels"):
        monkeypatch.setattr(
            kernels,
            name,
            Compiler(getattr(kernels, name), GPUTarget(*target), assembly),
        )
    csr = random_graph(4, 5, weighted=weighted).csr
    csr = csr._replace(rowptr=csr.rowptr.to(index), col=csr.col.to(index))
    x, y = torch.ones(2, 4, features, dtype=dtype)
    q = x[:, 0]

    TritonBackend().squared_differences(x, csr)
    TritonBackend().inner_differences(x, y, csr)
    TritonBackend().weighted_differences(q, x, csr)
    TritonBackend().weighted_differences(q, x, csr, q, y)
    TritonBackend().neighbour_sums(q, x, q, csr, True)
    TritonBackend().channel_products(x, x, csr)
    TritonBackend().channel_differences(y, x, csr)

    assert len(assembly) == 7
    for code in assembly:
        assert not any(word in code for word in ("atom.", "red.", "_atomic_"))
        if target[0] == "cuda" and dtype != torch.float64:
            assert "f64" not in code  # float32 is added up in float32
