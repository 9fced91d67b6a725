"""Hidden checks and controls of lesson 12: kernels in Triton, run by its interpreter."""
