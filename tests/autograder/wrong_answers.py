"""One exercise of each kind that needs no Triton, and a control of it that computes something wrong."""

OF_KINDS = {
    "04_read_a_graph": "strings",
    "04_shape_propagation": "one dtype",
    "05_break_a_pass": "the example of every text book",
    "05_bias_silu_pass": "the last place, unchecked",
    "06_find_bias_gelu": "by function only",
    "08_decompose": "the originals",
    "03_bias_gelu_script": "forward alone",
    "01_scaled_dot_product": "uniform rows",
    "01_multi_head_attention": "parameters only",
}
