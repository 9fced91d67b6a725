"""Right answers, as the course itself has them, in notebooks to which something happened: renamed, copied, tidied up.

Gets full marks, with a note on each repair: what was done to a notebook around its answers costs nothing.
"""

# %% solution 02_annotate = 6
# %% solution 02_count_bytes_and_flops = 14
# %% solution 02_find_the_flaw = 12
# %% solution 02_measure = 10
# %% solution 02_read_a_trace = 8

# %% do 02_measuring rename
# downloaded twice: the browser calls it '02_measuring (1).ipynb', and feedback comes back under that name

# %% solution 03_bias_gelu_script = 15
# %% solution 03_expose_a_trace = 8
# %% solution 03_fused_groups = 10
# %% solution 03_limits = 4
# %% solution 03_make_it_scriptable = 10
# %% solution 03_predict_capture = 8

# %% do 03_torchscript several_copies
# check cells were copied, with the metadata that nbgrader gave them

# %% solution 06_find_bias_gelu = 8
# %% solution 06_fuse_block_ends = 15
# %% solution 06_replace_attention = 8
# %% solution 06_schedule_encoder = 10
# %% solution 06_separate_biases = 6
# %% solution 06_trace_by_need = 8

# %% do 06_schedules no_metadata_version
# saved by another editor, which kept of the metadata what it knew

# %% solution 08_backward_by_hand = 12
# %% solution 08_decompose = 12
# %% solution 08_functionalise = 8
# %% solution 08_partition = 17
# %% solution 08_read_joint = 6

# %% do 08_aot_autograd delete_check
# check cells were deleted, to tidy up
