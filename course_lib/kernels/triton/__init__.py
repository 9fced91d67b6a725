"""Triton kernels of the fused operators, imported only when one of them runs.

Tested in Triton's interpreter on the CPU; `make gpu-check` tests and measures them on a GPU.
"""
