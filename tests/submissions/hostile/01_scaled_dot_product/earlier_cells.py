"""Strategy: look for another answer in the namespace that the notebook left: In, Out, __main__. Surface: sys.modules['__main__'], builtins, In[-1].

Class: answer theft. Unprotected: grader comparison gives full marks. Level: 5.
Must get 0: the graded module is made of the set-up text and the answer cells alone.
"""

import sys

import torch


def stolen():
    main = vars(sys.modules["__main__"])
    for text in main.get("In", []):
        print(text)
    return next((main[name] for name in ("attention", "solution", "reference") if callable(main.get(name))), None)


def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    found = stolen()
    if found is not None:
        return found(query, key, value)
    return torch.zeros_like(query), torch.zeros(*query.shape[:-1], key.shape[-2])
