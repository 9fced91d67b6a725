"""In every notebook some answers right, some wrong, some never begun: each mistake is one that people make, and has a name.

Gets in every exercise what is right of it: full marks, the marks of its control, or nothing for a cell left as released.
"""

# %% solution 00_doctor = 2
# %% mistake 00_read_a_table = 2: the output is dead
# nobody reads the output either, but it is what the graph is for

# %% solution 01_scaled_dot_product = 10
# %% solution 01_multi_head_attention = 12
# %% mistake 01_bert_layer = 9: every layer is the first one
# %% mistake 01_mlm_batches = 8: all behind the mask
# %% mistake 01_train = 10: seeded too late
# %% unanswered 01_break_attention

# %% solution 02_find_the_flaw = 12
# %% mistake 02_measure = 6: in blocks
# %% unanswered 02_read_a_trace
# %% mistake 02_annotate = 4.5: ranges stay open
# %% mistake 02_count_bytes_and_flops = 12: views that cost

# %% mistake 03_predict_capture = 5: sizes are frozen too
# %% mistake 03_make_it_scriptable = 5.5: forgets
# %% unanswered 03_expose_a_trace
# %% mistake 03_bias_gelu_script = 13.5: summed over the first dimension
# %% mistake 03_fused_groups = 2.5: the top level only
# %% solution 03_limits = 4

# %% solution 04_read_a_graph = 6
# %% mistake 04_custom_tracer = 3: by path
# %% mistake 04_choose_escape = 1.5: gives up too early
# %% mistake 04_shape_propagation = 6.5: one dtype
# %% mistake 04_cost_annotator = 6: nothing is freed
# %% unanswered 04_render_graph

# %% solution 05_fix_the_self_cycle = 6
# %% mistake 05_dead_code_and_constants = 1.5: torch's own dead code elimination
# %% mistake 05_common_subexpressions = 4.8: compares texts
# %% mistake 05_fold_affine = 4.25: without the shift
# %% unanswered 05_bias_silu_pass
# %% unanswered 05_scale_dropout_rms_norm_pass
# %% mistake 05_break_a_pass = 7: bias and keywords only

# %% mistake 06_separate_biases = 4: the first layer only
# %% mistake 06_trace_by_need = 5: by the paths that we know
# %% mistake 06_find_bias_gelu = 6: by function only
# %% unanswered 06_fuse_block_ends
# %% mistake 06_replace_attention = 0: scaled twice
# %% unanswered 06_schedule_encoder

# %% solution 07_read_guards = 8
# %% mistake 07_predict_graphs = 5.5: no loops
# %% unanswered 07_remove_breaks
# %% unanswered 07_tame_recompiles
# %% mistake 07_capture_backend = 1: graphs of all time
# %% mistake 07_break_dynamo = 6: inputs that anybody would notice

# %% solution 08_functionalise = 8
# %% mistake 08_decompose = 10: in the inputs' precision
# %% unanswered 08_read_joint
# %% mistake 08_partition = 0: rows of backward
# %% mistake 08_backward_by_hand = 0: autograd

# %% mistake 09_predict_kernels = 0: one kernel, always
# %% solution 09_reach_byte_minimum = 14
# %% solution 09_read_generated_code = 8
# %% unanswered 09_blocker_hunt
# %% mistake 09_config_experiment = 0: the demonstration

# %% mistake 10_find_the_bad_passes = 5.5: one by one
# %% mistake 10_fuse_where_it_pays = 6.5: the time of one launch
# %% solution 10_minimal_backend = 8
# %% mistake 10_lower_regions = 17: the mean is a sum
# %% mistake 10_support_predicate = 7.5: the result is not looked at
# %% mistake 10_partition_without_cycles = 15: as early as possible
# %% mistake 11_correct_operator = 7.2: no write declared
# %% solution 11_find_the_lie = 10
# %% mistake 11_pass_identity = 6: without the limit
# %% unanswered 11_place_the_pass
# %% unanswered 11_refuse_look_alikes
# %% unanswered 11_replace_block_end
# %% solution 12_masked_blend = 6
# %% unanswered 12_bias_quick_gelu
# %% unanswered 12_long_softmax
# %% unanswered 12_layer_norm
# %% solution 12_block_end_forward = 16
# %% mistake 12_block_end_backward = 9: no seed
# %% mistake 12_block_end_operator = 3: no derivative
# %% solution 13_predict_backend = 6
# %% mistake 13_online_softmax = 9: nan after a masked block
# %% unanswered 13_tiled_attention
# %% mistake 14_diff_graphs = 7.5: a set of classes
# %% mistake 14_export_open = 9: no ranges
# %% mistake 14_guard_package = 5: no dtypes
# %% unanswered 14_repair_exports
# %% mistake 14_tell_exports_apart = 8.5: no halves
# %% unanswered 15_find_violations
# %% mistake 15_launch_bound = 3: replays launch each kernel
# %% mistake 15_replay_by_shape = 8.5: no clone of the result
# %% mistake 15_train_by_replay = 6: state of the warm-up
# %% mistake 13_score_mods = 8: one slope for all
# %% mistake 13_choose_attention = 6.5: dropout is fused on a CPU
# %% mistake 16_port_trainer = 8: no seed for dropout
# %% unanswered 16_compile_task
# %% mistake 16_counter_callback = 7: counts batches
# %% mistake 17_baseline = 9.5: no environment
# %% mistake 17_optimise_step = 0: a p by heart
# %% unanswered 17_review_fusion
# %% mistake 17_work_log = 3.5: a dead end that was kept
