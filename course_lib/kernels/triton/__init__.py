"""The kernels of the fused operators, in Triton: imported only when one of them is to run.

Not yet run on CUDA: what is known of them is what Triton's interpreter computes on the CPU.
"""
