def fused_groups(data):
    from course_lib.capture.fusion_groups import _groups

    return [{"kind": g.kind, "operators": list(g.operators)} for g in _groups(graph_of(data))]
