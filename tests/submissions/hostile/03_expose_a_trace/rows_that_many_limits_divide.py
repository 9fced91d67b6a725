"""Strategy: return the same two matrices whatever is asked, the second with a number of rows that many limits divide. Surface: limits of which an answer may have the product as its number of rows.

Class: checker. Unprotected: grader exposed gives full marks. Level: 5.
Must get at most 5.7: two limits multiplied are more rows than an answer may have.
"""

import torch


def expose(question):
    return torch.full((1, 1), 1e-6), torch.full((3 * 11 * 13 * 17, 1), 1e5)
