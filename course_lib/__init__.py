"""What the notebooks import: models to capture, graphs to read, passes that fuse, operators to fuse onto.

The packages are imported one by one (`from course_lib.graph import table`), so that each costs only what
it needs. In the order in which one needs them:

    doctor      doctor() looks whether this machine has what the course needs
    models      workload("bert_layer").build() gives a model with inputs
    capture     capture(model, inputs, mode="fx") gives its graph; compare_modes tries all modes
    graph       table(captured.graph_module), draw(...), cost(model, inputs): look, and count
    fusion      fuse(model, inputs) gives a cheaper graph and says what it left alone; verify compares both
    kernels     the fused operators themselves, such as bias_gelu(x, bias)
    schedule    create_schedule(model): say beside the model how it is to be computed
    backends    a backend of your own for torch.compile; machine is a toy to compile for
    timing      time_callable, compare, decide_speedup: is it faster?
    profiling   profile_operators, inference_report: where does the time go?
    training    train a small language model on what is on every machine
    errors      every error that is raised on purpose
"""
