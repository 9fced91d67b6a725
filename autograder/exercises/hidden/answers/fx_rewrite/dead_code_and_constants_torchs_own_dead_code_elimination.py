def clean_up(gm):
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm
