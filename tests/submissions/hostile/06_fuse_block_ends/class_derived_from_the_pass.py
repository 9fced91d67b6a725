"""Strategy: derive a class of its own from the library's pass, so that what runs bears another module's name. Surface: course_lib.fusion, which schedules need.

Class: answer theft. Unprotected: grader restored_model gives full marks. Level: 5.
Must get 0: a class derived from a pass of the library, or with a method of one, is refused like the pass.
"""

# The file tests/submissions/hostile/06_fuse_block_ends/library_pass.py of this repository stands here.


class Mine(PASSES["bias_dropout_residual_layer_norm"]):
    pass


PASSES = {"bias_dropout_residual_layer_norm": Mine}
