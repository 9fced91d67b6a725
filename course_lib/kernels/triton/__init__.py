"""Triton kernels of the fused operators, imported only when one of them runs.

Not yet run on CUDA; tested in Triton's interpreter on the CPU.
"""
