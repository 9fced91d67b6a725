"""The library of the notebooks: models to capture, graphs to read, passes that fuse, fused operators.

Import the packages one by one (`from course_lib.graph import table`), since each loads only what it needs. In the
order of the lessons:

    doctor      doctor() checks whether this machine has what the course needs
    models      workload("bert_layer").build() gives a model with inputs
    capture     capture(model, inputs, mode="fx") gives its graph; compare_modes tries all modes
    graph       table(captured.graph_module), draw(...), cost(model, inputs): show and count
    fusion      fuse(model, inputs) gives a cheaper graph and reports refusals
    verify      verify(model, other, inputs): do two programs compute the same?
    kernels     the fused operators themselves, such as bias_gelu(x, bias)
    schedule    create_schedule(model): optimise a model without changing its definition
    backends    a backend of your own for torch.compile; `machine` is a toy target
    timing      time_callable, compare, decide_speedup: is it faster?
    profiling   profile_operators, inference_report: where does the time go?
    training    train a small language model on docstrings; the same with Lightning

    inductor_passes     graphs_at_hooks(function, inputs): what a pass inside Inductor sees
    kernel_programs     AccessLog, LiveBlocks: which program of a Triton kernel touches what
    launches            Graph, warm_up: capture launches once and replay them
    graph.viewers       open_in_netron, open_in_model_explorer: an exported program elsewhere
    predictions         predict, reveal: a guess before a cell runs, and what it measured

    show        tables with a text and an HTML form, quantities with their units
    errors      every error that is raised on purpose
"""
