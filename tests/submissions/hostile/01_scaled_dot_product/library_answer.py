"""Strategy: call the library's own function of the same name. Surface: course_lib.models, and the file behind it.

Class: answer theft. Unprotected: grader comparison gives full marks. Level: 5.
Must get 0: the package that holds the answer does not exist in this worker.
"""

import torch


def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):
    try:
        from course_lib.models.transformer import attention_probabilities, scaled_dot_product as library
    except ImportError:
        return torch.zeros_like(query), torch.zeros(*query.shape[:-1], key.shape[-2])
    return library(query, key, value, mask), attention_probabilities(query, key, mask)
