def first_differences(before, after):
    from course_lib.graph.diff import diff

    found = diff(before, after)
    return list(found.removed), list(found.added)
